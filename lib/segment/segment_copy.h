/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_copy.h - a segment to a place on another device
 *
 * Slots go over verbatim, metadata blocks sealed anew for where they lie. On
 * the way every slot is held against its checksum and its digest, every digest
 * against the tree and its root, every block against its checksum. What an
 * interrupted copy to the same place left is found, as far as it is whole, and
 * not sent again: units go out in order, and never more than
 * STELE_COPY_WINDOW ahead of the oldest one that is not done, so behind the
 * first one that is not whole there are no more than that to look for.
 */
#ifndef STELE_SEGMENT_SEGMENT_COPY_H
#define STELE_SEGMENT_SEGMENT_COPY_H

#include "lib/image/snapshot.h"

#define STELE_COPY_WINDOW   64u /* units */
#define STELE_COPY_JOBS_MAX 32u

struct stele_segment_copy {
	/* The caller's to set. */
	const struct stele_image *image; /* of the source */
	const struct stele_segment *segment;
	struct stele_device *to;
	uint64_t to_offset; /* whole blocks; a multiple of its boundary */
	unsigned int jobs;  /* threads, 1 to STELE_COPY_JOBS_MAX */
	bool only_look;	    /* send nothing: -ENODATA if it is not whole there */
	const struct stele_deleted *only; /* of that, these samples alone; NULL: all of it */
	/* From the calling thread, every STELE_PROGRESS_MS; nonzero: stop. */
	int (*progress)(void *user, uint64_t bytes, uint64_t samples);
	void *progress_user;

	/* Bytes of the segment; together all of it when it went well. */
	uint64_t sent_size, resumed_size;
	uint64_t sample_count; /* of its samples, deleted ones too, those that are there */
	uint64_t damaged; /* after -ENODATA with `only`: number of one; UINT64_MAX: unreadable */
};

/*
 * Copy, without a flush. Return: 0; -EBADMSG, -EUCLEAN (the source; logged);
 * -ECANCELED; -ENOMEM; -ENODATA (only_look); errno of either device (logged).
 */
int stele_segment_copy(struct stele_segment_copy *copy);

#endif

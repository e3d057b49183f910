/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - one sample from the source into its slot
 *
 * One pass: bytes are read right into the chunk that is written, and checksum
 * and digest are taken on the way. A sample that turns out not to be what was
 * planned fails the build, or becomes a void record; what of it was written
 * already is then wiped at the end, see stele_pack_wipe().
 */
#ifndef STELE_SEGMENT_PACK_H
#define STELE_SEGMENT_PACK_H

#include "lib/image/record_stream.h"
#include "lib/segment/plan.h"
#include "lib/segment/stream.h"
#include "lib/source/reader.h"

struct stele_packer {
	const struct stele_plan *plan;
	struct stele_builder *builder;
	struct stele_source_reader reader; /* the sample at hand, until the next */
	const bool *stop; /* atomic; looked at within large samples, too */
	uint64_t *bytes;  /* atomic; grows with all that comes from the source */
	struct stele_stream stream;
	struct stele_hash *hash;
	uint64_t *places; /* owned: of the unit's samples, as the source expects them */
	uint32_t crc;
	uint8_t tail[STELE_RECORD_TAIL_MAX];
};

/* A sample that became void, and how many bytes of its slot were written. */
struct stele_void {
	uint64_t number;
	uint64_t written;
};

/*
 * Put the slot of `number` into the stream, which has just come to it.
 * Return: 0; 1 (became void: *gone is set); -ECANCELED (*stop); negative errno.
 */
int stele_pack(struct stele_packer *packer, uint64_t number,
	       uint8_t digest[32], struct stele_void *gone);
/* The same of a dry run: only look whether the sample can be had. Return: 0; 1; errno. */
int stele_pack_look(struct stele_packer *packer, uint64_t number,
		    struct stele_void *gone);
/* So many zeros, which no checksum counts. Return: 0; errno of the device. */
int stele_pack_zeros(struct stele_packer *packer, uint64_t size);

/* Zero what was written of a void sample; nothing else writes any more. */
int stele_pack_wipe(const struct stele_plan *plan, struct stele_device *dev,
		    const struct stele_void *gone);

#endif

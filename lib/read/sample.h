/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - from an id to the blocks that hold it, and from bytes to a sample
 *
 * All ways to read (one-shot, reader, view) share these two steps; between
 * them they differ only in how the blocks get into memory. Both are
 * arithmetic: no I/O but of damage, and the digests of STELE_VERIFY_DIGEST, no allocation.
 */
#ifndef STELE_READ_SAMPLE_H
#define STELE_READ_SAMPLE_H

#include "lib/read/dataset.h"

struct stele_proof;

/* Where a sample lies. Offsets are bytes on the target. */
struct stele_slot {
	uint64_t id;
	const struct stele_segment *segment;
	uint64_t number;
	uint64_t offset;      /* of the slot */
	uint64_t size;	      /* of the slot */
	uint64_t read_offset; /* of the first logical block that it touches */
	uint64_t read_size;   /* to the end of the last one */
};

/* Return: 0; -ERANGE; -EUCLEAN (the slot lies behind all offsets). */
int stele_slot_locate(const struct stele_dataset *ds, uint64_t id,
		      struct stele_slot *out);

/*
 * What reading it gave in the end: -ESTALE instead of damage when the snapshot is
 * not there any more (asked by I/O); else `error`.
 */
int stele_slot_judge(const struct stele_dataset *ds,
		     const struct stele_slot *slot, int error);

/*
 * Make a sample of the slot at `data`: find its parts, and check as `verify`
 * says; `proof` is needed for DIGEST only. Sets every member of *sample but tag
 * and buffer; on an error data, key and tail are NULL. A checksum that
 * does not match is logged at `level`: INFO by who reads it again; other damage as an error.
 * Return, and sample->status: 0; -EBADMSG; -EUCLEAN; -ESTALE (in place of either, of what is not
 * read again; see stele_image_judge()); for DIGEST errors of reading the digests section.
 */
int stele_sample_decode(const struct stele_dataset *ds,
			const struct stele_slot *slot, const void *data,
			enum stele_verify verify, struct stele_proof *proof,
			enum stele_log_level level,
			struct stele_sample *sample);

/* What is wrong with its record, and where. */
void stele_slot_log_damage(const struct stele_dataset *ds, const struct stele_slot *slot,
			   enum stele_log_level level, const char *why);
/* After a read that followed one with a wrong checksum, which is worth a warning. */
void stele_slot_log_again(const struct stele_dataset *ds,
			  const struct stele_slot *slot);

/*
 * Read it from the device, and decode. In any case sample->buffer is NULL or what was
 * allocated for it: free() that.
 * Return: as stele_sample_decode(); -ENOMEM; device errno.
 */
int stele_sample_read(const struct stele_dataset *ds,
		      const struct stele_slot *slot, enum stele_verify verify,
		      struct stele_proof *proof, enum stele_log_level level,
		      struct stele_sample *sample);

#endif

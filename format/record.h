/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the contents of a slot
 *
 *	| payload | zero padding | key | field ends | scalars | trailer |
 *	^ slot start                                             slot end ^
 *
 * The tail (from the key on) is found from the slot's end. The checksum covers
 * every byte of the slot except itself, and is seeded with the segment's id and
 * the sample's number in it, which are not stored: a misdirected or stale
 * record fails like a damaged one. stele-format(5), "Records".
 */
#ifndef STELE_FORMAT_RECORD_H
#define STELE_FORMAT_RECORD_H

#include "format/checked.h"
#include "format/le.h"
#include "format/run.h"

#define STELE_TRAILER_SIZE     16u
#define STELE_PAYLOAD_SIZE_MAX ((UINT64_C(1) << 47) - 1)
#define STELE_RECORD_KEY_MAX   4000u

enum stele_record_flags {
	/*
	 * A hole, never a sample: its source vanished after the layout was fixed.
	 * Payload and key are empty, ends and scalars 0; always deleted.
	 */
	STELE_RECORD_VOID = 1 << 0,
};
#define STELE_RECORD_FLAGS_KNOWN STELE_RECORD_VOID

struct stele_disk_trailer {
/*00*/	le48 payload_size;
/*06*/	le16 reserved; /* zero */
/*08*/	le16 key_size;
/*0a*/	le16 flags; /* enum stele_record_flags */
/*0c*/	le32 crc;
};
STELE_CHECK_SIZE(struct stele_disk_trailer, 16);
STELE_CHECK_OFFSET(struct stele_disk_trailer, crc, 0x0c);

/* The parts of the schema that determine the layout of a record. */
struct stele_record_shape {
	uint32_t bytes_count;  /* bytes, utf8 and tensor fields */
	uint32_t scalar_count; /* i64 and f64 fields */
};

struct stele_record {
	const uint8_t *payload;
	uint64_t payload_size;
	const char *key;
	uint32_t key_size;
	uint32_t flags;
	uint32_t crc;	     /* as stored */
	const le64 *ends;    /* bytes_count - 1; the last is payload_size */
	const le64 *scalars; /* in the order of their fields */
};

/* Tail without the key: ends, scalars, trailer. */
uint32_t stele_record_tail_fixed(const struct stele_record_shape *shape);
/* payload + key + tail; false when over STELE_SLOT_SIZE_MAX. */
bool stele_record_size(const struct stele_record_shape *shape,
		       uint64_t payload_size, uint32_t key_size,
		       uint64_t *size);

/*
 * Write a tail, its crc zero, so that it ends at `slot_end`. `ends` holds
 * bytes_count - 1 values. Returns the size of the tail.
 */
size_t stele_record_put_tail(const struct stele_record_shape *shape,
			     uint8_t *slot_end, uint64_t payload_size,
			     const char *key, uint32_t key_size,
			     const uint64_t *ends, const uint64_t *scalars,
			     uint32_t flags);

/* Seed of a slot's checksum: crc32c of le64 id, le64 number. */
uint32_t stele_record_seed(uint64_t segment_id, uint64_t number);
/* Checksum of a whole slot: the seed, then all bytes but the last four. */
uint32_t stele_record_crc(uint64_t segment_id, uint64_t number,
			  const void *slot, uint64_t slot_size);

/*
 * Find the parts of a record. Does not verify the checksum: compare
 * stele_record_crc() with out->crc, unless the caller asked not to. The parts are within
 * the slot even if somebody writes to it meanwhile; ends may change until they are read.
 * Return: 0; -EUCLEAN (reserved not zero; unknown flags; key or payload do not
 * fit the slot; ends not ascending or beyond the payload; no key, or a NUL byte
 * in it; a hole that is not empty).
 */
int stele_record_decode(const void *slot, uint64_t slot_size,
			const struct stele_record_shape *shape,
			struct stele_record *out, const char **why);

/*
 * The same with only the last `tail_size` bytes of the slot in memory, for
 * records that are streamed; out->payload is NULL.
 */
int stele_record_decode_tail(const void *tail, uint64_t tail_size,
			     uint64_t slot_size,
			     const struct stele_record_shape *shape,
			     struct stele_record *out, const char **why);

/*
 * Of a piece of a slot with the bytes [at, at + size), in any coordinates, the part
 * in [from, to). If there is none, part_size is 0.
 */
const uint8_t *stele_record_part(const uint8_t *data, uint64_t at,
				 uint64_t size, uint64_t from, uint64_t to,
				 uint64_t *part_size);

#endif

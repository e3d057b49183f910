/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - are the bytes of a slot a valid record of this segment and number?
 *
 * The one place that says so, for readers, views, streams, verify and copies, each of
 * which has I/O of its own. The tail comes first, then all bytes of the slot in
 * order, in pieces of any size, so a record larger than memory is checked like any
 * other:
 *
 *	struct stele_record_check check = {
 *		.segment = segment, .number = number, .slot_size = slot_size};
 *
 *	stele_record_check_begin(&check, tail, tail_size);
 *	while (...)
 *		stele_record_check_add(&check, data, size);
 *	ret = stele_record_check_end(&check);
 *
 * Checked in this order: checksum, structure of the tail, zero padding, a hole only
 * if the segment's deleted list has the number, slot size, contents of fields. What
 * other blocks say about a record (its digest, its columns, its key in the keys
 * section) is for the caller to compare.
 */
#ifndef STELE_IMAGE_RECORD_H
#define STELE_IMAGE_RECORD_H

#include "format/field.h"
#include "lib/image/digest.h"

/* The largest tail: a key, the ends and scalars of all fields, a trailer. */
#define STELE_RECORD_TAIL_MAX                                         \
	(STELE_RECORD_KEY_MAX + 8 * (uint64_t)STELE_FIELD_COUNT_MAX + \
	 STELE_TRAILER_SIZE)

enum stele_record_check_flags {
	/* A void record is fine, as if the segment's deleted list had the number. */
	STELE_RECORD_MAY_BE_VOID = 1 << 0,
	/* STELE_VERIFY_NONE: only the structure, for memory safety. */
	STELE_RECORD_UNCHECKED = 1 << 1,
};

struct stele_record_check {
	/* Set by the caller; begin sets all else. */
	const struct stele_segment *segment;
	uint64_t number, slot_size;
	unsigned int flags;	 /* enum stele_record_check_flags */
	struct stele_hash *hash; /* NULL: no digest is wanted */
	struct stele_payload_check *fields; /* NULL: contents are not looked at */

	/* Since begin, if that returned 0. The payload's address: only of a whole slot. */
	struct stele_record record;

	/* Since end. */
	uint8_t digest[STELE_DIGEST_SIZE]; /* if there is a hash */
	const char *why; /* of a failure, else empty; lives as long as this struct */

	/* Private. */
	uint64_t position; /* bytes added */
	uint64_t tail_at;  /* position of the key and all behind it */
	uint32_t crc;
	int error; /* of the structure, and what it is */
	const char *impossible;
	bool padding_used, ended;
	const char *wrong; /* with a field; NULL: nothing so far */
	char text[160];
};

/*
 * `tail`: the last `tail_size` bytes of the slot: all of it, or at least
 * STELE_RECORD_TAIL_MAX. They must stay until the end.
 * Return: 0; -EUCLEAN (impossible; but perhaps only damaged: add all bytes, and the
 * end tells).
 */
int stele_record_check_begin(struct stele_record_check *check, const void *tail,
			     uint64_t tail_size);
/* The next bytes of the slot. */
void stele_record_check_add(struct stele_record_check *check,
			    const uint8_t *data, uint64_t size);
/* Return: 0; -EBADMSG (checksum); -EUCLEAN (the rest); `why` says what. */
int stele_record_check_end(struct stele_record_check *check);

/* All of it, for a slot in memory; sets record.payload as well. */
int stele_record_check_slot(struct stele_record_check *check, const void *slot);

#endif

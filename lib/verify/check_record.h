/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_record.h - one record, its bytes handed over piece by piece
 *
 * Private to verify_record.c and verify_records.c. The tail comes first, then all bytes of
 * the slot in order; so a sample larger than memory is checked like any other.
 */
#ifndef STELE_VERIFY_CHECK_RECORD_H
#define STELE_VERIFY_CHECK_RECORD_H

#include "lib/verify/check.h"
#include "lib/image/digest.h"

/* One thread's; the columns by scalar, in field order. */
struct stele_record_check {
	struct stele_segment_check *sc;
	struct stele_hash *hash;
	struct stele_check_window digests;
	struct stele_check_window columns[STELE_FIELD_COUNT_MAX];

	/* The record at hand. */
	uint64_t number, slot_size;
	uint64_t position; /* bytes seen */
	struct stele_record record;
	int error; /* of its structure */
	const char *why;
	uint32_t crc;
	bool padded; /* something in the padding is not zero */

	/* Of all records so far. */
	uint64_t payload_size, records_size;
	bool damaged;
};

/* Return: 0; -ENOMEM. Release in any case. */
int stele_record_check_init(struct stele_record_check *rc,
			    struct stele_segment_check *sc);
/* Adds its sums to those of the segment. */
void stele_record_check_release(struct stele_record_check *rc);

/* `tail`: the slot's last bytes, at least a largest tail or the whole slot; stays until end. */
void stele_record_check_begin(struct stele_record_check *rc, uint64_t number,
			      uint64_t slot_size, const void *tail,
			      uint64_t tail_size);
void stele_record_check_add(struct stele_record_check *rc, const uint8_t *data,
			    uint64_t size);
/* Judge, report, and fill the entry of the number. */
void stele_record_check_end(struct stele_record_check *rc);
/* Instead: its bytes cannot be read. */
void stele_record_check_unreadable(struct stele_record_check *rc,
				   uint64_t number, int error);

#endif

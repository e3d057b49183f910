/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_record.h - one record, whose bytes are passed in piece by piece
 *
 * Private to verify_record.c and verify_records.c. The tail comes first, then all bytes of
 * the slot in order; so a sample larger than memory is checked like any other.
 */
#ifndef STELE_VERIFY_CHECK_RECORD_H
#define STELE_VERIFY_CHECK_RECORD_H

#include "lib/verify/check.h"
#include "lib/image/record.h"

/* One thread's; the columns by scalar, in field order. */
struct stele_verify_record {
	struct stele_segment_check *sc;
	struct stele_hash *hash;
	struct stele_check_window digests;
	struct stele_check_window columns[STELE_FIELD_COUNT_MAX];
	struct stele_payload_check fields;
	struct stele_record_check check; /* of the record at hand */

	/* Of all records so far. */
	uint64_t payload_size, records_size;
	bool damaged;
};

/* Return: 0; -ENOMEM. Release in any case. */
int stele_verify_record_init(struct stele_verify_record *vr,
			     struct stele_segment_check *sc);
/* Adds its sums to those of the segment. */
void stele_verify_record_release(struct stele_verify_record *vr);

/* Go to a record: then its bytes go to stele_record_check_add(&vr->check, ...). */
void stele_verify_record_begin(struct stele_verify_record *vr, uint64_t number,
			       uint64_t slot_size, const void *tail,
			       uint64_t tail_size);
/* Judge, report, and fill the entry of the number. */
void stele_verify_record_end(struct stele_verify_record *vr);
/* Instead: its bytes cannot be read. */
void stele_verify_record_unreadable(struct stele_verify_record *vr,
				    uint64_t number, int error);

#endif

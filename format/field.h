/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - what the type of a field says about its bytes
 *
 * Tensors: element type, rank and dimensions, of which the first may be 0: it
 * then follows from the length. Texts: well-formed UTF-8. A builder refuses
 * content that breaks these rules and verify reports it; readers do not look.
 * stele-format(5), "Segments" and "Records".
 */
#ifndef STELE_FORMAT_FIELD_H
#define STELE_FORMAT_FIELD_H

#include "format/segment.h"

#define STELE_DIM_MAX ((UINT32_C(1) << 31) - 1)

/* Are type, dtype, rank and dims possible? NULL; else what is wrong, static. */
const char *stele_field_wrong(const struct stele_descriptor_field *field);

/*
 * Bytes of a tensor; where its first dimension is 0, of one row of it: never 0.
 * The field has been checked.
 */
uint64_t stele_tensor_size(const struct stele_descriptor_field *field);

/* One pass over the payloads of records, piece by piece. */
struct stele_payload_check {
	const struct stele_descriptor_field *fields; /* the caller's */
	uint32_t count;
	uint32_t bytes_count;
	bool has_text;

	/* The record at hand. */
	const le64 *ends; /* the caller's, bytes_count - 1, ascending */
	uint64_t payload_size;
	uint32_t field;	  /* index; of the one that is wrong, if one is */
	uint32_t ordinal; /* of that among fields with bytes */
	uint64_t at, end;
	uint8_t left, low, high; /* of a character: bytes to come, bounds of the next */
};

void stele_payload_check_init(struct stele_payload_check *check,
			      const struct stele_descriptor_field *fields,
			      uint32_t count);
/*
 * Each returns NULL, or what is wrong with field check->field, a static text;
 * then nothing more may be added. Sizes first, then the bytes in order, then
 * the end.
 */
const char *stele_payload_check_begin(struct stele_payload_check *check,
				      const le64 *ends, uint64_t payload_size);
const char *stele_payload_check_add(struct stele_payload_check *check,
				    const uint8_t *data, uint64_t size);
const char *stele_payload_check_end(struct stele_payload_check *check);

#endif

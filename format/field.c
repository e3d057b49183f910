/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - shapes of tensors, and UTF-8 that comes in pieces
 *
 * UTF-8 as RFC 3629 has it: no surrogates, nothing longer than needed, nothing
 * above U+10FFFF. What a byte may be follows from the one before, so that a
 * piece may end anywhere.
 */
#include "format/field.h"

#include "format/decode.h"

#define CONTINUED_LOW  0x80
#define CONTINUED_HIGH 0xbf

static const char not_utf8[] = "is not valid UTF-8";

/* Bytes of one element, by a value of stele.h's enum stele_dtype; 0: unknown. */
static uint32_t dtype_size(uint32_t dtype)
{
	static const uint8_t sizes[] = {
		0, 1 /* bool */, 1, 1, 2, 2, 4, 4, 8, 8 /* integers */,
		2, 2, 4, 8 /* f16, bf16, f32, f64 */, 8, 16 /* complex */,
	};

	return dtype < sizeof(sizes) ? sizes[dtype] : 0;
}

/* Of all dimensions but a first one of 0. False: more than a payload holds. */
static bool tensor_size(const struct stele_descriptor_field *field,
			uint64_t *size)
{
	*size = dtype_size(field->dtype);
	for (uint32_t i = 0; i < field->rank; i++)
		if ((i || field->dims[i]) &&
		    (!checked_mul(*size, field->dims[i], size) ||
		     *size > STELE_PAYLOAD_SIZE_MAX))
			return false;
	return true;
}

static const char *tensor_wrong(const struct stele_descriptor_field *field)
{
	uint64_t size;

	if (!dtype_size(field->dtype))
		return "unknown element type of a tensor";
	if (field->rank > STELE_FIELD_RANK_MAX)
		return "more than 8 dimensions";
	for (uint32_t i = 0; i < STELE_FIELD_RANK_MAX; i++) {
		if (i >= field->rank && field->dims[i])
			return "more dimensions than the rank says";
		if (field->dims[i] > STELE_DIM_MAX)
			return "a dimension above 2147483647";
		if (i && i < field->rank && !field->dims[i])
			return "a dimension of 0 that is not the first";
	}
	return tensor_size(field, &size) ?
		       NULL :
		       "a shape of more bytes than a sample may have";
}

const char *stele_field_wrong(const struct stele_descriptor_field *field)
{
	switch (field->type) {
	case STELE_FIELD_TENSOR:
		return tensor_wrong(field);
	case STELE_FIELD_BYTES:
	case STELE_FIELD_UTF8:
	case STELE_FIELD_I64:
	case STELE_FIELD_F64:
		break;
	default:
		return "unknown type of a field";
	}
	if (field->dtype || field->rank ||
	    !bytes_zero(field->dims, sizeof(field->dims)))
		return "a shape without a tensor";
	return NULL;
}

uint64_t stele_tensor_size(const struct stele_descriptor_field *field)
{
	uint64_t size;

	tensor_size(field, &size);
	return size;
}

/* ---- payloads -------------------------------------------------------------- */

void stele_payload_check_init(struct stele_payload_check *check,
			      const struct stele_descriptor_field *fields,
			      uint32_t count)
{
	memset(check, 0, sizeof(*check));
	check->fields = fields;
	check->count = count;
	for (uint32_t i = 0; i < count; i++) {
		check->bytes_count += !stele_field_is_scalar(fields[i].type);
		check->has_text |= fields[i].type == STELE_FIELD_UTF8;
	}
}

/* On to the first field with bytes from index `from` on; none: the last stays. */
static void enter(struct stele_payload_check *check, uint32_t from)
{
	uint32_t i = from;

	while (i < check->count && stele_field_is_scalar(check->fields[i].type))
		i++;
	if (i == check->count)
		return;
	check->field = i;
	check->end = check->ordinal + 1 < check->bytes_count ?
			     le64_get(check->ends[check->ordinal]) :
			     check->payload_size;
}

static bool size_ok(const struct stele_descriptor_field *field, uint64_t size)
{
	uint64_t whole;

	if (field->type != STELE_FIELD_TENSOR)
		return true;
	whole = stele_tensor_size(field);
	return field->rank && !field->dims[0] ? size % whole == 0 :
						size == whole;
}

const char *stele_payload_check_begin(struct stele_payload_check *check,
				      const le64 *ends, uint64_t payload_size)
{
	uint64_t begin = 0;

	check->ends = ends;
	check->payload_size = payload_size;
	check->left = 0;
	check->at = 0;
	check->field = 0;
	for (check->ordinal = 0; check->ordinal < check->bytes_count;
	     check->ordinal++) {
		enter(check, check->ordinal ? check->field + 1 : 0);
		if (!size_ok(&check->fields[check->field], check->end - begin))
			return "has a size that does not fit its shape";
		begin = check->end;
	}
	check->ordinal = 0;
	enter(check, 0);
	return NULL;
}

/* The first byte of a character of several. */
static bool begin_character(struct stele_payload_check *check, uint8_t c)
{
	check->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : CONTINUED_LOW;
	check->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : CONTINUED_HIGH;
	check->left = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
	return c >= 0xc2 && c <= 0xf4;
}

static bool text_continues(struct stele_payload_check *check,
			   const uint8_t *p, const uint8_t *end)
{
	for (; p < end; p++) {
		if (check->left) {
			if (*p < check->low || *p > check->high)
				return false;
			check->left--;
			check->low = CONTINUED_LOW;
			check->high = CONTINUED_HIGH;
		} else if (*p >= 0x80 && !begin_character(check, *p)) {
			return false;
		}
	}
	return true;
}

const char *stele_payload_check_add(struct stele_payload_check *check,
				    const uint8_t *data, uint64_t size)
{
	while (check->has_text && size) {
		uint64_t n = check->end - check->at;

		n = n < size ? n : size;
		if (check->fields[check->field].type == STELE_FIELD_UTF8 &&
		    !text_continues(check, data, data + n))
			return not_utf8;
		data += n;
		size -= n;
		check->at += n;
		if (check->at < check->end || !size)
			continue;
		if (check->left)
			return not_utf8;
		if (++check->ordinal == check->bytes_count)
			return NULL; /* more than the payload: not ours */
		enter(check, check->field + 1);
	}
	return NULL;
}

const char *stele_payload_check_end(struct stele_payload_check *check)
{
	return check->left ? not_utf8 : NULL;
}

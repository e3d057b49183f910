/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - the tail of a record, and the checksum of its slot
 *
 * A tail may be hostile even if its checksum is right: every size in it is
 * checked against the slot's, which comes from the run table. In mapped memory it may also
 * change at any time: sizes are taken from one copy of the trailer.
 */
#include "format/record.h"

#include "format/crc32c.h"
#include "format/decode.h"

/* The end of the last field is the payload's, and not stored. */
static uint32_t end_count(const struct stele_record_shape *shape)
{
	return shape->bytes_count ? shape->bytes_count - 1 : 0;
}

uint32_t stele_record_tail_fixed(const struct stele_record_shape *shape)
{
	return (end_count(shape) + shape->scalar_count) *
		       (uint32_t)sizeof(le64) +
	       STELE_TRAILER_SIZE;
}

bool stele_record_size(const struct stele_record_shape *shape,
		       uint64_t payload_size, uint32_t key_size, uint64_t *size)
{
	if (payload_size > STELE_PAYLOAD_SIZE_MAX ||
	    key_size > STELE_RECORD_KEY_MAX)
		return false;
	return checked_add(payload_size, key_size, size) &&
	       checked_add(*size, stele_record_tail_fixed(shape), size) &&
	       *size <= STELE_SLOT_SIZE_MAX;
}

size_t stele_record_put_tail(const struct stele_record_shape *shape,
			     uint8_t *slot_end, uint64_t payload_size,
			     const char *key, uint32_t key_size,
			     const uint64_t *ends, const uint64_t *scalars,
			     uint32_t flags)
{
	size_t size = key_size + stele_record_tail_fixed(shape);
	const struct stele_disk_trailer trailer = {
		.payload_size = le48_put(payload_size),
		.key_size = le16_put((uint16_t)key_size),
		.flags = le16_put((uint16_t)flags),
	};
	uint8_t *p = slot_end - size;
	le64 *values;

	if (key_size)
		memcpy(p, key, key_size);
	values = (le64 *)(p + key_size);
	for (uint32_t i = 0; i < end_count(shape); i++)
		*values++ = le64_put(ends[i]);
	for (uint32_t i = 0; i < shape->scalar_count; i++)
		*values++ = le64_put(scalars[i]);
	memcpy(values, &trailer, sizeof(trailer));
	return size;
}

uint32_t stele_record_seed(uint64_t segment_id, uint64_t number)
{
	const le64 words[2] = {le64_put(segment_id), le64_put(number)};

	return stele_crc32c(0, words, sizeof(words));
}

uint32_t stele_record_crc(uint64_t segment_id, uint64_t number,
			  const void *slot, uint64_t slot_size)
{
	return stele_crc32c(stele_record_seed(segment_id, number), slot,
			    slot_size - sizeof(le32));
}

static int check_values(const struct stele_record *record,
			const struct stele_record_shape *shape,
			const char **why)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < end_count(shape); i++) {
		uint64_t end = le64_get(record->ends[i]);

		if (end < before)
			return unclean(why, "record: field ends not ascending");
		if (end > record->payload_size)
			return unclean(why, "record: field end beyond payload");
		before = end;
	}
	if (!(record->flags & STELE_RECORD_VOID)) {
		if (record->key_size == 0)
			return unclean(why, "record: no key");
		if (memchr(record->key, '\0', record->key_size))
			return unclean(why, "record: NUL byte in the key");
		return 0;
	}
	if (record->payload_size || record->key_size ||
	    !bytes_zero(record->scalars, shape->scalar_count * sizeof(le64)))
		return unclean(why, "record: hole but not empty");
	return 0;
}

int stele_record_decode_tail(const void *tail, uint64_t tail_size,
			     uint64_t slot_size,
			     const struct stele_record_shape *shape,
			     struct stele_record *out, const char **why)
{
	const uint32_t fixed = stele_record_tail_fixed(shape);
	struct stele_disk_trailer trailer;
	const uint8_t *values;

	if (tail_size > slot_size || tail_size < fixed)
		return unclean(why, "record: slot smaller than a tail");
	values = (const uint8_t *)tail + (tail_size - fixed);
	le_copy_once(&trailer, values + fixed - sizeof(trailer), sizeof(trailer));
	*out = (struct stele_record){
		.payload_size = le48_get(trailer.payload_size),
		.key_size = le16_get(trailer.key_size),
		.flags = le16_get(trailer.flags),
		.crc = le32_get(trailer.crc),
		.ends = (const le64 *)values,
		.scalars = (const le64 *)values + end_count(shape),
	};
	if (le16_get(trailer.reserved) != 0)
		return unclean(why, "record: reserved bytes not zero");
	if (out->flags & ~(uint32_t)STELE_RECORD_FLAGS_KNOWN)
		return unclean(why, "record: unknown flags");
	if (out->key_size > STELE_RECORD_KEY_MAX ||
	    out->key_size > tail_size - fixed)
		return unclean(why, "record: key does not fit");
	if (out->payload_size > STELE_PAYLOAD_SIZE_MAX ||
	    out->payload_size > slot_size - fixed - out->key_size)
		return unclean(why, "record: payload does not fit");
	if (out->payload_size && !shape->bytes_count)
		return unclean(why, "record: payload without a field");
	out->key = (const char *)values - out->key_size;
	return check_values(out, shape, why);
}

int stele_record_decode(const void *slot, uint64_t slot_size,
			const struct stele_record_shape *shape,
			struct stele_record *out, const char **why)
{
	int ret = stele_record_decode_tail(slot, slot_size, slot_size, shape,
					   out, why);

	if (ret == 0)
		out->payload = slot;
	return ret;
}

const uint8_t *stele_record_part(const uint8_t *data, uint64_t at,
				 uint64_t size, uint64_t from, uint64_t to,
				 uint64_t *part_size)
{
	const uint64_t end = at + size;

	from = from < at ? at : from;
	to = to > end ? end : to;
	*part_size = from < to ? to - from : 0;
	return *part_size ? data + (from - at) : data;
}

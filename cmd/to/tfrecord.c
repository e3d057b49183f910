/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.c - a sample as a record: its bytes, or all fields as a tf.train.Example
 *
 * The key is a feature, too; floats of an Example have 32 bits. example.c has the messages.
 */
#include "to/format.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "from/tfrecord.h"

#define VARINT_MAX 10u

enum list {
	LIST_BYTES = 0x0a,
	LIST_FLOAT = 0x12,
	LIST_INT64 = 0x1a,
};

static void put32(uint8_t *at, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* ---- records ----------------------------------------------------------------- */

int tfrecord_end(struct to *to)
{
	const size_t size = to->held;

	to->held = 0;
	return size ? to->write(to->user, to->out, size) : 0;
}

/* Small ones are put together. */
static int put(struct to *to, const void *data, size_t size)
{
	int error = 0;

	to->size += size;
	if (!to->out)
		to->out = malloc(TAR_WRITE_SIZE);
	if (!to->out)
		return -ENOMEM;
	if (size > TAR_WRITE_SIZE - to->held)
		error = tfrecord_end(to);
	if (error || size > TAR_WRITE_SIZE)
		return error ? error : to->write(to->user, data, size);
	if (size)
		memcpy(to->out + to->held, data, size);
	to->held += size;
	return 0;
}

static int put_record(struct to *to, const uint8_t *data, uint64_t size)
{
	uint8_t head[12], tail[4];
	int error;

	put32(head, (uint32_t)size);
	put32(head + 4, (uint32_t)(size >> 32));
	put32(head + 8, tfrecord_crc(head, 8));
	put32(tail, tfrecord_crc(data, (size_t)size));
	error = put(to, head, sizeof(head));
	if (!error)
		error = put(to, data, (size_t)size);
	return error ? error : put(to, tail, sizeof(tail));
}

/* ---- messages ---------------------------------------------------------------- */

static unsigned int varint(uint8_t out[VARINT_MAX], uint64_t value)
{
	unsigned int n = 0;

	for (; value > 127; value >>= 7)
		out[n++] = (uint8_t)(value & 127) | 128;
	out[n++] = (uint8_t)value;
	return n;
}

static uint64_t varint_size(uint64_t value)
{
	uint8_t out[VARINT_MAX];

	return varint(out, value);
}

/* Of a part with a tag of one byte. */
static uint64_t part_size(uint64_t size)
{
	return 1 + varint_size(size) + size;
}

/* There is room: see reserve(). */
static void add(struct to *to, const void *data, size_t size)
{
	if (size)
		memcpy(to->buffer + to->example, data, size);
	to->example += size;
}

static void add_tag(struct to *to, uint8_t tag, uint64_t size)
{
	uint8_t out[VARINT_MAX];

	add(to, &tag, 1);
	add(to, out, varint(out, size));
}

static int reserve(struct to *to, uint64_t size)
{
	uint8_t *more;

	if (size <= to->room - to->example)
		return 0;
	more = realloc(to->buffer, to->example + (size_t)size + (size_t)size / 2);
	if (!more)
		return -ENOMEM;
	to->buffer = more;
	to->room = to->example + (size_t)size + (size_t)size / 2;
	return 0;
}

/* ---- features ---------------------------------------------------------------- */

/* What the list has, as it is or, of integers, `count` of them. */
static int add_feature(struct to *to, const char *name, enum list list, const void *data,
		       uint64_t size)
{
	const uint64_t count = list == LIST_INT64 ? size / 8 : 0, name_size = strlen(name);
	uint64_t inner = count ? 0 : size, values, feature, entry;
	uint8_t out[VARINT_MAX];
	int64_t number;
	int error;

	for (uint64_t i = 0; i < count; i++) {
		memcpy(&number, (const uint8_t *)data + 8 * i, sizeof(number));
		inner += varint_size((uint64_t)number);
	}
	values = part_size(inner);
	feature = part_size(values);
	entry = part_size(name_size) + part_size(feature);
	error = reserve(to, part_size(entry));
	if (error)
		return error;
	add_tag(to, 0x0a, entry);
	add_tag(to, 0x0a, name_size);
	add(to, name, (size_t)name_size);
	add_tag(to, 0x12, feature);
	add_tag(to, (uint8_t)list, values);
	add_tag(to, 0x0a, inner);
	if (!count)
		add(to, data, (size_t)size);
	for (uint64_t i = 0; i < count; i++) {
		memcpy(&number, (const uint8_t *)data + 8 * i, sizeof(number));
		add(to, out, varint(out, (uint64_t)number));
	}
	return 0;
}

/* Once a field, where it loses something. */
static float take_real(struct to *to, const struct stele_field *field, double value)
{
	const uint64_t bit = UINT64_C(1) << (field - to->fields);
	const float real = (float)value;

	if (to->rounded & bit || isnan(value) || (double)real == value)
		return real;
	to->rounded |= bit;
	if (!to->quiet)
		cmd_message("warning: field '%s' is f64, and floats of an Example have 32 bits: "
			    "values are rounded", field->name);
	return real;
}

static int add_field(struct to *to, const struct stele_field *field, union stele_value value,
		     const uint8_t *data)
{
	float real;

	switch (field->type) {
	case STELE_TYPE_I64:
		return add_feature(to, field->name, LIST_INT64, &value.i64, sizeof(value.i64));
	case STELE_TYPE_F64:
		real = take_real(to, field, value.f64);
		return add_feature(to, field->name, LIST_FLOAT, &real, sizeof(real));
	case STELE_TYPE_TENSOR:
		return add_feature(to, field->name,
				   field->dtype == STELE_DTYPE_F32 ? LIST_FLOAT : LIST_INT64, data,
				   value.size);
	default:
		return add_feature(to, field->name, LIST_BYTES, data, value.size);
	}
}

/* One part of an Example, its features, whose size comes first. */
static int put_example(struct to *to, const struct to_sample *sample)
{
	const uint8_t *data = sample->data;
	uint8_t head[1 + VARINT_MAX] = {0x0a};
	size_t size;
	int error;

	to->example = 0;
	error = reserve(to, sizeof(head));
	to->example = sizeof(head);
	if (!error)
		error = add_feature(to, "key", LIST_BYTES, sample->path, strlen(sample->path));
	for (uint32_t i = 0; i < to->field_count && !error; i++) {
		const struct stele_field *field = &to->fields[i];

		error = add_field(to, field, sample->values[i], data);
		if (field->type != STELE_TYPE_I64 && field->type != STELE_TYPE_F64)
			data += sample->values[i].size;
	}
	if (error)
		return error;
	size = 1 + varint(head + 1, to->example - sizeof(head));
	memcpy(to->buffer + sizeof(head) - size, head, size);
	return put_record(to, to->buffer + sizeof(head) - size, to->example - sizeof(head) + size);
}

int tfrecord_put(struct to *to, const struct to_sample *sample)
{
	uint64_t size;
	const uint8_t *data = to_bytes(to, sample, &size);

	return to->format == TO_EXAMPLE ? put_example(to, sample) : put_record(to, data, size);
}

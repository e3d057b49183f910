/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - open, read and end one sample after the other
 */
#include "lib/source/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int stele_source_reader_init(struct stele_source_reader *reader,
			     const struct stele_source *source,
			     const struct stele_fields *fields)
{
	int ret;

	memset(reader, 0, sizeof(*reader));
	reader->source = source;
	reader->fields = fields;
	reader->reader = source->user;
	stele_payload_check_init(&reader->check, fields->list, fields->count);
	if (!source->ops.reader_new)
		return 0;
	ret = source->ops.reader_new(source->user, &reader->reader);
	reader->made = ret == 0;
	return ret > 0 ? -EINVAL : ret;
}

void stele_source_reader_release(struct stele_source_reader *reader)
{
	if (reader->made)
		reader->source->ops.reader_free(reader->reader);
	memset(reader, 0, sizeof(*reader));
}

/* Told at the end: what a source says itself, a damaged checksum say, goes first. */
static int breaks(struct stele_source_reader *reader)
{
	const struct stele_payload_check *check = &reader->check;

	snprintf(reader->why, sizeof(reader->why), "field '%s' %s",
		 reader->fields->list[check->field].name, reader->wrong);
	return -EINVAL;
}

/* Values by field become ends and scalars. */
static int take_values(struct stele_source_reader *reader,
		       const union stele_value *values)
{
	const struct stele_fields *fields = reader->fields;
	uint32_t ends = 0, scalars = 0;
	uint64_t sum = 0;
	bool fits = true;

	for (uint32_t i = 0; i < fields->count; i++) {
		if (fields->list[i].type == STELE_FIELD_F64) {
			memcpy(&reader->scalars[scalars++], &values[i].f64,
			       sizeof(double));
		} else if (fields->list[i].type == STELE_FIELD_I64) {
			reader->scalars[scalars++] =
				(uint64_t)stele_fields_value(fields, i,
							     values[i].i64);
		} else {
			fits = fits && checked_add(sum, values[i].size, &sum);
			reader->ends[ends] = le64_put(sum);
			reader->record_ends[ends++] = sum;
		}
	}
	if (fits && sum == reader->entry.data_size)
		return 0;
	snprintf(reader->why, sizeof(reader->why),
		 "its fields have %s%" PRIu64 " byte%s, and it %" PRIu64,
		 fits ? "" : "more than ", fits ? sum : UINT64_MAX,
		 fits && sum == 1 ? "" : "s", reader->entry.data_size);
	return -EINVAL;
}

static int ask_values(struct stele_source_reader *reader,
		      union stele_value *values)
{
	const struct stele_fields *fields = reader->fields;
	int ret = 0;

	memset(values, 0, fields->count * sizeof(*values));
	for (uint32_t i = 0; i < fields->count; i++)
		if (!stele_field_is_scalar(fields->list[i].type)) {
			values[i].size = reader->entry.data_size;
			break;
		}
	if (reader->source->ops.open)
		ret = reader->source->ops.open(reader->reader, &reader->entry,
					       values);
	if (ret <= 0)
		return ret;
	snprintf(reader->why, sizeof(reader->why), "open() returned %d", ret);
	return -EINVAL;
}

int stele_source_reader_open(struct stele_source_reader *reader,
			     const struct stele_source_entry *entry)
{
	union stele_value values[STELE_FIELD_COUNT_MAX];
	int ret;

	reader->entry = *entry;
	reader->left = entry->data_size;
	reader->at_end = false;
	reader->why[0] = '\0';
	ret = ask_values(reader, values);
	if (ret < 0)
		return ret;
	reader->opened = true;
	ret = take_values(reader, values);
	if (ret < 0)
		return ret;
	reader->wrong = stele_payload_check_begin(
		&reader->check, reader->ends, entry->data_size);
	return 0;
}

static int64_t ask_bytes(struct stele_source_reader *reader, void *data,
			 size_t size)
{
	const uint64_t at = reader->entry.data_size - reader->left;
	int64_t got = reader->source->ops.read(reader->reader, &reader->entry,
					       at, data, size);

	if (got >= 0 && (uint64_t)got <= size)
		return got;
	if (got < 0 && got >= -4095)
		return got;
	snprintf(reader->why, sizeof(reader->why),
		 "read() returned %" PRIi64 " when asked for %zu bytes", got,
		 size);
	return -EINVAL;
}

int64_t stele_source_reader_read(struct stele_source_reader *reader, void *data,
				 size_t size)
{
	const size_t wanted = reader->left < size ? (size_t)reader->left + 1 :
						    size;
	int64_t got = ask_bytes(reader, data, wanted);

	if (got < 0)
		return got;
	if (!got || (uint64_t)got > reader->left)
		return -ETXTBSY;
	reader->left -= (uint64_t)got;
	reader->at_end = reader->source->ends_short && (size_t)got < wanted;
	if (!reader->wrong)
		reader->wrong = stele_payload_check_add(&reader->check, data,
							(uint64_t)got);
	return got;
}

int stele_source_reader_end(struct stele_source_reader *reader)
{
	int64_t got = 0;
	char more;

	if (!reader->at_end)
		got = ask_bytes(reader, &more, sizeof(more));
	if (got)
		return got > 0 ? -ETXTBSY : (int)got;
	if (!reader->wrong)
		reader->wrong = stele_payload_check_end(&reader->check);
	return reader->wrong ? breaks(reader) : 0;
}

void stele_source_reader_close(struct stele_source_reader *reader)
{
	if (reader->opened && reader->source->ops.close)
		reader->source->ops.close(reader->reader);
	reader->opened = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - samples that have some of the fields, in an index
 *
 * In the index: | head | values | key |
 */
#include "from/record.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "store.h"

/* Of a sample in the index. */
struct head {
	uint32_t count, key_size;
	uint64_t origin;
	int64_t changed;
};

#define FIXED_MAX (sizeof(struct head) + STELE_KEY_SIZE_MAX + \
		   STELE_FIELDS_MAX * sizeof(struct record_value))
#define FIXED_USUAL 512 /* bytes that are read at first */

static bool is_scalar(uint32_t type)
{
	return type == STELE_TYPE_I64 || type == STELE_TYPE_F64;
}

bool record_has(const struct record *record, uint32_t field)
{
	for (uint32_t i = 0; i < record->count; i++)
		if (record->values[i].field == field)
			return true;
	return false;
}

int record_append(struct store *index, const struct record *record, const char *key,
		  size_t key_size, uint64_t origin)
{
	const struct head head = {record->count, (uint32_t)key_size, origin,
				  record->changed};
	int ret = store_append(index, &head, sizeof(head));

	if (!ret)
		ret = store_append(index, record->values,
				   record->count * sizeof(*record->values));
	return ret ? ret : store_append(index, key, key_size);
}

int record_keep(struct store *index, struct record_fields *fields,
		const struct record *record, const char *key, size_t key_size,
		uint64_t origin)
{
	int ret = record_append(index, record, key, key_size, origin);

	if (ret)
		return ret;
	fields->samples++;
	for (uint32_t i = 0; i < record->count; i++)
		record_see(&fields->list[record->values[i].field], &record->values[i], origin);
	return 0;
}

/* Also one that becomes a tensor. */
static bool is_number(const struct record_value *value)
{
	return value->kind == RECORD_I64 || value->kind == RECORD_U64;
}

static uint64_t bytes_of(const struct record_field *field, const struct record_value *value)
{
	const bool empty = value->kind == RECORD_LIST_EMPTY && field->family == RECORD_FAMILY_JSON;

	if (is_number(value))
		return sizeof(value->number);
	return value->kind == RECORD_FILE || empty ? (uint64_t)value->number.i64 : value->size;
}

/* Return: 0; -EIO (it is not all there); errors of the store. */
static int read_fixed(const struct store *index, uint64_t offset, struct head *head,
		      uint8_t data[FIXED_MAX])
{
	size_t size = sizeof(*head);
	int64_t got = store_read(index, offset, data, FIXED_USUAL);

	if (got < (int64_t)size)
		return got < 0 ? (int)got : -EIO;
	memcpy(head, data, size);
	if (head->count > STELE_FIELDS_MAX || head->key_size > STELE_KEY_SIZE_MAX)
		return -EIO;
	size += head->count * sizeof(struct record_value) + head->key_size;
	if ((size_t)got < size && got == FIXED_USUAL)
		got = store_read(index, offset, data, size);
	return got < 0 ? (int)got : (size_t)got < size ? -EIO : 0;
}

int record_load(const struct store *index, const struct record_fields *fields,
		uint64_t offset, struct record_entry *out)
{
	struct record *record = &out->record;
	uint8_t data[FIXED_MAX];
	struct head head = {0};
	size_t at = sizeof(head);
	int ret = read_fixed(index, offset, &head, data);

	if (ret)
		return ret;
	memcpy(record->values, data + at, head.count * sizeof(*record->values));
	at += head.count * sizeof(*record->values);
	memcpy(out->key, data + at, head.key_size);
	record->count = head.count;
	record->changed = head.changed;
	out->origin = head.origin;
	out->key_size = head.key_size;
	out->next = offset + at + head.key_size;
	out->data_size = 0;
	for (uint32_t i = 0; i < head.count; i++) {
		const struct record_value *value = &record->values[i];

		if (!is_scalar(fields->list[value->field].field.type))
			out->data_size += bytes_of(&fields->list[value->field], value);
	}
	return 0;
}

static void set_number(const struct record_field *field, const struct record_value *value,
		       union stele_value *out)
{
	const bool integer = value->kind == RECORD_I64 || value->kind == RECORD_CELL_I64 ||
			     value->kind == RECORD_CLASS_I64 ||
			     value->kind == RECORD_LIST_I64;

	if (field->ranks)
		out->i64 = field->ranks[value->place];
	else if (field->field.type == STELE_TYPE_I64)
		out->i64 = value->number.i64;
	else
		out->f64 = integer ? (double)value->number.i64 :
			   value->kind == RECORD_U64 ? (double)value->number.u64 :
						       value->number.f64;
}

void record_values(const struct record_fields *fields, const struct record *record,
		   union stele_value *values, struct record_piece pieces[STELE_FIELDS_MAX])
{
	memset(pieces, 0, STELE_FIELDS_MAX * sizeof(*pieces));
	for (uint32_t i = 0; i < fields->schema_count; i++) {
		values[i] = (union stele_value){0};
		if (fields->schema[i].type == STELE_TYPE_I64)
			values[i].i64 = -1;
		else if (fields->schema[i].type == STELE_TYPE_F64)
			values[i].f64 = (double)NAN;
	}
	for (uint32_t i = 0; i < record->count; i++) {
		const struct record_value *value = &record->values[i];
		const struct record_field *field = &fields->list[value->field];
		const uint32_t at = fields->index[value->field];

		if (is_scalar(field->field.type)) {
			set_number(field, value, &values[at]);
			continue;
		}
		values[at].size = bytes_of(field, value);
		pieces[at] = (struct record_piece){
			.place = value->place, .size = values[at].size,
			.path_size = value->kind == RECORD_FILE ? value->size : 0,
			.held = is_number(value), .number = value->number.u64,
			.converts = (value->kind == RECORD_LIST_I64 ||
				     value->kind == RECORD_LIST_U64) &&
				    field->field.dtype == STELE_DTYPE_F64,
			.is_unsigned = value->kind == RECORD_LIST_U64};
	}
}

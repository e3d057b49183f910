/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c - see arrays.h
 */
#include "from/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

#define WINDOW_SIZE ((size_t)64 << 10)
#define TEXT_MAX    WINDOW_SIZE /* bytes of one that is padded */

/* ---- which ones ------------------------------------------------------------------ */

const char *arrays_choose(const char *list, const char *name, uint64_t *chosen)
{
	uint64_t bit = 1;

	if (!list)
		return name;
	for (const char *at = list; at; bit <<= 1) {
		const size_t size = strcspn(at, ",");

		if (size && !strncmp(name, at, size) && (!name[size] || name[size] == '/')) {
			*chosen |= bit;
			return name[size] ? name + size + 1 : name;
		}
		at = at[size] ? at + size + 1 : NULL;
	}
	return NULL;
}

int arrays_found(struct arrays *arrays, uint64_t chosen)
{
	const char *list = arrays->scan->from->opts.arrays;
	uint64_t bit = 1;

	if (arrays->scan->damages != arrays->damages)
		return 0;
	for (const char *at = list; at; bit <<= 1) {
		const size_t size = strcspn(at, ",");

		if (!(chosen & bit))
			return from_refused(arrays->scan->from, -EINVAL,
					    "no array '%.*s' in '%s' (there are %s)", (int)size,
					    at, arrays->scan->shard->name, arrays->names);
		at = at[size] ? at + size + 1 : NULL;
	}
	return arrays->count ? 0 : from_damaged(arrays->scan, 0, "no arrays");
}

int arrays_check(struct arrays *arrays, const struct array *array)
{
	struct from_scan *scan = arrays->scan;
	char rows[TEXT_SIZE];

	if (array->npy.text && !array->varies && array->npy.row_size > TEXT_MAX)
		return from_damaged(scan, 0, "array '%s' has texts of more than %zu bytes",
				    array->name, TEXT_MAX);
	if (!arrays->count || array->npy.dims[0] == arrays->rows)
		return 1;
	return from_damaged(scan, scan->input.offset,
			    "array '%s' has %s, and '%s' %" PRIu64 " (--arrays takes some)",
			    array->name, text_counted(rows, array->npy.dims[0], "row"),
			    arrays->list[0].name, arrays->rows);
}

void arrays_add(struct arrays *arrays)
{
	struct array *array = &arrays->list[arrays->count++];

	arrays->rows = array->npy.dims[0];
	if (!array->varies)
		array->data_size = array->npy.data_size;
}

/* ---- rows ---------------------------------------------------------------------- */

/* Bytes of the data. Return: NULL: they cannot be read (said). */
static const uint8_t *look(struct arrays *arrays, struct array *array, uint64_t at, uint64_t size,
			   int *error)
{
	const uint64_t offset = (array->place & PLACE_OFFSET_MAX) + at;
	size_t want = size > WINDOW_SIZE ? (size_t)size : WINDOW_SIZE;
	int64_t got = -ENOMEM;

	if (at >= array->begin && at + size <= array->end)
		return array->window + (at - array->begin);
	want = array->data_size - at < want ? (size_t)(array->data_size - at) : want;
	if (want > array->room || !array->window) {
		free(array->window);
		array->room = want > WINDOW_SIZE ? want : WINDOW_SIZE;
		array->window = malloc(array->room);
	}
	if (array->window && array->place >> PLACE_SHARD_SHIFT == PLACE_STORE)
		got = store_read(&arrays->scan->from->store, offset, array->window, want);
	else if (array->window)
		got = pread(arrays->scan->input.fd, array->window, want, (off_t)offset);
	array->begin = at;
	array->end = at + (got > 0 ? (uint64_t)got : 0);
	if (got >= (int64_t)size)
		return array->window;
	*error = from_cannot_read(arrays->scan, got == -ENOMEM ? -ENOMEM :
						got < 0	       ? -EIO : -ETXTBSY);
	return NULL;
}

/* Where the row is. Return: 0; negative errno (said). */
static int find_row(struct arrays *arrays, struct array *array, uint64_t row)
{
	const uint8_t *data;
	int ret = 0;

	if (!array->varies) {
		array->at = row * array->npy.row_size;
		array->size = array->npy.row_size;
		return 0;
	}
	array->at = row ? array->at + array->size : 0;
	data = look(arrays, array, array->at, sizeof(array->size), &ret);
	if (!data)
		return ret;
	memcpy(&array->size, data, sizeof(array->size));
	array->at += sizeof(array->size);
	return 0;
}

static double from_f16(uint16_t bits)
{
	const unsigned int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value = exponent ? ldexp(1024 + fraction, (int)exponent - 25) :
				  ldexp(fraction, -24);

	if (exponent == 31)
		value = fraction ? (double)NAN : (double)INFINITY;
	return bits & 0x8000 ? -value : value;
}

/* Of one number that an i64 or f64 holds. */
static bool take_number(const struct npy *npy, const uint8_t *data, struct record_value *out)
{
	uint64_t bits = 0;
	double f64;
	float f32;

	memcpy(&bits, data, npy->row_size < sizeof(bits) ? npy->row_size : sizeof(bits));
	out->kind = RECORD_I64;
	switch (npy->dtype) {
	case STELE_DTYPE_BOOL:
	case STELE_DTYPE_U8:
	case STELE_DTYPE_U16:
	case STELE_DTYPE_U32:
	case STELE_DTYPE_I64:
		out->number.i64 = (int64_t)bits;
		return true;
	case STELE_DTYPE_I8:
		out->number.i64 = (int8_t)bits;
		return true;
	case STELE_DTYPE_I16:
		out->number.i64 = (int16_t)bits;
		return true;
	case STELE_DTYPE_I32:
		out->number.i64 = (int32_t)bits;
		return true;
	}
	out->kind = RECORD_F64;
	memcpy(&f32, data, npy->dtype == STELE_DTYPE_F32 ? sizeof(f32) : 0);
	memcpy(&f64, &bits, sizeof(f64));
	out->number.f64 = npy->dtype == STELE_DTYPE_F16 ? from_f16((uint16_t)bits) :
			  npy->dtype == STELE_DTYPE_F32 ? (double)f32 : f64;
	return npy->dtype == STELE_DTYPE_F16 || npy->dtype == STELE_DTYPE_F32 ||
	       npy->dtype == STELE_DTYPE_F64;
}

/* Of UCS-4, as UTF-8. Return: its size; -EILSEQ. */
static int64_t encode(const uint8_t *data, uint64_t size, uint8_t *out)
{
	uint8_t *to = out;

	for (uint64_t at = 0; at < size; at += 4) {
		const uint32_t c = data[at] | (uint32_t)data[at + 1] << 8 |
				   (uint32_t)data[at + 2] << 16 | (uint32_t)data[at + 3] << 24;

		if (c > 0x10ffff)
			return -EILSEQ;
		if (c < 0x80) {
			*to++ = (uint8_t)c;
			continue;
		}
		if (c >= 0x10000)
			*to++ = (uint8_t)(0xf0 | c >> 18);
		if (c >= 0x800)
			*to++ = (uint8_t)((c >= 0x10000 ? 0x80 : 0xe0) | (c >> 12 & 63));
		*to++ = (uint8_t)((c >= 0x800 ? 0x80 : 0xc0) | (c >> 6 & 63));
		*to++ = (uint8_t)(0x80 | (c & 63));
	}
	while (to > out && !to[-1])
		to--;
	return text_valid((const char *)out, (size_t)(to - out)) == (size_t)(to - out) ?
		       to - out : -EILSEQ;
}

/* Is it looked at? What is not is bytes, as they are. */
static bool has_look(const struct arrays *arrays, const struct array *array)
{
	return !array->varies || array->npy.text == NPY_UTF8 ||
	       row_role(arrays->scan->from, array->name, strlen(array->name)) == ROW_KEY;
}

static int take_text(struct arrays *arrays, struct array *array)
{
	const size_t name_size = strlen(array->name);
	struct row *row = &arrays->row;
	struct record_value value = {.kind = RECORD_BYTES, .size = array->size,
				     .place = array->place + array->at};
	const bool key = row_role(arrays->scan->from, array->name, name_size) == ROW_KEY;
	const bool text = array->npy.text != NPY_BYTES;
	int64_t size = (int64_t)array->size;
	const uint8_t *data = NULL;
	int ret = 0;

	if (has_look(arrays, array)) {
		data = look(arrays, array, array->at, array->size, &ret);
		if (!data)
			return ret;
	}
	if (array->npy.text == NPY_UCS4) {
		size = encode(data, array->size, arrays->buffer);
		data = arrays->buffer;
	}
	while (array->npy.text != NPY_UCS4 && !array->varies && size && !data[size - 1])
		size--;
	if (array->npy.text == NPY_UTF8 && text_valid((const char *)data, (size_t)size) !=
						   (size_t)size)
		size = -EILSEQ;
	if (size < 0)
		return from_damaged(arrays->scan, row->record.offset,
				    "array '%s', row %" PRIu64 ": not valid text",
				    array->name, row->number);
	if (key) {
		row_key(row, (const char *)data, (size_t)size);
		return 0;
	}
	if (array->npy.text == NPY_UCS4)
		return row_bytes(row, array->name, name_size, RECORD_FAMILY_TEXT, RECORD_TEXT,
				 data, (size_t)size);
	value.size = (uint64_t)size;
	if (text)
		value.kind = RECORD_TEXT;
	return row_value(row, array->name, name_size,
			 text ? RECORD_FAMILY_TEXT : RECORD_FAMILY_BYTES, &value);
}

/* The shape is that of all shards. */
static int take_tensor(struct arrays *arrays, const struct array *array)
{
	struct from *from = arrays->scan->from;
	const struct npy *npy = &array->npy;
	struct record_value value = {.kind = RECORD_ROW, .size = array->size,
				     .place = array->place + array->at};
	int number = record_field(&from->fields, array->name, strlen(array->name),
				  RECORD_FAMILY_ROW);

	if (number >= 0) {
		struct stele_field *field = &from->fields.list[number].field;
		struct stele_field wanted = *field;

		wanted.dtype = npy->dtype;
		wanted.rank = array->varies ? 1 : npy->rank - 1;
		for (uint32_t i = 0; !array->varies && i < wanted.rank; i++)
			wanted.dims[i] = (uint32_t)npy->dims[i + 1];
		if (!field->dtype)
			*field = wanted;
		if (memcmp(field, &wanted, sizeof(wanted)) != 0)
			return from_damaged(arrays->scan, arrays->row.record.offset,
					    "array '%s' has another shape or type than before",
					    array->name);
	}
	return row_value(&arrays->row, array->name, strlen(array->name), RECORD_FAMILY_ROW,
			 &value);
}

static int take_value(struct arrays *arrays, struct array *array, uint64_t row)
{
	struct record_value value = {.kind = RECORD_I64};
	const uint8_t *data;
	int ret = find_row(arrays, array, row);

	if (ret)
		return ret;
	if (array->npy.text)
		return take_text(arrays, array);
	if (array->varies || array->npy.rank > 1)
		return take_tensor(arrays, array);
	data = look(arrays, array, array->at, array->size, &ret);
	if (!data)
		return ret;
	if (!take_number(&array->npy, data, &value))
		return take_tensor(arrays, array);
	if (value.kind == RECORD_I64 && row_role(arrays->scan->from, array->name,
						 strlen(array->name)) == ROW_KEY) {
		char text[32];

		row_key(&arrays->row, text, (size_t)snprintf(text, sizeof(text), "%" PRIi64,
							     value.number.i64));
		return 0;
	}
	return row_value(&arrays->row, array->name, strlen(array->name), RECORD_FAMILY_NUMBER,
			 &value);
}

static int take_rows(struct arrays *arrays)
{
	int ret = store_flush(&arrays->scan->from->store);

	if (ret)
		return from_failed(arrays->scan->from, ret, "cannot keep arrays");
	for (uint64_t i = 0; arrays->count && i < arrays->rows && !ret; i++) {
		row_begin(&arrays->row, arrays->list[0].place >> PLACE_SHARD_SHIFT == PLACE_STORE ?
						0 : (arrays->list[0].place & PLACE_OFFSET_MAX) +
							    i * arrays->list[0].npy.row_size);
		for (uint32_t k = 0; k < arrays->count && !ret; k++)
			ret = take_value(arrays, &arrays->list[k], i);
		if (!ret)
			ret = row_end(&arrays->row);
	}
	return ret;
}

/* ---- shards -------------------------------------------------------------------- */

static const struct record_field *field_of(const struct arrays *arrays, uint32_t i)
{
	const char *name = arrays->list[i].name;

	return record_find(&arrays->scan->from->fields, name, strlen(name));
}

static bool has_array(const struct arrays *arrays, const struct record_field *field)
{
	for (uint32_t i = 0; i < arrays->count; i++)
		if (field_of(arrays, i) == field)
			return true;
	return false;
}

/*
 * A row has what all rows have: a tensor of some shape has no value that stands for none. Return:
 * 0, also if that is damage; negative errno (said).
 */
static int compare_shards(struct arrays *arrays)
{
	const struct record_fields *fields = &arrays->scan->from->fields;

	for (uint32_t i = 0; i < fields->count; i++)
		if (!has_array(arrays, &fields->list[i]))
			return from_damaged(arrays->scan, 0, "no array '%s', which a file before "
					    "it has (--arrays takes some)",
					    fields->list[i].field.name);
	for (uint32_t i = 0; fields->count && i < arrays->count; i++) {
		const char *name = arrays->list[i].name;

		if (!field_of(arrays, i) &&
		    row_role(arrays->scan->from, name, strlen(name)) != ROW_KEY)
			return from_damaged(arrays->scan, 0, "an array '%s', which no file before "
					    "it has (--arrays takes some)", name);
	}
	return 0;
}

int arrays_scan(struct from_scan *scan, int (*fn)(struct arrays *arrays))
{
	struct store *store = &scan->from->store;
	struct arrays *arrays = calloc(1, sizeof(*arrays));
	const uint64_t stored = store->size;
	int ret = arrays ? 0 : -ENOMEM;

	if (!ret) {
		arrays->scan = arrays->row.scan = scan;
		arrays->damages = scan->damages;
		arrays->buffer = malloc(TEXT_MAX);
		ret = arrays->buffer ? fn(arrays) : -ENOMEM;
	}
	if (!ret && scan->damages == arrays->damages)
		ret = compare_shards(arrays);
	/* Without one of its fields a row is not what the file says: none is taken. */
	if (!ret && scan->damages == arrays->damages)
		ret = take_rows(arrays);
	else
		store_truncate(store, stored);
	for (uint32_t i = 0; arrays && i < STELE_FIELDS_MAX; i++)
		free(arrays->list[i].window);
	if (arrays)
		free(arrays->buffer);
	free(arrays);
	return ret;
}

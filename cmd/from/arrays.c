/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c - rows of NumPy's arrays: each is a sample, of one array or of several in a zip
 *
 * A row of numbers is a tensor, one number a number; text is text. An array in a plain file stays
 * there, all others are copied to the store.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "from/npy.h"
#include "from/row.h"
#include "libarchive.h"
#include "text.h"

#define WINDOW_SIZE ((size_t)64 << 10)
#define TEXT_MAX    WINDOW_SIZE /* bytes of one */
#define NAME_MAX_   (STELE_NAME_SIZE_MAX + 1)

struct array {
	char name[NAME_MAX_];
	struct npy npy;
	uint64_t place; /* of its data */
	uint8_t *window; /* owned; of rows that are looked at */
	uint64_t begin, end; /* of the window, in the data */
};

struct arrays {
	struct from_scan *scan;
	struct archive *zip; /* NULL: one array */
	uint8_t *buffer;
	struct array list[STELE_FIELDS_MAX];
	uint32_t count;
	uint64_t rows;
	struct row row;
};

/* ---- bytes of a shard, or of a member ------------------------------------------ */

static int64_t read_some(struct arrays *arrays, void *data, size_t size)
{
	if (arrays->zip)
		return libarchive.archive_read_data(arrays->zip, data, size);
	return input_read(&arrays->scan->input, data, size);
}

/* Return: how many; fewer at the end; negative errno, -EBADMSG. */
static int64_t read_full(struct arrays *arrays, uint8_t *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		int64_t got = read_some(arrays, data + done, size - done);

		if (got < 0)
			return arrays->zip ? -EBADMSG : got;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

static int unreadable(struct arrays *arrays, int error)
{
	struct input *input = &arrays->scan->input;

	if (input->error && input->error != -EBADMSG)
		return from_cannot_read(arrays->scan, input->error);
	if (arrays->zip)
		return from_damaged(arrays->scan, input->at, "%s",
				    libarchive.archive_error_string(arrays->zip));
	return from_input_failed(arrays->scan, error);
}

static int cut_short(struct arrays *arrays, const struct array *array)
{
	return from_damaged(arrays->scan, arrays->scan->input.at,
			    "array '%s' is cut short: it has %" PRIu64 " rows", array->name,
			    array->npy.dims[0]);
}

static int copy(struct arrays *arrays, struct array *array)
{
	uint64_t left = array->npy.data_size;
	int ret = from_store(arrays->scan, 0, &array->place);

	while (left && !ret) {
		const size_t want = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
		int64_t got = read_full(arrays, arrays->buffer, want);

		if (got < 0)
			return unreadable(arrays, (int)got);
		ret = from_append(arrays->scan, arrays->buffer, (size_t)got);
		if (!ret && (size_t)got < want)
			return cut_short(arrays, array);
		left -= want;
	}
	return ret;
}

/* ---- arrays -------------------------------------------------------------------- */

/* Return: 0, the array is there unless that was damage; negative errno (said). */
static int take_header(struct arrays *arrays, struct array *array)
{
	struct from_scan *scan = arrays->scan;
	const uint64_t at = scan->input.at;
	int64_t got = read_full(arrays, arrays->buffer, NPY_FIRST_SIZE);
	uint64_t size = got == NPY_FIRST_SIZE ? npy_header_size(arrays->buffer) : 0;
	const char *why = "not an array of NumPy";

	if (got < 0)
		return unreadable(arrays, (int)got);
	if (size >= NPY_FIRST_SIZE && size <= NPY_HEADER_MAX) {
		got = read_full(arrays, arrays->buffer + NPY_FIRST_SIZE,
				(size_t)size - NPY_FIRST_SIZE);
		if (got < 0)
			return unreadable(arrays, (int)got);
		why = (uint64_t)got + NPY_FIRST_SIZE < size ?
			      "a header that is cut short" :
			      npy_parse(arrays->buffer, (size_t)size, &array->npy);
	}
	return why ? from_damaged(scan, at, "array '%s' has %s", array->name, why) : 0;
}

static int take_array(struct arrays *arrays, struct array *array)
{
	struct from_scan *scan = arrays->scan;
	const uint64_t damages = scan->damages;
	int ret = take_header(arrays, array);

	if (ret || scan->damages != damages)
		return ret;
	if (array->npy.text && array->npy.row_size > TEXT_MAX)
		return from_damaged(scan, 0, "array '%s' has texts of more than %zu bytes",
				    array->name, TEXT_MAX);
	if (arrays->count && array->npy.dims[0] != arrays->rows)
		return from_damaged(scan, scan->input.at,
				    "array '%s' has %" PRIu64 " rows, and others %" PRIu64,
				    array->name, array->npy.dims[0], arrays->rows);
	if (arrays->zip || !from_is_plain(scan)) {
		ret = copy(arrays, array);
	} else {
		array->place = from_place(scan, scan->input.at);
		if (array->npy.data_size > scan->shard->size - scan->input.at)
			ret = cut_short(arrays, array);
	}
	if (ret || scan->damages != damages)
		return ret;
	arrays->rows = array->npy.dims[0];
	array->window = malloc(WINDOW_SIZE + array->npy.row_size % WINDOW_SIZE);
	arrays->count += array->window != NULL;
	return array->window ? 0 : -ENOMEM;
}

/* ---- rows ---------------------------------------------------------------------- */

/* One row, where it is looked at. Return: NULL: it cannot be read (said). */
static const uint8_t *look(struct arrays *arrays, struct array *array, uint64_t row, int *error)
{
	const uint64_t size = array->npy.row_size, at = row * size;
	const uint64_t offset = (array->place & PLACE_OFFSET_MAX) + at;
	uint64_t want = array->npy.data_size - at;
	int64_t got;

	if (at >= array->begin && at + size <= array->end)
		return array->window + (at - array->begin);
	want = want < WINDOW_SIZE ? want : WINDOW_SIZE;
	if (array->place >> PLACE_SHARD_SHIFT == PLACE_STORE)
		got = store_read(&arrays->scan->from->store, offset, array->window, (size_t)want);
	else
		got = pread(arrays->scan->input.fd, array->window, (size_t)want, (off_t)offset);
	array->begin = at;
	array->end = at + (got > 0 ? (uint64_t)got : 0);
	if (got >= (int64_t)size)
		return array->window;
	*error = from_cannot_read(arrays->scan, got < 0 ? -EIO : -ETXTBSY);
	return NULL;
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

static int take_text(struct arrays *arrays, const struct array *array, const uint8_t *data)
{
	const size_t name_size = strlen(array->name);
	struct row *row = &arrays->row;
	int64_t size = (int64_t)array->npy.row_size;
	const bool key = row_role(arrays->scan->from, array->name, name_size) == ROW_KEY;
	const bool text = array->npy.text == NPY_UCS4;

	if (text) {
		size = encode(data, array->npy.row_size, arrays->buffer);
		data = arrays->buffer;
	}
	while (!text && size && !data[size - 1])
		size--;
	if (size < 0)
		return from_damaged(arrays->scan, row->record.offset,
				    "array '%s' has code points that are none", array->name);
	if (key) {
		row_key(row, (const char *)data, (size_t)size);
		return 0;
	}
	return row_bytes(row, array->name, name_size,
			 text ? RECORD_FAMILY_TEXT : RECORD_FAMILY_BYTES,
			 text ? RECORD_TEXT : RECORD_BYTES, data, (size_t)size);
}

/* The shape is that of all shards. */
static int take_tensor(struct arrays *arrays, const struct array *array, uint64_t row)
{
	struct from *from = arrays->scan->from;
	const struct npy *npy = &array->npy;
	struct record_value value = {.kind = RECORD_ROW, .size = npy->row_size};
	int number = record_field(&from->fields, array->name, strlen(array->name),
				  RECORD_FAMILY_ROW);

	value.place = array->place + row * npy->row_size;
	if (number >= 0) {
		struct stele_field *field = &from->fields.list[number].field;
		struct stele_field wanted = *field;

		wanted.dtype = npy->dtype;
		wanted.rank = npy->rank - 1;
		for (uint32_t i = 0; i < wanted.rank; i++)
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
	int ret = 0;

	if (array->npy.rank > 1)
		return take_tensor(arrays, array, row);
	data = look(arrays, array, row, &ret);
	if (!data)
		return ret;
	if (array->npy.text)
		return take_text(arrays, array, data);
	if (!take_number(&array->npy, data, &value))
		return take_tensor(arrays, array, row);
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

static int scan_with(struct from_scan *scan, int (*fn)(struct arrays *arrays))
{
	struct arrays *arrays = calloc(1, sizeof(*arrays));
	int ret = arrays ? 0 : -ENOMEM;

	if (!ret) {
		arrays->scan = arrays->row.scan = scan;
		arrays->buffer = malloc(TEXT_MAX);
		ret = arrays->buffer ? fn(arrays) : -ENOMEM;
	}
	if (!ret)
		ret = take_rows(arrays);
	for (uint32_t i = 0; arrays && i < STELE_FIELDS_MAX; i++)
		free(arrays->list[i].window);
	if (arrays && arrays->zip)
		libarchive.archive_read_free(arrays->zip);
	if (arrays)
		free(arrays->buffer);
	free(arrays);
	return ret;
}

static int take_npy(struct arrays *arrays)
{
	strcpy(arrays->list[0].name, "data");
	return take_array(arrays, &arrays->list[0]);
}

static int npy_scan(struct from_scan *scan)
{
	return scan_with(scan, take_npy);
}

const struct from_format from_npy = {
	.name = "npy",
	.detect = npy_detect,
	.scan = npy_scan,
	.kind = FROM_RECORDS,
};

static la_ssize_t read_zip(struct archive *archive, void *user, const void **data)
{
	struct arrays *arrays = user;
	const uint8_t *bytes;
	int64_t got = input_look(&arrays->scan->input, 1, &bytes);

	*data = bytes;
	if (got > 0)
		input_skip(&arrays->scan->input, (uint64_t)got);
	if (got < 0)
		libarchive.archive_set_error(archive, EIO, "%s",
					     got == -EBADMSG ? input_why(&arrays->scan->input) :
							       strerror((int)-got));
	return got;
}

/* A member x.npy is the array x. */
static int take_member(struct arrays *arrays, struct archive_entry *entry)
{
	struct array *array = &arrays->list[arrays->count];
	const char *path = libarchive.archive_entry_pathname(entry);
	const size_t size = path ? strlen(path) : 0;

	if (arrays->count == STELE_FIELDS_MAX)
		return from_failed(arrays->scan->from, -EOVERFLOW, "'%s' has more than %d arrays",
				   arrays->scan->shard->name, STELE_FIELDS_MAX);
	if (size <= 4 || strcmp(path + size - 4, ".npy") != 0 || size - 4 >= NAME_MAX_)
		return from_damaged(arrays->scan, arrays->scan->input.at,
				    "'%s' is not the name of an array", path ? path : "");
	memcpy(array->name, path, size - 4);
	array->name[size - 4] = '\0';
	return take_array(arrays, array);
}

static int take_npz(struct arrays *arrays)
{
	struct archive_entry *entry;
	int ret = 0, got;

	arrays->zip = libarchive.archive_read_new();
	if (!arrays->zip || libarchive.archive_read_support_format_zip_streamable(arrays->zip))
		return -ENOMEM;
	got = libarchive.archive_read_open2(arrays->zip, arrays, NULL, read_zip, NULL, NULL);
	while (!ret && got == ARCHIVE_OK) {
		got = libarchive.archive_read_next_header(arrays->zip, &entry);
		if (got == ARCHIVE_OK)
			ret = take_member(arrays, entry);
	}
	if (ret)
		return ret;
	if (got != ARCHIVE_EOF) {
		arrays->count = 0; /* who knows what is missing? */
		return unreadable(arrays, -EBADMSG);
	}
	return arrays->count ? 0 : from_damaged(arrays->scan, 0, "no arrays");
}

static int npz_scan(struct from_scan *scan)
{
	return scan_with(scan, take_npz);
}

/* A zip whose first member is an array. */
static bool npz_detect(const uint8_t *data, size_t size)
{
	const size_t name = size > 30 ? data[26] | (size_t)data[27] << 8 : 0;

	return name > 4 && size >= 30 + name && !memcmp(data, "PK\3\4", 4) &&
	       !memcmp(data + 30 + name - 4, ".npy", 4);
}

const struct from_format from_npz = {
	.name = "npz",
	.detect = npz_detect,
	.scan = npz_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY,
};

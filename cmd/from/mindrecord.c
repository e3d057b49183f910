/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mindrecord.c - rows of MindSpore's MindRecord files
 *
 *	| u64 size of the header | JSON: header_size, page_size, page, schema, ... |
 *	| at header_size + id * page_size: page id, of which so many bytes are in use |
 *
 * Pages of type RAW_DATA and BLOB_DATA have records, a u64 size and bytes, each without gaps; the
 * n-th of either are row n. That of a raw page is a map of scalars in MessagePack. That of a blob
 * page has all other fields in the order of blob_fields: a u64 size, big-endian, and bytes, or
 * bytes alone if there is one. Lists of integers are packed: a u32 count, big-endian, 2 bits of
 * width for each, and so many bytes for each. The index of SQLite beside the file says the same
 * again, and is not read.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "from/row.h"
#include "text.h"

#define FIRST_SIZE  8u
#define WINDOW_SIZE ((size_t)64 << 10)
#define WIDTHS(n)   (((n) + 3) / 4) /* bytes of their 2 bits each */

enum column_type { INT32, INT64, FLOAT32, FLOAT64, STRING, BYTES };

struct column {
	char name[STELE_NAME_SIZE_MAX + 1];
	enum column_type type;
	struct stele_field shape; /* of a tensor: dtype, rank, dims */
	bool tensor;
	bool seen; /* in this row */
};

struct page {
	uint64_t id, offset, size;
};

/* Records of one kind of pages. */
struct records {
	struct page *pages; /* owned */
	size_t count, index;
	uint64_t at;	   /* in the page */
	uint8_t *window;   /* owned */
	size_t room;
	uint64_t begin, end; /* of the window, in the file */
};

struct mindrecord {
	struct from_scan *scan;
	json_t *header;
	struct column columns[STELE_FIELDS_MAX];
	uint32_t count;
	uint32_t blobs[STELE_FIELDS_MAX]; /* columns, in order */
	uint32_t blob_count;
	struct records raw, blob;
	struct row row;
};

static uint64_t get(const uint8_t *at, unsigned int size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | at[size];
	return value;
}

static uint64_t get_big(const uint8_t *at, unsigned int size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | *at++;
	return value;
}

static bool detect(const uint8_t *data, size_t size)
{
	return size > FIRST_SIZE + 16 && !get(data + 5, 3) && data[FIRST_SIZE] == '{' &&
	       memmem(data + FIRST_SIZE, size - FIRST_SIZE, "\"header_size\":", 14);
}

/* ---- bytes of the file --------------------------------------------------------- */

/* Return: NULL: *error is 0 if that was damage, else negative (said). */
static const uint8_t *look(struct mindrecord *m, struct records *r, uint64_t offset, uint64_t size,
			   int *error)
{
	const uint64_t left = m->scan->shard->size - offset;
	size_t want = size > WINDOW_SIZE ? (size_t)size : WINDOW_SIZE;
	ssize_t got;

	*error = 0;
	if (offset >= r->begin && offset + size <= r->end)
		return r->window + (offset - r->begin);
	if (want > r->room) {
		free(r->window);
		r->window = malloc(want);
		r->room = r->window ? want : 0;
		r->begin = r->end = 0;
	}
	if (!r->window) {
		*error = -ENOMEM;
		return NULL;
	}
	got = pread(m->scan->input.fd, r->window, want < left ? want : (size_t)left, (off_t)offset);
	r->begin = offset;
	r->end = offset + (got > 0 ? (uint64_t)got : 0);
	if (got >= 0 && (uint64_t)got >= size)
		return r->window;
	*error = from_cannot_read(m->scan, got < 0 ? -errno : -ETXTBSY);
	return NULL;
}

/* ---- header -------------------------------------------------------------------- */

static int bad_header(struct mindrecord *m, const char *what)
{
	return from_damaged(m->scan, FIRST_SIZE, "the header has a bad '%s'", what);
}

static uint64_t number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_integer(value) && json_integer_value(value) >= 0 ?
		       (uint64_t)json_integer_value(value) : UINT64_MAX;
}

static int compare_pages(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Return: 1; 0: damage; negative errno (said). */
static int take_pages(struct mindrecord *m)
{
	const uint64_t first = number(m->header, "header_size");
	const uint64_t step = number(m->header, "page_size"), size = m->scan->shard->size;
	json_t *pages = json_object_get(m->header, "page"), *page;
	size_t i, n = json_array_size(pages);

	if (!json_is_array(pages))
		return bad_header(m, "page");
	m->raw.pages = calloc(n + 1, sizeof(struct page));
	m->blob.pages = calloc(n + 1, sizeof(struct page));
	if (!m->raw.pages || !m->blob.pages)
		return -ENOMEM;
	json_array_foreach(pages, i, page) {
		const char *type = json_string_value(json_object_get(page, "page_type"));
		struct page p = {number(page, "page_id"), 0, number(page, "page_size")};

		if (!type || p.size > step || __builtin_mul_overflow(p.id, step, &p.offset) ||
		    __builtin_add_overflow(p.offset, first, &p.offset))
			return bad_header(m, "page");
		if (p.offset > size || p.size > size - p.offset)
			return from_damaged(m->scan, size, "cut short: page %" PRIu64 " of %" PRIu64
					    " bytes is at byte %" PRIu64, p.id, p.size, p.offset);
		if (!strcmp(type, "RAW_DATA"))
			m->raw.pages[m->raw.count++] = p;
		else if (!strcmp(type, "BLOB_DATA"))
			m->blob.pages[m->blob.count++] = p;
		else
			return bad_header(m, "page_type");
	}
	qsort(m->raw.pages, m->raw.count, sizeof(struct page), compare_pages);
	qsort(m->blob.pages, m->blob.count, sizeof(struct page), compare_pages);
	return 1;
}

static bool take_shape(struct column *column, json_t *shape)
{
	static const uint32_t dtypes[] = {[INT32] = STELE_DTYPE_I32, [INT64] = STELE_DTYPE_I64,
					  [FLOAT32] = STELE_DTYPE_F32, [FLOAT64] = STELE_DTYPE_F64};
	uint64_t size = 8;
	json_t *value;
	size_t i;

	column->tensor = true;
	if (column->type >= STRING || !json_is_array(shape) ||
	    json_array_size(shape) > STELE_RANK_MAX || !json_array_size(shape))
		return false;
	column->shape.dtype = dtypes[column->type];
	column->shape.rank = (uint32_t)json_array_size(shape);
	json_array_foreach(shape, i, value) {
		const json_int_t dim = json_integer_value(value);

		if (!json_is_integer(value) || dim > INT32_MAX || (dim <= 0 && (i || dim != -1)))
			return false;
		column->shape.dims[i] = dim > 0 ? (uint32_t)dim : 0;
		if (__builtin_mul_overflow(size, dim > 0 ? (uint64_t)dim : 1, &size) ||
		    size > STELE_SAMPLE_SIZE_MAX)
			return false;
	}
	return true;
}

static bool take_column(struct column *column, const char *name, json_t *value)
{
	static const char *const types[] = {"int32", "int64", "float32", "float64", "string",
					    "bytes"};
	const char *type = json_string_value(json_object_get(value, "type"));
	json_t *shape = json_object_get(value, "shape");
	unsigned int i = 0;

	while (i < 6 && (!type || strcmp(type, types[i]) != 0))
		i++;
	if (i == 6 || strlen(name) > STELE_NAME_SIZE_MAX)
		return false;
	strcpy(column->name, name);
	column->type = (enum column_type)i;
	return !shape || take_shape(column, shape);
}

static struct column *find_column(struct mindrecord *m, const char *name, size_t size)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (strlen(m->columns[i].name) == size && !memcmp(m->columns[i].name, name, size))
			return &m->columns[i];
	return NULL;
}

/* Return: as take_pages(). */
static int take_schema(struct mindrecord *m)
{
	json_t *schema = json_array_get(json_object_get(m->header, "schema"), 0);
	json_t *blobs = json_object_get(schema, "blob_fields"), *value;
	const char *name;
	size_t i;

	schema = json_object_get(schema, "schema");
	if (json_object_size(schema) > STELE_FIELDS_MAX)
		return from_too_many(m->scan);
	json_object_foreach(schema, name, value)
		if (!take_column(&m->columns[m->count++], name, value))
			return from_damaged(m->scan, FIRST_SIZE, "field '%s' is of a type or shape "
					    "that is not known", name);
	json_array_foreach(blobs, i, value) {
		struct column *column = json_is_string(value) ?
			find_column(m, json_string_value(value), json_string_length(value)) : NULL;

		if (!column || column->seen || (!column->tensor && column->type != BYTES))
			return bad_header(m, "blob_fields");
		column->seen = true;
		m->blobs[m->blob_count++] = (uint32_t)(column - m->columns);
	}
	for (i = 0; i < m->count; i++)
		if (!m->columns[i].seen && (m->columns[i].tensor || m->columns[i].type == BYTES))
			return bad_header(m, "blob_fields");
	return m->count ? 1 : bad_header(m, "schema");
}

/* Return: as take_pages(). */
static int take_header(struct mindrecord *m)
{
	const uint64_t size = m->scan->shard->size;
	const uint8_t *data;
	json_error_t error;
	uint64_t length;
	int ret;

	if (size < FIRST_SIZE)
		return from_damaged(m->scan, 0, "not a MindRecord file");
	data = look(m, &m->raw, 0, FIRST_SIZE, &ret);
	if (!data)
		return ret;
	length = get(data, FIRST_SIZE);
	if (length > size - FIRST_SIZE || length > FROM_RECORD_SIZE_MAX)
		return from_damaged(m->scan, 0, "not a MindRecord file, or its header is cut "
				    "short");
	data = look(m, &m->raw, FIRST_SIZE, length, &ret);
	if (!data)
		return ret;
	m->header = json_loadb((const char *)data, (size_t)length, JSON_REJECT_DUPLICATES, &error);
	if (!m->header)
		return from_damaged(m->scan, FIRST_SIZE + (uint64_t)error.position, "header: %s",
				    error.text);
	ret = take_pages(m);
	return ret > 0 ? take_schema(m) : ret;
}

/* ---- records ------------------------------------------------------------------- */

/* The next one. Return: 1; 2: there is none; 0: damage; negative errno (said). */
static int next(struct mindrecord *m, struct records *r, uint64_t *offset, uint64_t *size)
{
	const struct page *page;
	const uint8_t *data;
	uint64_t left;
	int ret;

	while (r->index < r->count && r->at == r->pages[r->index].size) {
		r->index++;
		r->at = 0;
	}
	if (r->index == r->count)
		return 2;
	page = &r->pages[r->index];
	*offset = page->offset + r->at + FIRST_SIZE;
	left = page->size - r->at;
	if (left >= FIRST_SIZE) {
		data = look(m, r, *offset - FIRST_SIZE, FIRST_SIZE, &ret);
		if (!data)
			return ret;
		*size = get(data, FIRST_SIZE);
	}
	if (left < FIRST_SIZE || *size > left - FIRST_SIZE)
		return from_damaged(m->scan, page->offset + r->at, "row %" PRIu64 " does not end "
				    "with its page: what follows is lost", m->row.number);
	r->at += FIRST_SIZE + *size;
	return 1;
}

/* ---- MessagePack ------------------------------------------------------------------- */

struct pack {
	const uint8_t *at, *end;
};

struct scalar {
	enum { NONE, INTEGER, REAL, TEXT } kind;
	int64_t i64;
	double f64;
	const char *text;
	size_t size;
};

static bool take_bytes(struct pack *p, uint64_t size, const uint8_t **out)
{
	*out = p->at;
	if (size > (uint64_t)(p->end - p->at))
		return false;
	p->at += size;
	return true;
}

static bool take_size(struct pack *p, unsigned int bytes, uint64_t *size)
{
	const uint8_t *data;

	if (!take_bytes(p, bytes, &data))
		return false;
	*size = get_big(data, bytes);
	return true;
}

static bool take_string(struct pack *p, uint64_t size, struct scalar *out)
{
	const uint8_t *data;

	if (!take_bytes(p, size, &data))
		return false;
	out->kind = TEXT;
	out->text = (const char *)data;
	out->size = (size_t)size;
	return true;
}

static bool take_real(struct pack *p, unsigned int bytes, struct scalar *out)
{
	uint64_t bits;
	uint32_t half;
	float f32;

	if (!take_size(p, bytes, &bits))
		return false;
	half = (uint32_t)bits;
	memcpy(&f32, &half, sizeof(f32));
	memcpy(&out->f64, &bits, sizeof(out->f64));
	out->kind = REAL;
	if (bytes == sizeof(f32))
		out->f64 = (double)f32;
	return true;
}

/* Of 1, 2, 4 or 8 bytes. */
static bool take_integer(struct pack *p, unsigned int bytes, bool negative, struct scalar *out)
{
	const unsigned int shift = 64 - 8 * bytes;
	uint64_t bits;

	if (!take_size(p, bytes, &bits))
		return false;
	out->kind = INTEGER;
	out->i64 = negative ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
	return negative || bits <= INT64_MAX;
}

static bool take_scalar(struct pack *p, struct scalar *out)
{
	uint64_t tag, size;

	if (!take_size(p, 1, &tag))
		return false;
	if (tag < 0x80 || tag >= 0xe0) {
		out->kind = INTEGER;
		out->i64 = (int8_t)tag;
		return true;
	}
	if (tag >= 0xa0 && tag < 0xc0)
		return take_string(p, tag & 31, out);
	if (tag == 0xca || tag == 0xcb)
		return take_real(p, tag == 0xca ? 4 : 8, out);
	if (tag >= 0xcc && tag <= 0xd3)
		return take_integer(p, 1u << (tag & 3), tag >= 0xd0, out);
	if (tag >= 0xd9 && tag <= 0xdb)
		return take_size(p, 1u << (tag - 0xd9), &size) && take_string(p, size, out);
	return false;
}

static bool take_map(struct pack *p, uint64_t *count)
{
	uint64_t tag;

	if (!take_size(p, 1, &tag))
		return false;
	*count = tag & 15;
	return (tag >= 0x80 && tag < 0x90) || (tag == 0xde && take_size(p, 2, count)) ||
	       (tag == 0xdf && take_size(p, 4, count));
}

/* ---- scalars ------------------------------------------------------------------- */

static int bad_value(struct mindrecord *m, const struct column *column, const char *what)
{
	return from_damaged(m->scan, m->row.record.offset, "field '%s' %s", column->name, what);
}

static int take_key(struct mindrecord *m, const struct scalar *value)
{
	char text[32];
	int size;

	if (value->kind == TEXT) {
		row_key(&m->row, value->text, value->size);
		return 0;
	}
	size = snprintf(text, sizeof(text), "%" PRIi64, value->i64);
	row_key(&m->row, text, (size_t)size);
	return 0;
}

static int take_text(struct mindrecord *m, const struct column *column,
		     const struct scalar *value, uint64_t place)
{
	const size_t name_size = strlen(column->name);
	const struct record_value text = {.kind = RECORD_TEXT, .size = value->size, .place = place};

	if (text_valid(value->text, value->size) != value->size)
		return bad_value(m, column, "is not UTF-8");
	if (row_role(m->scan->from, column->name, name_size) == ROW_CLASS)
		return row_class(&m->row, column->name, name_size, value->text, value->size);
	return row_value(&m->row, column->name, name_size, RECORD_FAMILY_TEXT, &text);
}

/* `place`: of a text, in the file. */
static int take_value(struct mindrecord *m, struct column *column, const struct scalar *value,
		      uint64_t place)
{
	const bool real = column->type == FLOAT32 || column->type == FLOAT64;
	struct record_value number = {.kind = RECORD_I64, .number.i64 = value->i64};
	const size_t name_size = strlen(column->name);

	if (value->kind == REAL ? !real : (value->kind == TEXT) != (column->type == STRING))
		return bad_value(m, column, "is not of its type");
	if (!real && row_role(m->scan->from, column->name, name_size) == ROW_KEY)
		return take_key(m, value);
	if (value->kind == TEXT)
		return take_text(m, column, value, place);
	if (real) {
		number.kind = RECORD_F64;
		number.number.f64 = value->kind == REAL ? value->f64 : (double)value->i64;
	}
	return row_value(&m->row, column->name, name_size, RECORD_FAMILY_NUMBER, &number);
}

/* Return: 0, also of damage that is skipped; negative errno (said). */
static int take_raw(struct mindrecord *m, uint64_t offset, uint64_t size)
{
	struct pack p;
	uint64_t count = 0;
	bool ok;
	int ret;

	if (size > FROM_RECORD_SIZE_MAX)
		return from_damaged(m->scan, offset, "scalars of more than %zu bytes",
				    FROM_RECORD_SIZE_MAX);
	p.at = look(m, &m->raw, offset, size, &ret);
	if (!p.at)
		return ret;
	p.end = p.at + size;
	ok = take_map(&p, &count);
	while (ok && count-- && !ret) {
		struct scalar name = {NONE}, value = {NONE};
		struct column *column;

		ok = take_scalar(&p, &name) && name.kind == TEXT && take_scalar(&p, &value);
		column = ok ? find_column(m, name.text, name.size) : NULL;
		if (ok && !column) /* the writer's own, if no field is a scalar */
			continue;
		ok = ok && !column->seen && !column->tensor && column->type != BYTES;
		if (!ok)
			break;
		column->seen = true;
		ret = take_value(m, column, &value, from_place(m->scan, offset + size -
				 (uint64_t)(p.end - p.at) - value.size));
	}
	if (ok || ret)
		return ret;
	return from_damaged(m->scan, offset, "row %" PRIu64 " has bad scalars", m->row.number);
}

/* ---- blobs --------------------------------------------------------------------- */

/* The shape is that of all shards, too. */
static int take_tensor(struct mindrecord *m, const struct column *column, uint64_t place,
		       uint64_t size)
{
	struct from *from = m->scan->from;
	const struct record_value value = {.kind = RECORD_ROW, .size = size, .place = place};
	uint64_t row = column->type == INT32 || column->type == FLOAT32 ? 4 : 8;
	int number = record_field(&from->fields, column->name, strlen(column->name),
				  RECORD_FAMILY_ROW);

	for (uint32_t i = 0; i < column->shape.rank; i++)
		row *= column->shape.dims[i] ? column->shape.dims[i] : 1;
	if (column->shape.dims[0] ? size != row : size % row)
		return bad_value(m, column, "is not of its shape");
	if (number >= 0) {
		struct stele_field *field = &from->fields.list[number].field;

		if (!field->dtype) {
			field->dtype = column->shape.dtype;
			field->rank = column->shape.rank;
			memcpy(field->dims, column->shape.dims, sizeof(field->dims));
		}
		if (field->dtype != column->shape.dtype || field->rank != column->shape.rank ||
		    memcmp(field->dims, column->shape.dims, sizeof(field->dims)) != 0)
			return bad_value(m, column, "has another shape or type than before");
	}
	return row_value(&m->row, column->name, strlen(column->name), RECORD_FAMILY_ROW, &value);
}

/* Integers, each in as few bytes as it takes. Return: 0; -EBADMSG; -ENOMEM. */
static int unpack(const uint8_t *data, uint64_t size, unsigned int width, uint8_t **out,
		  uint64_t *out_size)
{
	const uint64_t count = size < 4 ? UINT64_MAX : get_big(data, 4);
	uint64_t at = 4 + WIDTHS(count);

	if (count > FROM_RECORD_SIZE_MAX || at > size || count > size - at)
		return -EBADMSG;
	*out_size = count * width;
	*out = malloc((size_t)*out_size + 1);
	for (uint64_t i = 0; *out && i < count; i++) {
		const unsigned int bytes = 1u << (data[4 + i / 4] >> (6 - 2 * (i % 4)) & 3);
		const unsigned int shift = 64 - 8 * bytes;
		int64_t value;

		if (bytes > size - at)
			return -EBADMSG;
		value = (int64_t)(get(data + at, bytes) << shift) >> shift;
		at += bytes;
		for (unsigned int k = 0; k < width; k++)
			(*out)[i * width + k] = (uint8_t)((uint64_t)value >> 8 * k);
	}
	if (*out && at != size)
		return -EBADMSG;
	return *out ? 0 : -ENOMEM;
}

static int keep_integers(struct mindrecord *m, const struct column *column, uint64_t offset,
			 const uint8_t *data, uint64_t size)
{
	uint64_t place;
	int ret = from_store(m->scan, offset, &place);

	if (!ret)
		ret = from_append(m->scan, data, (size_t)size);
	return ret ? ret : take_tensor(m, column, place, size);
}

static int take_integers(struct mindrecord *m, const struct column *column, uint64_t offset,
			 uint64_t size)
{
	uint64_t out_size = 0;
	uint8_t *out = NULL;
	const uint8_t *data;
	int ret;

	if (size > FROM_RECORD_SIZE_MAX)
		return bad_value(m, column, "is too large");
	data = look(m, &m->blob, offset, size, &ret);
	if (!data)
		return ret;
	ret = unpack(data, size, column->type == INT32 ? 4 : 8, &out, &out_size);
	if (ret == -EBADMSG)
		ret = bad_value(m, column, "has bad integers");
	else if (!ret)
		ret = keep_integers(m, column, offset, out, out_size);
	free(out);
	return ret;
}

static int take_blob(struct mindrecord *m, const struct column *column, uint64_t offset,
		     uint64_t size)
{
	const struct record_value value = {.kind = RECORD_BYTES, .size = size,
					   .place = from_place(m->scan, offset)};

	if (column->type == BYTES)
		return row_value(&m->row, column->name, strlen(column->name), RECORD_FAMILY_BYTES,
				 &value);
	if (column->type == INT32 || column->type == INT64)
		return take_integers(m, column, offset, size);
	return take_tensor(m, column, value.place, size);
}

static int take_blobs(struct mindrecord *m, uint64_t offset, uint64_t size)
{
	int ret = 0;

	for (uint32_t i = 0; i < m->blob_count && !ret; i++) {
		const struct column *column = &m->columns[m->blobs[i]];
		uint64_t part = size;
		const uint8_t *data;

		if (m->blob_count > 1) {
			if (size < FIRST_SIZE)
				return bad_value(m, column, "is missing");
			data = look(m, &m->blob, offset, FIRST_SIZE, &ret);
			if (!data)
				return ret;
			part = get_big(data, FIRST_SIZE);
			offset += FIRST_SIZE;
			size -= FIRST_SIZE;
		}
		if (part > size)
			return bad_value(m, column, "is larger than its row");
		ret = take_blob(m, column, offset, part);
		offset += part;
		size -= part;
	}
	return ret;
}

/* ---- rows ------------------------------------------------------------------------ */

/* Return: 1; 2: there are no more; 0: damage, after which no more can be found; negative errno. */
static int take_row(struct mindrecord *m)
{
	uint64_t raw = 0, raw_size = 0, blob = 0, blob_size = 0;
	int ret = next(m, &m->raw, &raw, &raw_size);
	int also = ret > 0 ? next(m, &m->blob, &blob, &blob_size) : ret;

	if (ret > 0 && also > 0 && ret != also)
		return from_damaged(m->scan, ret == 1 ? raw : blob,
				    "row %" PRIu64 " has no %s", m->row.number,
				    ret == 1 ? "blob" : "scalars");
	if (also != 1)
		return also;
	for (uint32_t i = 0; i < m->count; i++)
		m->columns[i].seen = false;
	row_begin(&m->row, raw);
	ret = take_raw(m, raw, raw_size);
	if (!ret && m->row.damages == m->scan->damages)
		ret = take_blobs(m, blob, blob_size);
	if (!ret)
		ret = row_end(&m->row);
	return ret ? ret : 1;
}

static int mindrecord_scan(struct from_scan *scan)
{
	struct mindrecord *m;
	int ret;

	if (!from_is_plain(scan))
		return from_failed(scan->from, -EOPNOTSUPP, "cannot read a MindRecord file that is "
				   "compressed or comes through a pipe");
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->scan = m->row.scan = scan;
	ret = take_header(m);
	while (ret == 1)
		ret = take_row(m);
	json_decref(m->header);
	free(m->raw.pages);
	free(m->raw.window);
	free(m->blob.pages);
	free(m->blob.window);
	free(m);
	return ret < 0 ? ret : scan->input.tick(scan->input.user, scan->shard->size);
}

const struct from_format from_mindrecord = {
	.name = "mindrecord",
	.detect = detect,
	.scan = mindrecord_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY,
};

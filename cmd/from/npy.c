/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c - a Python dictionary of three members: descr, fortran_order, shape
 */
#include "from/npy.h"

#include <string.h>

#define MAGIC	   "\x93NUMPY"
#define MAGIC_SIZE 6u

/* What is left of the dictionary. */
struct cursor {
	const char *at, *end;
};

bool npy_detect(const uint8_t *data, size_t size)
{
	return size >= NPY_FIRST_SIZE && !memcmp(data, MAGIC, MAGIC_SIZE);
}

uint64_t npy_header_size(const uint8_t *data)
{
	const uint64_t two = data[8] | (uint64_t)data[9] << 8;

	if (!npy_detect(data, NPY_FIRST_SIZE) || data[6] < 1 || data[6] > 3)
		return 0;
	if (data[6] == 1)
		return 10 + two;
	return 12 + (two | (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24);
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
		c->at++;
}

static bool take(struct cursor *c, const char *word)
{
	const size_t size = strlen(word);

	skip_blanks(c);
	if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0)
		return false;
	c->at += size;
	return true;
}

static bool take_number(struct cursor *c, uint64_t *out)
{
	const char *begin;

	skip_blanks(c);
	begin = c->at;
	for (*out = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		if (*out > (UINT64_MAX - 9) / 10)
			return false;
		*out = *out * 10 + (uint64_t)(*c->at - '0');
	}
	take(c, "L"); /* as Python 2 wrote it */
	return c->at > begin;
}

/* '<f4' and the like. */
static const char *take_type(struct cursor *c, struct npy *out)
{
	static const struct {
		const char *name;
		uint32_t dtype, size;
	} types[] = {
		{"b1", STELE_DTYPE_BOOL, 1}, {"u1", STELE_DTYPE_U8, 1}, {"i1", STELE_DTYPE_I8, 1},
		{"u2", STELE_DTYPE_U16, 2},  {"i2", STELE_DTYPE_I16, 2}, {"u4", STELE_DTYPE_U32, 4},
		{"i4", STELE_DTYPE_I32, 4},  {"u8", STELE_DTYPE_U64, 8}, {"i8", STELE_DTYPE_I64, 8},
		{"f2", STELE_DTYPE_F16, 2},  {"f4", STELE_DTYPE_F32, 4}, {"f8", STELE_DTYPE_F64, 8},
		{"c8", STELE_DTYPE_C64, 8},  {"c16", STELE_DTYPE_C128, 16},
	};
	uint64_t length;

	if (!take(c, "'"))
		return "a structured type, which has no dtype of a tensor";
	if (take(c, ">"))
		return "big-endian elements (astype() converts them)";
	if (!take(c, "<") && !take(c, "|") && !take(c, "="))
		return "bad type of elements";
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (take(c, types[i].name)) {
			out->dtype = types[i].dtype;
			out->row_size = types[i].size;
			return take(c, "'") ? NULL : "bad type of elements";
		}
	if (take(c, "O"))
		return "Python objects, which only Python can read";
	if (take(c, "M") || take(c, "m"))
		return "dates or times (view('i8') makes integers of them)";
	if (take(c, "V"))
		return "opaque bytes";
	out->text = take(c, "S") ? NPY_BYTES : take(c, "U") ? NPY_UCS4 : NPY_NUMBERS;
	if (!out->text || !take_number(c, &length) || !take(c, "'") || length > UINT32_MAX)
		return "elements of a type that a field cannot have";
	out->row_size = out->text == NPY_UCS4 ? length * 4 : length;
	return NULL;
}

static const char *take_shape(struct cursor *c, struct npy *out)
{
	if (!take(c, "("))
		return "bad shape";
	while (!take(c, ")")) {
		if (out->rank == NPY_RANK_MAX)
			return "too many dimensions";
		if (!take_number(c, &out->dims[out->rank++]))
			return "bad shape";
		if (!take(c, ",") && !(take(c, ")") && c->at--))
			return "bad shape";
	}
	return NULL;
}

/* One member. */
static const char *take_member(struct cursor *c, struct npy *out, unsigned int *seen)
{
	if (take(c, "'descr':")) {
		*seen |= 1;
		return take_type(c, out);
	}
	if (take(c, "'fortran_order':")) {
		*seen |= 2;
		if (take(c, "False"))
			return NULL;
		*seen |= 8;
		return take(c, "True") ? NULL : "bad header";
	}
	if (!take(c, "'shape':"))
		return "bad header";
	if (*seen & 4)
		return "bad header";
	*seen |= 4;
	return take_shape(c, out);
}

/* All dimensions and sizes are small enough for a file. */
const char *npy_check(struct npy *out, bool fortran)
{
	if (!out->rank)
		return "no rows: it has no dimension";
	if (fortran && out->rank > 1)
		return "columns behind each other (Fortran order), not rows: "
		       "np.ascontiguousarray() turns it";
	if (out->text && out->rank > 1)
		return "text of more than one dimension";
	for (uint32_t i = 1; i < out->rank; i++) {
		if (!out->dims[i] || out->dims[i] > INT32_MAX)
			return "a dimension that a tensor cannot have";
		if (__builtin_mul_overflow(out->row_size, out->dims[i], &out->row_size))
			return "rows that are too large";
	}
	if (out->row_size > STELE_SAMPLE_SIZE_MAX ||
	    __builtin_mul_overflow(out->row_size, out->dims[0], &out->data_size))
		return "rows that are too large";
	return NULL;
}

const char *npy_parse(const uint8_t *data, size_t size, struct npy *out)
{
	struct cursor c = {.end = (const char *)data + size};
	const char *why = NULL;
	unsigned int seen = 0;

	memset(out, 0, sizeof(*out));
	if (size < NPY_FIRST_SIZE || npy_header_size(data) != size)
		return "bad header";
	c.at = (const char *)data + (data[6] == 1 ? 10 : 12);
	if (!take(&c, "{"))
		return "bad header";
	while (!why && !take(&c, "}")) {
		why = take_member(&c, out, &seen);
		if (!why && !take(&c, ",") && !(take(&c, "}") && c.at--))
			why = "bad header";
	}
	if (!why && (seen & 7) != 7)
		why = "bad header";
	return why ? why : npy_check(out, seen & 8);
}

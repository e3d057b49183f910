/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c - version 1.0: a dictionary of Python, filled up to a multiple of 64 bytes
 */
#include "to/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC	   "\x93NUMPY\x01"
#define MAGIC_SIZE 8u /* with a 0 for the minor version */
#define HEAD_SIZE  (MAGIC_SIZE + 2)
#define ALIGNMENT  64u

static const struct {
	const char *name;
	uint32_t size;
} types[] = {
	[STELE_DTYPE_BOOL] = {"|b1", 1}, [STELE_DTYPE_U8] = {"|u1", 1},
	[STELE_DTYPE_I8] = {"|i1", 1},	 [STELE_DTYPE_U16] = {"<u2", 2},
	[STELE_DTYPE_I16] = {"<i2", 2},	 [STELE_DTYPE_U32] = {"<u4", 4},
	[STELE_DTYPE_I32] = {"<i4", 4},	 [STELE_DTYPE_U64] = {"<u8", 8},
	[STELE_DTYPE_I64] = {"<i8", 8},	 [STELE_DTYPE_F16] = {"<f2", 2},
	[STELE_DTYPE_F32] = {"<f4", 4},	 [STELE_DTYPE_F64] = {"<f8", 8},
	[STELE_DTYPE_C64] = {"<c8", 8},	 [STELE_DTYPE_C128] = {"<c16", 16},
};

bool to_npy_has(const struct stele_field *field)
{
	return field->dtype < sizeof(types) / sizeof(*types) && types[field->dtype].name;
}

/* The first dimension may differ: it is what the size says. */
static uint64_t rows_of(const struct stele_field *field, uint64_t size)
{
	uint64_t row = types[field->dtype].size;

	for (uint32_t i = 1; i < field->rank; i++)
		row *= field->dims[i];
	return row ? size / row : 0;
}

size_t to_npy_head(const struct stele_field *field, uint64_t size, char out[TO_NPY_HEAD_MAX])
{
	const size_t room = TO_NPY_HEAD_MAX - HEAD_SIZE;
	char *text = out + HEAD_SIZE;
	size_t at = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, "
				     "'shape': (", types[field->dtype].name);

	for (uint32_t i = 0; i < field->rank; i++)
		at += (size_t)snprintf(text + at, room - at, "%s%" PRIu64 "%s", i ? " " : "",
				       i ? field->dims[i] : rows_of(field, size),
				       i && i + 1 == field->rank ? "" : ",");
	at += (size_t)snprintf(text + at, room - at, "), }");
	while ((HEAD_SIZE + at + 1) % ALIGNMENT)
		text[at++] = ' ';
	text[at++] = '\n';
	memcpy(out, MAGIC, MAGIC_SIZE);
	out[MAGIC_SIZE] = (char)at;
	out[MAGIC_SIZE + 1] = (char)(at >> 8);
	return HEAD_SIZE + at;
}

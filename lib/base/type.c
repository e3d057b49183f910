/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.c - the type of a field as text
 */
#include "lib/stele.h"

#include <inttypes.h>
#include <stdio.h>

static const char unknown[] = "unknown";

static const char *const types[] = {
	[STELE_TYPE_BYTES] = "bytes",
	[STELE_TYPE_UTF8] = "utf8",
	[STELE_TYPE_I64] = "i64",
	[STELE_TYPE_F64] = "f64",
};

static const char *const dtypes[] = {
	[STELE_DTYPE_BOOL] = "bool", [STELE_DTYPE_U8] = "u8",
	[STELE_DTYPE_I8] = "i8",     [STELE_DTYPE_U16] = "u16",
	[STELE_DTYPE_I16] = "i16",   [STELE_DTYPE_U32] = "u32",
	[STELE_DTYPE_I32] = "i32",   [STELE_DTYPE_U64] = "u64",
	[STELE_DTYPE_I64] = "i64",   [STELE_DTYPE_F16] = "f16",
	[STELE_DTYPE_BF16] = "bf16", [STELE_DTYPE_F32] = "f32",
	[STELE_DTYPE_F64] = "f64",   [STELE_DTYPE_C64] = "c64",
	[STELE_DTYPE_C128] = "c128",
};

#define NAME_OF(list, value) \
	((value) < sizeof(list) / sizeof(*(list)) && (list)[value] ? (list)[value] : unknown)

char *stele_field_type(const struct stele_field *field, char text[STELE_FIELD_TYPE_SIZE])
{
	const bool tensor = field->type == STELE_TYPE_TENSOR;
	const char *name = tensor ? NAME_OF(dtypes, field->dtype) : NAME_OF(types, field->type);
	int at = snprintf(text, STELE_FIELD_TYPE_SIZE, "%s%s", name, tensor ? "[" : "");

	if (!tensor)
		return text;
	for (uint32_t i = 0; i < field->rank && i < STELE_RANK_MAX; i++) {
		const size_t left = STELE_FIELD_TYPE_SIZE - (size_t)at;
		const char *comma = i ? "," : "";

		at += field->dims[i] ?
			      snprintf(text + at, left, "%s%" PRIu32, comma, field->dims[i]) :
			      snprintf(text + at, left, "%s?", comma);
	}
	snprintf(text + at, STELE_FIELD_TYPE_SIZE - (size_t)at, "]");
	return text;
}

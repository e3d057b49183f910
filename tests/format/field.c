/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - which shapes a field may have, and which bytes its type allows
 *
 * Every split of a payload into two pieces is judged as the whole is.
 */
#include "format/field.h"
#include "tests/tap.h"

#include <string.h>

#define TENSOR(...) {.type = STELE_FIELD_TENSOR, __VA_ARGS__}
#define F32 12u

static void test_shapes(void)
{
	static const char element[] = "unknown element type of a tensor";
	static const char rank[] = "more dimensions than the rank says";
	static const char zero[] = "a dimension of 0 that is not the first";
	static const char above[] = "a dimension above 2147483647";
	static const char large[] = "a shape of more bytes than a sample may have";
	static const char none[] = "a shape without a tensor";
	static const struct {
		struct stele_descriptor_field field;
		const char *wrong;
		uint64_t size;
	} rows[] = {
		{TENSOR(.dtype = F32), NULL, 4},
		{TENSOR(.dtype = 1, .rank = 1, .dims = {7}), NULL, 7},
		{TENSOR(.dtype = F32, .rank = 3, .dims = {2, 3, 4}), NULL, 96},
		{TENSOR(.dtype = F32, .rank = 3, .dims = {0, 3, 4}), NULL, 48},
		{TENSOR(.dtype = 15, .rank = 1), NULL, 16},
		{TENSOR(.dtype = 10, .rank = 8, .dims = {1, 2, 1, 2, 1, 2, 1, 2}),
		 NULL, 32},
		{TENSOR(.dtype = 2, .rank = 2, .dims = {1 << 23, 1 << 23}),
		 NULL, UINT64_C(1) << 46},
		{TENSOR(.rank = 1, .dims = {1}), element, 0},
		{TENSOR(.dtype = 16, .rank = 1, .dims = {1}), element, 0},
		{TENSOR(.dtype = UINT32_MAX), element, 0},
		{TENSOR(.dtype = 2, .rank = 9), "more than 8 dimensions", 0},
		{TENSOR(.dtype = 2, .rank = 1, .dims = {1, 1}), rank, 0},
		{TENSOR(.dtype = 2, .dims = {1}), rank, 0},
		{TENSOR(.dtype = 2, .rank = 2, .dims = {1, 0}), zero, 0},
		{TENSOR(.dtype = 2, .rank = 1, .dims = {-1u}), above, 0},
		{TENSOR(.dtype = 2, .rank = 2, .dims = {0, 1u << 31}), above, 0},
		{TENSOR(.dtype = 2, .rank = 2, .dims = {1 << 24, 1 << 23}), large, 0},
		{TENSOR(.dtype = 9, .rank = 3, .dims = {0, 1 << 22, 1 << 22}), large, 0},
		{TENSOR(.dtype = 2, .rank = 4,
			.dims = {1 << 16, 1 << 16, 1 << 16, 1 << 16}), large, 0},
		{{.type = STELE_FIELD_BYTES}, NULL, 0},
		{{.type = STELE_FIELD_F64}, NULL, 0},
		{{.type = STELE_FIELD_UTF8, .dtype = 1}, none, 0},
		{{.type = STELE_FIELD_I64, .rank = 1}, none, 0},
		{{.type = STELE_FIELD_BYTES, .dims = {[7] = 1}}, none, 0},
		{{.type = 0}, "unknown type of a field", 0},
		{{.type = 6}, "unknown type of a field", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *wrong = stele_field_wrong(&rows[i].field);

		is_string(rows[i].wrong ? rows[i].wrong : "", wrong ? wrong : "",
			  "shape %zu", i);
		if (rows[i].size)
			is_uint(rows[i].size, stele_tensor_size(&rows[i].field),
				"shape %zu: size", i);
	}
}

/* ---- payloads ---------------------------------------------------------------- */

static const struct stele_descriptor_field fields[] = {
	{.type = STELE_FIELD_I64},
	{.type = STELE_FIELD_UTF8},
	{.type = STELE_FIELD_F64},
	TENSOR(.dtype = 5, .rank = 2, .dims = {0, 3}),
	{.type = STELE_FIELD_UTF8},
	{.type = STELE_FIELD_BYTES},
	TENSOR(.dtype = 6, .rank = 1, .dims = {1}),
	{.type = STELE_FIELD_I64},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* -1: as it should be; else the field that is wrong. */
static int judge(const char *const parts[5], const size_t sizes[5],
		 size_t split)
{
	struct stele_payload_check check;
	uint8_t payload[256];
	size_t size = 0;
	le64 ends[4];
	const char *wrong;

	for (unsigned int i = 0; i < 5; i++) {
		memcpy(payload + size, parts[i], sizes[i]);
		size += sizes[i];
		if (i < 4)
			ends[i] = le64_put(size);
	}
	if (split > size)
		split = size;
	stele_payload_check_init(&check, fields, FIELDS);
	wrong = stele_payload_check_begin(&check, ends, size);
	if (!wrong)
		wrong = stele_payload_check_add(&check, payload, split);
	if (!wrong)
		wrong = stele_payload_check_add(&check, payload + split,
						size - split);
	if (!wrong)
		wrong = stele_payload_check_end(&check);
	return wrong ? (int)check.field : -1;
}

static void test_payload(const char *first, const char *second, size_t tensor,
			 size_t last, int wanted)
{
	static const char zeros[64];
	const char *const parts[5] = {first, zeros, second, "\xff\x80", zeros};
	const size_t sizes[5] = {strlen(first), tensor, strlen(second), 2, last};
	unsigned int differ = 0;

	for (size_t split = 0; split < 100; split++)
		differ += judge(parts, sizes, split) != wanted;
	is_uint(0, differ, "'%s' %zu '%s' %zu: field %d", first, tensor, second,
		last, wanted);
}

static void test_texts(void)
{
	static const char *const good[] = {
		"", "plain", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
		"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z\xe2\x82\xac",
	};
	static const char *const bad[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff",
		"\xc3", "\xe2\x82", "\xf0\x90\x80", "\xc3(", "\xe2(\xa1",
		"\xe2\x82(", "\xf0\x90\x80(", "x\xc3\xc3\xa9",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		test_payload(good[i], "x", 12, 4, -1);
		test_payload("", good[i], 0, 4, -1);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		test_payload(bad[i], "x", 6, 4, 1);
		test_payload("y", bad[i], 0, 4, 4);
	}
}

int main(void)
{
	plan_lazy();
	test_shapes();
	test_texts();
	test_payload("a", "b", 7, 4, 3);
	test_payload("a", "b", 5, 4, 3);
	test_payload("a", "b", 6, 8, 6);
	test_payload("a", "b", 6, 0, 6);
	return done();
}

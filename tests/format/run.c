/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - size classes, and from a number to its slot
 */
#include "format/run.h"
#include "tests/tap.h"

static const uint32_t granules[] = {16, 64, 512, 4096};
#define GRANULES (sizeof(granules) / sizeof(granules[0]))

/* Straight from stele-format(5), without a trick. */
static uint64_t slow_slot_size(uint64_t record_size, uint64_t granule)
{
	uint64_t power = 1, step;

	while (power <= record_size / 2)
		power *= 2;
	step = power / 256 > granule ? power / 256 : granule;
	return (record_size + step - 1) / step * step;
}

static unsigned int check_size(uint64_t size, uint32_t granule)
{
	uint64_t slot = stele_slot_size(size, granule);

	return slot != slow_slot_size(size, granule) || slot < size ||
	       slot % granule || stele_slot_size(slot, granule) != slot;
}

static void test_slot_sizes(void)
{
	for (size_t g = 0; g < GRANULES; g++) {
		unsigned int wrong = 0;

		for (uint64_t size = 1; size <= 1 << 20; size++)
			wrong += check_size(size, granules[g]);
		is_uint(0, wrong, "granule %u: sizes to 2^20", granules[g]);
		wrong = 0;
		for (unsigned int bit = 1; bit <= 47; bit++)
			for (int64_t d = -1000; d <= 1000; d++) {
				int64_t size = (INT64_C(1) << bit) + d;

				if (size > 0)
					wrong += check_size((uint64_t)size,
							    granules[g]);
			}
		is_uint(0, wrong, "granule %u: around powers of two",
			granules[g]);
	}
	is_hex(STELE_SLOT_SIZE_MAX, stele_slot_size(STELE_SLOT_SIZE_MAX, 512),
	       "the largest slot");
	is_hex(STELE_SLOT_SIZE_MAX,
	       stele_slot_size(STELE_SLOT_SIZE_MAX - 1, 512), "is reached");
}

static void test_vectors(void)
{
	static const struct {
		uint64_t size;
		uint32_t granule;
		uint64_t slot;
	} vectors[] = {
		{1, 16, 16},
		{16, 16, 16},
		{17, 16, 32},
		{1, 4096, 4096},
		{4095, 16, 4096},
		{4096, 16, 4096},
		{4097, 16, 4112},
		{8191, 16, 8192},
		{8193, 16, 8224},
		{8192, 64, 8192},
		{8193, 64, 8256},
		{100000, 16, 100096},
		{100000, 512, 100352},
		{131071, 512, 131072},
		{131073, 512, 131584},
		{262145, 512, 263168},
		{1048577, 4096, 1052672},
		{2097153, 4096, 2105344},
	};

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		is_uint(vectors[i].slot,
			stele_slot_size(vectors[i].size, vectors[i].granule),
			"a record of %ju bytes, granule %u",
			(uintmax_t)vectors[i].size, vectors[i].granule);
}

/* At most 256 classes for each doubling. */
static void test_class_count(void)
{
	unsigned int classes = 0;
	uint64_t last = 0;

	for (uint64_t size = (1 << 20) + 1; size <= 1 << 21; size++) {
		uint64_t slot = stele_slot_size(size, 16);

		classes += slot != last;
		last = slot;
	}
	is_uint(256, classes, "classes of one doubling");
}

static void test_find(void)
{
	struct stele_run runs[40];
	unsigned int wrong = 0;

	for (uint32_t i = 0; i < 40; i++)
		runs[i].first = i * i * 3;
	for (uint32_t count = 1; count <= 40; count++)
		for (uint64_t number = 0; number < 40 * 40 * 3; number++) {
			uint32_t wanted = count - 1;

			while (runs[wanted].first > number)
				wanted--;
			wrong += stele_run_find(runs, count, number) !=
				 &runs[wanted];
		}
	is_uint(0, wrong, "find, as a walk would");
	ok(stele_run_find(runs, 40, UINT64_MAX) == &runs[39], "any number");
}

static void test_slot(void)
{
	const struct stele_run run = {10, 0x10000, 0x3000};
	const struct stele_run large = {10, 0x10000, 0x30000};

	is_hex(0x10000, stele_run_slot(&run, 10, 0), "the first slot");
	is_hex(0x10000 + 7 * 0x3000, stele_run_slot(&run, 17, 0), "the eighth");
	/* Five slots of 0x3000 fit 0x10000. */
	is_hex(0x10000 + 4 * 0x3000, stele_run_slot(&run, 14, 0x10000),
	       "the last slot before a boundary");
	is_hex(0x20000, stele_run_slot(&run, 15, 0x10000), "the first behind");
	is_hex(0x30000 + 0x3000, stele_run_slot(&run, 21, 0x10000),
	       "two boundaries on");
	is_hex(0x10000 + 3 * 0x30000, stele_run_slot(&large, 13, 0x10000),
	       "slots over the boundary lie one behind the other");
	is_hex(0x10000 + 3 * 0x30000, stele_run_slot(&large, 13, 0x30000),
	       "and so do those that fill it");
}

static void test_end(void)
{
	static const uint64_t boundaries[] = {0, 0x10000, 0x30000, 0x100000};
	const struct stele_run run = {10, 0x109000, 0x3000};
	unsigned int wrong = 0;

	for (size_t b = 0; b < 4; b++)
		for (uint64_t count = 1; count < 400; count++) {
			uint64_t end, last = run.first + count - 1;

			wrong += !stele_run_end(&run, count, boundaries[b],
						&end) ||
				 end != stele_run_slot(&run, last,
						       boundaries[b]) +
						 run.slot_size;
		}
	is_uint(0, wrong, "a run ends where its last slot does");
}

/* The vectors of stele-format(5). */
static void test_boundary_vectors(void)
{
	static const uint64_t places[] = {
		0x09000, 0x0c000, 0x10000, 0x13000, 0x16000, 0x19000, 0x1c000,
		0x20000, 0x23000,
	};
	const struct stele_run run = {7, 0x9000, 0x3000};
	const struct stele_run single = {7, 0x1d000, 0x3000};

	for (uint64_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		is_hex(places[i], stele_run_slot(&run, 7 + i, 0x10000),
		       "slot %ju of a run within an object", (uintmax_t)i);
	is_hex(0x1d000, stele_run_slot(&single, 7, 0x10000), "a single slot");
	is_hex(0x20000, stele_run_slot(&single, 8, 0x10000), "and the next");
}

/* A walk that knows no formula: a slot goes where it crosses nothing. */
static uint64_t walk(uint64_t end, uint64_t slot_size, uint64_t boundary)
{
	if (boundary && slot_size <= boundary)
		while (end / boundary != (end + slot_size - 1) / boundary)
			end++;
	return end;
}

static unsigned int check_walk(uint64_t begin, uint64_t slot_size,
			       uint64_t boundary)
{
	struct stele_run run = {3, 0, slot_size};
	unsigned int wrong;
	uint64_t at = walk(begin, slot_size, boundary), end;

	wrong = !stele_run_begin(begin, slot_size, boundary, &run.offset) ||
		run.offset != at;
	for (uint64_t i = 0; i < 12; i++) {
		at = walk(at, slot_size, boundary);
		wrong += stele_run_slot(&run, 3 + i, boundary) != at;
		at += slot_size;
		wrong += !stele_run_end(&run, i + 1, boundary, &end) ||
			 end != at;
	}
	return wrong;
}

/* Every start and every slot size, around every small boundary. */
static void test_walk(void)
{
	for (uint64_t boundary = 0; boundary <= 64;
	     boundary = boundary ? boundary * 2 : 1) {
		unsigned int wrong = 0;

		for (uint64_t begin = 0; begin <= 130; begin++)
			for (uint64_t size = 1; size <= 70; size++)
				wrong += check_walk(begin, size, boundary);
		is_uint(0, wrong, "boundary %ju: as a walk would",
			(uintmax_t)boundary);
	}
}

static void test_end_overflow(void)
{
	const struct stele_run run = {0, 0, UINT64_C(1) << 40};
	const struct stele_run late = {0, UINT64_MAX - 15, 16};
	const struct stele_run near = {0, UINT64_MAX - 8191, 4096};
	const struct stele_run small = {0, UINT64_C(1) << 61, 16};
	uint64_t end;

	ok(stele_run_end(&run, (1 << 24) - 1, 0, &end), "just fits");
	ok(!stele_run_end(&run, 1 << 24, 0, &end), "one too many");
	ok(!stele_run_end(&run, UINT64_MAX, 0, &end), "absurd count");
	ok(!stele_run_end(&run, UINT64_MAX, UINT64_C(1) << 41, &end),
	   "absurd count, boundary");
	ok(!stele_run_end(&late, 1, 0, &end), "offset at the end of all");
	ok(!stele_run_end(&late, 1, 4096, &end), "no multiple behind it");
	ok(!stele_run_end(&near, 2, 4096, &end), "the last multiple of all");
	ok(stele_run_end(&near, 1, 4096, &end), "a slot before it");
	ok(!stele_run_end(&run, UINT64_MAX, UINT64_C(1) << 40, &end),
	   "absurd count, one slot to a boundary");
	ok(!stele_run_end(&small, UINT64_MAX, UINT64_C(1) << 61, &end),
	   "absurd count, large boundary");
	ok(!stele_run_begin(UINT64_MAX - 15, 64, 4096, &end),
	   "nowhere to begin");
}

int main(void)
{
	plan_lazy();
	test_slot_sizes();
	test_vectors();
	test_class_count();
	test_find();
	test_slot();
	test_end();
	test_boundary_vectors();
	test_walk();
	test_end_overflow();
	return done();
}

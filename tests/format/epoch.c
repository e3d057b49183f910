/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.c - each order of an epoch has each id once, and keeps what its kind promises
 *
 * Of a windowed one: any position at any time, windows that fit into memory, whole blocks
 * in them, and blocks from all over. Its ids are checked against the page by
 * permutation-page.c.
 */
#include <stdlib.h>
#include <string.h>

#include "format/epoch.h"
#include "tests/tap.h"

static struct stele_epoch_shape windowed(uint64_t block_size,
					 uint32_t block_count)
{
	return (struct stele_epoch_shape){
		.kind = STELE_EPOCH_WINDOWED,
		.block_size = block_size,
		.block_count = block_count,
	};
}

static uint64_t wrong(const struct stele_epoch_shape *shape, uint64_t count,
		      uint64_t seed)
{
	static uint32_t seen[5000], mark;
	struct stele_epoch order;
	uint64_t bad = 0;

	mark++;
	stele_epoch_init(&order, shape, count, seed, 1, 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = stele_epoch_at(&order, i);

		bad += id >= count || seen[id] == mark ||
		       stele_epoch_position(&order, id) != i;
		if (id < count)
			seen[id] = mark;
	}
	return bad;
}

static void test_bijective(void)
{
	struct stele_epoch_shape shape = {.kind = STELE_EPOCH_FULL};
	uint64_t bad = 0, cases = 0;

	for (uint64_t count = 1; count <= 200; count++)
		bad += wrong(&shape, count, count);
	shape.kind = STELE_EPOCH_SEQUENTIAL;
	for (uint64_t count = 1; count <= 200; count++)
		bad += wrong(&shape, count, count);
	is_uint(0, bad, "full and sequential: each id once, and back");
	bad = 0;
	for (uint64_t count = 1; count <= 130; count++) {
		for (uint64_t size = 1; size <= count + 2;
		     size += 1 + size / 6) {
			uint32_t most = (uint32_t)(count / size) + 3;

			for (uint32_t n = 1; n <= most; n += 1 + n / 4) {
				shape = windowed(size, n);
				bad += wrong(&shape, count, count + size);
				cases++;
			}
		}
	}
	is_uint(0, bad, "windowed: each id once, and back (%u shapes)",
		(unsigned int)cases);
	bad = 0;
	for (uint32_t n = 250; n <= 260; n++) {
		shape = windowed(3, n);
		bad += wrong(&shape, 6 * n - 1, n);
	}
	is_uint(0, bad, "windows of about as many blocks as are kept");
	shape = windowed(64, 16);
	is_uint(0, wrong(&shape, 4999, 0),
		"of some thousand, with a short block");
}

static void test_sequential(void)
{
	struct stele_epoch_shape shape = {.kind = STELE_EPOCH_SEQUENTIAL};
	struct stele_epoch order;

	stele_epoch_init(&order, &shape, 1000, 5, 6, 7);
	is_uint(0, stele_epoch_at(&order, 0), "sequential: begins with id 0");
	is_uint(999, stele_epoch_at(&order, 999), "and ends with the last");
}

/* The same order, asked in another one. */
static void test_anywhere(void)
{
	struct stele_epoch_shape shape = windowed(7, 5);
	struct stele_epoch ascending, jumping;
	uint64_t bad = 0, count = 1003;

	stele_epoch_init(&ascending, &shape, count, 1, 2, 3);
	stele_epoch_init(&jumping, &shape, count, 1, 2, 3);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = i * 577 % count;

		stele_epoch_position(&jumping, i * 311 % count);
		stele_epoch_init(&ascending, &shape, count, 1, 2, 3);
		bad += stele_epoch_at(&ascending, at) !=
		       stele_epoch_at(&jumping, at);
	}
	is_uint(0, bad, "windowed: what was asked before changes nothing");
}

/* At both ends of what a count may be: nothing overflows, and all leads back. */
static void test_large(void)
{
	static const struct stele_epoch_shape shapes[] = {
		{STELE_EPOCH_WINDOWED, 1, 1},
		{STELE_EPOCH_WINDOWED, UINT32_MAX, 1},
		{STELE_EPOCH_WINDOWED, 1, UINT64_C(1) << 62},
		{STELE_EPOCH_WINDOWED, 256, 64},
		{STELE_EPOCH_WINDOWED, 3, (UINT64_C(1) << 60) + 7},
	};

	for (unsigned int i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		uint64_t bad = 0;

		for (uint64_t lack = 0; lack < 3; lack++) {
			uint64_t count = STELE_PERMUTATION_COUNT_MAX - lack;
			struct stele_epoch order;

			stele_epoch_init(&order, &shapes[i], count, i, lack, 0);
			for (uint64_t k = 0; k <= 1000; k++) {
				uint64_t at =
					k < 1000 ? count / 1000 * k : count - 1;
				uint64_t id = stele_epoch_at(&order, at);

				bad += id >= count ||
				       stele_epoch_position(&order, id) != at;
			}
		}
		is_uint(0, bad, "windowed: shape %u of the largest counts", i);
	}
}

/*
 * By brute force: which blocks, told apart by where they begin, each window holds. A block is
 * ids that follow each other, mod count, from `rotation` on.
 */
static void test_windows(void)
{
	struct stele_epoch_shape shape = windowed(10, 8);
	uint64_t count = 10 * 100 + 3, blocks = 101, at = 0, apart = 0,
		 windows = 0;
	struct stele_epoch order;
	uint8_t window_of[101];

	stele_epoch_init(&order, &shape, count, 9, 9, 9);
	memset(window_of, 0xff, sizeof(window_of));
	while (at < count) {
		uint8_t held[101] = {0};
		uint64_t size, distinct = 0;

		stele_epoch_at(&order, at);
		size = order.size;
		is_uint(at, order.first, "window %u begins where one ended",
			(unsigned int)windows);
		for (uint64_t i = 0; i < size; i++) {
			uint64_t id = stele_epoch_at(&order, at + i);
			uint64_t block =
				(id + count - order.rotation) % count / 10;

			distinct += !held[block]++;
			apart += window_of[block] != 0xff &&
				 window_of[block] != windows;
			window_of[block] = (uint8_t)windows;
		}
		ok(distinct <= 8 && distinct >= 7, "of %u blocks",
		   (unsigned int)distinct);
		at += size;
		windows++;
	}
	is_uint(0, apart, "no block is torn apart");
	is_uint((blocks + 7) / 8, windows, "as few windows as there can be");
}

/* Sorted by size, a window of one range of ids would be samples of one size. */
static void test_all_over(void)
{
	struct stele_epoch_shape shape = windowed(64, 256);
	struct stele_epoch order;
	uint64_t least = UINT64_MAX;

	stele_epoch_init(&order, &shape, 1281167, 0, 0, 0);
	for (uint64_t window = 0; window < 78; window++) {
		uint64_t eighths[8] = {0};

		for (uint64_t i = 0; i < 16000; i++)
			eighths[stele_epoch_at(&order, window * 16384 + i) * 8 /
				1281167]++;
		for (unsigned int i = 0; i < 8; i++)
			least = eighths[i] < least ? eighths[i] : least;
	}
	/* 31 blocks are expected of each; 5 or fewer have a chance of 1e-9. */
	ok(least > 5 * 64, "each window has samples of each eighth of the ids");
}

static void test_borders_move(void)
{
	struct stele_epoch_shape shape = windowed(64, 16);
	struct stele_epoch order;
	uint64_t first[64], equal = 0;

	for (uint64_t epoch = 0; epoch < 64; epoch++) {
		stele_epoch_init(&order, &shape, 64 * 1000, 0, epoch, 0);
		first[epoch] = order.rotation % 64;
		for (uint64_t i = 0; i < epoch; i++)
			equal += first[i] == first[epoch];
	}
	/* 64 * 63 / 2 / 64 are expected. */
	ok(equal < 60, "blocks begin elsewhere in each epoch (%u pairs alike)",
	   (unsigned int)equal);
}

int main(void)
{
	plan_lazy();
	test_bijective();
	test_sequential();
	test_anywhere();
	test_large();
	test_windows();
	test_all_over();
	test_borders_move();
	return done();
}

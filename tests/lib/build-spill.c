/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-spill.c - arrays move to a file when the budget is used up, and sort
 */
#include "lib/segment/sort.h"
#include "lib/segment/spill.h"
#include "tests/fixture/log.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct stele_spill *spill, uint64_t from, uint64_t to)
{
	uint32_t *data = spill->data;

	for (uint64_t i = from; i < to; i++)
		data[i] = (uint32_t)(i * 2654435761u);
}

static bool holds(const struct stele_spill *spill, uint64_t count)
{
	const uint32_t *data = spill->data;

	for (uint64_t i = 0; i < count; i++)
		if (data[i] != (uint32_t)(i * 2654435761u))
			return false;
	return true;
}

static void test_moves(void)
{
	struct stele_spill_pool pool = {.budget = 1 << 20};
	struct stele_spill a, b;

	stele_spill_init(&a, &pool);
	stele_spill_init(&b, &pool);
	is_int(0, stele_spill_grow(&a, 800 << 10), "within the budget");
	fill(&a, 0, 200 << 10);
	is_uint(0, pool.spilled_count, "stays in memory");
	is_int(0, stele_spill_grow(&b, 400 << 10), "over it, together");
	is_uint(1, pool.spilled_count, "the second one goes to a file");
	fill(&b, 0, 100 << 10);
	is_int(0, stele_spill_grow(&a, 8 << 20), "the first grows");
	is_uint(2, pool.spilled_count, "and moves");
	is_uint(0, pool.memory_used, "no memory is used");
	ok(pool.spilled_size >= 8 << 20, "files are");
	ok(holds(&a, 200 << 10) && holds(&b, 100 << 10), "bytes moved along");
	is_uint(0, ((uint32_t *)a.data)[(8 << 18) - 1], "new bytes are zero");
	for (uint64_t size = 8 << 20; size <= 9 << 20; size += 4096)
		if (stele_spill_grow(&a, size) < 0)
			bail("cannot grow");
	ok(holds(&a, 200 << 10), "and stay as it grows on");
	stele_spill_release(&a);
	stele_spill_release(&a);
	stele_spill_release(&b);
	is_uint(0, pool.spilled_size, "nothing is left");
}

static void test_errors(void)
{
	struct test_log messages;
	struct stele_spill_pool pool = {.log = &messages.log};
	struct stele_spill a, zeroed = {0};

	test_log_init(&messages);
	stele_spill_init(&a, &pool);
	setenv("TMPDIR", "/nowhere/at/all", 1);
	is_int(-ENOENT, stele_spill_grow(&a, 1), "no directory for files");
	ok(test_log_has(&messages, "in '/nowhere/at/all': No such file"), "is named");
	pool.directory = "/nor/here";
	is_int(-ENOENT, stele_spill_grow(&a, 1), "nor the one that was given");
	ok(test_log_has(&messages, "in '/nor/here'"), "is named");
	pool.directory = NULL;
	unsetenv("TMPDIR");
	is_int(-ENOMEM, stele_spill_grow(&a, UINT64_MAX), "absurd size");
	is_int(0, stele_spill_grow(&a, 1), "usable afterwards");
	stele_spill_release(&a);
	stele_spill_release(&zeroed);
}

struct pair {
	uint32_t key, place;
};

static int compare(const void *a, const void *b, void *user)
{
	const struct pair *x = a, *y = b;

	(void)user;
	return (x->key > y->key) - (x->key < y->key);
}

static void test_sort(uint64_t count, uint32_t keys, uint64_t budget)
{
	struct stele_spill_pool pool = {.budget = budget};
	struct stele_spill a;
	struct pair *pairs;
	uint64_t bad = 0, sum = 0;

	stele_spill_init(&a, &pool);
	if (stele_spill_grow(&a, count * sizeof(*pairs) + 1) < 0)
		bail("cannot grow");
	pairs = a.data;
	for (uint64_t i = 0; i < count; i++)
		pairs[i] = (struct pair){
			(uint32_t)(i * 2654435761u >> 7) % keys, (uint32_t)i};
	is_int(0, stele_sort(&a, count, sizeof(*pairs), compare, NULL, NULL),
	       "sort %u of %u keys", (unsigned int)count, keys);
	pairs = a.data;
	for (uint64_t i = 0; i < count; i++)
		sum += pairs[i].place;
	for (uint64_t i = 1; i < count; i++)
		bad += pairs[i - 1].key > pairs[i].key ||
		       (pairs[i - 1].key == pairs[i].key &&
			pairs[i - 1].place > pairs[i].place);
	is_uint(0, bad, "in order, stable");
	is_uint(count ? count * (count - 1) / 2 : 0, sum, "all there");
	stele_spill_release(&a);
}

static int stop(void *user)
{
	(void)user;
	return 1;
}

static void test_cancel(void)
{
	struct stele_spill_pool pool = {.budget = 64 << 20};
	struct stele_spill a;

	stele_spill_init(&a, &pool);
	if (stele_spill_grow(&a, 800000) < 0)
		bail("cannot grow");
	is_int(-ECANCELED, stele_sort(&a, 100000, 8, compare, stop, NULL),
	       "a sort can be stopped");
	stele_spill_release(&a);
	is_uint(0, pool.memory_used, "its scratch is released");
}

int main(void)
{
	static const uint64_t counts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33,
					  100, 1000, 100003};

	plan_lazy();
	test_moves();
	test_errors();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		test_sort(counts[i], 1000000, 64 << 20);
		test_sort(counts[i], 3, 0);
	}
	test_cancel();
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-arena.c - extents never overlap, never get lost, never fail for nothing
 *
 * Random takes and gives beside a plain map of the pages: what the arena hands
 * out is free there, and it refuses just when no gap is as large.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/read/arena.h"
#include "lib/base/random.h"
#include "tests/tap.h"

#define PAGE  4096u
#define PAGES 512u
#define STEPS 100000u

static uint64_t state = 0x9e3779b97f4a7c15;

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)(stele_random_next(&state) >> 32) % limit;
}

struct held {
	char *memory;
	uint32_t pages;
};

static uint32_t largest_gap(const bool *used)
{
	uint32_t gap = 0, largest = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		gap = used[i] ? 0 : gap + 1;
		if (gap > largest)
			largest = gap;
	}
	return largest;
}

/* Mark a range of pages; false when one of them is marked so already. */
static bool mark(bool *used, const struct stele_arena *arena,
		 const struct held *held, bool value)
{
	uint64_t first = (uint64_t)(held->memory - arena->memory) / PAGE;

	if (first + held->pages > PAGES)
		return false;
	for (uint64_t i = first; i < first + held->pages; i++) {
		if (used[i] == value)
			return false;
		used[i] = value;
	}
	return true;
}

static uint32_t random_pages(void)
{
	/* Sizes over all magnitudes, the largest rare. */
	return 1 + random_below(1u << random_below(10));
}

static void test_random(struct stele_arena *arena)
{
	static struct held held[PAGES];
	static bool used[PAGES];
	uint32_t count = 0, refused = 0, wrong = 0;

	for (uint32_t i = 0; i < STEPS; i++) {
		if (count && random_below(100) < 48) {
			struct held *h = &held[random_below(count)];

			stele_arena_give(arena, h->memory);
			wrong += !mark(used, arena, h, false);
			*h = held[--count];
			continue;
		}
		struct held h = {.pages = random_pages()};

		h.memory = stele_arena_take(arena, h.pages * PAGE - 17);
		wrong += !h.memory != (largest_gap(used) < h.pages);
		refused += !h.memory;
		if (!h.memory)
			continue;
		wrong += !mark(used, arena, &h, true);
		memset(h.memory, 0xa5, 17);
		held[count++] = h;
	}
	is_uint(0, wrong, "%u random steps: no overlap, no needless refusal",
		STEPS);
	ok(refused > STEPS / 100, "the arena was full now and then");
	while (count)
		stele_arena_give(arena, held[--count].memory);
}

static void test_whole(struct stele_arena *arena)
{
	char *whole = stele_arena_take(arena, PAGES * PAGE);

	ok(whole, "with all given back, one extent is as large as the arena");
	ok(!stele_arena_take(arena, 1), "and then there is nothing left");
	stele_arena_give(arena, whole + PAGE);
	stele_arena_give(arena, whole + 1);
	stele_arena_give(arena, whole + PAGES * PAGE);
	stele_arena_give(arena, &whole);
	stele_arena_give(arena, NULL);
	ok(!stele_arena_take(arena, 1), "what was not taken cannot be given");
	stele_arena_give(arena, whole);
	stele_arena_give(arena, whole);
	ok(stele_arena_take(arena, PAGES * PAGE) == whole,
	   "giving back twice is harmless");
	ok(!stele_arena_take(arena, 1), "... indeed");
	stele_arena_give(arena, whole);
	ok(!stele_arena_take(arena, PAGES * PAGE + 1), "more than there is");
	ok(!stele_arena_take(arena, UINT64_MAX), "much more than there is");
	ok(!stele_arena_take(arena, 0), "nothing at all");
}

/* Two huge pages: what fits into one lies in one, as long as there is room. */
static void test_huge(void)
{
	struct stele_arena arena;
	char *first, *second, *third, *across;

	if (stele_arena_init(&arena, 4u << 20, PAGE))
		bail("no arena");
	first = stele_arena_take(&arena, 3u << 19);
	second = stele_arena_take(&arena, 3u << 18);
	third = stele_arena_take(&arena, 5u << 16);
	ok(first == arena.memory, "three quarters of a huge page");
	ok(second == arena.memory + (2u << 20), "what would cross its end");
	ok(third == arena.memory + (3u << 19), "what fits into the gap");
	stele_arena_give(&arena, third);
	stele_arena_give(&arena, second);
	across = stele_arena_take(&arena, 5u << 19);
	ok(across == arena.memory + (3u << 19),
	   "what is larger, or has no other room, may cross");
	stele_arena_give(&arena, across);
	stele_arena_give(&arena, first);
	ok(stele_arena_take(&arena, 4u << 20), "nothing is lost");
	stele_arena_release(&arena, false);
}

int main(void)
{
	struct stele_arena arena;

	plan_lazy();
	is_int(0, stele_arena_init(&arena, PAGES * PAGE - 100, PAGE), "init");
	is_uint(PAGES * PAGE, arena.size, "rounded up to pages");
	is_uint(0, (uintptr_t)arena.memory % (2u << 20), "aligned to 2 MiB");
	test_whole(&arena);
	test_random(&arena);
	test_whole(&arena);
	test_huge();
	stele_arena_release(&arena, false);
	stele_arena_release(&arena, false);
	ok(!stele_arena_init(&arena, 1, 65536), "one large page");
	stele_arena_release(&arena, false);
	ok(stele_arena_init(&arena, 0, PAGE) < 0, "no page is refused");
	ok(stele_arena_init(&arena, UINT64_MAX - 5, PAGE) < 0, "overflow");
	ok(stele_arena_init(&arena, UINT64_C(1) << 45, PAGE) < 0, "too many");
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - extents of pages with boundary tags, free lists by size
 *
 * Invariants: extents tile the arena; no two free ones touch; the tag of an
 * extent's first page says how long it is and whether it is taken, the tag of
 * its last page says how long it is if it is free.
 */
#include <errno.h>
#include <stdlib.h>

#include "format/checked.h"
#include "lib/read/arena.h"

#define NO_PAGE	       UINT32_MAX

/* Extents of bin b are all shorter than those of bin b + 1. */
static uint32_t bin_of(uint32_t pages)
{
	uint32_t log;

	if (pages < 4)
		return pages;
	log = 31 - (uint32_t)__builtin_clz(pages);
	return 4 * (log - 1) + ((pages >> (log - 2)) & 3);
}

static void list_add(struct stele_arena *a, uint32_t page, uint32_t pages)
{
	uint32_t bin = bin_of(pages);
	uint32_t head = a->bins[bin];

	a->tags[page].pages = pages;
	a->tags[page].previous = NO_PAGE;
	a->tags[page].next = head;
	a->tags[page + pages - 1].free_pages = pages;
	if (head != NO_PAGE)
		a->tags[head].previous = page;
	a->bins[bin] = page;
	a->bins_used[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void list_remove(struct stele_arena *a, uint32_t page)
{
	struct stele_arena_tag *tag = &a->tags[page];
	uint32_t bin = bin_of(tag->pages);

	if (tag->previous != NO_PAGE)
		a->tags[tag->previous].next = tag->next;
	else
		a->bins[bin] = tag->next;
	if (tag->next != NO_PAGE)
		a->tags[tag->next].previous = tag->previous;
	if (a->bins[bin] == NO_PAGE)
		a->bins_used[bin / 64] &= ~(UINT64_C(1) << bin % 64);
	a->tags[page + tag->pages - 1].free_pages = 0;
}

/* First bin in use from `bin` on. */
static uint32_t next_bin(const struct stele_arena *a, uint32_t bin)
{
	while (bin < STELE_ARENA_BINS) {
		uint64_t rest = a->bins_used[bin / 64] >> bin % 64;

		if (rest)
			return bin + (uint32_t)__builtin_ctzll(rest);
		bin = (bin / 64 + 1) * 64;
	}
	return STELE_ARENA_BINS;
}

/* Any extent of a larger bin will do; in the own bin, the first that fits. */
static uint32_t find_free(const struct stele_arena *a, uint32_t pages)
{
	uint32_t bin = next_bin(a, bin_of(pages) + 1);
	uint32_t page;

	if (bin < STELE_ARENA_BINS)
		return a->bins[bin];
	page = a->bins[bin_of(pages)];
	while (page != NO_PAGE && a->tags[page].pages < pages)
		page = a->tags[page].next;
	return page;
}

/*
 * What crosses the end of a huge page is in no entry of a ring's table, and costs
 * the kernel more. Begin behind it where there is room for that.
 */
static uint32_t best_begin(const struct stele_arena *a, uint32_t page,
			   uint32_t pages)
{
	const uint32_t huge = (uint32_t)(STELE_HUGE_PAGE_SIZE / a->page_size);
	uint32_t left = huge ? huge - page % huge : 0;

	if (pages <= left || pages > huge ||
	    a->tags[page].pages - left < pages || a->tags[page].pages < left)
		return page;
	return page + left;
}

void *stele_arena_take(struct stele_arena *a, uint64_t size)
{
	uint32_t page, pages, begin, rest;

	if (!size || size > a->size)
		return NULL;
	pages = (uint32_t)(round_up(size, a->page_size) / a->page_size);
	page = find_free(a, pages);
	if (page == NO_PAGE)
		return NULL;
	list_remove(a, page);
	begin = best_begin(a, page, pages);
	rest = a->tags[page].pages - (begin - page) - pages;
	if (begin > page)
		list_add(a, page, begin - page);
	if (rest)
		list_add(a, begin + pages, rest);
	a->tags[begin].pages = pages;
	a->tags[begin].users = 1;
	return a->memory + (uint64_t)begin * a->page_size;
}

void stele_arena_share(struct stele_arena *a, const void *memory, uint32_t more)
{
	uint64_t offset = (uintptr_t)memory - (uintptr_t)a->memory;

	a->tags[offset / a->page_size].users += more;
}

void stele_arena_give(struct stele_arena *a, const void *memory)
{
	uint64_t offset = (uintptr_t)memory - (uintptr_t)a->memory;
	uint32_t page, pages, before;

	if (!memory || offset >= a->size || !is_aligned(offset, a->page_size))
		return;
	page = (uint32_t)(offset / a->page_size);
	if (!a->tags[page].users || --a->tags[page].users)
		return;
	pages = a->tags[page].pages;
	if (page + pages < a->page_count && !a->tags[page + pages].users) {
		list_remove(a, page + pages);
		pages += a->tags[page + pages].pages;
	}
	before = page ? a->tags[page - 1].free_pages : 0;
	if (before) {
		list_remove(a, page - before);
		page -= before;
		pages += before;
	}
	list_add(a, page, pages);
}

int stele_arena_init(struct stele_arena *a, uint64_t size, uint32_t page_size)
{
	*a = (struct stele_arena){.page_size = page_size};
	if (!size || !checked_round_up(size, page_size, &size) ||
	    size / page_size > STELE_ARENA_PAGES_MAX)
		return -EINVAL;
	a->size = size;
	a->page_count = (uint32_t)(size / page_size);
	for (uint32_t i = 0; i < STELE_ARENA_BINS; i++)
		a->bins[i] = NO_PAGE;
	a->tags = calloc(a->page_count, sizeof(*a->tags));
	if (!a->tags || stele_pages_map(&a->pages, size)) {
		stele_arena_release(a, false);
		return -ENOMEM;
	}
	a->memory = a->pages.memory;
	list_add(a, 0, a->page_count);
	return 0;
}

void stele_arena_release(struct stele_arena *a, bool forked)
{
	stele_pages_unmap(&a->pages, forked);
	free(a->tags);
	*a = (struct stele_arena){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key-pivots.c - searches go past pages that were read, to the page that they went to before
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/random.h"
#include "lib/image/pivots.h"
#include "tests/tap.h"

#define PAGES	 40000u /* more than pivots are kept for */
#define LEVELS	 16u	/* of a search through them; the upper 14 are kept */
#define SEARCHES 200000u

/* Page p begins with key 2p, eight digits. */
static size_t write_key(char key[16], uint64_t number)
{
	return (size_t)snprintf(key, 16, "%08u", (unsigned int)number);
}

/* Search for a key among `pages`. Return: pages read; *page is where the key belongs. */
static unsigned int search(struct stele_pivots *pivots, uint64_t pages, const char *key,
			   size_t size, uint64_t *page)
{
	struct stele_pivot_search search = {.high = pages, .node = 1};
	unsigned int reads = 0;

	for (;;) {
		char first[16];

		stele_pivots_follow(pivots, &search, key, size);
		*page = stele_pivots_page(&search);
		reads++;
		if (search.high - search.low <= 1)
			return reads;
		stele_pivots_halve(pivots, &search, first, write_key(first, 2 * *page), key, size);
	}
}

/* A random key: on a page's first one, between two, below all. Return: reads; 1000: wrong. */
static unsigned int search_any(struct stele_pivots *pivots, uint64_t pages,
			       uint64_t *random)
{
	const uint64_t number = stele_random_next(random) % (2 * pages);
	uint64_t page;
	char key[16];
	unsigned int reads;

	reads = search(pivots, pages, key, write_key(key, number), &page);
	if (page != number / 2)
		return 1000;
	(void)search(pivots, pages, "", 0, &page);
	return page ? 1000 : reads;
}

static void test_reads(uint64_t pages, unsigned int first, unsigned int later)
{
	struct stele_pivots *pivots;
	uint64_t random = 7, page;
	unsigned int most = 0;
	char key[16];

	pivots = stele_pivots_open(pages);
	is_uint(first, search(pivots, pages, key, write_key(key, 2 * pages - 1), &page),
		"among %u pages, at first", (unsigned int)pages);
	is_uint(pages - 1, page, "the last one is found");
	for (unsigned int i = 0; i < SEARCHES; i++)
		search_any(pivots, pages, &random);
	for (unsigned int i = 0; i < SEARCHES; i++) {
		unsigned int reads = search_any(pivots, pages, &random);

		most = reads > most ? reads : most;
	}
	ok(most <= later, "later %u reads, at most", most);
	stele_pivots_close(pivots);
}

/* One too long to be kept is read each time; so is all without pivots. */
static void test_long(void)
{
	struct stele_pivot_search first = {.high = 3, .node = 1}, again = first;
	static char key[4000];
	struct stele_pivots *pivots;

	memset(key, 'k', sizeof(key));
	pivots = stele_pivots_open(3);
	stele_pivots_halve(pivots, &first, key, sizeof(key), "l", 1);
	ok(first.low == 1 && first.high == 3, "a long key halves");
	stele_pivots_follow(pivots, &again, "l", 1);
	ok(again.low == 0 && again.high == 3, "it is not kept");
	stele_pivots_halve(pivots, &again, "k", 1, "l", 1);
	again = (struct stele_pivot_search){.high = 3, .node = 1};
	stele_pivots_follow(pivots, &again, "a", 1);
	ok(again.low == 0 && again.high == 1, "a short one is");
	first = (struct stele_pivot_search){.high = 3, .node = 1};
	stele_pivots_halve(NULL, &first, "k", 1, "l", 1);
	stele_pivots_follow(NULL, &first, "l", 1);
	ok(first.low == 1 && first.high == 3, "without pivots nothing is");
	stele_pivots_close(pivots);
}

static struct stele_pivots *shared;

static void *search_many(void *arg)
{
	uint64_t random = (uintptr_t)arg;
	uintptr_t wrong = 0;

	for (unsigned int i = 0; i < SEARCHES / 20; i++)
		wrong += search_any(shared, PAGES, &random) >= 1000;
	return (void *)wrong;
}

static void test_threads(void)
{
	pthread_t threads[4];
	uintptr_t wrong = 0;
	void *result;

	shared = stele_pivots_open(PAGES);
	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, search_many, (void *)(i / 2 + 1)))
			bail("no thread");
	for (unsigned int i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		wrong += (uintptr_t)result;
	}
	is_uint(0, wrong, "four threads, two the same way, find each page");
	stele_pivots_close(shared);
}

int main(void)
{
	plan_lazy();
	test_reads(PAGES, LEVELS + 1, LEVELS - 14 + 1);
	test_reads(5000, 14, 1);
	test_reads(2, 2, 1);
	test_reads(1, 1, 1);
	test_long();
	test_threads();
	return done();
}

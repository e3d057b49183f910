/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pivots.c - see pivots.h
 */
#include "lib/image/pivots.h"

#include <stdlib.h>
#include <string.h>

#include "format/keys.h"

/*
 * Of a segment, once it was searched: 128 KiB of pointers, and 48 bytes for each page that
 * was read, of usual keys. All pages of 3 M keys have their node.
 */
#define NODES_MAX (1u << 14)
/* What begins with a longer key is read again. */
#define KEPT_SIZE_MAX 256u

struct stele_pivot {
	uint32_t size;
	char key[];
};

/* A binary tree: its root at 1, what is below i at 2i and 2i + 1; 0 is not used. */
struct stele_pivots {
	uint32_t count;
	struct stele_pivot **nodes; /* owned; NULL: no search yet, a node: its page was not read */
};

struct stele_pivots *stele_pivots_open(uint64_t pages)
{
	struct stele_pivots *pivots = calloc(1, sizeof(*pivots));
	uint32_t count = 1;

	while (count < pages && count < NODES_MAX)
		count *= 2;
	if (pivots)
		pivots->count = count;
	return pivots;
}

void stele_pivots_close(struct stele_pivots *pivots)
{
	for (uint32_t i = 0; pivots && pivots->nodes && i < pivots->count; i++)
		free(pivots->nodes[i]);
	if (pivots)
		free(pivots->nodes);
	free(pivots);
}

/* Only the first of several threads stores its own, here and below. */
static struct stele_pivot **get_nodes(struct stele_pivots *pivots)
{
	struct stele_pivot **nodes = __atomic_load_n(&pivots->nodes, __ATOMIC_ACQUIRE);
	struct stele_pivot **made;

	if (nodes)
		return nodes;
	made = calloc(pivots->count, sizeof(struct stele_pivot *));
	if (!made || __atomic_compare_exchange_n(&pivots->nodes, &nodes, made, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	free(made);
	return nodes;
}

static void keep(struct stele_pivots *pivots, uint64_t node, const char *key, size_t size)
{
	struct stele_pivot *pivot, **nodes, *none = NULL;

	if (!pivots || node >= pivots->count || size > KEPT_SIZE_MAX)
		return;
	nodes = get_nodes(pivots);
	pivot = nodes ? malloc(sizeof(*pivot) + size) : NULL;
	if (!pivot)
		return;
	pivot->size = (uint32_t)size;
	memcpy(pivot->key, key, size);
	if (!__atomic_compare_exchange_n(&nodes[node], &none, pivot, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		free(pivot);
}

uint64_t stele_pivots_page(const struct stele_pivot_search *search)
{
	return search->low + (search->high - search->low) / 2;
}

static void halve(struct stele_pivot_search *search, const char *first, size_t first_size,
		  const char *key, size_t key_size)
{
	const uint64_t middle = stele_pivots_page(search);

	search->node *= 2;
	if (stele_key_compare(first, first_size, key, key_size) > 0) {
		search->high = middle;
	} else {
		search->low = middle;
		search->node++;
	}
}

void stele_pivots_follow(const struct stele_pivots *pivots, struct stele_pivot_search *search,
			 const char *key, size_t key_size)
{
	struct stele_pivot **nodes =
		pivots ? __atomic_load_n(&pivots->nodes, __ATOMIC_ACQUIRE) : NULL;

	while (nodes && search->high - search->low > 1 && search->node < pivots->count) {
		const struct stele_pivot *pivot =
			__atomic_load_n(&nodes[search->node], __ATOMIC_ACQUIRE);

		if (!pivot)
			return;
		halve(search, pivot->key, pivot->size, key, key_size);
	}
}

void stele_pivots_halve(struct stele_pivots *pivots, struct stele_pivot_search *search,
			const char *first, size_t first_size, const char *key, size_t key_size)
{
	keep(pivots, search->node, first, first_size);
	halve(search, first, first_size, key, key_size);
}

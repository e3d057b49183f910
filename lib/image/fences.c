/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fences.c - see fences.h
 */
#include "lib/image/fences.h"

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

struct stele_fence {
	uint32_t size;
	char key[];
};

/* A binary tree: its root at 1, what is below i at 2i and 2i + 1; 0 is not used. */
struct stele_fences {
	uint32_t count;
	struct stele_fence **nodes; /* owned; NULL: no search yet, a node: its page was not read */
};

struct stele_fences *stele_fences_open(uint64_t pages)
{
	struct stele_fences *fences = calloc(1, sizeof(*fences));
	uint32_t count = 1;

	while (count < pages && count < NODES_MAX)
		count *= 2;
	if (fences)
		fences->count = count;
	return fences;
}

void stele_fences_close(struct stele_fences *fences)
{
	for (uint32_t i = 0; fences && fences->nodes && i < fences->count; i++)
		free(fences->nodes[i]);
	if (fences)
		free(fences->nodes);
	free(fences);
}

/* Only the first of several threads stores its own, here and below. */
static struct stele_fence **get_nodes(struct stele_fences *fences)
{
	struct stele_fence **nodes = __atomic_load_n(&fences->nodes, __ATOMIC_ACQUIRE);
	struct stele_fence **made;

	if (nodes)
		return nodes;
	made = calloc(fences->count, sizeof(struct stele_fence *));
	if (!made || __atomic_compare_exchange_n(&fences->nodes, &nodes, made, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	free(made);
	return nodes;
}

static void keep(struct stele_fences *fences, uint64_t node, const char *key, size_t size)
{
	struct stele_fence *fence, **nodes, *none = NULL;

	if (!fences || node >= fences->count || size > KEPT_SIZE_MAX)
		return;
	nodes = get_nodes(fences);
	fence = nodes ? malloc(sizeof(*fence) + size) : NULL;
	if (!fence)
		return;
	fence->size = (uint32_t)size;
	memcpy(fence->key, key, size);
	if (!__atomic_compare_exchange_n(&nodes[node], &none, fence, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		free(fence);
}

uint64_t stele_fences_page(const struct stele_fence_search *search)
{
	return search->low + (search->high - search->low) / 2;
}

static void halve(struct stele_fence_search *search, const char *first, size_t first_size,
		  const char *key, size_t key_size)
{
	const uint64_t middle = stele_fences_page(search);

	search->node *= 2;
	if (stele_key_compare(first, first_size, key, key_size) > 0) {
		search->high = middle;
	} else {
		search->low = middle;
		search->node++;
	}
}

void stele_fences_follow(const struct stele_fences *fences, struct stele_fence_search *search,
			 const char *key, size_t key_size)
{
	struct stele_fence **nodes =
		fences ? __atomic_load_n(&fences->nodes, __ATOMIC_ACQUIRE) : NULL;

	while (nodes && search->high - search->low > 1 && search->node < fences->count) {
		const struct stele_fence *fence =
			__atomic_load_n(&nodes[search->node], __ATOMIC_ACQUIRE);

		if (!fence)
			return;
		halve(search, fence->key, fence->size, key, key_size);
	}
}

void stele_fences_halve(struct stele_fences *fences, struct stele_fence_search *search,
			const char *first, size_t first_size, const char *key, size_t key_size)
{
	keep(fences, search->node, first, first_size);
	halve(search, first, first_size, key, key_size);
}

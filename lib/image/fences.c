/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fences.c - see fences.h
 */
#include "lib/image/fences.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/keys.h"

/*
 * Of a segment: 128 KiB of pointers, and 48 bytes for each that was read, of usual keys.
 * All of the pages of 3 M keys.
 */
#define NODES_MAX (1u << 14)
/* What begins with a longer key is read again. */
#define KEPT_SIZE_MAX 256u

struct stele_fence {
	uint32_t size;
	char key[];
};

int stele_fences_init(struct stele_fences *fences, uint64_t pages)
{
	uint32_t count = 1;

	while (count < pages && count < NODES_MAX)
		count *= 2;
	fences->nodes = calloc(count, sizeof(struct stele_fence *));
	fences->count = fences->nodes ? count : 0;
	return fences->nodes ? 0 : -ENOMEM;
}

void stele_fences_release(struct stele_fences *fences)
{
	for (uint32_t i = 0; i < fences->count; i++)
		free(fences->nodes[i]);
	free(fences->nodes);
	memset(fences, 0, sizeof(*fences));
}

/* Only a pointer is ever stored here, and only over NULL. */
static void keep(const struct stele_fences *fences, uint64_t node, const char *key, size_t size)
{
	struct stele_fence *fence, *none = NULL;

	if (node >= fences->count || size > KEPT_SIZE_MAX)
		return;
	fence = malloc(sizeof(*fence) + size);
	if (!fence)
		return;
	fence->size = (uint32_t)size;
	memcpy(fence->key, key, size);
	if (!__atomic_compare_exchange_n(&fences->nodes[node], &none, fence, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		free(fence); /* another thread was first */
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
	while (search->high - search->low > 1 && search->node < fences->count) {
		const struct stele_fence *fence =
			__atomic_load_n(&fences->nodes[search->node], __ATOMIC_ACQUIRE);

		if (!fence)
			return;
		halve(search, fence->key, fence->size, key, key_size);
	}
}

void stele_fences_halve(const struct stele_fences *fences, struct stele_fence_search *search,
			const char *first, size_t first_size, const char *key, size_t key_size)
{
	keep(fences, search->node, first, first_size);
	halve(search, first, first_size, key, key_size);
}

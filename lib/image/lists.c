/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.c - see lists.h
 */
#include "lib/image/lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"

static int compare(const void *a, const void *b)
{
	const struct stele_catalog_ref *x = a, *y = b;

	return (x->deleted_offset > y->deleted_offset) -
	       (x->deleted_offset < y->deleted_offset);
}

static bool same(const struct stele_catalog_ref *a,
		 const struct stele_catalog_ref *b)
{
	return a->segment == b->segment &&
	       a->deleted_offset == b->deleted_offset &&
	       a->deleted_count == b->deleted_count &&
	       a->deleted_owner == b->deleted_owner;
}

/* Room for one more. */
static int grow(struct stele_lists *lists, uint32_t *capacity)
{
	struct stele_catalog_ref *list;

	if (lists->count < *capacity)
		return 0;
	*capacity = *capacity ? 2 * *capacity : 16;
	list = realloc(lists->list, *capacity * sizeof(*list));
	if (!list)
		return -ENOMEM;
	lists->list = list;
	return 0;
}

/*
 * A snapshot mostly has the lists of the previous one, which need no sorting: *last is
 * that of each segment, and one more than its index.
 */
static int gather(struct stele_lists *lists,
		  const struct stele_catalog *catalog, uint32_t *last)
{
	uint32_t capacity = 0;
	int ret = 0;

	for (uint32_t i = 0; i < catalog->counts.refs && ret == 0; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(catalog, i, &ref);
		if (!ref.deleted_count ||
		    (last[ref.segment] &&
		     same(&ref, &lists->list[last[ref.segment] - 1])))
			continue;
		ret = grow(lists, &capacity);
		if (ret < 0)
			break;
		lists->list[lists->count++] = ref;
		last[ref.segment] = lists->count;
	}
	return ret;
}

static uint64_t end_of(const struct stele_catalog_ref *ref)
{
	return ref->deleted_offset +
	       stele_deleted_blocks(ref->deleted_count) * STELE_BLOCK_SIZE;
}

int stele_lists_collect(struct stele_lists *lists,
			const struct stele_catalog *catalog)
{
	struct stele_catalog_ref *list;
	uint32_t count = 0, *last;
	int ret;

	memset(lists, 0, sizeof(*lists));
	last = calloc((size_t)catalog->counts.segments + 1, sizeof(*last));
	ret = last ? gather(lists, catalog, last) : -ENOMEM;
	free(last);
	if (ret < 0)
		return ret;
	list = lists->list;
	if (lists->count)
		qsort(list, lists->count, sizeof(*list), compare);
	for (uint32_t i = 0; i < lists->count; i++) {
		if (count && same(&list[count - 1], &list[i]))
			continue;
		if (count && end_of(&list[count - 1]) > list[i].deleted_offset)
			return -EUCLEAN;
		list[count++] = list[i];
	}
	lists->count = count;
	return 0;
}

uint32_t stele_lists_find(const struct stele_lists *lists,
			  const struct stele_catalog_ref *ref)
{
	uint32_t low = 0, high = lists->count;

	/* The last one that begins at or before it; it exists. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (lists->list[middle].deleted_offset <= ref->deleted_offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void stele_lists_release(struct stele_lists *lists)
{
	free(lists->list);
	memset(lists, 0, sizeof(*lists));
}

int stele_lists_decode(const void *blocks, uint64_t size,
		       const struct stele_superblock *sb,
		       struct stele_catalog *out, const char **why)
{
	struct stele_lists lists = {0};
	int ret = stele_catalog_decode(blocks, size, sb, out, why);

	if (ret == 0)
		ret = stele_lists_collect(&lists, out);
	else
		return ret;
	stele_lists_release(&lists);
	if (why && ret == -EUCLEAN)
		*why = "catalog: deleted lists overlap";
	else if (why && ret < 0)
		*why = "no memory";
	return ret;
}

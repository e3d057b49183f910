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
	const struct stele_list *x = a, *y = b;

	return (x->at.offset > y->at.offset) - (x->at.offset < y->at.offset);
}

/* Take what `from` knows of the same list. False: it is another one. */
static bool unite(struct stele_list *list, const struct stele_list *from)
{
	if (list->segment != from->segment || list->first != from->first ||
	    memcmp(&list->at, &from->at, sizeof(list->at)) != 0)
		return false;
	if (list->deleted_count && from->deleted_count &&
	    list->deleted_count != from->deleted_count)
		return false;
	if (from->deleted_count)
		list->deleted_count = from->deleted_count;
	return true;
}

/* Room for one more. */
static int grow(struct stele_lists *lists, uint32_t *capacity)
{
	struct stele_list *list;

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
 * A reference mostly has the lists of the previous one to its segment, which need no
 * sorting: *last is one more than the index of that.
 */
static int gather_one(struct stele_lists *lists, const struct stele_list *one,
		      uint32_t *last, uint32_t *capacity)
{
	int ret;

	if (*last && unite(&lists->list[*last - 1], one))
		return 0;
	ret = grow(lists, capacity);
	if (ret < 0)
		return ret;
	lists->list[lists->count++] = *one;
	*last = lists->count;
	return 0;
}

static bool is_last(const struct stele_catalog_ref *ref, uint32_t index)
{
	return index + 1 == STELE_REF_LISTS || !ref->lists[index + 1].offset;
}

static int gather(struct stele_lists *lists,
		  const struct stele_catalog *catalog, uint32_t *last)
{
	uint32_t capacity = 0;
	int ret = 0;

	for (uint32_t i = 0; i < catalog->counts.refs && ret == 0; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(catalog, i, &ref);
		for (uint32_t j = 0; j < STELE_REF_LISTS && ref.lists[j].offset &&
		     ret == 0; j++) {
			const struct stele_list one = {
				.at = ref.lists[j],
				.segment = ref.segment,
				.first = j ? ref.lists[0].offset : 0,
				.deleted_count = is_last(&ref, j) ? ref.deleted_count : 0,
			};

			ret = gather_one(lists, &one,
					 &last[STELE_REF_LISTS * ref.segment + j],
					 &capacity);
		}
	}
	return ret;
}

static uint64_t end_of(const struct stele_list *list)
{
	return list->at.offset +
	       stele_deleted_blocks(list->at.count) * STELE_BLOCK_SIZE;
}

/* Each of them once, if they are apart. */
static int sort(struct stele_lists *lists)
{
	struct stele_list *list = lists->list;
	uint32_t count = 0;

	if (lists->count)
		qsort(list, lists->count, sizeof(*list), compare);
	for (uint32_t i = 0; i < lists->count; i++) {
		if (count && unite(&list[count - 1], &list[i]))
			continue;
		if (count && end_of(&list[count - 1]) > list[i].at.offset)
			return -EUCLEAN;
		list[count++] = list[i];
	}
	lists->count = count;
	return 0;
}

static int count_seconds(struct stele_lists *lists)
{
	for (uint32_t i = 0; i < lists->count; i++) {
		struct stele_list *list = &lists->list[i];

		if (!list->first)
			continue;
		list = &lists->list[stele_lists_at(lists, list->first)];
		if (++list->seconds > STELE_SECOND_LISTS_MAX)
			return -EUCLEAN;
	}
	return 0;
}

int stele_lists_collect(struct stele_lists *lists,
			const struct stele_catalog *catalog)
{
	uint32_t *last;
	int ret;

	memset(lists, 0, sizeof(*lists));
	last = calloc((size_t)catalog->counts.segments + 1,
		      STELE_REF_LISTS * sizeof(*last));
	ret = last ? gather(lists, catalog, last) : -ENOMEM;
	free(last);
	if (ret == 0)
		ret = sort(lists);
	return ret == 0 ? count_seconds(lists) : ret;
}

uint32_t stele_lists_at(const struct stele_lists *lists, uint64_t offset)
{
	uint32_t low = 0, high = lists->count;

	/* The last one that begins at or before it; it exists. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (lists->list[middle].at.offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t stele_lists_find(const struct stele_lists *lists,
			  const struct stele_catalog_ref *ref)
{
	uint32_t last = 0;

	while (!is_last(ref, last))
		last++;
	return stele_lists_at(lists, ref->lists[last].offset);
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
		*why = "catalog: deleted lists overlap, or too many share one";
	else if (why && ret < 0)
		*why = "no memory";
	return ret;
}

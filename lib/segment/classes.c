/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - one pass over the keys, then a sort of the directories' names
 *
 * The order of keys is not that of their top directories: "a-b/x" comes before
 * "a/x", and "a" before "a-b".
 */
#include "lib/segment/classes.h"

#include <errno.h>
#include <string.h>

#include "format/keys.h"
#include "format/sections.h"
#include "lib/segment/sort.h"

void stele_classes_init(struct stele_classes *classes,
			struct stele_spill_pool *pool)
{
	memset(classes, 0, sizeof(*classes));
	stele_spill_init(&classes->list, pool);
	stele_spill_init(&classes->sorted, pool);
}

void stele_classes_release(struct stele_classes *classes)
{
	stele_spill_release(&classes->list);
	stele_spill_release(&classes->sorted);
	classes->count = 0;
	classes->stream_size = 0;
	classes->group_count = 0;
}

/* Size of the top directory's name; 0: right at the top. */
static uint32_t top_size(const struct stele_source_entry *entry)
{
	const char *slash = memchr(entry->key, '/', entry->key_size);

	return slash ? (uint32_t)(slash - entry->key) : 0;
}

/* A name more. */
static int count_name(struct stele_classes *classes, size_t size)
{
	classes->count++;
	classes->stream_size += sizeof(le16) + size;
	return classes->stream_size > STELE_NAMES_SIZE_MAX ? -EOVERFLOW : 0;
}

int stele_classes_begin(struct stele_classes *classes,
			const struct stele_base *base)
{
	int ret = 0;

	classes->base = base;
	for (uint32_t i = 0; i < base->names->count && !ret; i++)
		ret = count_name(classes, strlen(base->names->names[i]));
	classes->known_count = classes->count;
	return ret;
}

static int add_group(struct stele_classes *classes, uint64_t ordinal,
		     const char *name, uint32_t name_size)
{
	int64_t label = STELE_NO_CLASS;
	struct stele_class *list;
	int ret = stele_spill_grow(&classes->list,
				   (classes->group_count + 1) * sizeof(*list));

	if (ret < 0)
		return ret;
	if (classes->base && name_size)
		label = stele_base_label(classes->base, name, name_size);
	list = classes->list.data;
	list[classes->group_count++] = (struct stele_class){
		.first = ordinal,
		.name_size = name_size,
		.known = label != STELE_NO_CLASS,
		.label = (uint32_t)label,
	};
	if (!name_size || label != STELE_NO_CLASS)
		return 0;
	return count_name(classes, name_size);
}

static int find_groups(struct stele_classes *classes,
		       const struct stele_table *table, bool forced)
{
	struct stele_source_entry last = {0}, entry;
	uint32_t last_size = 0, size;

	for (uint64_t i = 0; i < table->count; i++) {
		int ret;

		stele_table_get(table, i, &entry);
		size = top_size(&entry);
		if (!size && !forced)
			return 0;
		if (i && size == last_size &&
		    !memcmp(entry.key, last.key, size))
			continue;
		ret = add_group(classes, i, entry.key, size);
		if (ret < 0)
			return ret;
		last = entry;
		last_size = size;
	}
	return forced || table->count > 0;
}

struct naming {
	const struct stele_classes *classes;
	const struct stele_table *table;
};

static size_t group_name(const struct naming *naming, uint32_t group,
			 const char **name)
{
	const struct stele_class *list = naming->classes->list.data;
	struct stele_source_entry entry;

	stele_table_get(naming->table, list[group].first, &entry);
	*name = entry.key;
	return list[group].name_size;
}

static int compare(const void *a, const void *b, void *user)
{
	const char *x, *y;
	size_t x_size = group_name(user, *(const uint32_t *)a, &x);
	size_t y_size = group_name(user, *(const uint32_t *)b, &y);

	return stele_key_compare(x, x_size, y, y_size);
}

static int sort_names(struct stele_classes *classes,
		      const struct stele_table *table)
{
	const uint32_t count = classes->count - classes->known_count;
	struct naming naming = {.classes = classes, .table = table};
	struct stele_class *list = classes->list.data;
	uint32_t *sorted, at = 0;
	int ret = stele_spill_grow(&classes->sorted,
				   (uint64_t)count * sizeof(*sorted));

	if (ret < 0)
		return ret;
	sorted = classes->sorted.data;
	for (uint64_t i = 0; i < classes->group_count; i++)
		if (list[i].name_size && !list[i].known)
			sorted[at++] = (uint32_t)i;
	ret = stele_sort(&classes->sorted, count, sizeof(*sorted), compare,
			 NULL, &naming);
	if (ret < 0)
		return ret;
	sorted = classes->sorted.data;
	for (uint32_t i = 0; i < count; i++)
		list[sorted[i]].label = classes->known_count + i;
	return 0;
}

int stele_classes_find(struct stele_classes *classes,
		       const struct stele_table *table, bool forced)
{
	int found = find_groups(classes, table, forced);
	int ret = 0;

	if (found > 0 && classes->count > classes->known_count)
		ret = sort_names(classes, table);
	if (ret == 0 && found > 0)
		return 1;
	stele_classes_release(classes);
	return ret < 0 ? ret : found;
}

int64_t stele_classes_label(const struct stele_classes *classes,
			    uint64_t ordinal)
{
	const struct stele_class *at = classes->list.data;
	uint64_t count = classes->group_count;

	/* The last group whose first ordinal is not larger. */
	while (count > 1) {
		uint64_t half = count / 2;

		if (at[half].first <= ordinal)
			at += half;
		count -= half;
	}
	return at->name_size ? (int64_t)at->label : STELE_NO_CLASS;
}

size_t stele_classes_name(const struct stele_classes *classes,
			  const struct stele_table *table, uint32_t label,
			  const char **name)
{
	const struct naming naming = {.classes = classes, .table = table};
	const uint32_t *sorted = classes->sorted.data;

	if (label < classes->known_count) {
		*name = classes->base->names->names[label];
		return strlen(*name);
	}
	return group_name(&naming, sorted[label - classes->known_count], name);
}

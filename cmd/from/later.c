/* SPDX-License-Identifier: Apache-2.0 */
/*
 * later.c - see later.h
 *
 * A record that is put together of two is a third one in the index.
 */
#include "from/later.h"

/* Of the same version of one shard? */
static bool same_shard(const struct from *from, uint64_t earlier, uint64_t later)
{
	const uint64_t index = earlier >> PLACE_SHARD_SHIFT;

	return index == later >> PLACE_SHARD_SHIFT && !from->shards[index].torn;
}

int later_file(void *user, const struct stele_source_entry *earlier,
	       struct stele_source_entry *later)
{
	struct from *from = user;
	uint64_t before = 0, behind = 0;
	int ret = from_origin(from, earlier, &before);

	if (!ret)
		ret = from_origin(from, later, &behind);
	if (ret)
		return ret;
	if (!same_shard(from, before, behind))
		return 0;
	from->replaced++;
	return 1;
}

/* Into *record, what `later` has. Return: false: something of it is new. */
static bool merge(struct record *record, const struct record *later)
{
	for (uint32_t i = 0; i < later->count; i++) {
		uint32_t at = 0;

		while (at < record->count && record->values[at].field != later->values[i].field)
			at++;
		if (at == record->count)
			return false;
		record->values[at] = later->values[i];
	}
	return true;
}

static int append(struct from *from, const struct record_entry *entry,
		  struct stele_source_entry *later)
{
	const uint64_t place = from->index.size;
	int ret = record_append(&from->index, &entry->record, entry->key, entry->key_size,
				entry->origin);

	if (!ret)
		ret = store_flush(&from->index);
	if (!ret)
		ret = record_load(&from->index, &from->fields, place, &from->entry);
	if (ret)
		return ret;
	later->place = place;
	later->data_size = from->entry.data_size;
	return 1;
}

int later_record(void *user, const struct stele_source_entry *earlier,
		 struct stele_source_entry *later)
{
	struct from *from = user;
	struct record_entry entry;
	int ret;

	if (!from_groups(from))
		return 0;
	ret = record_load(&from->index, &from->fields, earlier->place, &entry);
	if (!ret)
		ret = record_load(&from->index, &from->fields, later->place, &from->entry);
	if (ret)
		return ret;
	if (!same_shard(from, entry.origin, from->entry.origin) ||
	    !merge(&entry.record, &from->entry.record))
		return 0;
	from->replaced += from->entry.record.count;
	entry.origin = from->entry.origin;
	return append(from, &entry, later);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - keys one behind the other, and 16 bytes that point at each
 *
 * The place of a sample, if it has one, lies right before its key.
 */
#include "lib/segment/table.h"

#include <errno.h>
#include <string.h>

#include "format/keys.h"
#include "lib/segment/sort.h"

#define KEY_SIZE_BITS 12u
#define KEY_SIZE_MASK ((UINT64_C(1) << KEY_SIZE_BITS) - 1)
_Static_assert(STELE_KEY_SIZE_MAX <= KEY_SIZE_MASK, "key size needs its bits");
#define SIZE_BITS     (64u - STELE_MARKS - KEY_SIZE_BITS)
#define SIZE_MASK     ((UINT64_C(1) << SIZE_BITS) - 1)
_Static_assert(STELE_SAMPLE_SIZE_MAX <= SIZE_MASK, "sample size needs its bits");
#define MARK_SHIFT    (KEY_SIZE_BITS + SIZE_BITS)

struct table_entry {
	uint64_t key_offset;
	uint64_t sizes; /* marks, size of the sample, of the key in the low bits */
};

static uint64_t sample_size(const struct table_entry *entry)
{
	return entry->sizes >> KEY_SIZE_BITS & SIZE_MASK;
}

void stele_table_init(struct stele_table *table, struct stele_spill_pool *pool)
{
	memset(table, 0, sizeof(*table));
	stele_spill_init(&table->keys, pool);
	stele_spill_init(&table->entries, pool);
}

void stele_table_release(struct stele_table *table)
{
	stele_spill_release(&table->keys);
	stele_spill_release(&table->entries);
	table->count = 0;
}

int stele_table_add(struct stele_table *table,
		    const struct stele_source_entry *entry)
{
	const size_t place_size = entry->place ? sizeof(entry->place) : 0;
	const uint64_t key_offset = table->keys_size + place_size;
	struct table_entry *entries;
	int ret;

	ret = stele_spill_grow(&table->keys, key_offset + entry->key_size);
	if (!ret)
		ret = stele_spill_grow(&table->entries, (table->count + 1) *
					       sizeof(struct table_entry));
	if (ret < 0)
		return ret;
	memcpy((char *)table->keys.data + table->keys_size, &entry->place,
	       place_size);
	memcpy((char *)table->keys.data + key_offset, entry->key,
	       entry->key_size);
	entries = table->entries.data;
	entries[table->count].key_offset = key_offset;
	entries[table->count].sizes =
		entry->data_size << KEY_SIZE_BITS | entry->key_size;
	if (place_size)
		stele_table_mark(table, table->count, STELE_MARK_PLACE);
	if (entry->changed && entry->changed < table->since)
		stele_table_mark(table, table->count, STELE_MARK_SETTLED);
	table->keys_size = key_offset + entry->key_size;
	table->count++;
	table->payload_size += entry->data_size;
	return 0;
}

void stele_table_get(const struct stele_table *table, uint64_t ordinal,
		     struct stele_source_entry *entry)
{
	const struct table_entry *entries = table->entries.data;
	const struct table_entry *e = &entries[ordinal];

	*entry = (struct stele_source_entry){
		.size = sizeof(*entry),
		.key = (const char *)table->keys.data + e->key_offset,
		.key_size = e->sizes & KEY_SIZE_MASK,
		.data_size = sample_size(e),
	};
	if (stele_table_marked(table, ordinal, STELE_MARK_PLACE))
		memcpy(&entry->place, entry->key - sizeof(entry->place),
		       sizeof(entry->place));
}

bool stele_table_marked(const struct stele_table *table, uint64_t ordinal,
			enum stele_mark mark)
{
	const struct table_entry *entries = table->entries.data;

	return entries[ordinal].sizes >> MARK_SHIFT & mark;
}

void stele_table_mark(struct stele_table *table, uint64_t ordinal,
		      enum stele_mark mark)
{
	struct table_entry *entries = table->entries.data;

	entries[ordinal].sizes |= (uint64_t)mark << MARK_SHIFT;
}

/* Is the key of a sample before this one? */
static bool is_before(const struct stele_table *table, uint64_t ordinal,
		      const char *key, size_t key_size)
{
	struct stele_source_entry entry;

	stele_table_get(table, ordinal, &entry);
	return stele_key_compare(entry.key, entry.key_size, key, key_size) < 0;
}

uint64_t stele_table_seek(const struct stele_table *table, uint64_t from,
			  const char *key, size_t key_size)
{
	uint64_t low = from, high = table->count, step = 1;

	/* All below `low` are before the key; `high` is not. */
	while (high - low >= step) {
		if (!is_before(table, low + step - 1, key, key_size)) {
			high = low + step - 1;
			break;
		}
		low += step;
		step *= 2;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (is_before(table, middle, key, key_size))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void stele_table_filter(struct stele_table *table)
{
	struct table_entry *entries = table->entries.data;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < table->count; i++) {
		if (stele_table_marked(table, i, STELE_MARK_KNOWN))
			table->payload_size -= sample_size(&entries[i]);
		else
			entries[kept++] = entries[i];
	}
	table->count = kept;
}

struct sorting {
	struct stele_table *table;
	int (*tick)(void *user);
	void *user;
};

static int compare(const void *a, const void *b, void *user)
{
	const struct sorting *sorting = user;
	const char *keys = sorting->table->keys.data;
	const struct table_entry *x = a, *y = b;

	return stele_key_compare(keys + x->key_offset, x->sizes & KEY_SIZE_MASK,
				 keys + y->key_offset,
				 y->sizes & KEY_SIZE_MASK);
}

static int tick(void *user)
{
	const struct sorting *sorting = user;

	return sorting->tick ? sorting->tick(sorting->user) : 0;
}

void stele_table_drop_repeated(struct stele_table *table)
{
	struct sorting sorting = {.table = table};
	struct table_entry *entries = table->entries.data;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < table->count; i++) {
		if (kept && compare(&entries[kept - 1], &entries[i],
				    &sorting) == 0) {
			table->payload_size -= sample_size(&entries[i]);
			continue;
		}
		entries[kept++] = entries[i];
	}
	table->count = kept;
}

static int change(struct stele_table *table, uint64_t ordinal,
		  const struct stele_source_entry *to)
{
	struct table_entry *entry = (struct table_entry *)table->entries.data + ordinal;
	const bool placed = stele_table_marked(table, ordinal, STELE_MARK_PLACE);

	if ((to->place && !placed) || to->data_size > STELE_SAMPLE_SIZE_MAX)
		return -EINVAL;
	if (placed)
		memcpy((char *)table->keys.data + entry->key_offset - sizeof(to->place),
		       &to->place, sizeof(to->place));
	table->payload_size += to->data_size - sample_size(entry);
	entry->sizes &= ~(SIZE_MASK << KEY_SIZE_BITS);
	entry->sizes |= to->data_size << KEY_SIZE_BITS;
	return 0;
}

int stele_table_replace(struct stele_table *table, const struct stele_source *source,
			uint64_t *repeated)
{
	const struct table_entry *entries = table->entries.data;
	struct sorting sorting = {.table = table};

	for (uint64_t i = *repeated; i < table->count; i++) {
		struct stele_source_entry earlier, later;
		int ret;

		if (compare(&entries[i - 1], &entries[i], &sorting))
			continue;
		stele_table_get(table, i - 1, &earlier);
		stele_table_get(table, i, &later);
		ret = source->ops.replace(source->user, &earlier, &later);
		*repeated = i;
		if (ret <= 0)
			return ret;
		ret = change(table, i, &later);
		if (ret)
			return ret;
		stele_table_mark(table, i - 1, STELE_MARK_KNOWN);
	}
	stele_table_filter(table);
	*repeated = table->count;
	return 0;
}

int stele_table_sort(struct stele_table *table, int (*ask)(void *user),
		     void *user, uint64_t *repeated)
{
	struct sorting sorting = {.table = table, .tick = ask, .user = user};
	const struct table_entry *entries;
	int ret = stele_sort(&table->entries, table->count,
			     sizeof(struct table_entry), compare, tick,
			     &sorting);

	entries = table->entries.data;
	*repeated = table->count;
	for (uint64_t i = 1; !ret && i < table->count; i++) {
		if (compare(&entries[i - 1], &entries[i], &sorting))
			continue;
		*repeated = i;
		break;
	}
	return ret;
}

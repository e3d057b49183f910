/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table-marks.c - samples of a source are found, marked and left out
 */
#include "lib/segment/table.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT 3000u

static struct stele_spill_pool pool = {.budget = 1 << 20};

/* Keys "000000", "000002", ... added backwards; sizes up to the largest. */
static void fill(struct stele_table *table)
{
	uint64_t repeated;

	stele_table_init(table, &pool);
	table->since = 1000;
	for (unsigned int i = COUNT; i-- > 0;) {
		char key[16];
		const struct stele_source_entry entry = {
			.key = key,
			.key_size = (size_t)snprintf(key, sizeof(key), "%06u",
						     2 * i),
			.data_size = i ? i : STELE_SAMPLE_SIZE_MAX,
			.place = i % 3,
			.changed = 998 + i % 3,
		};

		if (stele_table_add(table, &entry) < 0)
			bail("cannot add");
	}
	if (stele_table_sort(table, NULL, NULL, &repeated) < 0 ||
	    repeated != COUNT)
		bail("cannot sort");
}

static void test_seek(const struct stele_table *table)
{
	uint64_t wrong = 0;

	for (uint64_t from = 0; from <= COUNT; from += 77)
		for (unsigned int i = 0; i < 2 * COUNT + 2; i += 13) {
			uint64_t wanted = (i + 1) / 2;
			char key[16];

			snprintf(key, sizeof(key), "%06u", i);
			if (wanted > COUNT)
				wanted = COUNT;
			if (wanted < from)
				wanted = from;
			wrong += stele_table_seek(table, from, key, 6) != wanted;
		}
	is_uint(0, wrong, "the first key that is not before another");
}

int main(void)
{
	struct stele_source_entry entry;
	struct stele_table table;
	uint64_t wrong = 0, sum = 0;

	plan_lazy();
	fill(&table);
	test_seek(&table);
	for (uint64_t i = 0; i < COUNT; i++)
		wrong += stele_table_marked(&table, i, STELE_MARK_SETTLED) !=
			 (998 + i % 3 < 1000);
	is_uint(0, wrong, "settled: changed before, not in the same second");
	for (uint64_t i = 0; i < COUNT; i++)
		stele_table_mark(&table, i, i % 4 == 1 ? STELE_MARK_KNOWN :
							  STELE_MARK_REPLACES);
	stele_table_filter(&table);
	is_uint(COUNT - COUNT / 4, table.count, "what is known is left out");
	for (uint64_t i = 0; i < table.count; i++) {
		uint64_t old = i / 3 * 4 + (i % 3 ? i % 3 + 1 : 0);
		char key[16];

		stele_table_get(&table, i, &entry);
		snprintf(key, sizeof(key), "%06" PRIu64, 2 * old);
		wrong += entry.key_size != 6 || memcmp(key, entry.key, 6) ||
			 entry.data_size != (old ? old : STELE_SAMPLE_SIZE_MAX) ||
			 entry.place != old % 3 ||
			 !stele_table_marked(&table, i, STELE_MARK_REPLACES);
		sum += entry.data_size;
	}
	is_uint(0, wrong, "all others keep size, place, order and marks");
	is_uint(sum, table.payload_size, "the sum follows");
	stele_table_release(&table);
	return done();
}

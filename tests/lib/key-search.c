/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key-search.c - many keys at once: by look-up or by a walk, whichever reads less
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/key_search.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

enum { SAMPLES = 8000, SEGMENTS = 2 };

static struct test_dataset t;

static uint64_t pages(void)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct stele_section keys;

		stele_descriptor_find_section(
			&t.ds->snapshot.segments[i].descriptor,
			STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys);
		count += keys.size / STELE_BLOCK_SIZE;
	}
	return count;
}

/* Every step-th sample, deleted ones too, and a key before and behind each. */
static size_t choose(struct stele_key_place *places, unsigned int step,
		     char (*absent)[40])
{
	size_t count = 0, n = 0;

	for (unsigned int s = 0; s < SEGMENTS; s++) {
		for (unsigned int i = 0; i < SAMPLES; i += step) {
			const char *key = t.samples[s][i].key;

			places[count++] = (struct stele_key_place){
				.key = key, .key_size = strlen(key)};
			snprintf(absent[n], 40, "%s.x", key);
			places[count++] = (struct stele_key_place){
				.key = absent[n], .key_size = strlen(absent[n])};
			n++;
		}
	}
	qsort(places, count, sizeof(*places), stele_key_place_compare);
	return count;
}

static uint64_t check_places(const struct stele_key_place *places, size_t count)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const struct stele_key_place *p = &places[i];
		uint64_t id, seen;
		int ret = stele_dataset_lookup(t.ds, p->key, p->key_size, &id);

		wrong += p->found != (ret == 0);
		if (!p->found)
			continue;
		wrong += stele_snapshot_id(
				 &t.ds->snapshot,
				 &t.ds->snapshot.segments[p->segment],
				 p->number, &seen) ||
			 seen != id || t.live[id].sample->size != p->size;
	}
	return wrong;
}

static void check(unsigned int step)
{
	static struct stele_key_place places[4 * SAMPLES];
	static char absent[2 * SAMPLES][40];
	size_t count = choose(places, step, absent), reads;

	stele_fault_log_clear(t.dev);
	is_int(0,
	       stele_snapshot_find_keys(&t.ds->image, &t.ds->snapshot, places,
					count),
	       "%zu keys", count);
	stele_fault_log(t.dev, &reads);
	ok(reads <= pages() + 12, "%zu reads, of %ju pages and a search", reads,
	   (uintmax_t)pages());
	is_uint(0, check_places(places, count),
		"those that live are found, others are not");
}

/* The first and the last key. */
static void check_few(void)
{
	struct stele_key_place places[] = {
		{.key = "dir0/000000.0", .key_size = 13},
		{.key = "dir2/007997.1", .key_size = 13},
	};
	size_t reads;

	stele_fault_log_clear(t.dev);
	is_int(0,
	       stele_snapshot_find_keys(&t.ds->image, &t.ds->snapshot, places,
					2),
	       "two keys");
	stele_fault_log(t.dev, &reads);
	ok(places[0].found && places[1].found && reads <= pages() / 2,
	   "%zu reads, of %ju pages", reads, (uintmax_t)pages());
	is_uint(0, check_places(places, 2), "where they are");
}

int main(void)
{
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .error = EIO, .count = 1};
	struct stele_key_place place = {.key = "dir1/000001.0",
					.key_size = 13};

	plan_lazy();
	test_dataset_open(&t, &(struct test_plan){.segments = SEGMENTS,
						  .samples = SAMPLES,
						  .size_max = 30,
						  .delete_every = 3});
	check(1);
	check(50);
	check_few();
	is_int(0,
	       stele_snapshot_find_keys(&t.ds->image, &t.ds->snapshot, NULL, 0),
	       "none");
	rule.first = stele_fault_count(t.dev);
	stele_fault_set_rules(t.dev, &rule, 1);
	is_int(-EIO,
	       stele_snapshot_find_keys(&t.ds->image, &t.ds->snapshot, &place,
					1),
	       "a page that cannot be read");
	test_dataset_close(&t);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key-segments.c - many segments: opened, and searched for a key, side by side
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/section.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define SEGMENTS 8u
#define SAMPLES	 4000u

static struct test_dataset t;

/* Reads since the log was cleared: queued ones, or others. */
static uint64_t reads(bool queued)
{
	const struct stele_fault_entry *log;
	uint64_t sum = 0;
	size_t count;

	log = stele_fault_log(t.dev, &count);
	for (size_t i = 0; i < count; i++)
		sum += log[i].op == STELE_OP_READ && log[i].queued == queued;
	return sum;
}

/* The most pages that a search of all segments reads. */
static uint64_t pages_of_search(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct stele_section keys;
		uint64_t left;

		if (stele_descriptor_find_section(
			    &t.ds->snapshot.segments[i].descriptor,
			    STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys) < 0)
			bail("no keys");
		left = keys.size / STELE_BLOCK_SIZE;
		for (sum += 2; left > 1; left = (left + 1) / 2)
			sum++;
	}
	return sum;
}

static void test_missing(void)
{
	uint64_t id, wrong = 0;
	char key[64];

	for (unsigned int i = 0; i < 50; i++) {
		stele_fault_log_clear(t.dev);
		snprintf(key, sizeof(key), "%c%u", "! dz~"[i % 5], i);
		wrong += stele_dataset_lookup(t.ds, key, strlen(key), &id) !=
				 -ENOENT ||
			 reads(false) || reads(true) > pages_of_search();
	}
	is_uint(0, wrong, "a missing key: one search in all segments");
}

static void test_present(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < t.count; i += 37) {
		const char *key = t.live[i].sample->key;
		uint64_t id = 0;

		wrong += stele_dataset_lookup(t.ds, key, strlen(key), &id) != 0 ||
			 id != i;
	}
	is_uint(0, wrong, "live keys are found");
	wrong = 0;
	for (unsigned int s = 0; s < SEGMENTS; s++) {
		for (unsigned int i = 0; i < SAMPLES; i += 41) {
			const char *key = t.samples[s][i].key;
			uint64_t id = 0;
			int ret = stele_dataset_lookup(t.ds, key, strlen(key),
						     &id);

			wrong += ret ? ret != -ENOENT :
				       t.live[id].sample != &t.samples[s][i];
		}
	}
	is_uint(0, wrong, "deleted ones are not");
}

/* Damage in one segment is an error, unless the key lives in one before it. */
static void test_damage(void)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.ops = 1 << STELE_OP_READ,
					.error = EIO};
	const struct stele_segment *segment = &t.ds->snapshot.segments[5];
	const char *early = t.live[0].sample->key;
	struct stele_section keys;
	uint64_t id;

	stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_KEYS,
				      STELE_NO_FIELD, &keys);
	rule.offset = segment->descriptor.offset + keys.offset;
	rule.size = keys.size;
	stele_fault_set_rules(t.dev, &rule, 1);
	is_int(-EIO, stele_dataset_lookup(t.ds, "zz", 2, &id), "cannot be read");
	is_int(0, stele_dataset_lookup(t.ds, early, strlen(early), &id),
	       "what lies before is found");
	is_uint(0, id, "and its id");
	stele_fault_set_rules(t.dev, NULL, 0);
}

/* Descriptors: all at once, and no other read for each. */
static void test_load(void)
{
	struct stele_snapshot snapshot;

	stele_fault_log_clear(t.dev);
	is_int(0, stele_snapshot_load(&t.ds->image, 0, &snapshot), "load");
	is_uint(SEGMENTS, reads(true), "descriptors are read side by side");
	is_uint(SEGMENTS, snapshot.segment_count, "all segments");
	ok(!memcmp(snapshot.digest, t.ds->snapshot.digest, 32), "digest");
	stele_snapshot_release(&snapshot);
}

/* One that cannot be read has a second copy; without it nothing is opened. */
static void test_copies(void)
{
	struct stele_fault_rule rules[2] = {
		{.kind = STELE_FAULT_FAIL, .ops = 1 << STELE_OP_READ,
		 .error = EIO, .size = 1}};
	const struct stele_descriptor *d =
		&t.ds->snapshot.segments[3].descriptor;
	struct stele_snapshot snapshot;

	rules[0].offset = d->offset;
	stele_fault_set_rules(t.dev, rules, 1);
	is_int(0, stele_snapshot_load(&t.ds->image, 0, &snapshot),
	       "the second copy is taken");
	stele_snapshot_release(&snapshot);
	rules[1] = rules[0];
	rules[1].offset = d->offset + d->size - 1;
	stele_fault_set_rules(t.dev, rules, 2);
	is_int(-EIO, stele_snapshot_load(&t.ds->image, 0, &snapshot),
	       "both copies cannot be read");
	stele_fault_set_rules(t.dev, NULL, 0);
}

/* Segments that have filters. `proven`: nobody believes them. */
static void test_filters(bool proven)
{
	const struct test_plan plan = {
		.segments = SEGMENTS, .samples = 300, .size_max = 16,
		.filter = true, .delete_every = 3,
		.verify = proven ? STELE_VERIFY_DIGEST : STELE_VERIFY_DEFAULT};
	const char *what = proven ? "proven" : "filtered";
	uint64_t id, wrong = 0, pages = 0, searched = 0;
	char key[64];

	test_dataset_open(&t, &plan);
	for (unsigned int i = 0; i < 100; i++) {
		stele_fault_log_clear(t.dev);
		snprintf(key, sizeof(key), "missing%u", i);
		wrong += stele_dataset_lookup(t.ds, key, strlen(key), &id) !=
			 -ENOENT;
		pages += reads(false) + reads(true);
		searched += reads(true) > 0;
	}
	is_uint(0, wrong, "%s: missing keys are", what);
	ok(proven ? searched == 100 : pages <= 20,
	   "%s: %ju reads for 100 of them", what, (uintmax_t)pages);
	pages = 0;
	for (uint64_t i = 0; i < t.count; i += 10) {
		stele_fault_log_clear(t.dev);
		wrong += stele_dataset_lookup(t.ds, t.live[i].sample->key,
					      strlen(t.live[i].sample->key),
					      &id) != 0 || id != i;
		pages += reads(true);
	}
	is_uint(0, wrong, "%s: live keys are found", what);
	ok(proven ? pages > t.count / 10 : pages == 0,
	   "%s: %ju reads side by side", what, (uintmax_t)pages);
	test_dataset_close(&t);
}

int main(void)
{
	const struct test_plan plan = {.segments = SEGMENTS,
				       .samples = SAMPLES,
				       .size_max = 16,
				       .delete_every = 3};

	plan_lazy();
	test_dataset_open(&t, &plan);
	test_missing();
	test_present();
	test_damage();
	test_load();
	test_copies();
	test_dataset_close(&t);
	test_filters(false);
	test_filters(true);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff-keys.c - what two snapshots have different, and what is read for it
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/section.h"
#include "lib/ops/diff.h"
#include "tests/fixture/dataset.h"
#include "tests/device/fault.h"
#include "tests/fixture/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

enum { SIDES = 2, KEYS_MAX = 20000 };

static struct stele_dataset *sides[SIDES];
static struct stele_device *devices[SIDES];

/* Two snapshots of the image on `dev`, each over a device of its own. */
static void open_sides(struct stele_device *dev, uint64_t size)
{
	static const char *const names[] = {"v1", "v2"};

	for (int i = 0; i < SIDES; i++) {
		struct stele_target target = {.snapshot = strdup(names[i])};
		struct stele_device *copy;

		copy = test_memory(size, 512, 0);
		memcpy(stele_device_memory(copy), stele_device_memory(dev),
		       size);
		if (stele_device_open_fault(copy, NULL, 0, &devices[i]) ||
		    stele_dataset_create(devices[i], &target, NULL, &sides[i]))
			bail("cannot open '%s'", names[i]);
		free(target.snapshot);
		stele_fault_log_clear(devices[i]);
	}
	stele_device_close(dev);
}

static void close_sides(void)
{
	for (int i = 0; i < SIDES; i++)
		stele_dataset_close(sides[i]);
}

/* Blocks read of a section since its side was opened; other reads apart. */
static uint64_t reads_of(int side, uint32_t segment, uint32_t type,
			 uint64_t *others)
{
	const struct stele_segment *s =
		&sides[side]->snapshot.segments[segment];
	struct stele_section section;
	const struct stele_fault_entry *log;
	uint64_t begin, end, inside = 0;
	size_t count;

	if (stele_descriptor_find_section(&s->descriptor, type, STELE_NO_FIELD,
					  &section))
		bail("no such section");
	begin = s->descriptor.offset + section.offset;
	end = begin + section.size;
	log = stele_fault_log(devices[side], &count);
	*others = 0;
	for (size_t i = 0; i < count; i++) {
		if (log[i].op == STELE_OP_READ && log[i].offset >= begin &&
		    log[i].offset + log[i].size <= end)
			inside += log[i].size / STELE_BLOCK_SIZE;
		else
			++*others;
	}
	return inside;
}

static uint64_t blocks_of(int side, uint32_t segment, uint32_t type)
{
	struct stele_section section;

	if (stele_descriptor_find_section(
		    &sides[side]->snapshot.segments[segment].descriptor, type,
		    STELE_NO_FIELD, &section))
		bail("no such section");
	return section.size / STELE_BLOCK_SIZE;
}

/* ---- against a model --------------------------------------------------------- */

enum { MODEL_KEYS = 300, MODEL_SEGMENTS = 4 };

struct model {
	struct test_sample samples[MODEL_SEGMENTS][MODEL_KEYS];
	uint64_t numbers[MODEL_SEGMENTS][MODEL_KEYS];
	uint64_t counts[MODEL_SEGMENTS];
	int ordinal[MODEL_SEGMENTS][MODEL_KEYS]; /* by key; -1: not there */
	int where[SIDES][MODEL_KEYS]; /* segment; -1: not in the snapshot */
	char keys[MODEL_KEYS][16];
};

static const char contents[8] = "abcdefgh";

/* Segments of some keys each, with few different contents. */
static void fill_model(struct model *m, bool by_key, uint64_t *seed)
{
	for (int k = 0; k < MODEL_KEYS; k++)
		snprintf(m->keys[k], sizeof(m->keys[k]), "k%05d",
			 by_key ? k : k * 7919 % 10007);
	for (int s = 0; s < MODEL_SEGMENTS; s++) {
		m->counts[s] = 0;
		for (int k = 0; k < MODEL_KEYS; k++) {
			struct test_sample *sample =
				&m->samples[s][m->counts[s]];

			m->ordinal[s][k] = -1;
			if (test_random(seed) % 2)
				continue;
			*sample = (struct test_sample){
				.key = m->keys[k],
				.data = contents + test_random(seed) % 2,
				.size = 1 + test_random(seed) % 2,
				.label = (int64_t)(test_random(seed) % 2),
			};
			m->ordinal[s][k] = (int)m->counts[s]++;
		}
	}
}

/* Each key in at most one of the first `segments` from `first` on. */
static void choose(struct model *m, int side, int first, int segments,
		   uint64_t *seed)
{
	for (int k = 0; k < MODEL_KEYS; k++) {
		int s = first + (int)(test_random(seed) % (unsigned)segments);

		m->where[side][k] = m->ordinal[s][k] < 0 ? -1 : s;
	}
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_snapshot(struct test_image *image, const struct model *m,
			 int side, const char *name, int first, int segments)
{
	static uint64_t deleted[MODEL_SEGMENTS][MODEL_KEYS];
	struct test_ref refs[MODEL_SEGMENTS];

	for (int i = 0; i < segments; i++) {
		int s = first + i;
		uint64_t n = 0;

		for (int k = 0; k < MODEL_KEYS; k++)
			if (m->ordinal[s][k] >= 0 && m->where[side][k] != s)
				deleted[i][n++] =
					m->numbers[s][m->ordinal[s][k]];
		qsort(deleted[i], n, sizeof(deleted[i][0]), by_number);
		refs[i] = (struct test_ref){(uint32_t)s, deleted[i], n};
	}
	if (test_image_snapshot(image, name, refs, (uint32_t)segments))
		bail("cannot add '%s'", name);
}

static const struct test_sample *sample_of(const struct model *m, int side,
					   int k)
{
	int s = m->where[side][k];

	return s < 0 ? NULL : &m->samples[s][m->ordinal[s][k]];
}

static bool same_content(const struct test_sample *a,
			 const struct test_sample *b)
{
	return a->size == b->size && !memcmp(a->data, b->data, a->size) &&
	       a->label == b->label;
}

struct seen {
	const struct model *m;
	uint8_t kinds[MODEL_KEYS];
	uint64_t wrong;
	char last[16];
};

/* Is what is said of this key what the datasets hold? */
static int see(void *user, const struct stele_diff_entry *d)
{
	struct seen *seen = user;
	char key[16] = "";
	uint64_t id;
	int k = 0;

	memcpy(key, d->key, d->key_size < 15 ? d->key_size : 15);
	while (k < MODEL_KEYS && strcmp(seen->m->keys[k], key) != 0)
		k++;
	if (k == MODEL_KEYS || seen->kinds[k] || strcmp(seen->last, key) >= 0) {
		seen->wrong++;
		return 0;
	}
	strcpy(seen->last, key);
	seen->kinds[k] = (uint8_t)d->kind;
	if (d->kind != STELE_DIFF_ADDED)
		seen->wrong += stele_dataset_lookup(sides[0], key, strlen(key),
						  &id) || id != d->a_id ||
			       d->a_size != sample_of(seen->m, 0, k)->size;
	if (d->kind != STELE_DIFF_REMOVED)
		seen->wrong += stele_dataset_lookup(sides[1], key, strlen(key),
						  &id) || id != d->b_id ||
			       d->b_size != sample_of(seen->m, 1, k)->size;
	return 0;
}

static uint64_t check_model(const struct model *m)
{
	static struct seen seen;
	struct stele_diff_report report = {.size = sizeof(report)};
	uint64_t wrong = 0, counts[4] = {0};

	seen = (struct seen){.m = m};
	if (stele_dataset_diff(sides[0], sides[1], see, &seen, &report))
		return 1000;
	for (int k = 0; k < MODEL_KEYS; k++) {
		const struct test_sample *a = sample_of(m, 0, k);
		const struct test_sample *b = sample_of(m, 1, k);
		int kind = 0;

		if (a && b)
			kind = same_content(a, b) ? 0 : STELE_DIFF_CHANGED;
		else if (a || b)
			kind = a ? STELE_DIFF_REMOVED : STELE_DIFF_ADDED;
		wrong += seen.kinds[k] != kind;
		if (a || b)
			counts[kind]++;
	}
	return wrong + seen.wrong + (report.added != counts[STELE_DIFF_ADDED]) +
	       (report.removed != counts[STELE_DIFF_REMOVED]) +
	       (report.changed != counts[STELE_DIFF_CHANGED]) +
	       (report.same != counts[0]);
}

static void check_models(void)
{
	static struct model m;
	static struct test_image image;
	uint64_t seed = 4711, wrong = 0;
	const uint64_t size = UINT64_C(4) << 20;

	for (int round = 0; round < 60; round++) {
		int segments = 1 + round % 4, first = round % 2 && segments < 4;
		struct stele_device *dev;

		fill_model(&m, round % 3 > 0, &seed);
		choose(&m, 0, 0, segments, &seed);
		choose(&m, 1, first, segments, &seed);
		if (stele_device_open_memory(size, 512, &dev) ||
		    test_image_begin(&image, dev, size))
			bail("no image");
		for (int s = 0; s < MODEL_SEGMENTS; s++)
			test_image_segment(&image, &(struct test_segment){
				.samples = m.samples[s],
				.count = m.counts[s],
				.labels = true,
				.numbers = m.numbers[s],
			});
		add_snapshot(&image, &m, 0, "v1", 0, segments);
		add_snapshot(&image, &m, 1, "v2", first, segments);
		if (test_image_commit(&image))
			bail("cannot commit");
		open_sides(test_image_end(&image), size);
		wrong += check_model(&m);
		close_sides();
	}
	is_uint(0, wrong, "60 pairs of snapshots, against a model");
}

/* ---- what is read ------------------------------------------------------------- */

static struct test_sample *samples;
static uint64_t numbers[KEYS_MAX];

/*
 * v1: one segment of 20,000; v2: the same less `deleted`, and with `more` a
 * second segment that replaces these samples.
 */
static void open_big(uint64_t *deleted, uint64_t count, bool more,
		     const char *other)
{
	static struct test_image image;
	static struct test_sample replaced[KEYS_MAX];
	const uint64_t size = UINT64_C(16) << 20;
	struct test_ref refs[2] = {{.segment = 0}, {.segment = 1}};
	struct stele_device *dev;

	for (uint64_t i = 0; i < count; i++) {
		replaced[i] = samples[deleted[i]];
		if (other) {
			replaced[i].data = other;
			replaced[i].size = strlen(other);
		}
		deleted[i] = numbers[deleted[i]];
	}
	if (count)
		qsort(deleted, count, sizeof(*deleted), by_number);
	if (stele_device_open_memory(size, 512, &dev) ||
	    test_image_begin(&image, dev, size) ||
	    test_image_segment(&image, &(struct test_segment){
					       .samples = samples,
					       .count = KEYS_MAX,
					       .numbers = numbers}) ||
	    test_image_segment(&image, &(struct test_segment){
					       .samples = replaced,
					       .count = count}) ||
	    test_image_snapshot(&image, "v1", refs, 1))
		bail("no image");
	refs[0].deleted = deleted;
	refs[0].deleted_count = count;
	if (test_image_snapshot(&image, "v2", refs, more ? 2 : 1) ||
	    test_image_commit(&image))
		bail("no image");
	open_sides(test_image_end(&image), size);
}

static int count_lines(void *user, const struct stele_diff_entry *d)
{
	(void)d;
	++*(uint64_t *)user;
	return 0;
}

static void check_shared(void)
{
	struct stele_diff_report report = {.size = sizeof(report)};
	uint64_t others;

	open_big(NULL, 0, false, NULL);
	is_int(0, stele_dataset_diff(sides[0], sides[1], NULL, NULL, &report),
	       "the same samples");
	is_uint(KEYS_MAX, report.same, "all the same");
	is_uint(0, reads_of(0, 0, STELE_BLOCK_KEYS, &others) + others +
			   reads_of(1, 0, STELE_BLOCK_KEYS, &others) + others,
		"nothing is read");
	close_sides();
}

static void check_few(void)
{
	uint64_t deleted[3] = {17, 9000, 19999}, others, keys, steps = 1;
	struct stele_diff_report report = {.size = sizeof(report)};

	open_big(deleted, 3, false, NULL);
	while (blocks_of(0, 0, STELE_BLOCK_KEYS) >> steps)
		steps++;
	is_int(0, stele_dataset_diff(sides[0], sides[1], NULL, NULL, &report),
	       "three samples less");
	is_uint(3, report.removed, "three removed");
	is_uint(KEYS_MAX - 3, report.same, "the others the same");
	keys = reads_of(0, 0, STELE_BLOCK_KEYS, &others);
	ok(keys > 0 && keys <= 3 * (steps + 1), "%ju of %ju pages of keys",
	   (uintmax_t)keys, (uintmax_t)blocks_of(0, 0, STELE_BLOCK_KEYS));
	is_uint(others, reads_of(0, 0, STELE_BLOCK_ORDER, &keys),
		"and %ju blocks of the order, nothing else", (uintmax_t)others);
	is_uint(0, reads_of(1, 0, STELE_BLOCK_KEYS, &others) + others,
		"nothing of the other image");
	close_sides();
}

static void check_many(void)
{
	static uint64_t deleted[KEYS_MAX / 4];
	struct stele_diff_report report = {.size = sizeof(report)};
	uint64_t others, lines = 0;

	for (uint64_t i = 0; i < KEYS_MAX / 4; i++)
		deleted[i] = i * 4 + 1;
	open_big(deleted, KEYS_MAX / 4, false, NULL);
	is_int(0, stele_dataset_diff(sides[1], sides[0], count_lines, &lines,
				     &report),
	       "every fourth more");
	is_uint(KEYS_MAX / 4, report.added, "so many added");
	is_uint(KEYS_MAX / 4, lines, "and told");
	/* Of the two that share it, one is read. */
	is_uint(blocks_of(0, 0, STELE_BLOCK_KEYS),
		reads_of(1, 0, STELE_BLOCK_KEYS, &others), "all keys, once");
	is_uint(0, others, "nothing else");
	is_uint(0, reads_of(0, 0, STELE_BLOCK_KEYS, &others) + others,
		"nothing of the other image");
	close_sides();
}

/* Replaced by the same bytes, or others of the same size, or of another one. */
static void check_replaced(void)
{
	uint64_t deleted[5], others, keys;
	struct stele_diff_report report = {.size = sizeof(report)};
	static const char *const contents_of[] = {NULL, "x"};

	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 5; j++)
			deleted[j] = (uint64_t)j * 1000;
		open_big(deleted, 5, true, contents_of[i]);
		is_int(0, stele_dataset_diff(sides[0], sides[1], NULL, NULL,
					     &report),
		       "five replaced");
		is_uint(i ? 5 : 0, report.changed, "with %s content",
			i ? "other" : "the same");
		is_uint(KEYS_MAX - report.changed, report.same, "the rest not");
		keys = reads_of(1, 1, STELE_BLOCK_KEYS, &others);
		is_uint(1, keys, "the new one's keys");
		is_uint(i ? 0 : 1, others, "%s digests", i ? "no" : "its");
		keys = reads_of(0, 0, STELE_BLOCK_DIGESTS, &others);
		ok(i ? !keys : keys > 0 && keys <= 5, "%ju blocks of digests",
		   (uintmax_t)keys);
		close_sides();
	}
}

static int stop(void *user, const struct stele_diff_entry *d)
{
	(void)user;
	(void)d;
	return 42;
}

/* Each read in turn fails. */
static void check_errors(void)
{
	uint64_t deleted[3] = {1, 2, 3}, failed = 0;
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .error = EIO, .count = 1};
	int ret = -EIO;

	open_big(deleted, 3, true, NULL);
	for (uint64_t n = 0; ret; n++) {
		for (int i = 0; i < SIDES; i++) {
			rule.first = stele_fault_count(devices[i]) + n;
			stele_fault_set_rules(devices[i], &rule, 1);
		}
		ret = stele_dataset_diff(sides[0], sides[1], NULL, NULL, NULL);
		if (ret && ret != -EIO)
			break;
		failed += ret != 0;
	}
	is_int(0, ret, "fails with -EIO or not at all");
	ok(failed > 5, "%ju reads can fail", (uintmax_t)failed);
	close_sides();
	deleted[0] = 7;
	open_big(deleted, 1, false, NULL);
	is_int(42, stele_dataset_diff(sides[0], sides[1], stop, NULL, NULL),
	       "the callback ends it");
	close_sides();
}

int main(void)
{
	plan_lazy();
	samples = test_samples(KEYS_MAX, 40, 5);
	check_models();
	check_shared();
	check_few();
	check_many();
	check_replaced();
	check_errors();
	free(samples);
	return done();
}

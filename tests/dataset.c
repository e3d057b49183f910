/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - see dataset.h
 */
#include "tests/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

#define PARTS_MAX 64u

static void *allocate(size_t count, size_t size)
{
	void *data = calloc(count ? count : 1, size);

	if (!data)
		bail("no memory");
	return data;
}

void test_random_ids(const struct test_dataset *t, uint64_t *ids,
		     uint64_t count, uint64_t seed)
{
	for (uint64_t i = 0; i < count; i++)
		ids[i] = test_random(&seed) % t->count;
}

/* ---- build ---------------------------------------------------------------- */

static struct stele_device *open_bottom(struct test_dataset *t,
					const struct test_plan *plan,
					uint64_t size)
{
	static unsigned int files;
	struct stele_device *dev;
	int err;

	if (!plan->backend) {
		err = stele_device_open_memory(
			size, plan->logical_block ? plan->logical_block : 512,
			&dev);
	} else {
		snprintf(t->path, sizeof(t->path), "%s/image.%u",
			 test_tmpdir(), files++);
		err = stele_device_open_file(
			t->path, STELE_DEVICE_CREATE | STELE_DEVICE_WRITE,
			plan->backend, NULL, &dev);
		if (!err)
			err = stele_device_resize(dev, size);
	}
	if (err)
		bail("no device for a test image: %s", strerror(-err));
	return dev;
}

/* The numbers to leave out, ascending. */
static uint64_t *deleted_numbers(const struct test_plan *plan, uint64_t *count)
{
	uint64_t *deleted = allocate(plan->samples, sizeof(*deleted));

	*count = 0;
	for (uint64_t i = 0; plan->delete_every && i < plan->samples; i++)
		if (i % plan->delete_every == plan->delete_every / 2)
			deleted[(*count)++] = i;
	return deleted;
}

static bool is_deleted(const struct test_plan *plan, uint64_t number)
{
	return plan->delete_every &&
	       number % plan->delete_every == plan->delete_every / 2;
}

static void add_live(struct test_dataset *t, const struct test_plan *plan,
		     uint32_t segment, const uint64_t *numbers)
{
	const struct test_sample **by_number =
		allocate(plan->samples, sizeof(struct test_sample *));

	for (uint64_t i = 0; i < plan->samples; i++)
		by_number[numbers[i]] = &t->samples[segment][i];
	for (uint64_t number = 0; number < plan->samples; number++)
		if (!is_deleted(plan, number))
			t->live[t->count++] = (struct test_live){
				by_number[number], segment, number};
	free(by_number);
}

/* Keys of different segments interleave, and are unique. */
static void name_samples(struct test_sample *samples, uint64_t count,
			 uint32_t segment)
{
	for (uint64_t i = 0; i < count; i++) {
		char *key = (char *)(uintptr_t)samples[i].key;

		snprintf(key, 32, "dir%u/%06u.%u", (unsigned int)(i % 3),
			 (unsigned int)i, segment % TEST_SEGMENTS_MAX);
	}
}

static struct stele_device *build(struct test_dataset *t,
				  const struct test_plan *plan,
				  struct stele_device *dev, uint64_t size)
{
	uint32_t segments = plan->segments ? plan->segments : 1;
	uint64_t *numbers = allocate(plan->samples, sizeof(*numbers));
	struct test_ref refs[TEST_SEGMENTS_MAX] = {0};
	static struct test_image image;
	uint64_t deleted_count;
	uint64_t *deleted = deleted_numbers(plan, &deleted_count);

	if (test_image_begin(&image, dev, size))
		bail("cannot begin a test image");
	for (uint32_t i = 0; i < segments; i++) {
		struct test_segment segment = {
			.count = plan->samples,
			.granule = plan->granule,
			.boundary = plan->boundary,
			.labels = true,
			.numbers = numbers,
		};

		t->samples[i] = test_samples(plan->samples, plan->size_max,
					     i + 1);
		name_samples(t->samples[i], plan->samples, i);
		segment.samples = t->samples[i];
		if (test_image_segment(&image, &segment))
			bail("cannot write a segment");
		add_live(t, plan, i, numbers);
		refs[i] = (struct test_ref){i, deleted, deleted_count};
	}
	if (test_image_snapshot(&image, "v1", refs, segments) ||
	    test_image_commit(&image))
		bail("cannot commit a test image");
	free(deleted);
	free(numbers);
	return test_image_end(&image);
}

/* Room for all samples in slots of their own blocks, and sections. */
static uint64_t image_size(const struct test_plan *plan)
{
	uint64_t segments = plan->segments ? plan->segments : 1;
	uint64_t slot = plan->size_max + plan->size_max / 128 + 8192;
	uint64_t size = segments * ((plan->samples + 2) *
					    (slot + plan->boundary) +
				    (4u << 20));

	return round_up(size + (8u << 20), 65536);
}

void test_dataset_open(struct test_dataset *t, const struct test_plan *plan)
{
	uint32_t segments = plan->segments ? plan->segments : 1;
	uint64_t size = image_size(plan);
	struct stele_target target = {0};
	struct stele_device *dev;
	int err;

	memset(t, 0, sizeof(*t));
	test_log_init(&t->log);
	t->live = allocate(segments * plan->samples, sizeof(*t->live));
	dev = build(t, plan, open_bottom(t, plan, size), size);
	if (plan->backend) {
		stele_device_close(dev);
		err = stele_device_open_file(t->path, 0, plan->backend, NULL,
					     &dev);
		if (err)
			bail("cannot open '%s': %s", t->path, strerror(-err));
	}
	err = stele_device_open_fault(dev, NULL, 0, &t->dev);
	if (err)
		bail("no fault device");
	err = stele_dataset_create(t->dev, &target,
				   &STELE_OPTS(stele_open_opts,
					       .log = t->log.log.fn,
					       .log_user = t->log.log.user,
					       .verify = plan->verify),
				   &t->ds);
	if (err)
		bail("cannot open the test dataset: %s\n%s", strerror(-err),
		     t->log.text);
	stele_fault_log_clear(t->dev);
}

void test_dataset_close(struct test_dataset *t)
{
	if (stele_dataset_close(t->ds))
		bail("the test dataset is in use");
	if (t->path[0])
		unlink(t->path);
	for (unsigned int i = 0; i < TEST_SEGMENTS_MAX; i++)
		free(t->samples[i]);
	free(t->live);
	memset(t, 0, sizeof(*t));
}

/* ---- what it should hold -------------------------------------------------- */

bool test_is_sample(const struct test_dataset *t, uint64_t id,
		    const struct stele_sample *sample)
{
	const struct test_sample *wanted = t->live[id].sample;
	int64_t label = -1;
	const char *what = NULL;

	if (sample->status)
		what = "status";
	else if (sample->id != id)
		what = "id";
	else if (sample->size != wanted->size ||
		 memcmp(sample->data, wanted->data, wanted->size) != 0)
		what = "data";
	else if (sample->key_size != strlen(wanted->key) ||
		 memcmp(sample->key, wanted->key, sample->key_size) != 0)
		what = "key";
	else if (stele_sample_i64(sample, 1, &label) || label != wanted->label)
		what = "label";
	if (what)
		diag("sample %ju: wrong %s (status %d)", (uintmax_t)id, what,
		     sample->status);
	return !what;
}

/* stele-format(5), "Runs", by hand. */
static uint64_t slot_offset(const struct stele_segment *segment,
			    uint64_t number, uint64_t *slot_size)
{
	const uint64_t boundary = segment->descriptor.boundary;
	const struct stele_run *run = segment->runs;
	uint64_t k, place;

	for (uint32_t i = 1; i < segment->descriptor.run_count; i++)
		if (segment->runs[i].first <= number)
			run = &segment->runs[i];
	k = number - run->first;
	*slot_size = run->slot_size;
	if (!boundary || run->slot_size > boundary)
		return segment->descriptor.offset + run->offset +
		       k * run->slot_size;
	for (place = run->offset; k > 0; k--) {
		place += *slot_size;
		if (place / boundary != (place + *slot_size - 1) / boundary)
			place = (place / boundary + 1) * boundary;
	}
	return segment->descriptor.offset + place;
}

unsigned int test_reads_of(const struct test_dataset *t, uint64_t id,
			   struct test_read *reads, unsigned int max)
{
	const struct test_live *live = &t->live[id];
	uint64_t block = t->dev->limits.logical_block;
	uint64_t part = t->dev->limits.transfer_max;
	uint64_t begin, end, slot_size;
	unsigned int count = 0;

	begin = slot_offset(&t->ds->snapshot.segments[live->segment],
			    live->number, &slot_size);
	end = (begin + slot_size + block - 1) / block * block;
	begin = begin / block * block;
	for (; begin < end; begin += reads[count++].size) {
		if (count == max)
			bail("a sample of too many reads");
		reads[count].offset = begin;
		reads[count].size = end - begin < part ? end - begin : part;
	}
	return count;
}

static int by_offset(const void *a, const void *b)
{
	const struct test_read *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

static bool same_reads(struct test_read *wanted, struct test_read *seen,
		       size_t count)
{
	qsort(wanted, count, sizeof(*wanted), by_offset);
	qsort(seen, count, sizeof(*seen), by_offset);
	for (size_t i = 0; i < count; i++) {
		if (!by_offset(&wanted[i], &seen[i]))
			continue;
		diag("wanted %ju at %ju, seen %ju at %ju",
		     (uintmax_t)wanted[i].size, (uintmax_t)wanted[i].offset,
		     (uintmax_t)seen[i].size, (uintmax_t)seen[i].offset);
		return false;
	}
	return true;
}

/* False when something else than such reads was issued. */
static bool issued_reads(const struct stele_fault_entry *log, size_t count,
			 bool queued, struct test_read *seen)
{
	for (size_t i = 0; i < count; i++) {
		if (log[i].op != STELE_OP_READ || log[i].queued != queued) {
			diag("operation %d, queued %d, at %ju", (int)log[i].op,
			     log[i].queued, (uintmax_t)log[i].offset);
			return false;
		}
		seen[i] = (struct test_read){log[i].offset, log[i].size};
	}
	return true;
}

bool test_is_issued(const struct test_dataset *t, const uint64_t *ids,
		    uint64_t count, bool queued)
{
	size_t issued, wanted_count = 0;
	const struct stele_fault_entry *log = stele_fault_log(t->dev, &issued);
	struct test_read *wanted = allocate(count * PARTS_MAX, sizeof(*wanted));
	struct test_read *seen = allocate(issued, sizeof(*seen));
	bool same;

	for (uint64_t i = 0; i < count; i++)
		wanted_count += test_reads_of(t, ids[i], wanted + wanted_count,
					      PARTS_MAX);
	same = issued_reads(log, issued, queued, seen);
	if (same && issued != wanted_count) {
		diag("wanted %zu reads, seen %zu", wanted_count, issued);
		same = false;
	}
	same = same && same_reads(wanted, seen, issued);
	free(wanted);
	free(seen);
	return same;
}

#define BATCH 16u

/* Tags are indices into ids; seen[] counts how often each came. */
static uint64_t check_batch(const struct test_dataset *t,
			    struct stele_reader *reader, const uint64_t *ids,
			    uint64_t count, uint8_t *seen, int *got)
{
	struct stele_sample samples[BATCH];
	uint64_t wrong = 0;

	*got = stele_reader_collect(reader, samples, BATCH, 1);
	for (int i = 0; i < *got; i++) {
		uint64_t tag = samples[i].tag;

		wrong += tag >= count || seen[tag]++ || samples[i].id != ids[tag];
		wrong += !test_is_sample(t, samples[i].id, &samples[i]);
		stele_reader_release(reader, &samples[i]);
	}
	return wrong;
}

struct stele_reader *test_reader_open(const struct test_dataset *t,
				      uint64_t arena_size, uint32_t depth)
{
	struct stele_reader *reader;

	if (stele_reader_open(t->ds,
			      &STELE_OPTS(stele_reader_opts,
					  .arena_size = arena_size,
					  .depth = depth),
			      &reader))
		bail("no reader");
	return reader;
}

uint64_t test_read_all(const struct test_dataset *t,
		       struct stele_reader *reader, const uint64_t *ids,
		       uint64_t count)
{
	uint64_t *tags = allocate(count, sizeof(*tags));
	uint8_t *seen = allocate(count, 1);
	uint64_t submitted = 0, collected = 0, wrong = 0;

	for (uint64_t i = 0; i < count; i++)
		tags[i] = i;
	while (collected < count) {
		int n = stele_reader_submit(reader, ids + submitted,
					    tags + submitted,
					    (unsigned int)(count - submitted));

		submitted += n > 0 ? (unsigned int)n : 0;
		wrong += check_batch(t, reader, ids, count, seen, &n);
		if (n <= 0)
			break;
		collected += (unsigned int)n;
	}
	free(tags);
	free(seen);
	return wrong + count - collected;
}

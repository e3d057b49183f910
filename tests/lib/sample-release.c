/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample-release.c - a sample knows whose memory it is in
 *
 * One release takes samples of any origin: what is its own is freed, what is a reader's
 * goes back there, and of loaders and views nothing is. A reader takes back what is its own,
 * and leaves any other sample alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/fixture/dataset.h"
#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define ROUNDS 2000u

static const struct test_plan image = {
	.samples = 60, .size_max = 4000, .backend = "threads"};

static void read_one(struct stele_reader *reader, uint64_t id,
		     struct stele_sample *sample)
{
	if (stele_reader_submit(reader, &id, NULL, 1) != 1 ||
	    stele_reader_collect(reader, sample, 1, 1) != 1 || sample->status)
		bail("cannot read sample %ju", (uintmax_t)id);
}

/* If one was lost in each round, the arena would soon be full. */
static void test_reader(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 32768, 4);
	struct stele_sample sample;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		read_one(reader, i % t->count, &sample);
		wrong += !test_is_sample(t, i % t->count, &sample);
		stele_sample_release(&sample);
		wrong += sample.buffer || sample.data || sample.reader;
		stele_sample_release(&sample);
	}
	is_uint(0, wrong, "a reader's: %u rounds in a small arena", ROUNDS);
	stele_reader_close(reader);
}

static void test_others(struct test_dataset *t)
{
	struct stele_reader *a = test_reader_open(t, 32768, 4);
	struct stele_reader *b = test_reader_open(t, 32768, 4);
	struct stele_sample one, two;
	uint64_t wrong = 0;

	read_one(a, 5, &one);
	stele_reader_release(b, &one);
	ok(test_is_sample(t, 5, &one), "another reader leaves it alone");
	if (stele_dataset_read(t->ds, 6, &two))
		bail("read");
	stele_reader_release(b, &two);
	ok(test_is_sample(t, 6, &two), "and what is nobody's");
	stele_sample_release(&two);
	stele_sample_release(&one);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		read_one(a, i % t->count, &one);
		wrong += !test_is_sample(t, i % t->count, &one);
		stele_reader_release(a, &one);
	}
	is_uint(0, wrong, "nothing is lost, and nothing is twice in an arena");
	stele_reader_close(a);
	stele_reader_close(b);
}

/* Their memory is gone, and they know. */
static void test_late(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 32768, 4);
	struct stele_sample samples[3];
	const void *data;
	uint64_t size;

	for (uint64_t i = 0; i < 3; i++)
		read_one(reader, i, &samples[i]);
	stele_sample_release(&samples[1]);
	stele_reader_close(reader);
	/* Perhaps where that one was. */
	reader = test_reader_open(t, 32768, 4);
	stele_reader_release(reader, &samples[2]);
	is_int(-EOWNERDEAD, stele_sample_bytes(&samples[0], 0, &data, &size),
	       "after close: no bytes");
	for (unsigned int i = 0; i < 3; i++) {
		stele_sample_release(&samples[i]);
		ok(!samples[i].data && !samples[i].reader, "but a release");
		stele_sample_release(&samples[i]);
	}
	stele_reader_close(reader);
}

static void test_into(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 32768, 4);
	char *memory = aligned_alloc(4096, 65536);
	struct stele_sample sample;
	const struct stele_destination to = {.id = 9,
					     .memory = memory,
					     .memory_size = 65536};

	if (stele_reader_submit_into(reader, &to, 1) != 1 ||
	    stele_reader_collect(reader, &sample, 1, 1) != 1)
		bail("cannot read into memory");
	ok(test_is_sample(t, 9, &sample), "into the caller's memory");
	stele_sample_release(&sample);
	ok(!sample.data, "which stays the caller's");
	stele_reader_close(reader);
	free(memory);
}

static void test_loader_batches(struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader *loader = test_loader(
		&source, 1,
		(struct stele_loader_opts){.batch_size = 7,
					   .prefetch_size = 65536});
	uint64_t samples = 0, wrong = 0;
	struct stele_batch batch = {.size = sizeof(batch)};

	for (unsigned int epochs = 0; epochs < 20;) {
		if (stele_loader_next(loader, &batch) <= 0) {
			epochs++;
			continue;
		}
		for (uint32_t i = 0; i < batch.count; i++) {
			wrong += !test_is_sample(t, batch.samples[i].id,
						 &batch.samples[i]);
			stele_sample_release(&batch.samples[i]);
			samples++;
		}
		stele_loader_release(loader, &batch);
	}
	is_uint(0, wrong, "a loader's: its own all the same");
	ok(samples >= 20 * t->count, "of all epochs");
	stele_loader_close(loader);
}

static void test_view(struct test_dataset *t)
{
	struct stele_target target = {0};
	struct stele_sample sample;
	struct stele_dataset *ds;
	struct stele_device *dev;
	struct stele_view *view;

	if (stele_device_open_file(t->path, 0, NULL, NULL, &dev) ||
	    stele_dataset_create(dev, &target, NULL, &ds) ||
	    stele_view_open(ds, NULL, &view) ||
	    stele_view_sample(view, 3, &sample))
		bail("no view");
	stele_sample_release(&sample);
	is_int(0, stele_view_sample(view, 3, &sample), "a view's: again");
	ok(test_is_sample(t, 3, &sample), "as before");
	stele_view_close(view);
	stele_dataset_close(ds);
}

int main(void)
{
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &image);
	test_reader(&t);
	test_others(&t);
	test_late(&t);
	test_into(&t);
	test_loader_batches(&t);
	test_view(&t);
	test_dataset_close(&t);
	return done();
}

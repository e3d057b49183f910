/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-snapshot.c - what is built from a snapshot is that snapshot
 *
 * Samples are compared by key and by digest, which covers payload, key, ends
 * and scalars; verify says that the digests are those of the records.
 */
#include "lib/ops/build.h"
#include "tests/device/fault.h"
#include "tests/fixture/fake.h"
#include "tests/fixture/many.h"
#include "tests/device/memory.h"
#include "tests/fixture/rich.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE   (UINT64_C(64) << 20)

static struct test_log messages;
static uint64_t memory = UINT64_C(128) << 10; /* to read with */

static struct stele_build_opts options(void)
{
	return (struct stele_build_opts){
		.size = sizeof(struct stele_build_opts),
		.time = 1700000000,
		.jobs = 3,
		.log = messages.log.fn,
		.log_user = messages.log.user,
	};
}

/* Another image, of what a dataset holds. NULL: failed. */
static struct stele_dataset *rebuild(const struct stele_dataset *ds,
				     const struct stele_build_opts *opts,
				     int wanted, const char *what)
{
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(SIZE, 512, 0x5a);
	struct stele_source source;
	int ret;

	test_log_init(&messages);
	if (stele_source_open_snapshot(&ds->image, &ds->snapshot, memory,
				       &messages.log, &source))
		bail("no source");
	ret = stele_build_on(dev, &source, "v1", opts, &report);
	stele_source_close(&source);
	is_int(wanted, ret, "%s: built", what);
	if (ret == 0)
		return many_open(dev, NULL);
	if (ret != wanted)
		diag("%s", messages.text);
	stele_device_close(dev);
	return NULL;
}

/* ---- many fields ------------------------------------------------------------ */

static void test_rich(uint64_t count, uint64_t size_max, uint32_t order)
{
	struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(SIZE, 512, 0x5a);
	struct stele_dataset *a, *b;
	struct rich rich;
	char what[64];

	snprintf(what, sizeof(what), "%" PRIu64 " rich samples of %" PRIu64,
		 count, size_max);
	rich_init(&rich, count, size_max);
	opts.order = order;
	is_int(0, stele_build_on(dev, &rich.source, "v1", &opts, &report),
	       "%s: built", what);
	a = many_open(dev, NULL);
	b = rebuild(a, &opts, 0, what);
	if (b) {
		many_compare(a, b, what);
		ok(!memcmp(a->snapshot.digest, b->snapshot.digest, 32),
		   "%s: the same digest", what);
	}
	stele_dataset_close(b);
	stele_dataset_close(a);
}

/* What was written is what the source said: the first step of the chain. */
static void test_rich_values(void)
{
	static const uint32_t parts[] = {RICH_IMAGE, RICH_CAPTION, RICH_MASK,
					 RICH_BOX};
	struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(SIZE, 512, 0x5a);
	static uint8_t bytes[60000];
	unsigned int wrong = 0;
	struct stele_dataset *ds;
	struct rich rich;

	rich_init(&rich, 50, 50000);
	if (stele_build_on(dev, &rich.source, "v1", &opts, &report))
		bail("cannot build");
	ds = many_open(dev, NULL);
	ok(ds->image.sb.feature_incompat & STELE_FEATURE_TENSOR,
	   "tensors have their feature");
	for (uint64_t id = 0; id < 50; id++) {
		union stele_value values[RICH_FIELDS];
		uint64_t dims[STELE_RANK_MAX], at = 0, size, i;
		struct stele_sample sample;
		const void *data;
		int64_t number;
		double score;
		char key[64];

		if (stele_dataset_read(ds, id, &sample))
			bail("cannot read");
		snprintf(key, sizeof(key), "%.*s", (int)sample.key_size,
			 sample.key);
		i = rich_sample(key);
		rich_values(&rich, i, values);
		rich_bytes(&rich, i, 0, bytes, sample.size);
		for (unsigned int part = 0; part < 4; part++) {
			wrong += stele_sample_bytes(&sample, parts[part], &data,
						    &size) != 0 ||
				 size != values[parts[part]].size ||
				 memcmp(data, bytes + at, size);
			at += size;
		}
		wrong += at != sample.size;
		wrong += stele_sample_f64(&sample, RICH_SCORE, &score) != 0 ||
			 memcmp(&score, &values[RICH_SCORE].f64, 8);
		wrong += stele_sample_i64(&sample, RICH_LABEL, &number) != 0 ||
			 number != values[RICH_LABEL].i64;
		wrong += stele_sample_i64(&sample, RICH_WHEN, &number) != 0 ||
			 number != values[RICH_WHEN].i64;
		wrong += stele_sample_shape(&sample, RICH_MASK, dims) != 2 ||
			 dims[0] != values[RICH_MASK].size / RICH_ROW ||
			 dims[1] != 3;
		wrong += stele_sample_shape(&sample, RICH_BOX, dims) != 2 ||
			 dims[0] != 2 || dims[1] != 2;
		wrong += stele_sample_shape(&sample, RICH_IMAGE, dims) != -EINVAL;
		stele_sample_release(&sample);
	}
	is_uint(0, wrong, "values are what the source said");
	stele_dataset_close(ds);
}

/* ---- many segments ---------------------------------------------------------- */

static struct stele_dataset *make_many(struct many *m, uint64_t seed)
{
	struct stele_device *dev = test_memory(SIZE, 512, 0x5a);

	many_make(m, dev, SIZE, seed);
	return many_open(dev, NULL);
}

static void test_many(void)
{
	static const uint32_t granules[] = {0, 16, 4096};
	struct stele_build_opts opts = options();
	struct stele_dataset *a, *b;
	struct many m;

	a = make_many(&m, 4);
	is_uint(MANY_SEGMENTS, a->snapshot.segment_count, "segments");
	for (size_t i = 0; i < sizeof(granules) / sizeof(granules[0]); i++) {
		char what[64];

		snprintf(what, sizeof(what), "segments, granule %" PRIu32,
			 granules[i]);
		opts.granule = granules[i];
		opts.order = i == 1 ? STELE_ORDER_SOURCE : STELE_ORDER_SIZE;
		opts.boundary = i == 2 ? 131072 : 0;
		opts.memory_size = i == 2 ? 1 << 20 : 0;
		b = rebuild(a, &opts, 0, what);
		if (b)
			many_compare(a, b, what);
		stele_dataset_close(b);
	}
	stele_dataset_close(a);
	many_release(&m);
}

/*
 * Each block is read once; of a segment with many deleted samples what lies between
 * live ones may be.
 */
static void test_reads(void)
{
	const struct stele_build_opts opts = options();
	const struct stele_fault_entry *log;
	const struct stele_segment *large;
	struct stele_device *bottom = test_memory(SIZE, 512, 0x5a), *dev;
	struct stele_dataset *a;
	uint64_t bytes = 0, reads = 0, begin, end;
	struct many m;
	size_t count;

	many_make(&m, bottom, SIZE, 4);
	if (stele_device_open_fault(bottom, NULL, 0, &dev) < 0)
		bail("no fault device");
	a = many_open(dev, NULL);
	stele_fault_log_clear(dev);
	stele_dataset_close(rebuild(a, &opts, 0, "counted"));
	large = &a->snapshot.segments[2];
	begin = large->descriptor.offset + large->descriptor.slots_offset;
	end = begin + large->descriptor.slots_size;
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++) {
		if (log[i].op != STELE_OP_READ || log[i].offset >= end ||
		    log[i].offset + log[i].size <= begin)
			continue;
		bytes += log[i].size;
		reads++;
	}
	/* Of the edges of two runs, a block each. */
	ok(bytes <= large->descriptor.slots_size +
			    large->descriptor.run_count * 1024,
	   "each block is read once: %ju of %ju", (uintmax_t)bytes,
	   (uintmax_t)large->descriptor.slots_size);
	diag("%ju reads of %ju slots", (uintmax_t)reads, (uintmax_t)large->live_count);
	stele_dataset_close(a);
	many_release(&m);
}

/* ---- into another order ------------------------------------------------------- */

/* Reads from here on since the log was cleared, and their bytes. */
static void count_reads(struct stele_device *dev, uint64_t begin, uint64_t size,
			uint64_t *reads, uint64_t *bytes)
{
	const struct stele_fault_entry *log;
	size_t count;

	*reads = *bytes = 0;
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++) {
		if (log[i].op != STELE_OP_READ || log[i].offset < begin / 512 * 512 ||
		    log[i].offset >= begin + size)
			continue;
		++*reads;
		*bytes += log[i].size;
	}
}

/* Digests: two units, each with reads that grow from one block to 256 KiB. */
static void check_digests(const struct stele_dataset *ds, struct stele_device *dev,
			  const char *what)
{
	const struct stele_descriptor *d = &ds->snapshot.segments[0].descriptor;
	struct stele_section digests;
	uint64_t reads, bytes;

	stele_descriptor_find_section(d, STELE_BLOCK_DIGESTS, STELE_NO_FIELD, &digests);
	count_reads(dev, d->offset + digests.offset, digests.size, &reads, &bytes);
	ok(bytes >= digests.size && bytes <= 2 * digests.size + STELE_BLOCK_SIZE,
	   "%s: %ju bytes of digests read, of %ju", what, (uintmax_t)bytes,
	   (uintmax_t)digests.size);
	ok(reads <= 2 * 7, "%s: in %ju reads", what, (uintmax_t)reads);
}

/*
 * Tiny samples: large reads, and of a thread with two units no block more than once for
 * each; in order only the one where they meet.
 */
static void test_reordered(uint32_t order, const char *what)
{
	struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *bottom = test_memory(SIZE, 512, 0x5a), *dev;
	const struct stele_descriptor *d;
	uint64_t size, reads, bytes, most;
	struct stele_dataset *ds, *made;
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 12000, 300);
	if (stele_build_on(bottom, &fake.source, "v1", &opts, &report) ||
	    stele_device_open_fault(bottom, NULL, 0, &dev) < 0)
		bail("cannot build");
	ds = many_open(dev, NULL);
	memory = UINT64_C(8) << 20;
	opts.jobs = 1;
	opts.order = order;
	stele_fault_log_clear(dev);
	made = rebuild(ds, &opts, 0, what);
	check_digests(ds, dev, what);
	d = &ds->snapshot.segments[0].descriptor;
	size = d->slots_size;
	count_reads(dev, d->offset + d->slots_offset, size, &reads, &bytes);
	most = order == STELE_ORDER_SOURCE ? 2 * size : size + 1024;
	ok(bytes >= size && bytes <= most + 1024, "%s: %ju bytes read, of %ju", what,
	   (uintmax_t)bytes, (uintmax_t)size);
	ok(reads <= 6 + bytes / (128 << 10), "%s: in %ju reads", what, (uintmax_t)reads);
	if (made)
		many_compare(ds, made, what);
	memory = UINT64_C(128) << 10;
	stele_dataset_close(made);
	stele_dataset_close(ds);
	fake_release(&fake);
}

/* ---- the same as fresh ------------------------------------------------------ */

/* Files of a fake source as samples of a test image. */
static struct test_sample *samples_of(const struct fake *fake, uint8_t *data)
{
	struct test_sample *samples = calloc(fake->count, sizeof(*samples));

	if (!samples)
		bail("no memory");
	for (size_t i = 0; i < fake->count; i++) {
		const struct fake_file *file = &fake->files[i];

		samples[i] = (struct test_sample){
			.key = file->key, .data = data, .size = file->size,
			.label = file->key[0] - 'a',
		};
		for (uint64_t j = 0; j < file->size; j++)
			*data++ = fake_byte(file->key, strlen(file->key), j);
	}
	return samples;
}

static void test_fresh(uint32_t order)
{
	static const char *const classes[] = {"a", "b", NULL};
	struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *fresh = test_memory(SIZE, 512, 0x5a);
	struct stele_dataset *a, *b, *c;
	struct test_sample *samples;
	static struct test_image t;
	uint8_t *data = malloc(16u << 20);
	struct fake fake;
	uint64_t third;

	fake_init(&fake);
	fake_add_many(&fake, "a", 400, 9000);
	fake_add_many(&fake, "b", 200, 50000);
	opts.order = order;
	if (!data || stele_build_on(fresh, &fake.source, "v1", &opts, &report))
		bail("cannot build");
	a = many_open(fresh, NULL);
	samples = samples_of(&fake, data);
	if (test_image_begin(&t, test_memory(SIZE, 512, 0x5a), SIZE) < 0)
		bail("begin");
	third = fake.count / 3;
	for (uint64_t i = 0; i < 3; i++) {
		const struct test_segment in = {
			.samples = samples + i * third, .count = third,
			.labels = true, .names = classes};

		if (test_image_segment(&t, &in) < 0)
			bail("segment");
	}
	if (test_image_snapshot(&t, "v1", NULL, 0) < 0 ||
	    test_image_commit(&t) < 0)
		bail("commit");
	b = many_open(test_image_end(&t), NULL);
	ok(memcmp(a->snapshot.digest, b->snapshot.digest, 32) != 0,
	   "three segments have another digest");
	c = rebuild(b, &opts, 0, "three segments");
	if (c) {
		many_compare(b, c, "three segments");
		ok(!memcmp(a->snapshot.digest, c->snapshot.digest, 32),
		   "laid out anew, that of a fresh build");
	}
	stele_dataset_close(c);
	stele_dataset_close(b);
	stele_dataset_close(a);
	free(samples);
	free(data);
	fake_release(&fake);
}

/* ---- damage ----------------------------------------------------------------- */

static void flip(const struct stele_dataset *ds, uint64_t at)
{
	((uint8_t *)stele_device_memory(ds->image.dev))[at] ^= 0x10;
}

/* Damage at a place of the slot of sample 7, and what is said of it. */
static void test_damaged(uint64_t from_end, const char *text)
{
	const struct stele_build_opts opts = options();
	struct stele_dataset *ds;
	struct stele_sample sample;
	struct stele_extent extent = {.size = sizeof(extent)};
	struct many m;
	char key[64];

	ds = make_many(&m, 4);
	stele_dataset_locate(ds, 7, &extent);
	if (stele_dataset_read(ds, 7, &sample))
		bail("cannot read");
	snprintf(key, sizeof(key), "'%.*s'", (int)sample.key_size, sample.key);
	stele_sample_release(&sample);
	flip(ds, from_end ? extent.offset + extent.slot_size - from_end :
			    extent.offset);
	stele_dataset_close(rebuild(ds, &opts, -EBADMSG, text));
	ok(test_log_has(&messages, key), "%s: says which", text);
	stele_dataset_close(ds);
	many_release(&m);
}

static void test_damaged_keys(void)
{
	const struct stele_build_opts opts = options();
	struct stele_section section;
	struct stele_dataset *ds;
	struct many m;

	ds = make_many(&m, 4);
	stele_descriptor_find_section(&ds->snapshot.segments[1].descriptor,
				      STELE_BLOCK_KEYS, STELE_NO_FIELD,
				      &section);
	flip(ds, ds->snapshot.segments[1].descriptor.offset + section.offset +
			 100);
	stele_dataset_close(rebuild(ds, &opts, -EBADMSG, "damaged keys"));
	stele_dataset_close(ds);
	many_release(&m);
}

/* All reads fail, from ever later ones on: the build fails, and lets go of all. */
static void test_faults(void)
{
	struct stele_build_opts opts = options();
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.error = EIO};
	struct stele_device *bottom = test_memory(SIZE, 512, 0x5a), *dev;
	struct stele_dataset *ds;
	uint64_t first, reads;
	struct many m;

	opts.jobs = 1; /* or the number of reads would depend on who comes first */
	many_make(&m, bottom, SIZE, 4);
	if (stele_device_open_fault(bottom, NULL, 0, &dev) < 0)
		bail("no fault device");
	ds = many_open(dev, NULL);
	first = stele_fault_count(dev);
	stele_dataset_close(rebuild(ds, &opts, 0, "no failed read"));
	reads = stele_fault_count(dev) - first;
	for (uint64_t i = 0; i < reads; i += reads / 9) {
		first = stele_fault_count(dev);
		rule.first = first + i;
		stele_fault_set_rules(dev, &rule, 1);
		stele_dataset_close(rebuild(ds, &opts, -EIO, "a failed read"));
	}
	stele_dataset_close(ds);
	many_release(&m);
}

static int stop_soon(void *user, const struct stele_progress *progress)
{
	(void)user;
	return progress->phase == STELE_PHASE_WRITE;
}

static void test_cancel(void)
{
	struct stele_build_opts opts = options();
	struct stele_dataset *ds;
	struct many m;

	ds = make_many(&m, 4);
	opts.progress = stop_soon;
	stele_dataset_close(rebuild(ds, &opts, -ECANCELED, "asked to stop"));
	stele_dataset_close(ds);
	many_release(&m);
}

int main(void)
{
	plan_lazy();
	test_log_init(&messages);
	test_rich_values();
	test_rich(0, 0, STELE_ORDER_SIZE);
	test_rich(1, 10, STELE_ORDER_SIZE);
	test_rich(700, 5000, STELE_ORDER_SIZE);
	test_rich(200, 200000, STELE_ORDER_SOURCE);
	test_rich(3, 7000000, STELE_ORDER_SIZE);
	test_many();
	test_reads();
	test_reordered(STELE_ORDER_SIZE, "in the same order");
	test_reordered(STELE_ORDER_SOURCE, "into another order");
	test_fresh(STELE_ORDER_SIZE);
	test_fresh(STELE_ORDER_SOURCE);
	test_damaged(0, "damaged payload");
	test_damaged(1, "damaged checksum");
	test_damaged(16, "damaged size");
	test_damaged_keys();
	test_faults();
	test_cancel();
	return done();
}

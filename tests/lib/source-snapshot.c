/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-snapshot.c - what is built from a snapshot is that snapshot
 *
 * Samples are compared by key and by digest, which covers payload, key, ends
 * and scalars; verify says that the digests are those of the records.
 */
#include "lib/device/fault.h"
#include "lib/image/section.h"
#include "lib/image/verify.h"
#include "lib/read/dataset.h"
#include "lib/write/build.h"
#include "tests/fake.h"
#include "tests/image.h"
#include "tests/rich.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE   (UINT64_C(64) << 20)
#define MEMORY (UINT64_C(128) << 10)

static struct test_log messages;

static struct stele_device *memory(void)
{
	struct stele_device *dev;

	if (stele_device_open_memory(SIZE, 512, &dev) < 0)
		bail("no memory device");
	memset(stele_device_memory(dev), 0x5a, SIZE);
	return dev;
}

/* Takes the device. */
static struct stele_dataset *open_device(struct stele_device *dev)
{
	struct stele_target target = {0};
	struct stele_dataset *ds;
	int ret = stele_dataset_create(dev, &target, NULL, &ds);

	if (ret < 0)
		bail("cannot open what was made: %s", strerror(-ret));
	return ds;
}

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
	struct stele_build_report report;
	struct stele_device *dev = memory();
	struct stele_source *source;
	int ret;

	test_log_init(&messages);
	if (stele_source_open_snapshot(&ds->image, &ds->snapshot, MEMORY,
				       &messages.log, &source))
		bail("no source");
	ret = stele_build_on(dev, source, "v1", opts, &report);
	stele_source_close(source);
	is_int(wanted, ret, "%s: built", what);
	if (ret == 0)
		return open_device(dev);
	if (ret != wanted)
		diag("%s", messages.text);
	stele_device_close(dev);
	return NULL;
}

/* ---- comparing -------------------------------------------------------------- */

static void digest_of(const struct stele_dataset *ds, uint64_t id,
		      uint8_t digest[32])
{
	const struct stele_segment *segment;
	uint64_t number;

	if (stele_snapshot_locate(&ds->snapshot, id, &segment, &number) ||
	    stele_segment_digest(&ds->image, segment, number, digest))
		bail("no digest of %" PRIu64, id);
}

static bool same_sample(struct stele_dataset *a, uint64_t id,
			struct stele_dataset *b)
{
	uint8_t da[32], db[32];
	struct stele_sample sample;
	uint64_t there;
	bool same;

	if (stele_dataset_read(a, id, &sample) < 0)
		bail("cannot read sample %" PRIu64, id);
	same = stele_dataset_find(b, sample.key, sample.key_size, &there) == 0;
	stele_sample_release(&sample);
	if (!same)
		return false;
	digest_of(a, id, da);
	digest_of(b, there, db);
	return memcmp(da, db, 32) == 0;
}

static bool same_names(const struct stele_dataset *a,
		       const struct stele_dataset *b, uint32_t field)
{
	struct stele_field fa, fb;

	stele_dataset_field(a, field, &fa);
	stele_dataset_field(b, field, &fb);
	if (fa.type != fb.type || fa.name_count != fb.name_count ||
	    strcmp(fa.name, fb.name))
		return false;
	for (uint32_t i = 0; i < fa.name_count; i++) {
		const char *na, *nb;

		if (stele_dataset_class_name(a, field, i, &na) ||
		    stele_dataset_class_name(b, field, i, &nb) ||
		    strcmp(na, nb))
			return false;
	}
	return true;
}

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s at %" PRIu64 ": %s", damage->what, damage->offset,
	     damage->detail);
}

static void check_same(struct stele_dataset *a, struct stele_dataset *b,
		       const char *what)
{
	struct stele_verify_opts opts = {.size = sizeof(opts), .damage = say};
	struct stele_verify_report found = {0};
	struct stele_dataset_info ia, ib;
	uint64_t wrong = 0;

	stele_dataset_info(a, &ia);
	stele_dataset_info(b, &ib);
	is_uint(ia.sample_count, ib.sample_count, "%s: as many samples", what);
	is_uint(1, ib.segment_count, "%s: in one segment", what);
	is_uint(0, ib.deleted_count, "%s: none deleted", what);
	is_uint(ia.field_count, ib.field_count, "%s: fields", what);
	for (uint32_t i = 0; i < ia.field_count; i++)
		wrong += !same_names(a, b, i);
	is_uint(0, wrong, "%s: fields and names are the same", what);
	for (uint64_t i = 0; i < ia.sample_count; i++)
		wrong += !same_sample(a, i, b);
	is_uint(0, wrong, "%s: samples are the same", what);
	is_int(0, stele_verify_image(&b->image, -1, &opts, &found),
	       "%s: sound", what);
}

/* ---- many fields ------------------------------------------------------------ */

static void test_rich(uint64_t count, uint64_t size_max, uint32_t order)
{
	struct stele_build_opts opts = options();
	struct stele_build_report report;
	struct stele_device *dev = memory();
	struct stele_dataset *a, *b;
	struct rich rich;
	char what[64];

	snprintf(what, sizeof(what), "%" PRIu64 " rich samples of %" PRIu64,
		 count, size_max);
	rich_init(&rich, count, size_max);
	opts.order = order;
	is_int(0, stele_build_on(dev, &rich.source, "v1", &opts, &report),
	       "%s: built", what);
	a = open_device(dev);
	b = rebuild(a, &opts, 0, what);
	if (b) {
		check_same(a, b, what);
		ok(!memcmp(a->snapshot.digest, b->snapshot.digest, 32),
		   "%s: the same digest", what);
	}
	stele_dataset_close(b);
	stele_dataset_close(a);
}

/* What was written is what the source said: the first step of the chain. */
static void test_rich_values(void)
{
	struct stele_build_opts opts = options();
	struct stele_source_file file = {0};
	struct stele_build_report report;
	struct stele_device *dev = memory();
	struct stele_source_entry entry = {.place = 17, .size = 5};
	uint64_t ends[RICH_BYTES], scalars[RICH_SCALARS], id, size, bits;
	struct stele_sample sample;
	struct stele_dataset *ds;
	const void *bytes;
	struct rich rich;
	int64_t number;
	char key[64];
	double score;

	rich_init(&rich, 18, 50000);
	if (stele_build_on(dev, &rich.source, "v1", &opts, &report))
		bail("cannot build");
	ds = open_device(dev);
	for (id = 0; id < 18; id++) {
		if (stele_dataset_read(ds, id, &sample))
			bail("cannot read");
		snprintf(key, sizeof(key), "%.*s", (int)sample.key_size,
			 sample.key);
		if (!strcmp(key + 3, "000017"))
			break;
		stele_sample_release(&sample);
	}
	entry.size = sample.size;
	rich.source.ops->open(&rich.source, &entry, &file);
	rich.source.ops->tail(&file, ends, scalars);
	rich.source.ops->forget(&file);
	is_int(0, stele_sample_bytes(&sample, 1, &bytes, &size), "image");
	is_uint(ends[0], size, "image: size");
	is_int(0, stele_sample_bytes(&sample, 3, &bytes, &size), "caption");
	is_uint(ends[1] - ends[0], size, "caption: size");
	ok(bytes == (const char *)sample.data + ends[0], "caption: place");
	is_int(0, stele_sample_bytes(&sample, 4, &bytes, &size), "mask");
	is_uint(sample.size - ends[1], size, "mask: size");
	is_int(0, stele_sample_f64(&sample, 0, &score), "score");
	memcpy(&bits, &score, sizeof(bits));
	is_uint(scalars[0], bits, "score: bits");
	is_int(0, stele_sample_i64(&sample, 2, &number), "label");
	is_int((int64_t)scalars[1], number, "label: value");
	is_int(0, stele_sample_i64(&sample, 5, &number), "when");
	is_int((int64_t)scalars[2], number, "when: value");
	stele_sample_release(&sample);
	stele_dataset_close(ds);
}

/* ---- many segments ---------------------------------------------------------- */

#define SEGMENTS 4u
#define EACH	 300u

static const char *const names[] = {"bird", "cat", "dog", NULL};

struct many {
	struct test_sample *samples[SEGMENTS];
	uint64_t numbers[SEGMENTS][EACH];
};

static struct test_sample *keyed(uint64_t segment, uint64_t seed)
{
	struct test_sample *samples = test_samples(
		EACH, segment == 2 ? 90000 : 2000, seed + segment);

	for (uint64_t i = 0; i < EACH; i++) {
		char *key;

		/* Segment 3 holds newer versions of samples of segment 0. */
		if (asprintf(&key, "%s/%04" PRIu64, names[i % 3],
			     i + (segment == 3 ? 0 : segment) * EACH) < 0)
			bail("no memory");
		samples[i].key = key;
		samples[i].label = (int64_t)(i % 3);
	}
	samples[5].gone = segment == 1;
	return samples;
}

/* Every sample of segment 0 that segment 3 replaces, and others. */
static uint64_t deleted_of(const struct many *m, uint64_t segment, uint64_t *out)
{
	bool gone[EACH] = {false};
	uint64_t count = 0;

	for (uint64_t i = 0; i < EACH; i++)
		gone[m->numbers[segment][i]] =
			segment == 0 ? true : (i % 7 == 5 || i == EACH - 1);
	for (uint64_t i = 0; i < EACH && segment != 3; i++)
		if (gone[i])
			out[count++] = i;
	return count;
}

static struct stele_device *make_many(struct many *m)
{
	static struct test_image t;
	static uint64_t deleted[SEGMENTS][EACH];
	struct test_ref refs[SEGMENTS];

	if (test_image_begin(&t, memory(), SIZE) < 0)
		bail("begin");
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		const struct test_segment in = {
			.samples = m->samples[i] = keyed(i, 77),
			.count = EACH, .labels = true, .names = names,
			.granule = i == 1 ? 512 : 16,
			.boundary = i == 2 ? 65536 : 0,
			.order = i == 1, .numbers = m->numbers[i],
		};

		if (test_image_segment(&t, &in) < 0)
			bail("segment %u", i);
		refs[i] = (struct test_ref){i, deleted[i],
					    deleted_of(m, i, deleted[i])};
	}
	if (test_image_snapshot(&t, "v1", refs, SEGMENTS) < 0 ||
	    test_image_commit(&t) < 0)
		bail("commit");
	return test_image_end(&t);
}

static void release_many(struct many *m)
{
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		for (uint64_t j = 0; j < EACH; j++)
			free((char *)m->samples[i][j].key);
		free(m->samples[i]);
	}
}

static void test_many(void)
{
	static const uint32_t granules[] = {0, 16, 4096};
	struct stele_build_opts opts = options();
	struct stele_dataset *a, *b;
	struct many m;

	a = open_device(make_many(&m));
	is_uint(SEGMENTS, a->snapshot.segment_count, "segments");
	ok(a->snapshot.sample_count < SEGMENTS * EACH - EACH, "deletions");
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
			check_same(a, b, what);
		stele_dataset_close(b);
	}
	stele_dataset_close(a);
	release_many(&m);
}

/* Each live slot is read once, and nothing of the others. */
static void test_reads(void)
{
	const struct stele_build_opts opts = options();
	const struct stele_fault_entry *log;
	const struct stele_segment *large;
	struct stele_device *dev;
	struct stele_dataset *a;
	uint64_t bytes = 0, live = 0, offset, slot_size, begin, end;
	struct many m;
	size_t count;

	if (stele_device_open_fault(make_many(&m), NULL, 0, &dev) < 0)
		bail("no fault device");
	a = open_device(dev);
	stele_fault_log_clear(dev);
	stele_dataset_close(rebuild(a, &opts, 0, "counted"));
	large = &a->snapshot.segments[2];
	begin = large->descriptor.offset + large->descriptor.slots_offset;
	end = begin + large->descriptor.slots_size;
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_READ && log[i].offset < end &&
		    log[i].offset + log[i].size > begin)
			bytes += log[i].size;
	for (uint64_t i = 0; i < large->live_count; i++) {
		const struct stele_segment *segment;
		uint64_t number;

		stele_snapshot_locate(&a->snapshot, large->first_id + i,
				      &segment, &number);
		stele_segment_slot(segment, number, &offset, &slot_size);
		live += (offset + slot_size + 511) / 512 * 512 -
			offset / 512 * 512;
	}
	is_uint(live, bytes, "each live slot is read, once");
	stele_dataset_close(a);
	release_many(&m);
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
	struct stele_build_report report;
	struct stele_device *fresh = memory();
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
	a = open_device(fresh);
	samples = samples_of(&fake, data);
	if (test_image_begin(&t, memory(), SIZE) < 0)
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
	b = open_device(test_image_end(&t));
	ok(memcmp(a->snapshot.digest, b->snapshot.digest, 32) != 0,
	   "three segments have another digest");
	c = rebuild(b, &opts, 0, "three segments");
	if (c) {
		check_same(b, c, "three segments");
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
	struct stele_extent extent;
	struct many m;
	char key[64];

	ds = open_device(make_many(&m));
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
	release_many(&m);
}

static void test_damaged_keys(void)
{
	const struct stele_build_opts opts = options();
	struct stele_section section;
	struct stele_dataset *ds;
	struct many m;

	ds = open_device(make_many(&m));
	stele_descriptor_find_section(&ds->snapshot.segments[1].descriptor,
				      STELE_BLOCK_KEYS, STELE_NO_FIELD,
				      &section);
	flip(ds, ds->snapshot.segments[1].descriptor.offset + section.offset +
			 100);
	stele_dataset_close(rebuild(ds, &opts, -EBADMSG, "damaged keys"));
	stele_dataset_close(ds);
	release_many(&m);
}

/* Reads that fail, one after the other: the build fails, and lets go of all. */
static void test_faults(void)
{
	struct stele_build_opts opts = options();
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.count = 1, .error = EIO};
	struct stele_device *dev;
	struct stele_dataset *ds;
	uint64_t first;
	struct many m;

	if (stele_device_open_fault(make_many(&m), NULL, 0, &dev) < 0)
		bail("no fault device");
	ds = open_device(dev);
	for (uint64_t i = 0; i < 900; i += 97) {
		first = stele_fault_count(dev);
		rule.first = first + i;
		stele_fault_set_rules(dev, &rule, 1);
		stele_dataset_close(rebuild(ds, &opts, -EIO, "a failed read"));
	}
	stele_dataset_close(ds);
	release_many(&m);
}

static int stop_soon(void *user, const struct stele_build_progress *progress)
{
	(void)user;
	return progress->phase == STELE_PHASE_WRITE;
}

static void test_cancel(void)
{
	struct stele_build_opts opts = options();
	struct stele_dataset *ds;
	struct many m;

	ds = open_device(make_many(&m));
	opts.progress = stop_soon;
	stele_dataset_close(rebuild(ds, &opts, -ECANCELED, "asked to stop"));
	stele_dataset_close(ds);
	release_many(&m);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append-versions.c - snapshots on top of each other, against what sources held
 *
 * Each snapshot is compared whole, by key, size, bytes and label, with a model
 * that is nothing but a list of files; and the image is verified.
 */
#include "tests/device.h"
#include "tests/fake.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/verify.h"
#include "lib/read/dataset.h"
#include "lib/write/append.h"
#include "lib/write/build.h"

#define NOW	    1700000000

static struct stele_device *inner; /* in memory, below `dev` */
static struct stele_device *dev;   /* a fault device */
static uint64_t device_size;
static struct stele_append_report report;

static void device_new(uint64_t size)
{
	device_size = size << 20;
	if (stele_device_open_memory(device_size, 4096, &inner) < 0 ||
	    stele_device_open_fault(inner, NULL, 0, &dev) < 0)
		bail("no device");
}

static struct stele_build_opts options(uint32_t flags)
{
	return (struct stele_build_opts){.size = sizeof(struct stele_build_opts),
					 .flags = flags,
					 .jobs = 3,
					 .memory_size = 1 << 20,
					 .time = NOW};
}

static void build(struct fake *fake)
{
	struct stele_build_opts opts = options(0);
	struct stele_build_report built;

	if (stele_build_on(dev, &fake->source, "v1", &opts, &built) < 0)
		bail("cannot build");
}

/* As stele_append() does it, on our device. */
static int append(struct fake *fake, const char *name,
		  const struct stele_build_opts *opts)
{
	struct stele_builder builder;
	struct stele_append a = {0};
	struct stele_edit edit = {0};
	struct stele_image image = {0};
	int ret;

	memset(&report, 0, sizeof(report));
	ret = stele_builder_init(&builder, opts, &report.build);
	if (!ret)
		ret = stele_builder_for_append(&builder);
	if (!ret)
		ret = stele_image_load(dev, &builder.log, &image);
	if (!ret)
		ret = stele_edit_begin(&image, &edit);
	if (!ret)
		ret = stele_append_prepare(&a, &builder, &fake->source, &edit,
					   name, &report);
	if (!ret)
		ret = stele_append_write(&a, name);
	if (!ret)
		ret = stele_edit_commit(&edit, NOW);
	stele_append_release(&a);
	stele_edit_release(&edit);
	image.dev = NULL;
	stele_image_release(&image);
	stele_builder_release(&builder);
	return ret;
}

/* ---- what a snapshot holds ------------------------------------------------------ */

static struct stele_dataset *open_copy(const char *name)
{
	const struct stele_target target = {.snapshot = (char *)name};
	struct stele_device *copy;
	struct stele_dataset *ds;

	if (stele_device_open_memory(device_size, 4096, &copy) < 0)
		bail("no memory");
	memcpy(stele_device_memory(copy), stele_device_memory(inner),
	       device_size);
	return stele_dataset_create(copy, &target, NULL, &ds) ? NULL : ds;
}

static const struct fake_file *file_of(const struct fake *fake, const char *key,
				       size_t size)
{
	for (size_t i = 0; i < fake->count; i++)
		if (strlen(fake->files[i].key) == size &&
		    !memcmp(fake->files[i].key, key, size))
			return &fake->files[i];
	return NULL;
}

static bool label_ok(const struct stele_dataset *ds,
		     const struct stele_sample *sample)
{
	const char *slash = memchr(sample->key, '/', sample->key_size), *name;
	int64_t label;

	if (stele_dataset_field_index(ds, "label") < 0)
		return true;
	if (stele_sample_i64(sample, 1, &label))
		return false;
	if (!slash)
		return label == -1;
	return stele_dataset_class_name(ds, 1, label, &name) == 0 &&
	       strlen(name) == (size_t)(slash - sample->key) &&
	       !memcmp(name, sample->key, strlen(name));
}

static bool sample_ok(struct stele_dataset *ds, const struct fake *model,
		      uint64_t id)
{
	const struct fake_file *file;
	struct stele_sample sample;
	bool good;

	if (stele_dataset_read(ds, id, &sample) < 0)
		return false;
	file = file_of(model, sample.key, sample.key_size);
	good = file && file->size == sample.size && label_ok(ds, &sample);
	for (uint64_t i = 0; good && i < sample.size; i += 1 + i / 64)
		good = ((const uint8_t *)sample.data)[i] ==
		       (fake_byte(file->key, strlen(file->key), i) ^
			file->version);
	stele_sample_release(&sample);
	return good;
}

static void holds(const char *name, const struct fake *model, const char *what)
{
	struct stele_dataset *ds = open_copy(name);
	uint64_t wrong = 0, found = 0, id;

	if (!ok(ds != NULL, "%s: %s opens", what, name))
		return;
	is_uint(model->count, stele_dataset_count(ds), "%s: %s: so many", what,
		name);
	for (uint64_t i = 0; i < stele_dataset_count(ds); i++)
		wrong += !sample_ok(ds, model, i);
	for (size_t i = 0; i < model->count; i++)
		found += stele_dataset_find(ds, model->files[i].key,
					    strlen(model->files[i].key),
					    &id) == 0;
	is_uint(0, wrong, "%s: %s: each is one of the model's", what, name);
	is_uint(model->count, found, "%s: %s: each of these is found", what,
		name);
	stele_dataset_close(ds);
}

static void sound(const char *what)
{
	struct stele_verify_report verified = {0};
	const struct stele_verify_opts opts = {.jobs = 1};
	struct stele_image image;
	int ret = stele_image_load(dev, NULL, &image);

	if (!ret)
		ret = stele_verify_image(&image, -1, &opts, &verified);
	is_int(0, ret, "%s: the image is sound", what);
	image.dev = NULL;
	stele_image_release(&image);
}

static void digest_of(const char *name, uint8_t digest[32])
{
	struct stele_dataset *ds = open_copy(name);

	memset(digest, 0, 32);
	if (ds)
		memcpy(digest, ds->snapshot.digest, 32);
	stele_dataset_close(ds);
}

static uint32_t segments_of(const char *name)
{
	struct stele_dataset *ds = open_copy(name);
	uint32_t count = ds ? ds->snapshot.segment_count : 0;

	stele_dataset_close(ds);
	return count;
}

static void counts(uint64_t added, uint64_t updated, uint64_t deleted,
		   uint64_t unchanged, const char *what)
{
	is_uint(added, report.added, "%s: added", what);
	is_uint(updated, report.updated, "%s: updated", what);
	is_uint(deleted, report.deleted, "%s: deleted", what);
	is_uint(unchanged, report.unchanged, "%s: unchanged", what);
	is_uint(added + updated + unchanged, report.sample_count,
		"%s: and the sum of them", what);
}

/* Bytes written since the log was cleared. */
static uint64_t written(void)
{
	const struct stele_fault_entry *log;
	uint64_t sum = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_WRITE)
			sum += log[i].size;
	return sum;
}

/* And read within a part of the target. */
static uint64_t bytes_read(uint64_t offset, uint64_t size)
{
	const struct stele_fault_entry *log;
	uint64_t sum = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_READ && log[i].offset >= offset &&
		    log[i].offset < offset + size)
			sum += log[i].size;
	return sum;
}

/* ---- tests ---------------------------------------------------------------------- */

static void copy_files(struct fake *to, const struct fake *from)
{
	fake_init(to);
	for (size_t i = 0; i < from->count; i++) {
		struct fake_file *file = fake_add(to, from->files[i].key,
						  from->files[i].size);
		char *key = file->key;

		*file = from->files[i];
		file->key = key;
	}
}

static void remove_file(struct fake *fake, size_t index)
{
	free(fake->files[index].key);
	fake->files[index] = fake->files[--fake->count];
}

/* A file of this size and changed when the base was made, or just before. */
static void set_times(struct fake *fake, int64_t changed)
{
	for (size_t i = 0; i < fake->count; i++)
		fake->files[i].changed = changed;
}

static void test_life(void)
{
	const uint32_t all = STELE_BUILD_UPDATE | STELE_BUILD_DELETE_MISSING;
	struct stele_build_opts opts = options(0);
	struct fake one, two, three, four;
	uint8_t before[32], after[32];

	device_new(24);
	fake_init(&one);
	fake_add_many(&one, "b", 300, 3000);
	fake_add_many(&one, "d", 300, 3000);
	build(&one);
	holds("v1", &one, "built");

	copy_files(&two, &one);
	fake_add_many(&two, "c", 20, 500);
	fake_add(&two, "a/first", 10);
	fake_add(&two, "top", 70000);
	fake_add(&two, "d/zz", 0);
	stele_fault_log_clear(dev);
	is_int(0, append(&two, "v2", &opts), "23 samples are added");
	counts(23, 0, 0, 600, "added");
	ok(written() < 250000, "%ju bytes are written", (uintmax_t)written());
	holds("v2", &two, "added");
	holds("v1", &one, "added");

	digest_of("v2", before);
	stele_fault_log_clear(dev);
	is_int(0, append(&two, "again", &opts), "the same source again");
	counts(0, 0, 0, 623, "again");
	digest_of("again", after);
	ok(!memcmp(before, after, 32), "has the same digest");
	is_uint(segments_of("v2"), segments_of("again"), "and segments");
	ok(written() <= 3 * 4096, "%ju bytes are written",
	   (uintmax_t)written());

	copy_files(&three, &two);
	three.files[5].version = 1;
	three.files[305].version = 2;
	three.files[610].version = 3; /* of the second segment */
	three.files[7].size = three.files[7].size_now = 4000;
	remove_file(&three, 100);
	remove_file(&three, 615);
	is_int(0, append(&three, "kept", &opts), "changes are no matter");
	counts(0, 0, 0, 623, "no flags");
	holds("kept", &two, "no flags");
	opts = options(STELE_BUILD_UPDATE);
	is_int(0, append(&three, "up", &opts), "unless asked for");
	counts(0, 4, 0, 619, "update");
	opts = options(all);
	opts.base = "v2";
	is_int(0, append(&three, "v3", &opts), "and what is missing goes");
	counts(0, 4, 2, 617, "all");
	is_string("v2", report.base, "of the base that was named");
	holds("v3", &three, "all");
	is_uint(3, segments_of("v3"), "three segments");

	/* Everything is replaced: old segments have nothing left. */
	fake_init(&four);
	fake_add_many(&four, "d", 300, 3000);
	for (size_t i = 0; i < four.count; i++)
		four.files[i].version = 9;
	fake_add(&four, "e/new", 5);
	opts = options(all);
	is_int(0, append(&four, "v4", &opts), "nothing stays");
	holds("v4", &four, "nothing stays");
	ok(segments_of("v4") <= 2, "segments without a sample are left out");
	holds("v1", &one, "in the end");
	holds("v2", &two, "in the end");
	holds("v3", &three, "in the end");
	sound("in the end");
	fake_release(&one);
	fake_release(&two);
	fake_release(&three);
	fake_release(&four);
	stele_device_close(dev);
}

static void test_empty(void)
{
	const uint32_t all = STELE_BUILD_UPDATE | STELE_BUILD_DELETE_MISSING;
	struct stele_build_opts opts = options(all);
	struct fake none, some;

	device_new(8);
	fake_init(&none);
	fake_init(&some);
	fake_add_many(&some, "x", 10, 100);
	build(&none);
	is_int(0, append(&none, "none", &opts), "nothing onto nothing");
	holds("none", &none, "nothing");
	is_int(0, append(&some, "some", &opts), "ten onto nothing");
	holds("some", &some, "ten");
	is_int(0, append(&none, "gone", &opts), "nothing onto ten");
	counts(0, 0, 10, 0, "gone");
	holds("gone", &none, "gone");
	is_int(0, append(&some, "back", &opts), "and ten again");
	holds("back", &some, "back");
	sound("empty");
	is_int(-EEXIST, append(&some, "back", &opts), "a name that is taken");
	opts.base = "nowhere";
	is_int(-ENOENT, append(&some, "v9", &opts), "a base that is not there");
	fake_release(&none);
	fake_release(&some);
	stele_device_close(dev);
}

/* What --quick opens, and what it may and may not miss. */
static void test_quick(void)
{
	struct stele_build_opts opts =
		options(STELE_BUILD_UPDATE | STELE_BUILD_QUICK);
	struct fake fake;

	device_new(8);
	fake_init(&fake);
	fake_add_many(&fake, "q", 200, 900);
	set_times(&fake, NOW - 1);
	build(&fake);
	fake.opened_total = 0;
	is_int(0, append(&fake, "v2", &opts), "quick, nothing changed");
	is_uint(0, fake.opened_total, "no file is opened");
	opts.flags = STELE_BUILD_UPDATE;
	is_int(0, append(&fake, "v3", &opts), "the same, not quick");
	is_uint(200, fake.opened_total, "every file is opened");
	counts(0, 0, 0, 200, "not quick");

	opts.flags |= STELE_BUILD_QUICK;
	fake.files[3].version = 1;
	fake.files[3].changed = NOW;
	fake.files[4].version = 1;
	fake.files[4].changed = INT64_MAX;
	fake.files[5].changed = NOW + 1;
	fake.files[6].size = fake.files[6].size_now = 5000;
	fake.opened_total = 0;
	is_int(0, append(&fake, "v4", &opts), "quick, some changed");
	counts(0, 3, 0, 197, "quick");
	is_uint(3 + 3, fake.opened_total,
		"three are hashed, and what changed is written");
	holds("v4", &fake, "quick");
	sound("quick");
	fake_release(&fake);
	stele_device_close(dev);
}

/* Files that cannot be read any more: the sample that is there stays. */
static void test_lost(void)
{
	struct stele_build_opts opts = options(STELE_BUILD_UPDATE);
	struct fake fake, model;

	device_new(8);
	fake_init(&fake);
	fake_add_many(&fake, "q", 50, 900);
	build(&fake);
	copy_files(&model, &fake);
	fake.files[7].open_error = -EACCES; /* of the same size: when hashed */
	fake.files[8].size_now--;
	is_int(-EACCES, append(&fake, "v2", &opts) == -EACCES ? -EACCES :
	       append(&fake, "v2", &opts) == -ETXTBSY ? -EACCES : 0,
	       "a file that cannot be hashed");
	fake.files[9].size = fake.files[9].size_now = 3000; /* when written */
	fake.files[9].open_error = -ENOENT;
	fake_add(&fake, "q/new", 100)->open_error = -ENOENT;
	fake_add(&fake, "q/newer", 100);
	fake_add(&model, "q/newer", 100);
	opts.flags |= STELE_BUILD_SKIP_CHANGED;
	is_int(0, append(&fake, "v2", &opts), "or is left out");
	counts(1, 0, 0, 50, "left out");
	is_uint(4, report.build.skipped[STELE_SKIP_UNREADABLE] +
			   report.build.skipped[STELE_SKIP_CHANGED] +
			   report.build.skipped[STELE_SKIP_VANISHED],
		"each is told");
	holds("v2", &model, "left out");
	/* Nothing of the new segment lives: it is as if it had not been. */
	fake.files[51].size = 0;
	remove_file(&fake, 51);
	is_int(0, append(&fake, "v3", &opts), "all that is new goes away");
	counts(0, 0, 0, 51, "all goes");
	is_uint(segments_of("v2"), segments_of("v3"), "no segment is left");
	holds("v3", &model, "all goes");
	sound("left out");
	fake_release(&fake);
	fake_release(&model);
	stele_device_close(dev);
}

/* Few keys against many, and all of them: what is read. */
static void test_reads(void)
{
	struct stele_build_opts opts = options(STELE_BUILD_UPDATE);
	struct fake many, few;
	uint64_t read, offset;
	struct stele_dataset *ds;
	struct stele_section keys;

	device_new(8);
	fake_init(&many);
	fake_add_many(&many, "k", 30000, 20);
	build(&many);
	ds = open_copy("v1");
	if (!ds || stele_descriptor_find_section(
			   &ds->snapshot.segments[0].descriptor,
			   STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys) < 0)
		bail("no keys");
	offset = ds->snapshot.segments[0].descriptor.offset + keys.offset;
	stele_dataset_close(ds);
	fake_init(&few);
	fake_add(&few, "k/000100", many.files[100].size);
	fake_add(&few, "k/029000", many.files[29000].size);
	fake_add(&few, "k/x", 1);
	stele_fault_log_clear(dev);
	is_int(0, append(&few, "few", &opts), "three against 30,000");
	counts(1, 0, 0, 30000, "few");
	read = bytes_read(offset, keys.size) / 4096;
	ok(read < 30, "%ju of %ju pages of keys are read", (uintmax_t)read,
	   (uintmax_t)keys.size / 4096);
	read = bytes_read(0, UINT64_MAX / 2);
	ok(read < 400000, "%ju bytes in all", (uintmax_t)read);
	opts.flags = 0;
	opts.base = "v1";
	stele_fault_log_clear(dev);
	is_int(0, append(&many, "all", &opts), "all against all");
	read = bytes_read(offset, keys.size);
	ok(read >= keys.size && read < keys.size + 10 * 4096,
	   "each page of keys is read once, and few to find the first");
	fake_release(&many);
	fake_release(&few);
	stele_device_close(dev);
}

/* Every operation fails in turn: the old state is there, and sound. */
static void test_faults(enum stele_op op, const char *what)
{
	struct stele_build_opts opts =
		options(STELE_BUILD_UPDATE | STELE_BUILD_DELETE_MISSING);
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1u << op, .error = EIO,
		.count = 1};
	struct fake old, new;
	unsigned int n, bad = 0, whole = 0, failed = 0;
	uint64_t count;

	fake_init(&old);
	fake_add_many(&old, "f", 60, 900);
	copy_files(&new, &old);
	new.files[3].version = 1;
	remove_file(&new, 30);
	fake_add_many(&new, "g", 10, 900);
	device_new(4);
	build(&old);
	count = stele_fault_count(dev);
	append(&new, "v2", &opts);
	count = stele_fault_count(dev) - count;
	stele_device_close(dev);
	for (n = 0; n < count; n++) {
		struct stele_dataset *v1, *v2;
		bool v2_there;
		int ret;

		device_new(4);
		build(&old);
		rule.first = stele_fault_count(dev) + n;
		stele_fault_set_rules(dev, &rule, 1);
		ret = append(&new, "v2", &opts);
		stele_fault_set_rules(dev, NULL, 0);
		failed += ret != 0;
		v1 = open_copy("v1");
		v2 = open_copy("v2");
		whole += ret && v2;
		bad += !v1 || stele_dataset_count(v1) != 60 ||
		       (v2 && stele_dataset_count(v2) != 69) || (!ret && !v2);
		v2_there = v2 != NULL;
		stele_dataset_close(v1);
		stele_dataset_close(v2);
		/* The next one finds nothing in its way. */
		if (ret && !v2_there)
			bad += append(&new, "v2", &opts) != 0;
		stele_device_close(dev);
	}
	ok(failed > 2, "%s: %u of %u fail, %u of these after the "
	   "fact", what, failed, n, whole);
	is_uint(0, bad, "%s: old or new, nothing between", what);
	fake_release(&old);
	fake_release(&new);
}

int main(void)
{
	plan_lazy();
	test_life();
	test_empty();
	test_quick();
	test_lost();
	test_reads();
	test_faults(STELE_OP_WRITE, "writes");
	test_faults(STELE_OP_READ, "reads");
	test_faults(STELE_OP_FLUSH, "flushes");
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-info.c - open by name and digest; counts, fields, names, keys, places
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

static struct stele_device *two_snapshots(void)
{
	static const char *const names[] = {"cat", "dog", NULL};
	static const struct test_sample samples[] = {
		{.key = "a", .data = "1", .size = 1, .label = 0},
		{.key = "bb", .data = "22", .size = 2, .label = 1},
		{.key = "c", .data = "333", .size = 3, .label = -1},
	};
	const struct test_segment segment = {
		.samples = samples, .count = 3, .labels = true, .names = names};
	const uint64_t deleted[] = {1};
	const struct test_ref ref = {0, deleted, 1};
	static struct test_image image;
	struct stele_device *dev;

	if (stele_device_open_memory(8u << 20, 512, &dev) ||
	    test_image_begin(&image, dev, 8u << 20) ||
	    test_image_segment(&image, &segment) ||
	    test_image_snapshot(&image, "v1", NULL, 0) ||
	    test_image_snapshot(&image, "v2", &ref, 1) ||
	    test_image_commit(&image))
		bail("cannot build");
	return test_image_end(&image);
}

static int open_as(const struct stele_target *target,
		   const struct stele_open_opts *opts,
		   struct stele_dataset **ds)
{
	return stele_dataset_create(two_snapshots(), target, opts, ds);
}

static void test_open(void)
{
	struct stele_target target = {0};
	struct stele_dataset *ds;
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct {
		struct stele_open_opts known;
		uint64_t unknown;
	} newer = {.known.size = sizeof(newer), .unknown = 1};

	is_int(-EINVAL, open_as(&target, NULL, &ds), "several, none named");
	target.snapshot = "v3";
	is_int(-ENOENT, open_as(&target, NULL, &ds), "no such name");
	target.snapshot = "v2";
	is_int(-EINVAL,
	       open_as(&target,
		       &STELE_OPTS(stele_open_opts, .verify = 4), &ds),
	       "no such verification");
	is_int(-EINVAL,
	       open_as(&target,
		       &STELE_OPTS(stele_open_opts, .reserved = 1), &ds),
	       "reserved option");
	is_int(-E2BIG, open_as(&target, &newer.known, &ds), "newer option");
	is_int(-EINVAL, open_as(&target, &(struct stele_open_opts){0}, &ds),
	       "options without size");
	is_int(0, open_as(&target, NULL, &ds), "by name");
	is_uint(2, stele_dataset_count(ds), "its samples");
	stele_dataset_info(ds, &info);
	stele_dataset_close(ds);

	target.snapshot = NULL;
	target.pinned = true;
	memcpy(target.digest, info.digest, sizeof(info.digest));
	is_int(0, open_as(&target, NULL, &ds), "by digest");
	is_uint(2, stele_dataset_count(ds), "the same one");
	stele_dataset_close(ds);
	target.digest[31] ^= 1;
	is_int(-ENOENT, open_as(&target, NULL, &ds), "by another digest");
	stele_dataset_close(NULL);
}

static void test_open_nothing(void)
{
	struct stele_target target = {0};
	struct stele_device *dev;
	struct stele_dataset *ds;

	dev = test_memory(8u << 20, 512, 0);
	is_int(-EMEDIUMTYPE, stele_dataset_create(dev, &target, NULL, &ds),
	       "no image there");
}

static void test_info(void)
{
	struct stele_target target = {.snapshot = "v2"};
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;

	if (open_as(&target, NULL, &ds))
		bail("cannot open");
	memset(&info, 0xff, sizeof(info));
	info.size = sizeof(info);
	stele_dataset_info(ds, &info);
	is_string("v2", info.snapshot, "snapshot");
	is_string("test", info.label, "label");
	is_string("memory", info.backend, "backend");
	is_int(0xa0, info.uuid[0], "uuid");
	is_uint(2, info.sample_count, "live");
	is_uint(1, info.deleted_count, "deleted");
	is_uint(4, info.payload_size, "payload of the live ones");
	is_uint(1, info.segment_count, "segments");
	is_uint(16, info.granule, "granule");
	is_uint(2, info.field_count, "fields");
	is_uint(512, info.logical_block, "logical block");
	is_uint(STELE_FILE_TRANSFER_SIZE_MAX, info.transfer_max, "transfer");
	is_uint(8u << 20, info.image_size, "image size");
	is_uint(info.run_count * 24, info.table_size, "run table");
	/* Records: payload 6, keys 4, labels 24, trailers 48. */
	is_uint(info.slots_size - 82, info.padding_size, "padding");
	is_uint(32, info.slot_size_max, "largest slot");
	ok(info.used_size > 2u << 20 && info.used_size < info.image_size, "used");
	stele_dataset_close(ds);
}

static void is_type(const char *text, const struct stele_field *field)
{
	char got[STELE_FIELD_TYPE_SIZE];

	is_string(text, stele_field_type(field, got), "type %s", text);
}

static void test_types(void)
{
	struct stele_field field = {.type = STELE_TYPE_TENSOR, .dtype = STELE_DTYPE_C128};

	is_type("c128[]", &field);
	field.rank = STELE_RANK_MAX;
	memset(field.dims, 0xff, sizeof(field.dims));
	field.dims[0] = 0;
	is_type("c128[?,4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,"
		"4294967295]", &field);
	field.rank = UINT32_MAX;
	field.dtype = STELE_DTYPE_C128 + 1;
	for (int i = 1; i < STELE_RANK_MAX; i++)
		field.dims[i] = 1;
	is_type("unknown[?,1,1,1,1,1,1,1]", &field);
	field.dtype = 0;
	field.rank = 1;
	is_type("unknown[?]", &field);
	is_type("unknown", &(struct stele_field){0});
	is_type("bytes", &(struct stele_field){.type = STELE_TYPE_BYTES});
	is_type("utf8", &(struct stele_field){.type = STELE_TYPE_UTF8});
	is_type("i64", &(struct stele_field){.type = STELE_TYPE_I64});
	is_type("f64", &(struct stele_field){.type = STELE_TYPE_F64});
	is_type("unknown", &(struct stele_field){.type = STELE_TYPE_F64 + 1});
}

static void test_fields(void)
{
	struct stele_target target = {.snapshot = "v1"};
	struct stele_field field = {.size = sizeof(field)};
	struct stele_dataset *ds;
	const char *name = "";

	if (open_as(&target, NULL, &ds))
		bail("cannot open");
	is_int(0, stele_dataset_field(ds, 0, &field), "first field");
	is_string("data", field.name, "its name");
	is_int(STELE_TYPE_BYTES, field.type, "its type");
	is_uint(0, field.name_count, "no class names");
	is_int(0, stele_dataset_field(ds, 1, &field), "second field");
	is_string("label", field.name, "its name");
	is_int(STELE_TYPE_I64, field.type, "its type");
	is_uint(2, field.name_count, "class names");
	is_int(-ERANGE, stele_dataset_field(ds, 2, &field), "third field");
	is_int(1, stele_dataset_field_index(ds, "label"), "by name");
	is_int(-ENOENT, stele_dataset_field_index(ds, "labe"), "by no name");
	is_int(0, stele_dataset_class_name(ds, 1, 1, &name), "class of 1");
	is_string("dog", name, "it is");
	is_int(-ENOENT, stele_dataset_class_name(ds, 1, 2, &name), "of 2");
	is_int(-ENOENT, stele_dataset_class_name(ds, 1, -1, &name), "of -1");
	is_int(-ENOENT, stele_dataset_class_name(ds, 0, 0, &name),
	       "of a field without");
	is_int(-ERANGE, stele_dataset_class_name(ds, 2, 0, &name),
	       "of no field");
	stele_dataset_close(ds);
}

/* Every key to its id, every deleted one to none, over several segments. */
static void test_find(void)
{
	struct test_plan plan = {.segments = 3,
				 .samples = 400,
				 .size_max = 100,
				 .delete_every = 4};
	char long_key[STELE_KEY_SIZE_MAX + 1] = "x";
	struct test_dataset t;
	uint64_t id, wrong = 0, found = 0;

	test_dataset_open(&t, &plan);
	for (uint64_t i = 0; i < t.count; i++) {
		const char *key = t.live[i].sample->key;

		wrong += stele_dataset_lookup(t.ds, key, strlen(key), &id) ||
			 id != i;
	}
	is_uint(0, wrong, "every live key is found");
	for (uint64_t i = 0; i < plan.samples; i++) {
		const char *key = t.samples[1][i].key;

		found += !stele_dataset_lookup(t.ds, key, strlen(key), &id);
	}
	is_uint(plan.samples - plan.samples / 4, found, "deleted ones are not");
	is_int(-ENOENT, stele_dataset_lookup(t.ds, "dir", 3, &id), "a beginning");
	is_int(-EINVAL, stele_dataset_lookup(t.ds, "dir", 0, &id), "no key");
	is_int(-ENOENT,
	       stele_dataset_lookup(t.ds, long_key, sizeof(long_key) - 1, &id),
	       "a long key");
	is_int(-EINVAL,
	       stele_dataset_lookup(t.ds, long_key, sizeof(long_key), &id),
	       "too long a key");
	test_dataset_close(&t);
}

static void test_locate(void)
{
	struct test_plan plan = {.segments = 2,
				 .samples = 100,
				 .size_max = 5000,
				 .delete_every = 5,
				 .granule = 512};
	struct stele_extent extent = {.size = sizeof(extent)};
	struct test_dataset t;
	struct test_read read;
	uint64_t wrong = 0;
	size_t issued;

	test_dataset_open(&t, &plan);
	for (uint64_t id = 0; id < t.count; id++) {
		const struct test_live *live = &t.live[id];

		test_reads_of(&t, id, &read, 1);
		wrong += stele_dataset_locate(t.ds, id, &extent) ||
			 extent.offset != read.offset ||
			 extent.slot_size != read.size ||
			 extent.number != live->number ||
			 extent.segment_id != 0x5e60001 + live->segment;
	}
	is_uint(0, wrong, "every place is the predicted one");
	is_int(-ERANGE, stele_dataset_locate(t.ds, t.count, &extent), "no more");
	stele_fault_log(t.dev, &issued);
	is_uint(0, issued, "without a single read");
	test_dataset_close(&t);
}

/* More than a read's worth of blocks, over a boundary of segments, less deleted ones. */
static void test_column(void)
{
	struct test_plan plan = {.segments = 2,
				 .samples = 40000,
				 .size_max = 20,
				 .delete_every = 7};
	const uint64_t spans[][2] = {{0, 1}, {505, 3}, {1000, 50000}, {2, 0}};
	struct test_dataset t;
	int64_t *values;
	size_t issued;

	test_dataset_open(&t, &plan);
	values = calloc(t.count + 1, sizeof(*values));
	is_int(0, stele_dataset_column(t.ds, 1, 0, t.count, values), "column: all");
	stele_fault_log(t.dev, &issued);
	is_uint(6, issued, "column: few reads");
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		const uint64_t first = spans[i][0], count = spans[i][1];
		uint64_t wrong = 0;

		memset(values, 0xa5, t.count * sizeof(*values));
		wrong += stele_dataset_column(t.ds, 1, first, count, values) != 0;
		for (uint64_t j = 0; j < count; j++)
			wrong += values[j] != t.live[first + j].sample->label;
		wrong += values[count] != (int64_t)0xa5a5a5a5a5a5a5a5;
		is_uint(0, wrong, "column: %zu. span", i);
	}
	is_int(0, stele_dataset_column(t.ds, 1, 0, 0, NULL), "column: none");
	is_int(-ERANGE, stele_dataset_column(t.ds, 1, 1, t.count, values),
	       "column: too many");
	is_int(-ERANGE, stele_dataset_column(t.ds, 2, 0, 1, values),
	       "column: no such field");
	is_int(-EINVAL, stele_dataset_column(t.ds, 0, 0, 1, values),
	       "column: bytes");
	free(values);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	test_open();
	test_open_nothing();
	test_info();
	test_fields();
	test_types();
	test_find();
	test_locate();
	test_column();
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-program.c - an image of what a program has, through every verb and every reader
 *
 * Built from memory with a field of each type, appended with other class names, updated,
 * thinned out, compacted, copied and verified, then read by one-shot reads, reader, view
 * and loader: samples are what the program said, classes go by their names.
 */
#include "tests/fixture/rich.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 120u
#define MORE  40u

static char image[512], other[512];

static const char *at(const char *path, const char *name)
{
	static char text[4][600];
	static unsigned int turn;

	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "%s@%s", path, name);
	return text[turn];
}

static struct stele_dataset *open_dataset(const char *target)
{
	struct stele_dataset *ds;

	if (stele_dataset_open(target, NULL, &ds) < 0)
		bail("cannot open: %s", stele_errmsg());
	return ds;
}

/* ---- samples ------------------------------------------------------------------ */

/* 0: all of it is what the program said. */
static unsigned int differs(const struct stele_sample *sample, uint32_t version)
{
	static const uint32_t parts[] = {RICH_IMAGE, RICH_CAPTION, RICH_MASK,
					 RICH_BOX};
	static uint8_t bytes[40000];
	struct rich rich = {.size_max = 20000, .version = version};
	union stele_value values[RICH_FIELDS];
	uint64_t dims[STELE_RANK_MAX], begin = 0, size = 0, number;
	unsigned int wrong = sample->status != 0;
	const char *name = NULL, *wanted;
	const void *data = "";
	int64_t label = -2, when = 0;
	double score = 0;
	char key[64];

	if (wrong)
		return wrong;
	snprintf(key, sizeof(key), "%.*s", (int)sample->key_size, sample->key);
	number = rich_sample(key);
	rich_values(&rich, number, values);
	rich_bytes(&rich, number, 0, bytes, sample->size);
	for (unsigned int i = 0; i < 4; i++) {
		wrong += stele_sample_bytes(sample, parts[i], &data, &size) ||
			 size != values[parts[i]].size ||
			 memcmp(data, bytes + begin, size);
		begin += size;
	}
	wrong += stele_sample_shape(sample, RICH_MASK, dims) != 2 ||
		 dims[0] * RICH_ROW != values[RICH_MASK].size || dims[1] != 3;
	wrong += stele_sample_shape(sample, RICH_BOX, dims) != 2 ||
		 dims[0] != 2 || dims[1] != 2;
	wrong += stele_sample_f64(sample, RICH_SCORE, &score) ||
		 memcmp(&score, &values[RICH_SCORE].f64, sizeof(score));
	wrong += stele_sample_i64(sample, RICH_WHEN, &when) ||
		 when != values[RICH_WHEN].i64;
	wrong += stele_sample_i64(sample, RICH_LABEL, &label) != 0;
	wanted = rich_class(number);
	if (wanted)
		wrong += stele_dataset_class_name(sample->ds, RICH_LABEL, label,
						  &name) ||
			 strcmp(name, wanted);
	else
		wrong += label != -1;
	return wrong;
}

static void check_read(struct stele_dataset *ds, uint32_t version,
		       const char *what)
{
	unsigned int wrong = 0;

	for (uint64_t i = 0; i < stele_dataset_count(ds); i++) {
		struct stele_sample sample;

		wrong += stele_dataset_read(ds, i, &sample) != 0;
		wrong += differs(&sample, version);
		stele_sample_release(&sample);
	}
	is_uint(0, wrong, "%s: one by one", what);
}

static void check_reader(struct stele_dataset *ds, uint32_t version,
			 const char *what)
{
	const uint64_t count = stele_dataset_count(ds);
	struct stele_reader *reader;
	unsigned int wrong = 0;
	uint64_t next = 0, done = 0;

	if (stele_reader_open(ds, NULL, &reader) < 0)
		bail("cannot open a reader");
	while (done < count) {
		struct stele_sample samples[16];
		int got;

		while (next < count &&
		       stele_reader_submit(reader, &next, NULL, 1) == 1)
			next++;
		got = stele_reader_collect(reader, samples, 16, 1);
		if (got < 0)
			bail("cannot collect: %s", stele_errmsg());
		for (int i = 0; i < got; i++) {
			wrong += differs(&samples[i], version);
			stele_reader_release(reader, &samples[i]);
		}
		done += (uint64_t)got;
	}
	stele_reader_close(reader);
	is_uint(0, wrong, "%s: by a reader", what);
}

static void check_loader(struct stele_dataset *ds, uint32_t version,
			 const char *what)
{
	const struct stele_loader_source source = {.ds = ds};
	const struct stele_loader_opts opts = {.size = sizeof(opts), .seed = 3,
					       .batch_size = 7};
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};
	unsigned int wrong = 0;
	uint64_t seen = 0;

	if (stele_loader_open(&source, 1, &opts, &loader) < 0)
		bail("cannot open a loader: %s", stele_errmsg());
	while (stele_loader_next(loader, &batch) > 0) {
		for (uint32_t i = 0; i < batch.count; i++)
			wrong += differs(&batch.samples[i], version);
		seen += batch.count - batch.padded;
		stele_loader_release(loader, &batch);
	}
	stele_loader_close(loader);
	is_uint(0, wrong, "%s: by a loader", what);
	is_uint(stele_dataset_count(ds), seen, "%s: all of them", what);
}

static void check_view(struct stele_dataset *ds, uint32_t version,
		       const char *what)
{
	struct stele_view *view;
	unsigned int wrong = 0;

	if (stele_view_open(ds, NULL, &view) < 0)
		bail("cannot open a view: %s", stele_errmsg());
	for (uint64_t i = 0; i < stele_dataset_count(ds); i++) {
		struct stele_sample sample;

		wrong += stele_view_sample(view, i, &sample) != 0;
		wrong += differs(&sample, version);
	}
	stele_view_close(view);
	is_uint(0, wrong, "%s: by a view", what);
}

static void check_fields(const struct stele_dataset *ds, uint32_t classes,
			 const char *what)
{
	struct stele_field field = {.size = sizeof(field)};
	struct {
		size_t size;
		char name[64];
		uint32_t after;
	} old = {.size = offsetof(struct stele_field, type), .after = 77};

	is_int(0, stele_dataset_field(ds, RICH_MASK, &field), "%s: mask", what);
	ok(field.type == STELE_TYPE_TENSOR && field.dtype == STELE_DTYPE_I16 &&
		   field.rank == 2 && !field.dims[0] && field.dims[1] == 3,
	   "%s: is i16[?,3]", what);
	is_int(0, stele_dataset_field(ds, RICH_LABEL, &field), "%s: label", what);
	is_uint(classes, field.name_count, "%s: classes", what);
	for (uint32_t i = 0; i < field.name_count; i++) {
		const char *name = "";

		stele_dataset_class_name(ds, RICH_LABEL, i, &name);
		is_string(name, field.names[i], "%s: name %u", what, i);
	}
	is_int(0, stele_dataset_field(ds, 0, (struct stele_field *)&old),
	       "%s: an older, shorter struct", what);
	ok(!strcmp(old.name, "score") && old.after == 77,
	   "%s: gets what it has room for", what);
	field.size = 0;
	is_int(-EINVAL, stele_dataset_field(ds, 0, &field), "%s: no size", what);
}

static void check(const char *target, uint64_t count, uint32_t version,
		  uint32_t classes)
{
	struct stele_dataset *ds = open_dataset(target);
	const char *what = strrchr(target, '@') + 1;

	is_uint(count, stele_dataset_count(ds), "%s: count", what);
	check_fields(ds, classes, what);
	check_read(ds, version, what);
	check_reader(ds, version, what);
	check_view(ds, version, what);
	check_loader(ds, version, what);
	stele_dataset_close(ds);
}

/* ---- verbs -------------------------------------------------------------------------- */

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s: %s", damage->what, damage->detail);
}

static void verify(const char *target)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts),
					       .damage = say};
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *handle;

	is_int(0, stele_verify(target, &opts, NULL), "sound");
	if (stele_image_open(target, NULL, &handle) < 0)
		bail("cannot open the image");
	stele_image_info(handle, &info);
	ok(info.feature_incompat & 4, "tensors have their feature");
	stele_image_close(handle);
}

static void build(void)
{
	const uint8_t uuid[STELE_UUID_SIZE] = {1, 2, 3};
	const struct stele_build_opts opts = {.size = sizeof(opts),
					      .uuid = uuid, .jobs = 5};
	struct stele_build_report report = {.size = sizeof(report)};
	struct rich rich;

	rich_init(&rich, COUNT, 20000);
	is_int(0, stele_build_from(&rich.source.ops, &rich, at(image, "v1"),
				   &opts, &report), "built");
	is_uint(COUNT, report.sample_count, "all samples");
	is_uint(4, report.class_count, "classes are told");
	check(at(image, "v1"), COUNT, 0, 4);
}

static void append(const char *name, uint64_t first, uint64_t count,
		   uint32_t version, uint32_t flags,
		   struct stele_build_report *report)
{
	const struct stele_append_opts opts = {.size = sizeof(opts),
					       .flags = flags};
	struct rich rich;

	rich_init(&rich, count, 20000);
	rich.first = first;
	rich.version = version;
	rich.renamed = true;
	is_int(0, stele_append_from(&rich.source.ops, &rich, at(image, name),
				    &opts, report), "%s: appended", name);
}

static void test_append(void)
{
	struct stele_build_report report = {.size = sizeof(report)};

	append("dry", COUNT, MORE, 0, STELE_DRY_RUN, &report);
	is_uint(MORE, report.added, "dry run: would be added");
	append("v2", COUNT, MORE, 0, 0, &report);
	is_uint(MORE, report.added, "v2: added");
	check(at(image, "v2"), COUNT + MORE, 0, 6);
	append("same", 0, COUNT + MORE, 0, STELE_APPEND_UPDATE, &report);
	is_uint(COUNT + MORE, report.unchanged,
		"other values for the same classes change nothing");
	append("v3", 0, COUNT + MORE, 1, STELE_APPEND_UPDATE, &report);
	/* Of each seventh one the score is special, and as it was. */
	is_uint(COUNT + MORE - (COUNT + MORE + 6) / 7, report.updated,
		"v3: whose score is another one is updated");
	check(at(image, "v3"), COUNT + MORE, 1, 6);
	verify(image);
}

static void test_others(void)
{
	const struct stele_txn_opts change = {.size = sizeof(change)};
	const struct stele_compact_opts opts = {.size = sizeof(opts)};
	struct stele_dataset *ds = open_dataset(at(image, "v3"));
	struct stele_key_ref keys[10];
	struct stele_diff_report diff = {.size = sizeof(diff)};
	struct stele_sample samples[10];

	for (uint64_t i = 0; i < 10; i++) {
		if (stele_dataset_read(ds, i * 3, &samples[i]) < 0)
			bail("cannot read");
		keys[i] = (struct stele_key_ref){samples[i].key,
						 samples[i].key_size};
	}
	is_int(0, stele_snapshot_create(at(image, "v4"), "v3",
					&STELE_OPTS(stele_deletions, .keys = keys,
						    .key_count = 10),
					NULL, &change, NULL), "v4: less ten");
	for (uint64_t i = 0; i < 10; i++)
		stele_sample_release(&samples[i]);
	stele_dataset_close(ds);
	check(at(image, "v4"), COUNT + MORE - 10, 1, 6);
	is_int(0, stele_compact(at(image, "v4"), "packed", &opts, NULL),
	       "packed: compacted");
	check(at(image, "packed"), COUNT + MORE - 10, 1, 6);
	is_int(0, stele_diff(at(image, "v4"), at(image, "packed"), NULL, NULL,
			     NULL, &diff), "compared");
	is_uint(COUNT + MORE - 10, diff.same, "packed: the same samples");
	is_int(0, stele_copy(at(image, "v4"), at(other, "v4"), NULL, NULL),
	       "v4: copied");
	is_int(0, stele_copy(at(image, "packed"), at(other, "packed"), NULL,
			     NULL), "packed: copied");
	check(at(other, "v4"), COUNT + MORE - 10, 1, 6);
	check(at(other, "packed"), COUNT + MORE - 10, 1, 6);
	verify(image);
	verify(other);
}

/* ---- sources of other forms ------------------------------------------------------- */

static int plain_scan(void *user, const struct stele_source_sink *sink)
{
	int ret = 0;

	(void)user;
	for (uint64_t i = 0; i < 300 && !ret; i++) {
		const struct stele_source_entry entry = {
			.size = sizeof(entry), .key = (const char *)&"ABC"[i % 3],
			.key_size = 1, .data_size = 8, .place = i + 1};

		ret = sink->entry(sink->user, &entry);
	}
	return ret;
}

static int64_t plain_read(void *reader, const struct stele_source_entry *entry,
			  uint64_t offset, void *data, size_t size)
{
	(void)reader;
	size = size > 8 - offset ? 8 - offset : size;
	memcpy(data, (const char *)&entry->place + offset, size);
	return (int64_t)size;
}

/* Neither schema nor readers; places; keys that come again and again. */
static void test_plain(void)
{
	struct stele_source_ops ops = {.size = sizeof(ops),
				       .flags = STELE_SOURCE_REPEATS,
				       .scan = plain_scan, .read = plain_read};
	struct stele_field field = {.size = sizeof(field)};
	struct stele_sample sample;
	struct stele_dataset *ds;
	char path[512];
	uint64_t place;

	snprintf(path, sizeof(path), "%s/plain", test_tmpdir());
	is_int(0, stele_build_from(&ops, NULL, path, NULL, NULL), "plain");
	ds = open_dataset(path);
	is_uint(3, stele_dataset_count(ds), "a key that repeats is one sample");
	stele_dataset_field(ds, 0, &field);
	is_string("data", field.name, "its field is data");
	for (uint64_t i = 0; i < 3; i++) {
		if (stele_dataset_read(ds, i, &sample) < 0)
			bail("cannot read");
		memcpy(&place, sample.data, sizeof(place));
		is_int(sample.key[0] - 'A', (int)((place - 1) % 3),
		       "the place of '%c' came back", sample.key[0]);
		stele_sample_release(&sample);
	}
	stele_dataset_close(ds);
}

#define MOVED 1000u /* by so much is the place of what replaces another */

static int plain_replace(void *user, const struct stele_source_entry *earlier,
			 struct stele_source_entry *later)
{
	const uint64_t *most = user;

	if (earlier->place % MOVED >= later->place || later->place > *most)
		return 0;
	later->place += MOVED;
	later->data_size = 4;
	return 1;
}

static int64_t replaced_read(void *reader, const struct stele_source_entry *entry,
			     uint64_t offset, void *data, size_t size)
{
	const uint64_t left = entry->data_size - offset;

	return plain_read(reader, entry, offset, data, size < left ? size : (size_t)left);
}

/* Later ones stand for earlier ones. */
static void test_replace(void)
{
	uint64_t most = UINT64_MAX, place = 0;
	struct stele_source_ops ops = {.size = sizeof(ops), .scan = plain_scan,
				       .read = replaced_read, .replace = plain_replace};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_sample sample;
	struct stele_dataset *ds;
	char path[512];

	snprintf(path, sizeof(path), "%s/replaced", test_tmpdir());
	ops.flags = STELE_SOURCE_REPEATS;
	is_int(-EINVAL, stele_build_from(&ops, &most, path, NULL, NULL),
	       "replace: not with REPEATS");
	ops.flags = 0;
	is_int(0, stele_build_from(&ops, &most, path, NULL, &report), "replace");
	is_uint(3, report.sample_count, "replace: samples");
	is_uint(12, report.payload_size, "replace: their bytes");
	is_int(0, stele_verify(path, NULL, NULL), "replace: sound");
	ds = open_dataset(path);
	for (uint64_t i = 0; i < 3; i++) {
		if (stele_dataset_read(ds, i, &sample) < 0)
			bail("cannot read");
		memcpy(&place, sample.data, sample.size < 8 ? sample.size : 8);
		is_uint(MOVED + 298 + (uint64_t)(sample.key[0] - 'A'), place,
			"replace: the last one, where it was moved to");
		stele_sample_release(&sample);
	}
	stele_dataset_close(ds);
	most = 4;
	unlink(path);
	is_int(-EEXIST, stele_build_from(&ops, &most, path, NULL, NULL), "replace: refused");
}

static int wide_schema(void *user, const struct stele_schema *base,
		       struct stele_schema *out)
{
	static struct stele_field fields[STELE_FIELDS_MAX];

	(void)user;
	(void)base;
	for (uint32_t i = 0; i < STELE_FIELDS_MAX; i++) {
		fields[i] = (struct stele_field){
			.size = sizeof(fields[i]),
			.type = i % 3 ? i % 3 == 1 ? STELE_TYPE_I64 :
						     STELE_TYPE_TENSOR :
					STELE_TYPE_UTF8,
			.dtype = i % 3 == 2 ? STELE_DTYPE_U8 : 0,
		};
		snprintf(fields[i].name, sizeof(fields[i].name), "f%u", i);
	}
	out->fields = fields;
	out->count = STELE_FIELDS_MAX;
	return 0;
}

static int wide_scan(void *user, const struct stele_source_sink *sink)
{
	const struct stele_source_entry entry = {
		.size = sizeof(entry), .key = "k", .key_size = 1,
		.data_size = 22 + 21};

	(void)user;
	return sink->entry(sink->user, &entry);
}

static int wide_open(void *reader, const struct stele_source_entry *entry,
		     union stele_value *values)
{
	(void)reader;
	(void)entry;
	for (uint32_t i = 0; i < STELE_FIELDS_MAX; i++)
		if (i % 3 == 1)
			values[i].i64 = -(int64_t)i;
		else
			values[i].size = 1;
	return 0;
}

static int64_t wide_read(void *reader, const struct stele_source_entry *entry,
			 uint64_t offset, void *data, size_t size)
{
	uint8_t *bytes = data;

	(void)reader;
	size = size > entry->data_size - offset ? entry->data_size - offset :
						  size;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)('0' + offset + i);
	return (int64_t)size;
}

/* As many fields as there may be; tensors of rank 0. */
static void test_wide(void)
{
	struct stele_source_ops ops = {.size = sizeof(ops), .scan = wide_scan,
				       .schema = wide_schema, .open = wide_open,
				       .read = wide_read};
	unsigned int wrong = 0, part = 0;
	uint64_t dims[STELE_RANK_MAX];
	struct stele_sample sample;
	struct stele_dataset *ds;
	char path[512];

	snprintf(path, sizeof(path), "%s/wide", test_tmpdir());
	is_int(0, stele_build_from(&ops, NULL, path, NULL, NULL), "64 fields");
	is_int(0, stele_verify(path, NULL, NULL), "64 fields: sound");
	ds = open_dataset(path);
	if (stele_dataset_read(ds, 0, &sample) < 0)
		bail("cannot read");
	for (uint32_t i = 0; i < STELE_FIELDS_MAX; i++) {
		const void *data;
		uint64_t size;
		int64_t value;

		if (i % 3 == 1)
			wrong += stele_sample_i64(&sample, i, &value) ||
				 value != -(int64_t)i;
		else
			wrong += stele_sample_bytes(&sample, i, &data, &size) ||
				 size != 1 ||
				 *(const char *)data != (char)('0' + part++);
		if (i % 3 == 2)
			wrong += stele_sample_shape(&sample, i, dims) != 0;
	}
	is_uint(0, wrong, "64 fields: all as they were given");
	stele_sample_release(&sample);
	stele_dataset_close(ds);
}

int main(void)
{
	plan_lazy();
	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	snprintf(other, sizeof(other), "%s/other", test_tmpdir());
	build();
	test_append();
	test_others();
	test_plain();
	test_replace();
	test_wide();
	return done();
}

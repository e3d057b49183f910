/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-put.c - samples that are handed over one by one, to a new image and an old one
 *
 * What is put is what a build from a source of the same samples writes, byte for byte,
 * kept in memory or in a file. What breaks a rule is refused, and the transaction goes on;
 * keys are put once; without a commit nothing has happened.
 */
#include "lib/txn/txn.h"
#include "tests/device/loop.h"
#include "tests/fixture/image.h"
#include "tests/fixture/log.h"
#include "tests/fixture/rich.h"
#include "tests/tap.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT 150u
#define SIZE  20000u
#define TIME  1700000000

static const uint8_t uuid[STELE_UUID_SIZE] = {1, 2, 3};
static struct test_log messages;

static const char *path_of(const char *name)
{
	static char text[4][600];
	static unsigned int turn;

	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "%s/%s", test_tmpdir(), name);
	return text[turn];
}

static struct stele_txn *create(const char *path, uint32_t flags)
{
	const struct stele_create_opts opts = {
		.size = sizeof(opts), .log = messages.log.fn,
		.log_user = messages.log.user, .label = "put", .uuid = uuid,
		.time = TIME, .flags = flags};
	struct stele_txn *txn;

	if (stele_txn_create(path, &opts, &txn) < 0)
		bail("cannot create: %s", stele_errmsg());
	return txn;
}

static struct stele_txn *open_again(const char *path)
{
	const struct stele_txn_opts opts = {.size = sizeof(opts),
					    .log = messages.log.fn,
					    .log_user = messages.log.user,
					    .time = TIME + 1};
	struct stele_txn *txn;

	if (stele_txn_open(path, &opts, &txn) < 0)
		bail("cannot open: %s", stele_errmsg());
	return txn;
}

/* ---- what it should be -------------------------------------------------- */

struct putter {
	struct stele_txn *txn;
	const struct rich *rich;
	struct stele_schema schema;
};

static int put_rich(void *user, const struct stele_source_entry *entry)
{
	static uint8_t bytes[4 << 20];
	const struct putter *p = user;
	struct stele_txn_value values[RICH_FIELDS] = {0};
	union stele_value given[RICH_FIELDS];
	const uint8_t *at = bytes;

	rich_values(p->rich, entry->place, given);
	rich_bytes(p->rich, entry->place, 0, bytes, entry->data_size);
	for (uint32_t i = 0; i < RICH_FIELDS; i++) {
		if (p->schema.fields[i].type == STELE_TYPE_I64) {
			values[i].i64 = given[i].i64;
		} else if (p->schema.fields[i].type == STELE_TYPE_F64) {
			values[i].f64 = given[i].f64;
		} else {
			values[i].size = given[i].size;
			values[i].data = at;
			at += given[i].size;
		}
	}
	return stele_txn_put(p->txn, entry->key, entry->key_size, values,
			     RICH_FIELDS);
}

static int put_all(struct stele_txn *txn, const struct rich *rich,
		   const struct stele_put_opts *opts)
{
	struct putter p = {txn, rich, {.size = sizeof(p.schema)}};
	const struct stele_source_sink sink = {.size = sizeof(sink), .user = &p,
					       .entry = put_rich};
	const struct stele_source_ops *ops = &rich->source.ops;
	int ret = ops->schema(rich->source.user, NULL, &p.schema);

	if (!ret)
		ret = stele_txn_schema(txn, &p.schema, opts);
	return ret ? ret : ops->scan(rich->source.user, &sink);
}

static void digest_of(const char *target, uint8_t digest[STELE_DIGEST_SIZE])
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;

	if (stele_dataset_open(target, NULL, &ds) < 0)
		bail("cannot open '%s': %s", target, stele_errmsg());
	stele_dataset_info(ds, &info);
	memcpy(digest, info.digest, STELE_DIGEST_SIZE);
	stele_dataset_close(ds);
}

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s: %s", damage->what, damage->detail);
}

static void is_sound(const char *path, const char *what)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts), .damage = say};

	is_int(0, stele_verify(path, &opts, NULL), "%s: sound", what);
}

static void build_the_same(struct rich *rich, const char *path,
			   uint8_t digest[STELE_DIGEST_SIZE])
{
	const struct stele_build_opts opts = {.size = sizeof(opts), .uuid = uuid,
					      .label = "put", .time = TIME,
					      .flags = STELE_BUILD_ALLOW_EMPTY};

	is_int(0, stele_build_from(&rich->source.ops, rich, path, &opts, NULL),
	       "a build");
	digest_of(path, digest);
}

/* With a UUID and a time an image is the same bytes each time. */
static void is_same_file(const char *path, const char *other, const char *what)
{
	char command[1400];

	snprintf(command, sizeof(command), "cmp '%s' '%s' >&2", path, other);
	ok(!system(command), "%s: the same bytes", what);
}

/* ---- all types, wherever they wait -------------------------------------- */

static void check_same(const char *what, uint64_t count, uint64_t size_max,
		       uint64_t memory, const char *said)
{
	const struct stele_put_opts opts = {.size = sizeof(opts),
					    .directory = test_tmpdir(),
					    .memory_size = memory};
	uint8_t built[STELE_DIGEST_SIZE], put[STELE_DIGEST_SIZE];
	struct stele_snapshot_info info = {.size = sizeof(info)};
	struct stele_txn *txn;
	struct rich rich;
	char name[32];

	snprintf(name, sizeof(name), "%u", (unsigned int)count);
	rich_init(&rich, count, size_max);
	build_the_same(&rich, path_of("built"), built);
	test_log_init(&messages);
	txn = create(path_of("put"), 0);
	is_int(0, put_all(txn, &rich, &opts), "%s: put", what);
	is_int(0, stele_txn_snapshot(txn, "v1", "a note", &info), "%s: snapshot",
	       what);
	ok(test_log_has(&messages, said), "%s: the log says '%s'", what, said);
	is_int(0, stele_txn_commit(txn), "%s: commit", what);
	stele_txn_close(txn);
	is_uint(count, info.sample_count, "%s: all samples", what);
	digest_of(path_of("put@v1"), put);
	is_blob(built, put, sizeof(built), "%s: what a build writes", what);
	is_sound(path_of("put"), what);
	if (access(path_of(name), F_OK))
		rename(path_of("put"), path_of(name));
	else
		is_same_file(path_of("put"), path_of(name), what);
	unlink(path_of("put"));
	unlink(path_of("built"));
}

static void test_same(void)
{
	char place[700];

	snprintf(place, sizeof(place), "in a temporary file of ");
	check_same("in memory", COUNT, SIZE, 0,
		   "150 samples were kept in memory");
	check_same("in a file", COUNT, SIZE, 1 << 20, place);
	snprintf(place, sizeof(place), "bytes in '%s'", test_tmpdir());
	check_same("large ones", 12, 3 << 20, 1 << 20, place);
	check_same("large ones in memory", 12, 3 << 20, 0, "in memory");
	check_same("none", 0, 1, 0, "0 samples were");
}

/* ---- on an image that is there ------------------------------------------ */

static void test_append(void)
{
	const struct stele_put_opts replace = {.size = sizeof(replace),
					       .flags = STELE_PUT_REPLACE};
	struct stele_snapshot_info info = {.size = sizeof(info)};
	struct stele_diff_report diff = {.size = sizeof(diff)};
	struct stele_txn *txn = create(path_of("image"), 0);
	struct rich rich, more;

	rich_init(&rich, COUNT, SIZE);
	rich_init(&more, 40, SIZE);
	more.first = COUNT;
	more.renamed = true;
	is_int(0, put_all(txn, &rich, NULL), "some");
	is_int(0, stele_txn_snapshot(txn, "v1", NULL, NULL), "v1");
	is_int(0, stele_txn_commit(txn), "commit");
	is_int(0, put_all(txn, &more, NULL), "more, after a commit");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, &info), "v2");
	is_uint(COUNT + 40, info.sample_count, "has both");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);

	txn = open_again(path_of("image"));
	more.first = COUNT - 20;
	is_int(0, put_all(txn, &more, NULL), "keys that are there");
	is_int(-EEXIST, stele_txn_snapshot(txn, "v3", NULL, NULL), "refused");
	ok(strstr(stele_errmsg(), "/000") && strstr(stele_errmsg(), "already"),
	   "and named: %s", stele_errmsg());
	is_int(0, stele_txn_base(txn, NULL), "given up");
	more.version = 1;
	is_int(0, put_all(txn, &more, &replace), "to be replaced");
	is_int(0, stele_txn_snapshot(txn, "v3", NULL, &info), "v3");
	is_uint(COUNT + 40, info.sample_count, "has as many");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(0, stele_diff(path_of("image@v2"), path_of("image@v3"), NULL, NULL,
			     NULL, &diff), "compared");
	/* Of each seventh one the score is special, and as it was. */
	is_uint(40 - 6, diff.changed, "other scores");
	is_uint(COUNT + 6, diff.same, "the rest");
	is_sound(path_of("image"), "image");
}

static void copy_file(const char *from, const char *to)
{
	char command[1400];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	if (system(command))
		bail("cannot copy");
}

static unsigned int snapshots_of(const char *path)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *image;

	if (stele_image_open(path, NULL, &image) < 0)
		bail("no image: %s", stele_errmsg());
	stele_image_info(image, &info);
	stele_image_close(image);
	return info.snapshot_count;
}

/* All is checked as by a real one. */
static void test_dry(void)
{
	const struct stele_txn_opts opts = {.size = sizeof(opts),
					    .flags = STELE_DRY_RUN};
	struct stele_txn *txn;
	struct rich rich;

	rich_init(&rich, 30, SIZE);
	for (unsigned int i = 0; i < 2; i++) {
		rich.first = i ? 1000 : 0;
		if (stele_txn_open(path_of("image"), &opts, &txn) < 0)
			bail("cannot open: %s", stele_errmsg());
		is_int(0, put_all(txn, &rich, NULL), "put in a dry run");
		is_int(i ? 0 : -EEXIST, stele_txn_snapshot(txn, "dry", NULL, NULL),
		       i ? "would be made" : "keys that are there");
		if (i)
			is_int(0, stele_txn_commit(txn), "would be committed");
		stele_txn_close(txn);
	}
	is_uint(3, snapshots_of(path_of("image")), "and is not");
}

/* A copy of the file is what a crash leaves. */
static void test_crash(void)
{
	struct stele_txn *txn = open_again(path_of("image"));
	struct stele_image *image;
	struct rich rich;

	rich_init(&rich, 30, SIZE);
	rich.first = 1000;
	is_int(0, put_all(txn, &rich, NULL), "put, not committed");
	is_int(0, stele_txn_snapshot(txn, "lost", NULL, NULL), "snapshot");
	copy_file(path_of("image"), path_of("crashed"));
	stele_txn_close(txn);
	is_uint(3, snapshots_of(path_of("crashed")), "a crash leaves the old state");
	is_sound(path_of("crashed"), "crashed");
	is_uint(3, snapshots_of(path_of("image")), "and so does an end");
	is_sound(path_of("image"), "closed");
	unlink(path_of("crashed"));

	txn = create(path_of("new"), 0);
	is_int(0, put_all(txn, &rich, NULL), "put to a new image");
	is_int(0, stele_txn_snapshot(txn, "lost", NULL, NULL), "snapshot");
	copy_file(path_of("new"), path_of("crashed"));
	stele_txn_close(txn);
	is_int(-EINPROGRESS, stele_image_open(path_of("crashed"), NULL, &image),
	       "a crash leaves an unfinished image");
	is_int(-1, access(path_of("new"), F_OK), "an end leaves no file");
	txn = create(path_of("crashed"), STELE_FORCE);
	is_int(0, stele_txn_commit(txn), "an image that holds nothing");
	stele_txn_close(txn);
	is_uint(0, snapshots_of(path_of("crashed")), "is whole");
	is_int(-EEXIST, stele_txn_create(path_of("crashed"), NULL, &txn),
	       "and is not overwritten");
}

/* Files in the directory of the images whose names begin so. */
static unsigned int files_like(const char *name)
{
	unsigned int count;
	char pattern[700];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s*", path_of(name));
	count = glob(pattern, 0, NULL, &found) ? 0 : (unsigned int)found.gl_pathc;
	globfree(&found);
	return count;
}

/* A file has its old content until the first commit. */
static void test_replace(void)
{
	struct stele_txn_preview preview = {.size = sizeof(preview)};
	struct stele_txn *txn;
	struct rich rich;

	copy_file(path_of("image"), path_of("old"));
	rich_init(&rich, 30, SIZE);
	for (unsigned int i = 0; i < 2; i++) {
		txn = create(path_of("old"), STELE_FORCE);
		is_int(0, put_all(txn, &rich, NULL), "put over an older image");
		is_int(0, stele_txn_snapshot(txn, "only", NULL, NULL), "snapshot");
		is_int(0, stele_txn_preview(txn, &preview), "preview");
		ok(preview.snapshots_added == 1 && preview.snapshots_dropped == 0 &&
			   preview.segments_added == 1,
		   "says what is new");
		is_uint(3, snapshots_of(path_of("old")), "the old one is still there");
		if (i)
			is_int(0, stele_txn_commit(txn), "commit");
		is_uint(i ? 1 : 3, snapshots_of(path_of("old")), "the first commit replaces it");
		is_uint(i ? 1 : 2, files_like("old"), "the new one has its name");
		if (i) {
			rich.first = 1000;
			is_int(0, put_all(txn, &rich, NULL), "more");
			is_int(0, stele_txn_snapshot(txn, "more", NULL, NULL), "snapshot");
			is_int(0, stele_txn_commit(txn), "a second commit");
		}
		stele_txn_close(txn);
		is_uint(i ? 2 : 3, snapshots_of(path_of("old")), "as it was left");
		is_uint(1, files_like("old"), "nothing is beside it");
		is_sound(path_of("old"), "old");
	}
}

/* Somebody has put another file there meanwhile. */
static void test_replaced(void)
{
	struct stele_txn *txn = create(path_of("old"), STELE_FORCE);
	struct rich rich;

	rich_init(&rich, 30, SIZE);
	is_int(0, put_all(txn, &rich, NULL), "put over an older image");
	is_int(0, stele_txn_snapshot(txn, "only", NULL, NULL), "snapshot");
	copy_file(path_of("image"), path_of("other"));
	is_int(0, rename(path_of("other"), path_of("old")), "another file is there");
	is_int(-ESTALE, stele_txn_commit(txn), "and stays");
	is_int(-EINVAL, stele_txn_commit(txn), "the transaction can only be closed");
	stele_txn_close(txn);
	is_uint(3, snapshots_of(path_of("old")), "the other one is there");
	is_uint(1, files_like("old"), "nothing is beside it");
}

/* A device has no place beside it: once it is written to, it says what was lost. */
static void test_lost(void)
{
	struct stele_open_opts opts = {.size = sizeof(opts)};
	struct rich rich;
	struct stele_image *image;
	struct stele_txn *txn;
	char node[LOOP_NODE_SIZE];

	copy_file(path_of("image"), path_of("disk"));
	if (!loop_usable() || !loop_attach(path_of("disk"), 512, node)) {
		skip_block(3, "needs a loop device");
		return;
	}
	rich_init(&rich, 30, SIZE);
	txn = create(node, STELE_FORCE);
	put_all(txn, &rich, NULL);
	is_int(0, stele_txn_flush(txn, NULL), "put over an older image");
	stele_txn_close(txn);
	test_log_init(&messages);
	opts.log = messages.log.fn;
	opts.log_user = messages.log.user;
	is_int(-EINPROGRESS, stele_image_open(node, &opts, &image), "unfinished");
	ok(test_log_has(&messages, "it has overwritten") && test_log_has(&messages, "'v3'"),
	   "names what was lost");
	loop_detach(node);
}

/* What is read is no target, by whatever name, before anything is written. */
static void refuses_source(const char *target, const char *const *sources, const char *words)
{
	const struct stele_create_opts opts = {.size = sizeof(opts), .log = messages.log.fn,
					       .log_user = messages.log.user,
					       .flags = STELE_FORCE, .sources = sources};
	struct stele_txn *txn;

	test_log_init(&messages);
	is_int(-EINVAL, stele_txn_create(target, &opts, &txn), "over what is read");
	ok(test_log_has(&messages, words), "says so: %s", stele_errmsg());
	is_sound(path_of("read"), "what is read");
}

static void test_sources(void)
{
	char *read = strdup(path_of("read")), *alias = strdup(path_of("alias"));
	const char *const sources[] = {"/nowhere", read, NULL}, *const none[] = {"/nowhere", NULL};
	struct stele_txn_opts change = {.size = sizeof(change), .sources = sources};
	struct stele_create_opts fresh = {.size = sizeof(fresh), .sources = none};
	struct stele_txn *txn;
	char node[LOOP_NODE_SIZE];

	copy_file(path_of("image"), read);
	if (link(read, alias))
		sysbail("cannot link '%s'", alias);
	refuses_source(read, sources, "is a file of the source, which the image would replace");
	refuses_source(alias, sources, "is a file of the source, which the image would replace");
	is_int(-EINVAL, stele_txn_open(read, &change, &txn), "nor is it changed");
	change.sources = none;
	is_int(0, stele_txn_open(read, &change, &txn), "one that is not read is");
	stele_txn_close(txn);
	is_int(0, stele_txn_create(path_of("fresh"), &fresh, &txn), "a new one is made");
	stele_txn_close(txn);
	if (loop_usable() && loop_attach(read, 512, node)) {
		refuses_source(node, sources, "is of the source, and shares bytes with");
		change.sources = sources;
		is_int(-EINVAL, stele_txn_open(node, &change, &txn), "nor is that changed");
		loop_detach(node);
	} else {
		skip_block(3, "needs a loop device");
	}
	free(read);
	free(alias);
}

/* ---- rules, on a device in memory --------------------------------------- */

enum { DATA, TEXT, GRID, CLASS, SCORE, FIELDS };
#define FIELD(...) {.size = sizeof(struct stele_field), __VA_ARGS__}

static const char *const class_names[] = {"a", "b", "c", "d", "e"};
#define CLASSES 5

static const struct stele_field fields[FIELDS] = {
	[DATA] = FIELD(.name = "data", .type = STELE_TYPE_BYTES),
	[TEXT] = FIELD(.name = "text", .type = STELE_TYPE_UTF8),
	[GRID] = FIELD(.name = "grid", .type = STELE_TYPE_TENSOR,
		       .dtype = STELE_DTYPE_U16, .rank = 2, .dims = {0, 2}),
	[CLASS] = FIELD(.name = "class", .type = STELE_TYPE_I64,
			.names = class_names, .name_count = CLASSES),
	[SCORE] = FIELD(.name = "score", .type = STELE_TYPE_F64),
};
static const struct stele_schema schema = {.size = sizeof(schema),
					   .fields = fields, .count = FIELDS};

static void sample(struct stele_txn_value values[FIELDS])
{
	memset(values, 0, FIELDS * sizeof(*values));
	values[DATA] = (struct stele_txn_value){.data = "abc", .size = 3};
	values[TEXT] = (struct stele_txn_value){.data = "\xc3\xa9", .size = 2};
	values[GRID] = (struct stele_txn_value){.data = "01234567", .size = 8};
	values[CLASS].i64 = 4;
	values[SCORE].f64 = 0.5;
}

static int put(struct stele_txn *txn, const char *key)
{
	struct stele_txn_value values[FIELDS];

	sample(values);
	return stele_txn_put(txn, key, strlen(key), values, FIELDS);
}

static void refuses(struct stele_txn *txn, int error, const char *word,
		    const char *key, size_t key_size,
		    const struct stele_txn_value *values, uint32_t count)
{
	is_int(error, stele_txn_put(txn, key, key_size, values, count),
	       "refused: %s", word);
	ok(strstr(stele_errmsg(), word), "and said: %s", stele_errmsg());
}

static void test_values(struct stele_txn *txn)
{
	static const struct {
		uint32_t field;
		struct stele_txn_value value;
		const char *word;
	} wrong[] = {
		{DATA, {.size = 3}, "no bytes"},
		{DATA, {.i64 = 1}, "got a number"},
		{TEXT, {.data = "\xc3", .size = 1}, "UTF-8"},
		{TEXT, {.f64 = 1}, "got a number"},
		{GRID, {.data = "123456", .size = 6}, "shape"},
		{CLASS, {.data = "1", .size = 1}, "i64"},
		{CLASS, {.f64 = 2}, "i64"},
		{CLASS, {.i64 = CLASSES}, "classes"},
		{CLASS, {.i64 = -2}, "classes"},
		{SCORE, {.i64 = 2}, "f64"},
	};
	struct stele_txn_value values[FIELDS];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		sample(values);
		values[wrong[i].field] = wrong[i].value;
		refuses(txn, -EINVAL, wrong[i].word, "key", 3, values, FIELDS);
		ok(strstr(stele_errmsg(), fields[wrong[i].field].name) &&
			   strstr(stele_errmsg(), "'key'"),
		   "with key and field");
	}
	sample(values);
	values[DATA].size = STELE_SAMPLE_SIZE_MAX;
	refuses(txn, -EFBIG, "limit", "key", 3, values, FIELDS);
	sample(values);
	values[CLASS].i64 = -1;
	is_int(0, stele_txn_put(txn, "none", 4, values, FIELDS), "of no class");
}

/* Classes that only the base has are not those of numbers that the schema lacks. */
static void test_fewer_classes(struct stele_txn *txn)
{
	struct stele_field fewer[FIELDS];
	struct stele_txn_value values[FIELDS];

	memcpy(fewer, fields, sizeof(fewer));
	fewer[CLASS].name_count = 2;
	is_int(0, stele_txn_base(txn, NULL), "given up");
	is_int(0, stele_txn_schema(txn, &STELE_OPTS(stele_schema, .fields = fewer,
						    .count = FIELDS), NULL),
	       "a schema with fewer classes than the base");
	sample(values);
	refuses(txn, -EINVAL, "2 classes", "key", 3, values, FIELDS);
	values[CLASS].i64 = 1;
	is_int(0, stele_txn_put(txn, "key", 3, values, FIELDS), "its last class");
}

static void test_keys(struct stele_txn *txn)
{
	static char key[STELE_KEY_SIZE_MAX + 1];
	struct stele_txn_value values[FIELDS];

	memset(key, 'k', sizeof(key));
	sample(values);
	refuses(txn, -ENAMETOOLONG, "4000", key, sizeof(key), values, FIELDS);
	refuses(txn, -EINVAL, "without a key", "", 0, values, FIELDS);
	refuses(txn, -EINVAL, "without a key", NULL, 3, values, FIELDS);
	refuses(txn, -EINVAL, "zero byte", "a\0b", 3, values, FIELDS);
	refuses(txn, -EINVAL, "5 fields", "key", 3, values, FIELDS - 1);
	refuses(txn, -EINVAL, "5 fields", "key", 3, NULL, FIELDS);
	is_int(0, stele_txn_put(txn, key, STELE_KEY_SIZE_MAX, values, FIELDS),
	       "the longest key");
}

static void test_schemas(struct stele_txn *txn)
{
	struct stele_field field = FIELD(.name = "x", .type = 99);
	struct stele_schema other = {.size = sizeof(other), .fields = &field,
				     .count = 1};
	struct stele_put_opts opts = {.size = sizeof(opts), .memory_size = 5};

	is_int(-EINVAL, put(txn, "key"), "no schema");
	ok(strstr(stele_errmsg(), "schema"), "and said: %s", stele_errmsg());
	is_int(-EINVAL, stele_txn_schema(txn, NULL, NULL), "none at all");
	other.reserved = 1;
	field.type = STELE_TYPE_I64;
	is_int(-EINVAL, stele_txn_schema(txn, &other, NULL), "unknown members");
	ok(strstr(stele_errmsg(), "reserved"), "and said: %s", stele_errmsg());
	other.reserved = 0;
	field.type = 99;
	is_int(-EINVAL, stele_txn_schema(txn, &other, NULL), "no such type");
	field.type = STELE_TYPE_I64;
	field.name_count = 1;
	is_int(-EINVAL, stele_txn_schema(txn, &other, NULL), "missing names");
	is_int(-EINVAL, stele_txn_schema(txn, &schema, &opts), "little memory");
	opts.memory_size = 0;
	opts.flags = 1u << 31;
	is_int(-EINVAL, stele_txn_schema(txn, &schema, &opts), "unknown flags");
	is_int(0, stele_txn_schema(txn, &schema, NULL), "a schema");
	is_int(0, stele_txn_schema(txn, &schema, NULL), "once more");
}

static void test_twice(struct stele_txn *txn)
{
	const struct stele_key_ref gone = {"b", 1};
	struct stele_snapshot_info info = {.size = sizeof(info)};

	put(txn, "a");
	put(txn, "b");
	is_int(0, put(txn, "a"), "a key twice");
	is_int(-EINVAL, stele_txn_schema(txn, &schema, NULL), "too late for a schema");
	is_int(-EEXIST, stele_txn_snapshot(txn, "v2", NULL, NULL), "is refused");
	ok(strstr(stele_errmsg(), "'a' was put twice: as samples 1 and 3,"),
	   "and named: %s", stele_errmsg());
	is_int(0, stele_txn_base(txn, NULL), "given up");
	put(txn, "a");
	put(txn, "b");
	is_int(-EINVAL, stele_txn_snapshot(txn, "no/name", NULL, NULL),
	       "a wrong name");
	is_int(0, stele_txn_delete(txn, &gone, 1), "what was put can go again");
	is_int(0, put(txn, "b"), "and come again");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, &info), "snapshot");
	is_uint(3, info.sample_count, "the longest key, a and b");
	is_int(0, stele_txn_commit(txn), "commit");
}

static void check_values(const char *path)
{
	struct stele_dataset *ds;
	struct stele_sample got;
	const void *data = "";
	uint64_t id = 0, size = 0;
	double score = 0;
	int64_t class = 0;

	if (stele_dataset_open(path, NULL, &ds) < 0 ||
	    stele_dataset_lookup(ds, "b", 1, &id) < 0 ||
	    stele_dataset_read(ds, id, &got) < 0)
		bail("cannot read: %s", stele_errmsg());
	is_int(0, stele_sample_bytes(&got, GRID, &data, &size), "grid");
	ok(size == 8 && !memcmp(data, "01234567", 8), "is what was put");
	is_int(0, stele_sample_bytes(&got, TEXT, &data, &size), "text");
	ok(size == 2 && !memcmp(data, "\xc3\xa9", 2), "is what was put");
	is_int(0, stele_sample_i64(&got, CLASS, &class), "class");
	is_int(4, class, "is what was put");
	is_int(0, stele_sample_f64(&got, SCORE, &score), "score");
	ok(score == 0.5, "is what was put");
	stele_sample_release(&got);
	stele_dataset_close(ds);
}

static void test_rules(void)
{
	const struct stele_new_image what = {.label = "", .size = 8 << 20,
					     .time = TIME};
	struct stele_device *dev = test_memory(8 << 20, 4096, 0);
	struct stele_txn first = {0}, txn = {0};

	test_log_init(&messages);
	if (stele_txn_on_new(&first, dev, &what, &messages.log) < 0)
		bail("no image");
	is_int(-ENOENT, stele_txn_snapshot(&first, "v0", NULL, NULL),
	       "a snapshot of nothing");
	is_int(0, stele_txn_schema(&first, &schema, NULL), "schema");
	is_int(0, put(&first, "0"), "one sample");
	is_int(0, stele_txn_snapshot(&first, "v0", NULL, NULL), "v0");
	is_int(0, stele_txn_commit(&first), "committed");
	stele_txn_release(&first);

	if (stele_txn_on_device(&txn, dev, &messages.log) < 0)
		bail("no image");
	txn.time = TIME;
	txn.borrowed = true;
	test_schemas(&txn);
	is_int(-EEXIST, put(&txn, "0") ? 1 : stele_txn_snapshot(&txn, "x", NULL, NULL),
	       "a key of the base");
	is_int(0, stele_txn_base(&txn, NULL), "given up");
	test_values(&txn);
	test_keys(&txn);
	test_fewer_classes(&txn);
	stele_txn_release(&txn);
	stele_device_close(dev);
}

/* ---- the temporary file ------------------------------------------------- */

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = size;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static int put_bytes(struct stele_txn *txn, unsigned int number, size_t size)
{
	static uint8_t bytes[1 << 20];
	const struct stele_txn_value value = {.data = bytes, .size = size};
	char key[32];

	snprintf(key, sizeof(key), "%u", number);
	return stele_txn_put(txn, key, strlen(key), &value, 1);
}

static void test_file(void)
{
	struct stele_put_opts opts = {.size = sizeof(opts), .memory_size = 1 << 20,
				      .directory = "/nowhere/at/all"};
	const struct stele_schema plain = {.size = sizeof(plain), .fields = fields,
					   .count = 1};
	struct stele_txn *txn = create(path_of("spooled"), 0);
	struct stele_snapshot_info info = {.size = sizeof(info)};
	char *gone = strdup(path_of("gone"));

	is_int(-ENOENT, stele_txn_schema(txn, &plain, &opts), "no such directory");
	ok(strstr(stele_errmsg(), "'/nowhere/at/all'"), "names it: %s", stele_errmsg());
	opts.directory = gone;
	if (mkdir(gone, 0777))
		sysbail("cannot make '%s'", gone);
	is_int(0, stele_txn_schema(txn, &plain, &opts), "one that is there");
	if (rmdir(gone))
		sysbail("cannot remove '%s'", gone);
	is_int(0, put_bytes(txn, 0, 1000), "in memory");
	is_int(-ENOENT, put_bytes(txn, 1, 1 << 20), "too much for memory, and it is gone");
	ok(strstr(stele_errmsg(), gone), "names it: %s", stele_errmsg());
	free(gone);
	is_int(0, put_bytes(txn, 1, 1000), "others may follow");
	is_int(0, stele_txn_base(txn, NULL), "given up");
	opts.directory = test_tmpdir();
	is_int(0, stele_txn_schema(txn, &plain, &opts), "a directory");
	refuses(txn, -EINVAL, "1 field, and got 0", "key", 3, NULL, 1);
	signal(SIGXFSZ, SIG_IGN);
	limit_files(3 << 20);
	for (unsigned int i = 0; i < 2; i++)
		is_int(0, put_bytes(txn, i, 1 << 20), "a large one");
	is_int(-EFBIG, put_bytes(txn, 2, 1 << 20), "no room in the directory");
	ok(strstr(stele_errmsg(), test_tmpdir()), "which is named: %s",
	   stele_errmsg());
	is_int(0, put_bytes(txn, 3, 1000), "a small one");
	limit_files(RLIM_INFINITY);
	is_int(0, put_bytes(txn, 4, 1 << 20), "there is room again");
	is_int(0, stele_txn_snapshot(txn, "v1", NULL, &info), "snapshot");
	is_uint(4, info.sample_count, "all that were put");
	is_uint(3 * (1 << 20) + 1000, info.payload_size, "all their bytes");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_sound(path_of("spooled"), "spooled");
}

static void test_order(void)
{
	struct stele_txn *txn = create(path_of("rules"), 0);

	is_int(0, stele_txn_schema(txn, &schema, NULL), "schema");
	test_keys(txn);
	is_int(0, stele_txn_snapshot(txn, "v1", NULL, NULL), "v1");
	test_twice(txn);
	stele_txn_close(txn);
	check_values(path_of("rules@v2"));
	is_sound(path_of("rules"), "rules");
}

int main(void)
{
	plan_lazy();
	test_log_init(&messages);
	test_same();
	test_append();
	test_dry();
	test_crash();
	test_replace();
	test_replaced();
	test_lost();
	test_sources();
	test_rules();
	test_order();
	test_file();
	return done();
}

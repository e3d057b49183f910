/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-unfinished.c - what a transaction has put together, and given no name yet
 *
 * It outlives whatever else is done in between: freeing space, commits, the end of the
 * snapshot that it starts from, calls that fail.
 */
#include "lib/txn/addition.h"
#include "lib/txn/txn.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/fixture/log.h"
#include "tests/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SIZE (96u << 20) /* catalogs with the longest notes */
#define TIME 1700000000
#define FIELD(...) {.size = sizeof(struct stele_field), __VA_ARGS__}

static const struct stele_field fields[] = {
	FIELD(.name = "data", .type = STELE_TYPE_BYTES),
};
static const struct stele_schema schema = {.size = sizeof(schema),
					   .fields = fields, .count = 1};
static struct test_log messages;
static struct stele_device *dev;
static struct stele_txn txn;

static void create(void)
{
	const struct stele_new_image what = {.label = "", .size = SIZE, .time = TIME};

	if (stele_device_open_fault(test_memory(SIZE, 4096, 0), NULL, 0, &dev) < 0)
		bail("no device");
	test_log_init(&messages);
	if (stele_txn_on_new(&txn, dev, &what, &messages.log) < 0)
		bail("no image");
	txn.force = txn.revoke = true;
}

/* Begin again with what is on the device. */
static void reopen(void)
{
	stele_txn_release(&txn);
	if (stele_txn_on_device(&txn, dev, &messages.log) < 0)
		bail("no image any more");
	txn.time = TIME;
	txn.borrowed = txn.force = txn.revoke = true;
}

static void close_all(void)
{
	stele_txn_release(&txn);
	stele_device_close(dev);
}

static void put(const char *key)
{
	const struct stele_txn_value value = {.data = key, .size = strlen(key)};

	is_int(0, stele_txn_put(&txn, key, strlen(key), &value, 1), "put '%s'", key);
}

static int delete(const char *key)
{
	const struct stele_key_ref gone = {key, strlen(key)};

	return stele_txn_delete(&txn, &gone, 1);
}

/* What was put has a segment from here on. */
static void flush(void)
{
	is_int(0, stele_txn_delete(&txn, NULL, 0), "written");
}

static void free_all(void)
{
	is_int(0, stele_txn_free(&txn, NULL, NULL, NULL), "free");
}

static void commit(void)
{
	is_int(0, stele_txn_commit(&txn), "commit");
}

static void snapshot(const char *name, uint64_t count)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};

	is_int(0, stele_txn_snapshot(&txn, name, NULL, &info), "snapshot '%s'", name);
	is_uint(count, info.sample_count, "its samples");
}

/* As a reader would: what is of no use any more would not load. */
static void reads(const char *name, uint64_t count)
{
	reopen();
	is_int(0, stele_txn_base(&txn, name), "'%s' can be read", name);
	flush();
	snapshot("again", count);
}

static void begin(void)
{
	create();
	is_int(0, stele_txn_schema(&txn, &schema, NULL), "schema");
	put("a");
	put("b");
	put("c");
	snapshot("v1", 3);
	is_int(0, delete("a"), "one less");
	snapshot("v2", 2);
	commit();
	reopen();
}

/* ---- free ----------------------------------------------------------------- */

static void free_new(bool commits)
{
	struct stele_gc_report report = {.size = sizeof(report)};

	begin();
	is_int(0, stele_txn_schema(&txn, &schema, NULL), "schema");
	put("d");
	flush();
	is_int(0, stele_txn_free(&txn, NULL, NULL, &report), "free");
	is_uint(0, report.unused_count, "nothing is unused");
	if (commits)
		commit();
	put("e");
	is_int(0, delete("d"), "a segment that waits");
	free_all();
	snapshot("v3", 3);
	commit();
	reads("v3", 3);
	close_all();
}

/* With its deleted list, whose space a commit gives away. */
static void free_base(bool commits)
{
	begin();
	is_int(0, stele_txn_base(&txn, "v2"), "base");
	is_int(0, stele_txn_drop(&txn, "v1"), "drop");
	is_int(0, stele_txn_drop(&txn, "v2"), "drop its base");
	free_all();
	is_int(0, stele_txn_schema(&txn, &schema, NULL), "schema");
	for (unsigned int i = 0; commits && i < 3; i++) {
		commit();
		txn.state = STELE_TXN_DIRTY;
	}
	put("d");
	snapshot("v3", 3);
	commit();
	reads("v3", 3);
	close_all();
}

/* ---- none of it has samples ------------------------------------------------- */

static const char *const classes[] = {"cat", "dog"};
static const struct stele_field class_fields[] = {
	FIELD(.name = "class", .type = STELE_TYPE_I64, .name_count = 2, .names = classes),
};
static const struct stele_schema class_schema = {.size = sizeof(class_schema),
						 .fields = class_fields, .count = 1};

static void put_class(const char *key, int64_t class)
{
	const struct stele_txn_value value = {.i64 = class};

	is_int(0, stele_txn_put(&txn, key, strlen(key), &value, 1), "put '%s'", key);
}

static void test_no_samples(void)
{
	create();
	is_int(0, stele_txn_schema(&txn, &class_schema, NULL), "fields with class names");
	is_int(-ENOENT, delete("q"), "no such key");
	put_class("a", 0);
	put_class("b", 1);
	snapshot("v1", 2);
	commit();
	reads("v1", 2);
	reopen();
	is_int(0, delete("a"), "one less");
	is_int(0, delete("b"), "none left");
	snapshot("v2", 0);
	is_int(0, stele_txn_schema(&txn, &class_schema, NULL), "the same fields");
	put_class("c", 1);
	is_int(-ENOENT, delete("a"), "no such key any more");
	snapshot("v3", 1);
	commit();
	reads("v3", 1);
	close_all();
}

/* ---- a temporary file on a filesystem that is full ---------------------------- */

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = size;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static int put_large(unsigned int number)
{
	static uint8_t bytes[20000];
	const struct stele_txn_value value = {.data = bytes, .size = sizeof(bytes)};
	char key[16];

	memset(bytes, (int)number, sizeof(bytes));
	snprintf(key, sizeof(key), "%03u", number);
	return stele_txn_put(&txn, key, strlen(key), &value, 1);
}

static void check_large(unsigned int count)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};

	is_int(0, stele_txn_snapshot(&txn, "v1", NULL, &info), "snapshot");
	is_uint(count, info.sample_count, "of what was accepted");
	is_uint(count * 20000, info.payload_size, "all its bytes");
	commit();
	reads("v1", count);
}

static void test_full_spool(void)
{
	const struct stele_put_opts opts = {.size = sizeof(opts), .memory_size = 1 << 20,
					    .directory = test_tmpdir()};
	unsigned int count = 0;
	int ret;

	create();
	signal(SIGXFSZ, SIG_IGN);
	limit_files(3 << 19);
	is_int(0, stele_txn_schema(&txn, &schema, &opts), "schema");
	do {
		ret = put_large(count);
		count += ret == 0;
	} while (ret == 0 && count < 300);
	is_int(-EFBIG, ret, "the file is full after %u", count);
	ok(count > 80, "and has some");
	check_large(count);
	limit_files(RLIM_INFINITY);
	close_all();
}

/* ---- a snapshot that fails ---------------------------------------------------- */

static void test_failed(void)
{
	static char note[STELE_NOTES_SIZE_MAX];

	begin();
	memset(note, 'n', sizeof(note) - 1);
	is_int(0, stele_txn_snapshot(&txn, "long", note, NULL), "a long note");
	is_int(0, stele_txn_schema(&txn, &schema, NULL), "schema");
	put("d");
	is_int(0, delete("b"), "one less");
	put("e");
	is_int(-EOVERFLOW, stele_txn_snapshot(&txn, "v3", "note", NULL), "no room for a note");
	snapshot("v3", 3);
	put("e");
	is_int(-EEXIST, stele_txn_snapshot(&txn, "v4", NULL, NULL), "a key of the base");
	is_int(-EEXIST, stele_txn_snapshot(&txn, "v4", NULL, NULL), "and again");
	is_int(0, stele_txn_base(&txn, NULL), "given up");
	put("f");
	snapshot("v4", 4);
	commit();
	reads("v3", 3);
	close_all();
}

static void fail_reads(bool fail)
{
	const struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1 << STELE_OP_READ, .error = EIO};

	stele_fault_set_rules(dev, &rule, fail);
}

/* What cannot be begun leaves what was put together, and nothing of its own. */
static void test_unreadable(void)
{
	begin();
	fail_reads(true);
	is_int(-EIO, stele_txn_base(&txn, "v2"), "a base that cannot be read");
	is_int(-EIO, delete("b"), "the newest");
	fail_reads(false);
	is_int(0, delete("b"), "it can again");
	fail_reads(true);
	is_int(-EIO, stele_txn_base(&txn, "v1"), "another base");
	fail_reads(false);
	snapshot("v3", 1);
	commit();
	reads("v3", 1);
	close_all();
}

/* After a change that failed half-way, as if it had not happened, or anew. */
static void test_torn(void)
{
	const struct stele_key_ref gone = {"c", 1};

	begin();
	is_int(0, delete("b"), "one less");
	txn.work->payload_size = 0;
	is_int(-EUCLEAN, delete("c"), "a count that cannot be");
	is_int(-EINVAL, stele_txn_snapshot(&txn, "v3", NULL, NULL), "no snapshot of it");
	ok(test_log_has(&messages, "has to be begun anew"), "says why");
	is_int(-EINVAL, stele_txn_delete(&txn, &gone, 1), "nor another change");
	is_int(0, stele_txn_base(&txn, NULL), "begun anew");
	is_int(0, delete("c"), "one less");
	snapshot("v3", 1);
	commit();
	reads("v3", 1);
	close_all();
}

int main(void)
{
	plan_lazy();
	test_unreadable();
	test_torn();
	for (unsigned int i = 0; i < 2; i++) {
		free_new(i);
		free_base(i);
	}
	test_no_samples();
	test_full_spool();
	test_failed();
	return done();
}

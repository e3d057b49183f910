/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-flush.c - what puts would make of an image: by a dry run of a new one, by a flush
 *
 * A dry run refuses what a real one refuses, and writes nothing. A flush says what was kept,
 * replaced and dropped, and whether the next snapshot would be another one. It makes a new
 * file no larger than was asked for.
 */
#include "lib/stele.h"
#include "tests/fixture/log.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 1000u

static struct test_log messages;
static char image[600], other[600];

static int put(struct stele_txn *txn, uint64_t number, uint32_t version)
{
	uint8_t bytes[SIZE] = {(uint8_t)number, (uint8_t)version};
	const struct stele_txn_value value = {.data = bytes, .size = sizeof(bytes)};
	char key[24];
	int size = snprintf(key, sizeof(key), "%03u", (unsigned int)number);

	return stele_txn_put(txn, key, (size_t)size, &value, 1);
}

static int put_some(struct stele_txn *txn, uint64_t first, uint64_t count, uint32_t version,
		    const struct stele_put_opts *opts)
{
	const struct stele_field field = {.size = sizeof(field), .name = "data",
					  .type = STELE_TYPE_BYTES};
	const struct stele_schema schema = {.size = sizeof(schema), .fields = &field, .count = 1};
	int ret = stele_txn_schema(txn, &schema, opts);

	for (uint64_t i = first; !ret && i < first + count; i++)
		ret = put(txn, i, version);
	return ret;
}

static struct stele_txn *create(const char *path, uint32_t flags, int error)
{
	const struct stele_create_opts opts = {.size = sizeof(opts), .log = messages.log.fn,
					       .log_user = messages.log.user, .flags = flags};
	struct stele_txn *txn = NULL;

	is_int(error, stele_txn_create(path, &opts, &txn), "begin '%s'", path);
	return txn;
}

static void commit(struct stele_txn *txn)
{
	is_int(0, stele_txn_snapshot(txn, "v1", NULL, NULL), "snapshot");
	is_int(0, stele_txn_commit(txn), "commit");
}

static void is_sound(const char *path)
{
	is_int(0, stele_verify(path, NULL, NULL), "sound");
}

/* ---- a new image, over nothing and over an old one ----------------------- */

static void rehearse(const char *path, uint32_t flags)
{
	const struct stele_put_opts wrong = {.size = sizeof(wrong), .granule = 7};
	struct stele_txn *txn = create(path, STELE_DRY_RUN | flags, 0);

	is_int(-EINVAL, put_some(txn, 0, 1, 0, &wrong), "options are checked");
	is_int(0, put_some(txn, 0, 30, 0, NULL), "put in a dry run");
	commit(txn);
	stele_txn_close(txn);
}

static void test_dry(void)
{
	char command[1400];

	rehearse(other, 0);
	is_int(-1, access(other, F_OK), "no file is made");
	create(image, STELE_DRY_RUN, -EEXIST);
	snprintf(command, sizeof(command), "cp '%s' '%s'", image, other);
	if (system(command))
		bail("cannot copy");
	test_log_init(&messages);
	rehearse(image, STELE_FORCE);
	ok(test_log_has(&messages, "which would be overwritten"), "says what would be lost");
	snprintf(command, sizeof(command), "cmp '%s' '%s' >&2", image, other);
	ok(!system(command), "and nothing is written");
}

/* ---- what a flush says ---------------------------------------------------- */

struct change {
	const char *what;
	uint32_t flags;
	uint64_t first, count; /* of what is put */
	uint32_t version;
	uint64_t added, updated, deleted, unchanged;
	bool created;
};

#define KEEP	STELE_PUT_KEEP
#define REPLACE STELE_PUT_REPLACE
#define MISSING STELE_PUT_DELETE_MISSING

/* Of 60. */
static const struct change changes[] = {
	{"kept", KEEP, 0, 60, 1, 0, 0, 0, 60, false},
	{"kept, and more", KEEP, 50, 20, 1, 10, 0, 0, 60, true},
	{"the same", REPLACE, 0, 60, 0, 0, 0, 0, 60, false},
	{"replaced, not kept", REPLACE | KEEP, 0, 7, 1, 0, 7, 0, 53, true},
	{"missing", KEEP | MISSING, 10, 50, 0, 0, 0, 10, 50, true},
	{"half of them", KEEP | MISSING, 30, 40, 0, 10, 0, 30, 30, true},
	{"most of them", KEEP | MISSING | STELE_FORCE, 40, 20, 0, 0, 0, 40, 20, true},
	{"nothing put", MISSING, 0, 0, 0, 0, 0, 0, 60, false},
};

static void flush(struct stele_txn *txn, const struct change *c)
{
	const struct stele_put_opts opts = {.size = sizeof(opts), .flags = c->flags};
	struct stele_build_report made = {.size = sizeof(made)};

	is_int(0, stele_txn_base(txn, "v1"), "%s: from v1", c->what);
	is_int(0, put_some(txn, c->first, c->count, c->version, &opts), "%s: put", c->what);
	is_int(0, stele_txn_flush(txn, &made), "%s: written", c->what);
	is_string("v1", made.base, "%s: the base", c->what);
	is_uint(c->added, made.added, "%s: added", c->what);
	is_uint(c->updated, made.updated, "%s: updated", c->what);
	is_uint(c->deleted, made.deleted, "%s: deleted", c->what);
	is_uint(c->unchanged, made.unchanged, "%s: as they were", c->what);
	is_uint(c->unchanged + c->updated + c->added, made.sample_count, "%s: all", c->what);
	is_uint(c->created, made.created, "%s: another snapshot?", c->what);
	is_uint(c->added + c->updated, made.written_count, "%s: in a segment", c->what);
}

/* Too many to be dropped: they wait on, as after any refusal. */
static void test_refused(struct stele_txn *txn)
{
	const struct stele_put_opts opts = {.size = sizeof(opts), .flags = KEEP | MISSING};
	const struct stele_put_opts unknown = {.size = sizeof(unknown), .flags = 1 << 4};

	is_int(0, stele_txn_base(txn, "v1"), "from v1");
	is_int(-EINVAL, put_some(txn, 0, 1, 0, &unknown), "an unknown flag");
	is_int(0, put_some(txn, 0, 29, 0, &opts), "less than half");
	is_int(-EPERM, stele_txn_flush(txn, NULL), "is refused");
	ok(strstr(stele_errmsg(), "the source lacks 31 of the 60 samples of 'v1'"),
	   "says why: %s", stele_errmsg());
	is_int(-EPERM, stele_txn_snapshot(txn, "v2", NULL, NULL), "by a snapshot, too");
}

static void test_deletion(struct stele_txn *txn)
{
	const struct stele_key_ref key = {"000", 3};
	struct stele_build_report made = {.size = sizeof(made)};

	is_int(0, stele_txn_base(txn, NULL), "from the newest");
	is_int(0, stele_txn_flush(txn, &made), "nothing to write");
	is_uint(0, made.created, "nothing has changed");
	is_int(0, stele_txn_delete(txn, &key, 1), "one is deleted");
	is_int(0, stele_txn_flush(txn, &made), "nothing to write");
	is_uint(1, made.created, "yet it has");
	is_uint(59, made.unchanged, "the others are as they were");
	is_int(0, stele_txn_base(txn, NULL), "given up");
}

static void test_flush(void)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *opened;
	struct stele_txn *txn;

	if (stele_txn_open(image, NULL, &txn))
		bail("cannot open: %s", stele_errmsg());
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		flush(txn, &changes[i]);
	test_refused(txn);
	test_deletion(txn);
	is_int(0, stele_txn_commit(txn), "a commit without a snapshot");
	stele_txn_close(txn);
	is_int(0, stele_image_open(image, NULL, &opened), "open");
	stele_image_info(opened, &info);
	stele_image_close(opened);
	is_uint(1, info.snapshot_count, "makes none");
}

/* ---- a size that was asked for --------------------------------------------- */

static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static void test_size(uint32_t flags)
{
	const struct stele_create_opts opts = {
		.size = sizeof(opts), .log = messages.log.fn, .log_user = messages.log.user,
		.flags = flags, .file_size = 4 << 20};
	struct stele_txn *txn;

	unlink(other);
	is_int(0, stele_txn_create(other, &opts, &txn), "begin a file of 4 MiB");
	is_int(0, put_some(txn, 0, 5000, 0, NULL), "put more");
	test_log_init(&messages);
	is_int(-ENOSPC, stele_txn_flush(txn, NULL), "it is not made larger");
	ok(test_log_has(&messages, "take a larger target"), "but says why");
	is_int(-ENOSPC, stele_txn_snapshot(txn, "v1", NULL, NULL), "nor is it for a snapshot");
	is_int(0, stele_txn_base(txn, NULL), "give up what was put");
	is_int(0, put_some(txn, 0, 1000, 0, NULL), "put what fits");
	commit(txn);
	if (flags & STELE_DRY_RUN) {
		stele_txn_close(txn);
		return;
	}
	is_uint(4 << 20, size_of(other), "the file has the size that was asked for");
	is_int(0, put_some(txn, 1000, 5000, 0, NULL), "put more into the image that is there");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, NULL), "a second snapshot");
	is_int(0, stele_txn_commit(txn), "commit it");
	stele_txn_close(txn);
	ok(size_of(other) > 4 << 20, "which makes the file larger");
	is_sound(other);
}

/* Unlike a build's, a rehearsal needs one, too. */
static void test_no_target(void)
{
	struct stele_create_opts opts = {.size = sizeof(opts)};
	struct stele_txn *txn;

	is_int(-EINVAL, stele_txn_create(NULL, &opts, &txn), "no target");
	opts.flags = STELE_DRY_RUN;
	is_int(-EINVAL, stele_txn_create(NULL, &opts, &txn), "nor of a rehearsal");
}

int main(void)
{
	struct stele_txn *txn;

	plan_lazy();
	test_log_init(&messages);
	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	snprintf(other, sizeof(other), "%s/other", test_tmpdir());
	txn = create(image, 0, 0);
	is_int(0, put_some(txn, 0, 60, 0, NULL), "some");
	commit(txn);
	stele_txn_close(txn);
	test_no_target();
	test_dry();
	test_flush();
	is_sound(image);
	test_size(0);
	test_size(STELE_DRY_RUN);
	return done();
}

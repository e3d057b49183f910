/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-fork.c - a forked child has no part in its parent's transaction
 *
 * It is refused every call, and by closing it undoes nothing of what its parent goes on to
 * commit. A transaction of its own works.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/stele.h"
#include "tests/tap.h"

#define FIELD(...) {.size = sizeof(struct stele_field), __VA_ARGS__}

static const struct stele_field fields[] = {
	FIELD(.name = "data", .type = STELE_TYPE_BYTES),
};
static const struct stele_schema schema = {.size = sizeof(schema),
					   .fields = fields, .count = 1};
static char path[600];

static int put(struct stele_txn *txn, const char *key)
{
	const struct stele_txn_value value = {.data = key, .size = strlen(key)};

	return stele_txn_put(txn, key, strlen(key), &value, 1);
}

/* Exit status: which of them was not refused. */
static int call_all(struct stele_txn *txn)
{
	const int got[] = {
		stele_txn_base(txn, NULL),
		stele_txn_add(txn, "/", NULL, NULL),
		stele_txn_schema(txn, &schema, NULL),
		put(txn, "child"),
		stele_txn_delete(txn, NULL, 0),
		stele_txn_snapshot(txn, "child", NULL, NULL),
		stele_txn_rename(txn, "v1", "v"),
		stele_txn_drop(txn, "v1"),
		stele_txn_undelete(txn, "v1", NULL),
		stele_txn_free(txn, NULL, NULL, NULL),
		stele_txn_resize(txn, 0, NULL),
		stele_txn_preview(txn, NULL),
		stele_txn_commit(txn),
	};

	for (unsigned int i = 0; i < sizeof(got) / sizeof(got[0]); i++)
		if (got[i] != -EOWNERDEAD)
			return (int)i + 1;
	return strstr(stele_errmsg(), "fork") ? 0 : 100;
}

static int use_own(void)
{
	char own[700];
	struct stele_txn *txn;
	int ret;

	snprintf(own, sizeof(own), "%s.child", path);
	ret = stele_txn_create(own, NULL, &txn);
	if (ret)
		return 101;
	ret = stele_txn_schema(txn, &schema, NULL) || put(txn, "a") ||
	      stele_txn_snapshot(txn, "v1", NULL, NULL) || stele_txn_commit(txn);
	stele_txn_close(txn);
	if (ret || unlink(own))
		return 102;
	ret = stele_txn_open(path, NULL, &txn); /* its parent's is still open */
	return ret == -EBUSY ? 0 : 103;
}

static void in_child(struct stele_txn *txn, const char *what)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		int ret = call_all(txn);

		stele_txn_close(txn);
		_exit(ret ? ret : use_own());
	}
	if (child > 0)
		waitpid(child, &status, 0);
	is_int(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1, "%s: in a child", what);
}

static off_t size_of(void)
{
	struct stat st;

	return stat(path, &st) ? -1 : st.st_size;
}

static void finish(struct stele_txn *txn, const char *name, uint64_t count)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};

	is_int(0, stele_txn_snapshot(txn, name, NULL, &info), "snapshot '%s'", name);
	is_uint(count, info.sample_count, "what the parent put");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(0, stele_verify(path, NULL, NULL), "sound");
}

static void test_create(void)
{
	struct stele_txn *txn;

	if (stele_txn_create(path, NULL, &txn))
		bail("cannot create: %s", stele_errmsg());
	is_int(0, stele_txn_schema(txn, &schema, NULL), "schema");
	is_int(0, put(txn, "a"), "put");
	in_child(txn, "a new image");
	is_int(0, access(path, F_OK), "its file is there");
	is_int(0, put(txn, "b"), "put");
	finish(txn, "v1", 2);
}

static void test_open(void)
{
	static const struct stele_txn_value large = {.data = path, .size = sizeof(path)};
	struct stele_txn *txn;
	off_t size;

	if (stele_txn_open(path, NULL, &txn))
		bail("cannot open: %s", stele_errmsg());
	is_int(0, stele_txn_schema(txn, &schema, NULL), "schema");
	for (char key = 'c'; key < 'z'; key++)
		stele_txn_put(txn, &key, 1, &large, 1);
	is_int(0, stele_txn_delete(txn, NULL, 0), "written");
	size = size_of();
	in_child(txn, "an image");
	is_int(size, size_of(), "the file keeps its size");
	finish(txn, "v2", 2 + 'z' - 'c');
}

int main(void)
{
	plan_lazy();
	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	test_create();
	test_open();
	return done();
}

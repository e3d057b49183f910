/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - who may change an image, and the RBD snapshots that go with a commit
 *
 * Files for locks and guards; for RBD snapshots a storage in memory, each of whose changes
 * fails once: whatever was left half-made, the next writer completes.
 */
#include "tests/fixture/image.h"
#include "tests/device/snaps.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/device/guard.h"
#include "lib/image/snapshot.h"
#include "lib/txn/txn.h"

#define SIZE (UINT64_C(4) << 20)
enum {
	SOLE = STELE_DEVICE_WRITE | STELE_DEVICE_SOLE,
	EXCL = STELE_DEVICE_WRITE | STELE_DEVICE_EXCL,
};

static struct test_log messages;
static char path[4096];

/* ---- files ----------------------------------------------------------------- */

static struct stele_device *small_image(void)
{
	struct test_sample *samples = test_samples(5, 400, 3);
	const struct test_segment in = {.samples = samples, .count = 5};
	struct stele_device *dev = test_image_simple(&in, NULL, 0, SIZE);

	free(samples);
	return dev;
}

static void make_file(void)
{
	struct stele_device *dev = small_image();
	FILE *file;

	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	file = fopen(path, "w");
	if (!file || fwrite(stele_device_memory(dev), SIZE, 1, file) != 1 ||
	    fclose(file))
		bail("cannot write '%s'", path);
	stele_device_close(dev);
}

static int try_open(unsigned int flags)
{
	struct stele_device *dev;
	int ret = stele_device_open_file(path, flags, NULL, NULL, &dev);

	if (ret == 0)
		stele_device_close(dev);
	return ret;
}

static struct stele_device *hold(unsigned int flags)
{
	struct stele_device *dev;

	if (stele_device_open_file(path, flags, NULL, NULL, &dev) < 0)
		bail("cannot open '%s'", path);
	return dev;
}

static void check_locks(void)
{
	struct stele_device *holder = hold(0);

	is_int(0, try_open(SOLE), "a sole writer beside a reader");
	is_int(-EBUSY, try_open(EXCL), "an exclusive one is refused");
	stele_device_close(holder);
	holder = hold(SOLE);
	is_int(0, try_open(0), "a reader beside a sole writer");
	is_int(-EBUSY, try_open(SOLE), "no second one");
	is_int(-EBUSY, try_open(EXCL), "and no exclusive one");
	stele_device_close(holder);
	holder = hold(EXCL);
	is_int(-EBUSY, try_open(SOLE), "no sole writer beside an exclusive one");
	stele_device_close(holder);
	is_int(0, try_open(SOLE), "all locks are gone with their holders");
	is_int(0, try_open(EXCL), "for both");
	is_int(-EINVAL, try_open(STELE_DEVICE_SOLE), "only to write");
}

static int open_writer(struct stele_txn *writer, const char *text)
{
	test_log_init(&messages);
	return stele_txn_begin(writer, text, false, NULL, &messages.log);
}

static void check_open(void)
{
	struct stele_txn writer, second;
	struct stele_device *reader = hold(0);
	char text[4200], by[64];

	snprintf(text, sizeof(text), "%s@v2", path);
	is_int(0, open_writer(&writer, text), "a writer, beside a reader");
	is_string("v2", writer.target.snapshot, "and the name that it is to make");
	is_int(0, stele_txn_rename_snapshot(&writer, "v1", "v2"),
	       "a change");
	is_int(0, stele_txn_publish(&writer, 5), "committed");
	is_uint(2 * 4096 + 3 * 4096 + 3 * 4096, writer.written_size,
		"two catalogs and three superblocks were written, and the intent");
	is_int(-EBUSY, open_writer(&second, path), "no second writer");
	ok(test_log_has(&messages, "this process itself is writing to it"),
	   "who it is, is said");
	stele_txn_release(&second);
	stele_txn_release(&second);
	stele_txn_release(&writer);
	ok(!stele_guard_writer(path, by, sizeof(by)), "then nobody is");
	snprintf(text, sizeof(text), "%s@sha256:%064d", path, 0);
	is_int(-EINVAL, open_writer(&writer, text), "no digest");
	stele_txn_release(&writer);
	stele_device_close(reader);
}

/* Of another process, and gone with it. */
static void check_killed(void)
{
	struct stele_txn writer;
	int pipes[2];
	pid_t child;
	char byte, pid[32];

	if (pipe(pipes) < 0)
		sysbail("pipe");
	child = fork();
	if (child == 0) {
		hold(SOLE);
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	if (child < 0 || read(pipes[0], &byte, 1) != 1)
		sysbail("fork");
	is_int(-EBUSY, open_writer(&writer, path), "a writer elsewhere");
	snprintf(pid, sizeof(pid), "process %d (writer)", child);
	ok(test_log_has(&messages, pid), "is named");
	stele_txn_release(&writer);
	kill(child, SIGKILL);
	is_int(0, open_writer(&writer, path), "killed, it is no hindrance");
	stele_txn_release(&writer);
	waitpid(child, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
}

static void check_refusals(void)
{
	struct stele_txn writer, *txn;
	char text[4200];
	int fd;

	is_int(-ENOENT, open_writer(&writer, "/nowhere/at/all"), "no such file");
	ok(test_log_has(&messages, "no such file"), "is said");
	stele_txn_release(&writer);
	snprintf(text, sizeof(text), "%s-empty", path);
	fd = open(text, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, SIZE) < 0 || close(fd) < 0)
		sysbail("%s", text);
	is_int(-EMEDIUMTYPE, open_writer(&writer, text), "no image");
	stele_txn_release(&writer);
	is_int(-EMEDIUMTYPE, stele_txn_open(text, NULL, &txn), "no image, by the public call");
	ok(strstr(stele_errmsg(), text) && strstr(stele_errmsg(), "no Stele image"), "is said");
	is_int(-ENOTBLK, open_writer(&writer, "/dev/null"), "no block device");
	stele_txn_release(&writer);
}

/* ---- RBD snapshots ----------------------------------------------------------------- */

static int begin(struct stele_txn *writer, struct test_storage *storage)
{
	test_log_init(&messages);
	memset(writer, 0, sizeof(*writer));
	return stele_txn_on_device(writer, test_storage_open(storage),
				  &messages.log);
}

static int add_snapshot(struct stele_txn *writer, const char *name)
{
	struct stele_txn_snapshot snapshot =
		*stele_txn_find(writer, "v1");

	snapshot.info.parent = snapshot.info.id;
	snprintf(snapshot.info.name, sizeof(snapshot.info.name), "%s", name);
	return stele_txn_add_snapshot(writer, &snapshot);
}

static bool snap_holds(struct test_storage *storage, const char *name)
{
	struct stele_device *dev = test_storage_read(storage, name);
	struct stele_snapshot snapshot;
	struct stele_image image;
	uint32_t index;
	bool good;

	if (!dev || stele_image_load(dev, NULL, &image) < 0)
		return false;
	good = stele_snapshot_find(&image, name, NULL, &index) == 0 &&
	       stele_snapshot_load(&image, index, &snapshot) == 0;
	if (good)
		stele_snapshot_release(&snapshot);
	stele_image_release(&image);
	return good;
}

static void check_snaps(void)
{
	struct test_storage *storage = test_storage_new(small_image());
	struct stele_txn writer;

	test_storage_make(storage, "theirs", false);
	is_int(0, begin(&writer, storage), "an image without its RBD snapshot");
	is_string("theirs- v1+", test_storage_list(storage),
		  "gets it when it is opened to be changed");
	is_int(0, add_snapshot(&writer, "v2"), "a second snapshot");
	is_string("theirs- v1+", test_storage_list(storage),
		  "has none before the commit");
	is_int(0, stele_txn_publish(&writer, 7), "commit");
	is_string("theirs- v1+ v2+", test_storage_list(storage),
		  "makes and protects it, and leaves others alone");
	ok(snap_holds(storage, "v2"), "which holds the snapshot");
	is_int(-EEXIST, add_snapshot(&writer, "theirs"),
	       "a name that is taken is refused");
	ok(test_log_has(&messages, "'theirs'"), "and said");
	is_int(0, add_snapshot(&writer, "late"), "one that is free");
	test_storage_make(storage, "late", false);
	is_int(-EEXIST, stele_txn_publish(&writer, 8),
	       "and is taken before the commit, too");
	is_uint(2, writer.image->catalog.counts.snapshots,
		"before anything is committed");
	stele_txn_release(&writer);
	test_storage_free(storage);
}

/* Each change of an RBD snapshot fails in turn; then a writer comes who has no such luck. */
static void check_half_made(void)
{
	for (unsigned int n = 1; n <= 2; n++) {
		struct test_storage *storage =
			test_storage_new(small_image());
		struct stele_txn writer;

		begin(&writer, storage);
		add_snapshot(&writer, "v2");
		test_storage_fail(storage, n, -EIO);
		is_int(-EIO, stele_txn_publish(&writer, 7),
		       "change %u fails", n);
		ok(test_log_has(&messages, "'v2' is committed"),
		   "the snapshot is there nevertheless, it says");
		is_uint(2, writer.image->catalog.counts.snapshots, "it is");
		is_string(n == 1 ? "v1+" : "v1+ v2-",
			  test_storage_list(storage), "half-made");
		stele_txn_release(&writer);
		test_storage_fail(storage, 1, -EIO);
		is_int(-EIO, begin(&writer, storage), "again, at open");
		stele_txn_release(&writer);
		is_int(0, begin(&writer, storage), "the next writer");
		is_string("v1+ v2+", test_storage_list(storage),
			  "completes it");
		ok(snap_holds(storage, "v2"), "and it holds the snapshot");
		stele_txn_release(&writer);
		test_storage_free(storage);
	}
}

/* Unprotect, remove, commit: cut short before the commit. */
static void check_half_deleted(void)
{
	for (unsigned int n = 1; n <= 2; n++) {
		struct test_storage *storage =
			test_storage_new(small_image());
		const struct stele_rbd_snap_ops *ops;
		struct stele_txn writer;
		unsigned int changes;

		begin(&writer, storage);
		ops = stele_device_snaps(writer.image->dev);
		ops->protect(writer.image->dev, "v1", false);
		if (n == 2)
			ops->remove(writer.image->dev, "v1");
		stele_txn_release(&writer);
		is_int(0, begin(&writer, storage), "after %u steps of a delete",
		       n);
		is_string("v1+", test_storage_list(storage), "it is undone");
		ok(snap_holds(storage, "v1"), "and holds the snapshot");
		stele_txn_release(&writer);
		changes = test_storage_changes(storage);
		begin(&writer, storage);
		stele_txn_release(&writer);
		is_uint(changes, test_storage_changes(storage),
			"what is complete is left alone");
		test_storage_free(storage);
	}
}

int main(void)
{
	plan_lazy();
	make_file();
	check_locks();
	check_open();
	check_killed();
	check_refusals();
	check_snaps();
	check_half_made();
	check_half_deleted();
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errmsg.c - every call that fails leaves one line, for its own thread
 *
 * With and without a log; of calls that log a reason and of such that do not; of a
 * thread that works for the caller; and none of them speaks of the command's flags.
 */
#include "lib/stele.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE 1024

static char source[512], target[512], named[600];
static struct stele_dataset *ds;

/* Failed with `error`, and said so in one line that has `word`. */
static void says(int error, int ret, const char *word, const char *call)
{
	const char *line = stele_errmsg();

	is_int(error, ret, "%s fails", call);
	if (!ok(*line && !strpbrk(line, "\n\r") && strstr(line, word),
		"%s: and says why, with '%s'", call, word))
		diag("'%s'", line);
	ok(!strstr(line, " --"), "%s: without flags", call);
}

static void write_file(const char *name, const void *data, size_t size)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", source, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		sysbail("cannot write '%s'", path);
	close(fd);
}

static void make_image(void)
{
	snprintf(source, sizeof(source), "%s/source", test_tmpdir());
	snprintf(target, sizeof(target), "%s/image", test_tmpdir());
	snprintf(named, sizeof(named), "%s@v1", target);
	if (mkdir(source, 0755) < 0)
		sysbail("cannot make '%s'", source);
	write_file("a", "Lorem", 5);
	write_file("b", "ipsum dolor", 11);
	is_int(0, stele_build(source, named, NULL, NULL), "an image");
}

/* ---- calls ------------------------------------------------------------------- */

static void fails_to_open(void)
{
	struct stele_dataset *none = NULL;
	struct stele_image *image = NULL;
	char missing[600], other[600];

	snprintf(missing, sizeof(missing), "%s.missing", target);
	snprintf(other, sizeof(other), "%s@v2", target);
	says(-ENOENT, stele_dataset_open(missing, NULL, &none), missing,
	     "open of what is not there");
	says(-ENOENT, stele_dataset_open(other, NULL, &none), "v2",
	     "open of another snapshot");
	says(-ENOENT, stele_image_open(missing, NULL, &image), missing,
	     "open of no image");
	says(-EINVAL,
	     stele_dataset_open(target,
				&STELE_OPTS(stele_open_opts, .verify = 99),
				&none),
	     "verify", "open with a wrong option");
}

static void fails_on_a_dataset(void)
{
	struct stele_reader *reader = NULL;
	struct stele_loader_source one = {.ds = ds};
	struct stele_loader *loader = NULL;
	struct stele_sample sample;
	struct stele_field field = {.size = sizeof(field)};
	const char *name;
	uint64_t id = 2;

	says(-ERANGE, stele_dataset_read(ds, 2, &sample), "sample 2", "read");
	says(-ERANGE, stele_dataset_stream(ds, 2, NULL, NULL), "sample 2",
	     "stream");
	says(-ENOENT, stele_dataset_lookup(ds, "c", 1, &id), "'c'", "find");
	says(-EINVAL, stele_dataset_lookup(ds, "c", SIZE_MAX, &id), "key",
	     "find of a huge key");
	says(-EINVAL, stele_dataset_lookup(ds, NULL, 5, &id), "key", "find of no key");
	says(-EINVAL, stele_dataset_field_index(ds, NULL), "field", "field without a name");
	says(-ERANGE, stele_dataset_field(ds, 7, &field), "field 7", "field");
	says(-ENOENT, stele_dataset_field_index(ds, "nil"), "'nil'",
	     "field by name");
	says(-ERANGE, stele_dataset_class_name(ds, 7, 0, &name), "field 7",
	     "class name");
	says(-EINVAL,
	     stele_reader_open(ds, &STELE_OPTS(stele_reader_opts, .depth = ~0u),
			       &reader),
	     "depth", "reader with a wrong option");
	says(-EINVAL,
	     stele_loader_open(&one, 1,
			       &STELE_OPTS(stele_loader_opts, .rank = 3),
			       &loader),
	     "rank", "loader with a wrong option");
}

/* A sample's fields: of another type, and of a reader that is closed. */
static void fails_on_a_sample(void)
{
	struct stele_reader *reader;
	struct stele_sample sample;
	const uint64_t id = 0;
	const void *data;
	uint64_t size, dims[STELE_RANK_MAX];
	int64_t number;

	if (stele_reader_open(ds, NULL, &reader) ||
	    stele_reader_submit(reader, &id, NULL, 1) != 1 ||
	    stele_reader_collect(reader, &sample, 1, 1) != 1)
		bail("no sample");
	says(-EINVAL, stele_sample_i64(&sample, 0, &number), "it is no i64", "number of bytes");
	says(-EINVAL, stele_sample_shape(&sample, 0, dims), "it is no tensor", "shape of bytes");
	stele_reader_close(reader);
	says(-EOWNERDEAD, stele_sample_bytes(&sample, 0, &data, &size), "reader was closed",
	     "bytes of a closed reader");
	stele_sample_release(&sample);
	stele_sample_release(NULL);
}

/* The state of a loader of other data. */
static void fails_to_restore(void)
{
	struct stele_loader_source one = {.ds = ds}, two[2] = {{.ds = ds}, {.ds = ds}};
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct stele_loader *loader;

	if (stele_loader_open(two, 2, NULL, &loader))
		bail("no loader");
	stele_loader_save(loader, state);
	stele_loader_close(loader);
	if (stele_loader_open(&one, 1, NULL, &loader))
		bail("no loader");
	says(-ESTALE, stele_loader_restore(loader, state), "other data", "state of other data");
	stele_loader_close(loader);
}

/* What a transaction has dropped, it does not offer. */
static void fails_to_drop(void)
{
	struct stele_txn *txn;

	if (stele_txn_open(target, &STELE_OPTS(stele_txn_opts, .flags = STELE_FORCE), &txn) ||
	    stele_txn_drop(txn, "v1"))
		bail("cannot drop");
	says(-ENOENT, stele_txn_drop(txn, "v1"), "has deleted or renamed", "drop twice");
	says(-EINVAL, stele_txn_snapshot(txn, NULL, NULL, NULL), "snapshot ''", "no name");
	stele_txn_close(txn);
}

static void fails_to_change(void)
{
	char missing[600];
	const char *const gone[] = {missing};

	snprintf(missing, sizeof(missing), "%s.missing", target);
	says(-EEXIST, stele_build(source, named, NULL, NULL), target,
	     "build over an image");
	says(-ENOENT, stele_build(missing, named, NULL, NULL), missing,
	     "build of no source");
	says(-EEXIST, stele_append(source, named, NULL, NULL), "v1",
	     "append to a name that is taken");
	says(-ENOENT, stele_snapshot_delete(gone, 1, NULL), missing,
	     "delete in no image");
	says(-EINVAL, stele_resize(target, 4096, NULL, NULL), "shrink",
	     "resize to less");
	says(-EINVAL, stele_resize(target, UINT64_MAX - 4095, NULL, NULL), "more than an image",
	     "resize to 2^64");
	says(-EBUSY,
	     stele_gc(target,
		      &STELE_OPTS(stele_txn_opts,
				  .flags = 0),
		      NULL, NULL, NULL),
	     target, "gc without grace");
}

/* ---- threads ------------------------------------------------------------------- */

static void *other_thread(void *line)
{
	struct stele_dataset *none;

	strcpy(line, stele_errmsg());
	stele_dataset_open("/nonexistent/other", NULL, &none);
	return NULL;
}

static void is_of_its_thread(void)
{
	struct stele_dataset *none;
	char line[LINE] = "unset";
	pthread_t thread;

	stele_dataset_open("/nonexistent/mine", NULL, &none);
	if (pthread_create(&thread, NULL, other_thread, line))
		bail("no thread");
	pthread_join(thread, NULL);
	is_string("", line, "another thread has no line yet");
	ok(strstr(stele_errmsg(), "/nonexistent/mine"),
	   "and leaves this one's as it was");
}

/* A worker finds the damage; the caller asks. */
static void comes_from_workers(void)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	char byte;
	int fd = open(target, O_RDWR | O_CLOEXEC);

	if (fd < 0 || stele_dataset_locate(ds, 0, &extent) ||
	    pread(fd, &byte, 1, (off_t)extent.offset) != 1)
		bail("cannot damage the image");
	byte ^= 1;
	if (pwrite(fd, &byte, 1, (off_t)extent.offset) != 1 || fsync(fd))
		bail("cannot damage the image");
	close(fd);
	says(-EBADMSG, stele_compact(named, "v2", NULL, NULL), "'b'",
	     "compact of a damaged sample");
}

int main(void)
{
	plan_lazy();
	is_string("", stele_errmsg(), "nothing has failed yet");
	make_image();
	fails_to_open();
	fails_to_change();
	is_int(0, stele_dataset_open(named, NULL, &ds), "opens");
	fails_on_a_dataset();
	fails_on_a_sample();
	fails_to_restore();
	fails_to_drop();
	is_of_its_thread();
	comes_from_workers();
	is_int(0, stele_dataset_close(ds), "closed");
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-file.c - how files are opened, refused, locked and resized
 */
#include "lib/device/name.h"
#include "tests/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define SIZE (1u << 20)

static const char *in_tmpdir(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	return path;
}

/* Opens and closes. Return: what the open did. */
static int try_open(const char *path, unsigned int flags, const char *backend)
{
	struct stele_device *dev;
	int rc = stele_device_open_file(path, flags, backend, NULL, &dev);

	if (!rc)
		stele_device_close(dev);
	return rc;
}

static struct stele_device *open_or_bail(const char *path, unsigned int flags)
{
	struct stele_device *dev;
	int rc = stele_device_open_file(path, flags, NULL, NULL, &dev);

	if (rc)
		bail("cannot open '%s': %s", path, strerror(-rc));
	return dev;
}

static void check_unknown(void)
{
	struct test_log seen;
	struct stele_log log = test_log_to(&seen);
	struct stele_device *dev;

	setenv(STELE_BACKEND_ENV, "pigeons", 1);
	stele_device_open_file(in_tmpdir("new"), 0, NULL, &log, &dev);
	unsetenv(STELE_BACKEND_ENV);
	is_string("unknown backend 'pigeons' in $STELE_BACKEND: there are uring, "
		  "threads, iopoll, hybrid, sqpoll, passthrough",
		  seen.last, "which says where from, and which there are");
}

static void check_refusals(void)
{
	enum { WRITE_CREATE = STELE_DEVICE_WRITE | STELE_DEVICE_CREATE };

	is_int(-ENOENT, try_open(in_tmpdir("none"), 0, NULL), "no such file");
	is_int(-ENOTBLK, try_open(test_tmpdir(), 0, NULL), "a directory");
	is_int(-ENOTBLK, try_open("/dev/null", 0, NULL), "a character device");
	if (mkfifo(in_tmpdir("fifo"), 0600))
		sysbail("mkfifo");
	is_int(-ENOTBLK, try_open(in_tmpdir("fifo"), 0, NULL), "a FIFO");
	is_int(-EINVAL, try_open(in_tmpdir("new"), 1u << 30, NULL),
	       "an unknown flag");
	is_int(-EINVAL, try_open(in_tmpdir("new"), STELE_DEVICE_CREATE, NULL),
	       "created, not to be written");
	is_int(-EINVAL, try_open(in_tmpdir("new"), WRITE_CREATE, "pigeons"),
	       "an unknown backend");
	is_int(-1, access(in_tmpdir("new"), F_OK), "leaves no file");
	is_int(0, try_open(in_tmpdir("new"), WRITE_CREATE, NULL), "creates");
	is_int(-EEXIST, try_open(in_tmpdir("new"), WRITE_CREATE, NULL),
	       "what must not exist");
	is_int(-EINVAL, try_open(in_tmpdir("new"), 0, "pigeons"),
	       "an unknown backend again");
	check_unknown();
	is_int(0, access(in_tmpdir("new"), F_OK), "the file of others stays");
	is_int(0, try_open(in_tmpdir("new"), 0, NULL), "an empty file opens");
}

static void check_environment(void)
{
	static const struct {
		const char *environment, *backend, *served;
	} cases[] = {
		{"threads", NULL, "threads"}, {"threads", "", "threads"},
		{"uring", "threads", "threads"}, {"pigeons", "threads",
						  "threads"},
		{"pigeons", NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stele_device *dev;
		int rc;

		setenv(STELE_BACKEND_ENV, cases[i].environment, 1);
		rc = stele_device_open_file(in_tmpdir("new"), 0,
					    cases[i].backend, NULL, &dev);
		is_int(cases[i].served ? 0 : -EINVAL, rc, "$%s is '%s'",
		       STELE_BACKEND_ENV, cases[i].environment);
		if (rc)
			continue;
		is_string(cases[i].served, stele_device_backend(dev),
			  "and '%s' is asked for",
			  cases[i].backend ? cases[i].backend : "(null)");
		stele_device_close(dev);
	}
	unsetenv(STELE_BACKEND_ENV);
}

static void check_locks(void)
{
	enum { EXCL = STELE_DEVICE_WRITE | STELE_DEVICE_EXCL };
	struct stele_device *reader, *other, *writer;
	const char *path = in_tmpdir("new");

	reader = open_or_bail(path, 0);
	other = open_or_bail(path, 0);
	is_int(-EBUSY, try_open(path, EXCL, NULL), "two readers");
	stele_device_close(other);
	is_int(-EBUSY, try_open(path, EXCL, NULL), "one reader");
	stele_device_close(reader);
	writer = open_or_bail(path, EXCL);
	ok(writer != NULL, "none is left");
	is_int(-EBUSY, try_open(path, EXCL, NULL), "another writer");
	is_int(0, try_open(path, 0, NULL), "a reader behind a writer");
	stele_device_close(writer);
}

static void check_read_only(void)
{
	struct stele_device *dev = open_or_bail(in_tmpdir("new"), 0);
	char *data = test_data(dev, 512, 1);
	struct stele_request request = {
		.op = STELE_OP_WRITE, .data = data, .size = 512};
	struct stele_queue *queue;

	is_int(-EROFS, stele_device_write(dev, data, 0, 512), "writes");
	is_int(-EROFS, stele_device_flush(dev), "flushes");
	is_int(-EROFS, stele_device_discard(dev, 0, 512), "discards");
	is_int(-EROFS, stele_device_resize(dev, 512), "resizes");
	if (stele_queue_open(dev, 1, NULL, 0, &queue))
		bail("no queue");
	is_int(-EROFS, stele_queue_submit(queue, &request), "queues");
	stele_queue_close(queue);
	stele_device_close(dev);
	free(data);
}

static void check_descriptor(void)
{
	struct stele_device *dev = open_or_bail(in_tmpdir("new"),
						STELE_DEVICE_WRITE);
	struct stele_device *memory;
	int fd = stele_device_fd(dev);

	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "closed on exec");
	ok(fcntl(fd, F_GETFL) & O_DIRECT, "direct");
	is_int(O_RDWR, fcntl(fd, F_GETFL) & O_ACCMODE, "for writing");
	stele_device_close(dev);

	memory = test_memory(4096, 512, 0);
	is_int(-EOPNOTSUPP, stele_device_fd(memory), "memory has none");
	is_int(-EOPNOTSUPP, stele_device_resize(memory, 512),
	       "nor another size");
	stele_device_close(memory);
	is_int(-EINVAL, stele_device_open_memory(4096, 513, &memory),
	       "no such block");
	is_int(-EINVAL, stele_device_open_memory(0, 512, &memory), "no size");
}

static void check_resize(void)
{
	struct stele_device *dev = open_or_bail(in_tmpdir("new"),
						STELE_DEVICE_WRITE);
	char *data = test_data(dev, 8192, 2), *seen = test_data(dev, 8192, 3);
	uint64_t size = 1;

	is_int(-ENOSPC, stele_device_write(dev, data, 0, 4096), "no room");
	is_int(-EINVAL, stele_device_resize(dev, 1000), "not aligned");
	is_int(-EINVAL, stele_device_resize(dev, UINT64_MAX - 511),
	       "beyond any file");
	is_int(0, stele_device_resize(dev, SIZE), "grows");
	stele_device_size(dev, &size);
	is_uint(SIZE, size, "to that size");
	is_int(0, stele_device_write(dev, data, SIZE - 8192, 8192), "has room");
	is_int(0, stele_device_resize(dev, SIZE - 4096), "shrinks");
	is_int(-ENOSPC, stele_device_write(dev, data, SIZE - 4096, 4096),
	       "and has none behind its end");
	is_int(0, stele_device_resize(dev, SIZE), "grows again");
	is_int(0, stele_device_read(dev, seen, SIZE - 8192, 8192), "reads");
	memset(data + 4096, 0, 4096);
	is_blob(data, seen, 8192, "zeros where it has grown");
	stele_device_close(dev);
	free(data);
	free(seen);
}

/* What a call that failed by it, and logged nothing, has for a reason. */
static const char *reason_of(int ret)
{
	stele_call_end(ret, "call");
	return stele_errmsg();
}

/* -ENOSPC of the kernel is its filesystem's, that behind the end the target's. */
static void check_full(void)
{
	const struct stele_fault_rule full = {.kind = STELE_FAULT_FAIL, .error = ENOSPC};
	struct stele_device *dev = open_or_bail(in_tmpdir("new"), STELE_DEVICE_WRITE);
	char *data = test_data(dev, 4096, 2);

	stele_call_begin();
	is_string("call: the target is too small",
		  reason_of(stele_device_write(dev, data, SIZE, 4096)), "written behind the end");
	if (stele_device_open_fault(dev, &full, 1, &dev))
		bail("no faults");
	stele_call_begin();
	is_string("call: its filesystem is full",
		  reason_of(stele_device_write(dev, data, SIZE - 4096, 4096)),
		  "written within it");
	stele_call_begin();
	is_string("call: its filesystem is full", reason_of(stele_device_flush(dev)), "flushed");
	stele_call_begin();
	stele_device_write(dev, data, 0, 4096);
	is_string("call: the storage or a quota on it is full", reason_of(-EDQUOT),
		  "another error has a meaning of its own");
	stele_call_begin();
	is_string("call: the target is too small", reason_of(-ENOSPC),
		  "what a call was told, the next one has not been");
	stele_device_close(dev);
	free(data);
}

/* Good for what was asked a moment ago, and no more. */
static int grant(struct stele_permit *permit)
{
	(void)permit;
	return 0;
}

static int refuse(struct stele_permit *permit)
{
	(void)permit;
	return -ESTALE;
}

static void check_permit(void)
{
	struct stele_permit late = {grant, refuse};
	struct stele_device *dev = open_or_bail(in_tmpdir("new"),
						STELE_DEVICE_WRITE);
	char *data = test_data(dev, 4096, 2);
	uint64_t size = 0;

	dev->permit = &late;
	is_int(0, stele_device_write(dev, data, 0, 4096),
	       "a writer's last look will do for a write");
	is_int(-ESTALE, stele_device_discard(dev, 0, 4096),
	       "not for a discard");
	is_int(-ESTALE, stele_device_resize(dev, 4096), "nor for another size");
	stele_device_size(dev, &size);
	is_uint(SIZE, size, "nothing happened");
	stele_device_close(dev);
	free(data);
}

/* A file of others, whose end lies within a block. */
static void check_odd_end(void)
{
	struct stele_device *dev;
	char *data;

	if (truncate(in_tmpdir("new"), 8192 + 1000))
		sysbail("truncate");
	dev = open_or_bail(in_tmpdir("new"), STELE_DEVICE_WRITE);
	data = test_data(dev, 8192, 4);
	is_int(0, stele_device_read(dev, data, 0, 8192), "reads before it");
	is_int(-ENODATA, stele_device_read(dev, data, 8192, 4096),
	       "reads across it");
	is_int(-ENOSPC, stele_device_write(dev, data, 4096, 8192),
	       "writes across it");
	stele_device_close(dev);
	free(data);
}

/* Somebody cuts it off: what is written behind the cut must not make it look whole again. */
static void check_cut_off(void)
{
	struct test_log seen;
	struct stele_log log = test_log_to(&seen);
	struct stele_device *dev;
	char *data;

	if (stele_device_open_file(in_tmpdir("cut"), STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				   "threads", &log, &dev))
		bail("cannot create a file");
	data = test_data(dev, 4096, 4);
	is_int(0, stele_device_resize(dev, 16384), "made larger");
	is_int(0, stele_device_resize(dev, 8192), "cut off by us");
	is_int(0, stele_device_write(dev, data, 4096, 4096), "is written to");
	is_int(0, stele_file_check_whole(dev), "and whole");
	if (truncate(in_tmpdir("cut"), 4096))
		sysbail("truncate");
	is_int(-ESTALE, stele_device_write(dev, data, 4096, 4096), "not when others cut it");
	is_int(-ESTALE, stele_device_grow(dev, 16384), "nor does it grow");
	is_uint(1, seen.errors, "which is said once: %s", seen.last);
	if (truncate(in_tmpdir("cut"), 8192))
		sysbail("truncate");
	is_int(-ESTALE, stele_file_check_whole(dev), "it stays cut off at its old size");
	is_int(0, stele_file_check_place(dev), "where it was");
	stele_device_close(dev);
	free(data);
}

/* Files of /proc have no direct I/O on any kernel. */
static void check_buffered(void)
{
	struct test_log seen;
	struct stele_log log = test_log_to(&seen);
	struct stele_device *dev;

	is_int(0, stele_device_open_file("/proc/version", 0, "threads", &log,
					 &dev),
	       "opens without direct I/O");
	is_uint(1, seen.warnings, "and says so once: %s", seen.last);
	ok(strstr(seen.last, "'/proc/version'") != NULL, "by name");
	ok(!(fcntl(stele_device_fd(dev), F_GETFL) & O_DIRECT), "not direct");
	stele_device_close(dev);
}

int main(void)
{
	plan_lazy();
	unsetenv(STELE_BACKEND_ENV);
	check_refusals();
	check_environment();
	check_locks();
	check_read_only();
	check_descriptor();
	check_resize();
	check_full();
	check_permit();
	check_odd_end();
	check_cut_off();
	check_buffered();
	return done();
}

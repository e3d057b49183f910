/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5.c - rows of the datasets of an HDF5 file
 *
 * libhdf5 is not safe on damaged files, and neither are threads in it: it runs in a child, which
 * says what it finds. One that dies is damage of the file. What is neither in chunks nor of
 * another byte order stays in the file, all else is copied to the store.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "from/arrays.h"
#include "from/hdf5_child.h"
#include "libhdf5.h"

#define SIGNATURE      "\x89HDF\r\n\x1a\n"
#define SIGNATURE_SIZE 8u
#define TICK_MS	       100

struct hdf5 {
	struct arrays *arrays;
	pid_t child;
	int pipe;
	struct array *array; /* whose data comes; NULL: it is not wanted */
	uint64_t stored; /* size of the store before it */
	char name[STELE_NAME_SIZE_MAX + 1]; /* that was last */
	uint8_t data[HDF5_FRAME_MAX];
};

/* Behind a block of the user's, if there is one. */
static bool detect(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + SIGNATURE_SIZE <= size; at = at ? 2 * at : 512)
		if (!memcmp(data + at, SIGNATURE, SIGNATURE_SIZE))
			return true;
	return false;
}

/* ---- the child ------------------------------------------------------------------- */

/* Messages of the C library about broken heaps are no use. */
static void run(const struct from_scan *scan, int pipe)
{
	const struct rlimit none = {0, 0};
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_DFL);
	/* The parent ends it; timeout(1) and supervisors signal the group. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPROF, SIG_DFL);
	dup2(nowhere, STDERR_FILENO);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", scan->input.fd);
	hdf5_child(path, scan->from->opts.arrays, pipe);
	_exit(0);
}

static int begin(struct hdf5 *hdf5)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	hdf5->child = fork();
	if (!hdf5->child)
		run(hdf5->arrays->scan, ends[1]);
	close(ends[1]);
	hdf5->pipe = ends[0];
	return hdf5->child < 0 ? -errno : 0;
}

/* Return: its status. */
static int end(struct hdf5 *hdf5, bool complete)
{
	int status = 0;

	if (hdf5->child <= 0)
		return 0;
	if (!complete)
		kill(hdf5->child, SIGKILL);
	while (waitpid(hdf5->child, &status, 0) < 0 && errno == EINTR)
		;
	close(hdf5->pipe);
	hdf5->child = 0;
	return status;
}

/* It says no more. Return: 0: skipped; negative errno (said). */
static int died(struct hdf5 *hdf5)
{
	const int status = end(hdf5, false), by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	hdf5->arrays->count = 0; /* who knows what is missing? */
	return from_damaged(hdf5->arrays->scan, 0, "libhdf5 %s%s%s%s%s",
			    by == SIGPROF ? "finds no end" : by ? "crashed: " : "gave up",
			    by && by != SIGPROF ? strsignal(by) : "",
			    hdf5->name[0] ? " (array '" : "", hdf5->name,
			    hdf5->name[0] ? "')" : "");
}

/* Return: how many bytes, fewer if it died; negative errno. */
static int64_t receive(struct hdf5 *hdf5, void *data, size_t size)
{
	struct input *input = &hdf5->arrays->scan->input;
	size_t done = 0;

	while (done < size) {
		struct pollfd wait = {.fd = hdf5->pipe, .events = POLLIN};
		ssize_t got;

		if (poll(&wait, 1, TICK_MS) <= 0) {
			int ret = input->tick(input->user, 0);

			if (ret)
				return ret;
			continue;
		}
		got = read(hdf5->pipe, (uint8_t *)data + done, size - done);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	return (int64_t)done;
}

/* ---- frames ---------------------------------------------------------------------- */

static struct array *next_array(struct hdf5 *hdf5)
{
	return &hdf5->arrays->list[hdf5->arrays->count];
}

/* The one before is complete. */
static void finish_array(struct hdf5 *hdf5)
{
	struct from *from = hdf5->arrays->scan->from;

	if (!hdf5->array)
		return;
	if (hdf5->array->place >> PLACE_SHARD_SHIFT == PLACE_STORE)
		hdf5->array->data_size = from->store.size -
					 (hdf5->array->place & PLACE_OFFSET_MAX);
	arrays_add(hdf5->arrays);
	hdf5->array = NULL;
}

static int take_array(struct hdf5 *hdf5, const struct hdf5_array *wire)
{
	struct from_scan *scan = hdf5->arrays->scan;
	struct array *array;
	int ret;

	finish_array(hdf5);
	array = next_array(hdf5);
	memcpy(hdf5->name, wire->name, sizeof(hdf5->name));
	memcpy(array->name, wire->name, sizeof(array->name));
	array->npy = wire->npy;
	array->varies = wire->varies;
	ret = arrays_check(hdf5->arrays, array);
	if (ret <= 0)
		return ret;
	ret = 0;
	hdf5->stored = scan->from->store.size;
	if (!wire->placed) {
		ret = from_store(scan, 0, &array->place);
	} else if (wire->offset > scan->shard->size ||
		   wire->npy.data_size > scan->shard->size - wire->offset) {
		return from_damaged(scan, scan->shard->size, "array '%s' is cut short",
				    array->name);
	} else {
		array->place = from_place(scan, wire->offset);
		array->data_size = wire->npy.data_size;
	}
	hdf5->array = ret ? NULL : array;
	return ret;
}

/* Of the array that comes, if there is one. */
static int take_damage(struct hdf5 *hdf5, size_t size)
{
	if (hdf5->array)
		store_truncate(&hdf5->arrays->scan->from->store, hdf5->stored);
	hdf5->array = NULL;
	return from_damaged(hdf5->arrays->scan, 0, "%.*s", (int)size, hdf5->data);
}

static int take_warning(struct hdf5 *hdf5, size_t size)
{
	hdf5->data[size < HDF5_FRAME_MAX ? size : HDF5_FRAME_MAX - 1] = '\0';
	from_warn(hdf5->arrays->scan, 0, (const char *)hdf5->data);
	return 0;
}

/* Return: 1: that was all; 0; negative errno (said). */
static int take_frame(struct hdf5 *hdf5, const struct hdf5_frame *frame)
{
	struct from_scan *scan = hdf5->arrays->scan;
	struct hdf5_end end;
	int ret;

	switch (frame->kind) {
	case HDF5_ARRAY:
		return take_array(hdf5, (const struct hdf5_array *)hdf5->data);
	case HDF5_DATA:
		ret = hdf5->array ? from_append(scan, hdf5->data, frame->size) : 0;
		return ret ? ret : scan->input.tick(scan->input.user, 0);
	case HDF5_DAMAGE:
		return take_damage(hdf5, frame->size);
	case HDF5_WARNING:
		return take_warning(hdf5, frame->size);
	default: /* HDF5_END */
		finish_array(hdf5);
		memcpy(&end, hdf5->data, sizeof(end));
		end.names[sizeof(end.names) - 1] = '\0';
		strcpy(hdf5->arrays->names, end.names);
		ret = arrays_found(hdf5->arrays, end.chosen);
		return ret ? ret : 1;
	}
}

static int take_frames(struct hdf5 *hdf5)
{
	struct hdf5_frame frame;
	int64_t got;
	int ret = 0;

	while (!ret) {
		got = receive(hdf5, &frame, sizeof(frame));
		if (got == sizeof(frame) && frame.size <= HDF5_FRAME_MAX)
			got = receive(hdf5, hdf5->data, frame.size) - frame.size;
		else if (got >= 0)
			got = -EPIPE;
		if (got == -ECANCELED)
			return (int)got;
		if (got)
			return died(hdf5);
		ret = take_frame(hdf5, &frame);
	}
	return ret < 0 ? ret : 0;
}

/* ---- shards -------------------------------------------------------------------- */

static int find_arrays(struct arrays *arrays)
{
	struct from_scan *scan = arrays->scan;
	struct hdf5 *hdf5 = calloc(1, sizeof(*hdf5));
	int ret;

	if (!hdf5)
		return -ENOMEM;
	hdf5->arrays = arrays;
	ret = begin(hdf5);
	if (ret)
		ret = from_failed(scan->from, ret, "cannot start a process that reads HDF5");
	else
		ret = take_frames(hdf5);
	end(hdf5, false);
	free(hdf5);
	return ret ? ret : scan->input.tick(scan->input.user, scan->shard->size);
}

static int hdf5_scan(struct from_scan *scan)
{
	if (!from_is_plain(scan))
		return from_failed(scan->from, -EOPNOTSUPP, "cannot read an HDF5 file that is "
				   "compressed or comes through a pipe");
	if (!libhdf5_load()) {
		scan->from->complained = true;
		return -ENOSYS;
	}
	return arrays_scan(scan, find_arrays);
}

const struct from_format from_hdf5 = {
	.name = "hdf5",
	.detect = detect,
	.scan = hdf5_scan,
	.kind = FROM_RECORDS,
	.options = FROM_ARRAYS | FROM_KEY,
};

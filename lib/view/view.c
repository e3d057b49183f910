/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - a snapshot through the page cache: samples by pointer
 *
 * One shared read-only mapping of the target up to the high-water mark. What
 * the cache holds may be older than what is on a device that another machine
 * wrote, so the range is dropped from it at open, and nothing reads ahead of
 * a sample (MADV_RANDOM). That is advice: who must know turns checksums on.
 *
 * The pages of a sample fault one by one, each a read of its own; prefetch asks
 * for them in one piece, and reports what a touch would turn into SIGBUS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/image/proof.h"
#include "lib/options.h"
#include "lib/read/sample.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14 */
#endif
/* Samples that are asked for ahead of those that are waited for. */
#define PREFETCH_WINDOW 256u
#define SCRATCH_SIZE	(64u << 10)

struct stele_view {
	struct stele_dataset *ds;
	char *memory;
	size_t size;
	size_t page_size;
	enum stele_verify verify;
};

static int map_target(struct stele_view *view, int fd)
{
	uint64_t size;

	if (!checked_round_up(view->ds->image.sb.high_water, view->page_size,
			      &size) ||
	    size > PTRDIFF_MAX)
		return -ENOMEM;
	posix_fadvise(fd, 0, (off_t)size, POSIX_FADV_DONTNEED);
	view->memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (view->memory == MAP_FAILED)
		return -errno;
	view->size = size;
	madvise(view->memory, size, MADV_RANDOM);
	return 0;
}

static int check_options(const struct stele_view_opts *opts,
			 const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"verify", opts->verify, STELE_VERIFY_DIGEST},
		{"reserved", opts->reserved, 0},
	};

	return stele_options_check(limits, sizeof(limits) / sizeof(*limits),
				   log);
}

int stele_view_open(struct stele_dataset *ds, const struct stele_view_opts *opts,
		    struct stele_view **out)
{
	struct stele_view_opts known;
	struct stele_view *view;
	int err, fd;

	err = stele_options_copy(opts, &known, sizeof(known), &ds->image.log);
	if (!err)
		err = check_options(&known, &ds->image.log);
	if (err)
		return err;
	fd = stele_device_fd(ds->image.dev);
	if (fd < 0)
		return fd;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->ds = ds;
	view->page_size = (size_t)sysconf(_SC_PAGESIZE);
	view->verify = stele_dataset_verify(ds, known.verify);
	err = map_target(view, fd);
	if (err) {
		stele_view_close(view);
		return err;
	}
	*out = view;
	return 0;
}

void stele_view_close(struct stele_view *view)
{
	if (!view)
		return;
	if (view->size)
		munmap(view->memory, view->size);
	free(view);
}

static int locate(const struct stele_view *view, uint64_t id,
		  struct stele_slot *slot)
{
	int err = stele_slot_locate(view->ds, id, slot);

	if (!err && !range_ok(slot->offset, slot->size, view->size))
		err = -EUCLEAN;
	return err;
}

int stele_view_sample(struct stele_view *view, uint64_t id,
		      struct stele_sample *out)
{
	struct stele_proof proof = {0};
	struct stele_slot slot;
	int err;

	*out = (struct stele_sample){.id = id};
	err = locate(view, id, &slot);
	if (!err && view->verify == STELE_VERIFY_DIGEST)
		err = stele_proof_init(&proof, &view->ds->image, 0);
	if (err) {
		out->status = err;
		return err;
	}
	err = stele_sample_decode(view->ds, &slot, view->memory + slot.offset,
				  view->verify, &proof, STELE_LOG_ERROR, out);
	stele_proof_release(&proof);
	out->status = stele_slot_judge(view->ds, &slot, err);
	return out->status;
}

/* ---- prefetch --------------------------------------------------------------- */

static int read_range(int fd, void *scratch, size_t offset, size_t size)
{
	while (size) {
		ssize_t n = pread(fd, scratch,
				  size < SCRATCH_SIZE ? size : SCRATCH_SIZE,
				  (off_t)offset);

		if (n <= 0)
			return n ? -errno : -EIO;
		offset += (size_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* For kernels without MADV_POPULATE_READ: buffered reads fill the same cache. */
static int read_pages(const struct stele_view *view, size_t offset, size_t size)
{
	char path[64], *scratch;
	int err = -ENOMEM, fd;

	/* The dataset's own descriptor goes past the cache. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d",
		 stele_device_fd(view->ds->image.dev));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	scratch = malloc(SCRATCH_SIZE);
	if (scratch)
		err = read_range(fd, scratch, offset, size);
	free(scratch);
	close(fd);
	return err;
}

/* In whole pages, as madvise wants them. */
static int sample_pages(const struct stele_view *view, uint64_t id,
			size_t *offset, size_t *size)
{
	struct stele_slot slot;
	int err = locate(view, id, &slot);

	if (err)
		return err;
	*offset = round_down(slot.offset, view->page_size);
	*size = round_up(slot.offset + slot.size, view->page_size) - *offset;
	return 0;
}

static void start_sample(const struct stele_view *view, uint64_t id)
{
	size_t offset, size;

	if (!sample_pages(view, id, &offset, &size))
		madvise(view->memory + offset, size, MADV_WILLNEED);
}

static int finish_sample(const struct stele_view *view, uint64_t id)
{
	size_t offset, size;
	int err = sample_pages(view, id, &offset, &size);

	if (err)
		return err;
	if (!madvise(view->memory + offset, size, MADV_POPULATE_READ))
		return 0;
	if (errno == EINVAL)
		return read_pages(view, offset, size);
	/* EFAULT: a touch would have raised SIGBUS. */
	return errno == EFAULT ? -EIO : -errno;
}

int stele_view_prefetch(struct stele_view *view, const uint64_t *ids,
			size_t count)
{
	size_t started = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		int one;

		for (; started < count && started < i + PREFETCH_WINDOW;
		     started++)
			start_sample(view, ids[started]);
		one = finish_sample(view, ids[i]);
		if (!err)
			err = one;
	}
	return err;
}

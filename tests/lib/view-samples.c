/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view-samples.c - the mapping shows what a read brings, or says why not
 *
 * Every sample of the view equals that of a read. What a touch would turn into
 * SIGBUS, prefetch reports. Where the kernel has no MADV_POPULATE_READ (a
 * filter on system calls plays such a kernel) it is no different.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define POPULATE_READ 22u

/* On the file itself: what a fault device would have no descriptor of. */
static struct stele_dataset *open_plain(const struct test_dataset *t,
					const char *backend)
{
	struct stele_target target = {0};
	struct stele_dataset *ds;
	struct stele_device *dev;

	if (stele_device_open_file(t->path, 0, backend, NULL, &dev) ||
	    stele_dataset_create(dev, &target, NULL, &ds))
		bail("cannot open '%s'", t->path);
	return ds;
}

static struct stele_view *open_view(struct stele_dataset *ds, uint32_t verify)
{
	struct stele_view *view;

	if (stele_view_open(ds, &STELE_OPTS(stele_view_opts, .verify = verify),
			    &view))
		bail("no view");
	return view;
}

static void test_equal(const struct test_dataset *t, struct stele_dataset *ds,
		       uint32_t verify)
{
	struct stele_view *view = open_view(ds, verify);
	uint64_t *ids = calloc(t->count, sizeof(*ids)), wrong = 0;
	struct stele_sample sample;

	for (uint64_t id = 0; id < t->count; id++)
		ids[id] = id;
	is_int(0, stele_view_prefetch(view, ids, t->count), "prefetch all");
	for (uint64_t id = 0; id < t->count; id++) {
		wrong += stele_view_sample(view, id, &sample) != 0;
		wrong += !test_is_sample(t, id, &sample);
	}
	is_uint(0, wrong, "every sample is that of a read (verify %u)", verify);
	ids[1] = t->count;
	is_int(-ERANGE, stele_view_prefetch(view, ids, 3), "no such id");
	is_int(-ERANGE, stele_view_sample(view, t->count, &sample), "nor here");
	is_int(-ERANGE, sample.status, "status too");
	is_int(0, stele_view_prefetch(view, NULL, 0), "nothing to prefetch");
	stele_view_close(view);
	free(ids);
}

/* Are all pages of a sample in the page cache, by its place in the file? */
static bool is_cached(const struct test_dataset *t, uint64_t id)
{
	unsigned char vec[64] = {0};
	struct test_read read;
	bool cached = true;
	size_t pages;
	void *map;
	int fd = open(t->path, O_RDONLY | O_CLOEXEC);

	test_reads_of(t, id, &read, 1);
	read.size += read.offset % 4096;
	read.offset -= read.offset % 4096;
	map = mmap(NULL, read.size, PROT_READ, MAP_SHARED, fd,
		   (off_t)read.offset);
	pages = (read.size + 4095) / 4096;
	if (map == MAP_FAILED || pages > sizeof(vec) ||
	    mincore(map, read.size, vec))
		sysbail("mincore");
	for (size_t i = 0; i < pages; i++)
		cached = cached && (vec[i] & 1);
	munmap(map, read.size);
	close(fd);
	return cached;
}

static void test_prefetch(const struct test_dataset *t,
			  struct stele_dataset *ds)
{
	struct stele_view *view = open_view(ds, 0);
	uint64_t ids[3] = {9, 40, 77};
	unsigned int before = 0, after = 0;

	for (unsigned int i = 0; i < 3; i++)
		before += is_cached(t, ids[i]);
	is_int(0, stele_view_prefetch(view, ids, 3), "prefetch three");
	for (unsigned int i = 0; i < 3; i++)
		after += is_cached(t, ids[i]);
	is_uint(0, before, "opening the view dropped what was cached");
	is_uint(3, after, "prefetch brought it");
	stele_view_close(view);
}

static void flip_byte(const struct test_dataset *t, uint64_t id)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	int fd = open(t->path, O_RDWR | O_CLOEXEC);
	char byte;

	stele_dataset_locate(t->ds, id, &extent);
	if (pread(fd, &byte, 1, (off_t)extent.offset) != 1)
		sysbail("read");
	byte ^= 4;
	if (pwrite(fd, &byte, 1, (off_t)extent.offset) != 1 || fsync(fd))
		sysbail("write");
	close(fd);
}

static void test_damage(const struct test_dataset *t, struct stele_dataset *ds)
{
	struct stele_view *checked, *unchecked;
	struct stele_sample sample;

	flip_byte(t, 12);
	checked = open_view(ds, STELE_VERIFY_CRC);
	unchecked = open_view(ds, STELE_VERIFY_NONE);
	is_int(-EBADMSG, stele_view_sample(checked, 12, &sample), "damage");
	ok(!sample.data, "no bytes");
	is_int(0, stele_view_sample(checked, 13, &sample), "its neighbour");
	is_int(0, stele_view_sample(unchecked, 12, &sample), "not asked");
	stele_view_close(checked);
	stele_view_close(unchecked);
	flip_byte(t, 12);
}

/* Behind the end of a file that was cut: the last ids are the first to go. */
static void test_truncated(const struct test_dataset *t,
			   struct stele_dataset *ds)
{
	struct stele_view *view = open_view(ds, 0);
	uint64_t ids[3] = {0, t->count - 1, 1};
	struct stele_extent extent = {.size = sizeof(extent)};
	struct stele_sample sample;

	stele_dataset_locate(t->ds, t->count - 1, &extent);
	if (truncate(t->path, (off_t)(extent.offset / 4096 * 4096)))
		sysbail("truncate");
	is_int(-EIO, stele_view_prefetch(view, ids, 3), "no pages there");
	ok(is_cached(t, 1), "the others were brought");
	is_int(0, stele_view_sample(view, 1, &sample), "and can be used");
	ok(test_is_sample(t, 1, &sample), "with all bytes");
	stele_view_close(view);
}

static void test_refusals(const struct test_dataset *t)
{
	struct test_plan plan = {.samples = 3, .size_max = 9};
	struct stele_dataset *ds = open_plain(t, NULL);
	struct test_dataset memory;
	struct stele_view *view;

	test_dataset_open(&memory, &plan);
	is_int(-EOPNOTSUPP, stele_view_open(memory.ds, NULL, &view),
	       "a device without a descriptor");
	test_dataset_close(&memory);
	is_int(-EINVAL,
	       stele_view_open(ds,
			       &STELE_OPTS(stele_view_opts,
					   .verify = 1 + STELE_VERIFY_DIGEST),
			       &view),
	       "no digests through a view");
	is_int(-EINVAL,
	       stele_view_open(ds, &STELE_OPTS(stele_view_opts, .flags = 1u << 31),
			       &view),
	       "unknown flag");
	stele_view_close(NULL);
	stele_dataset_close(ds);
}

/* From here on this process has a kernel before 5.14. */
static void forbid_populate(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_READ, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		sysbail("no filter");
}

static void check(const char *backend)
{
	struct test_plan plan = {.segments = 2,
				 .samples = 100,
				 .size_max = 30000,
				 .delete_every = 6,
				 .backend = backend};
	struct stele_dataset *ds;
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	ds = open_plain(&t, backend);
	test_equal(&t, ds, 0);
	test_equal(&t, ds, STELE_VERIFY_CRC);
	test_prefetch(&t, ds);
	test_damage(&t, ds);
	test_refusals(&t);
	test_truncated(&t, ds);
	stele_dataset_close(ds);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check("uring");
	check("threads");
	forbid_populate();
	check("threads");
	return done();
}

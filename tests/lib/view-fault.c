/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view-fault.c - samples that a view fetches when they are touched
 *
 * Every sample equals the one that was written, however it comes: requested, prefetched, or
 * touched after it was dropped. What cannot be verified is an error, and under a pointer from
 * before it is SIGBUS: never zeros. Older kernels, and those that forbid userfaultfd, are
 * played by filters on system calls, in children.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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

#define PAGE	4096u
#define THREADS 6u
#define TOUCHES 400u /* of each thread; or bytes of slots: */
#define TOUCHED (8u << 20)

/* By number: older headers lack them. */
#define IOC_NEW	       0xaa00u	   /* USERFAULTFD_IOC_NEW */
#define POISON	       0xc020aa08u /* UFFDIO_POISON */
#define USER_MODE_ONLY 1u

static bool user_mode_only; /* what the kernel allows, before we do anything */

static struct stele_view *try_view(struct stele_dataset *ds, uint32_t verify,
				   uint64_t memory)
{
	struct stele_view *view;

	if (stele_view_open(ds, &STELE_OPTS(stele_view_opts, .verify = verify,
					    .flags = STELE_VIEW_FETCH,
					    .memory_size = memory), &view))
		return NULL;
	return view;
}

static struct stele_view *open_view(const struct test_dataset *t, uint64_t memory)
{
	struct stele_view *view = try_view(t->ds, STELE_VERIFY_DEFAULT, memory);

	if (!view)
		bail("no view: %s", stele_errmsg());
	return view;
}

/* The least that a view of this dataset takes. */
static uint64_t least(const struct test_dataset *t)
{
	return (t->ds->slot_size_max / PAGE + 2) * PAGE;
}

/* Pointers to all samples; returns how many are wrong just now. */
static uint64_t ask_all(const struct test_dataset *t, struct stele_view *view,
			struct stele_sample *all)
{
	uint64_t wrong = 0;

	for (uint64_t id = 0; id < t->count; id++) {
		wrong += stele_view_sample(view, id, &all[id]) != 0;
		wrong += !test_is_sample(t, id, &all[id]);
	}
	return wrong;
}

static struct stele_sample *new_samples(const struct test_dataset *t)
{
	struct stele_sample *all = calloc(t->count, sizeof(*all));

	if (!all)
		bail("no memory");
	return all;
}

/* Pages that are there, from the first byte of any sample to the last one. */
static uint64_t count_present(const struct test_dataset *t,
			      const struct stele_sample *all)
{
	uintptr_t begin = UINTPTR_MAX, end = 0;
	uint64_t count = 0;
	unsigned char *vec;

	for (uint64_t id = 0; id < t->count; id++) {
		const uintptr_t data = (uintptr_t)all[id].data;
		const uintptr_t tail = (uintptr_t)all[id].tail;

		begin = data < begin ? data : begin;
		end = tail > end ? tail : end;
	}
	begin -= begin % PAGE;
	vec = calloc((end - begin) / PAGE + 1, 1);
	if (!vec || mincore((void *)begin, end - begin, vec))
		sysbail("mincore");
	for (uintptr_t i = 0; i < (end - begin + PAGE - 1) / PAGE; i++)
		count += vec[i] & 1;
	free(vec);
	return count;
}

/* ---- what comes ------------------------------------------------------------- */

static void test_equal(const struct test_dataset *t, uint32_t verify)
{
	struct stele_view *view = try_view(t->ds, verify, 0);
	struct stele_sample *all = new_samples(t);
	uint64_t wrong = 0;
	size_t count;

	is_uint(0, ask_all(t, view, all), "every sample, verify %u", verify);
	for (uint64_t id = 0; id < t->count; id++)
		wrong += !test_is_sample(t, id, &all[id]);
	is_uint(0, wrong, "and all of them still");
	stele_fault_log_clear(t->dev);
	is_uint(0, ask_all(t, view, all), "and again");
	stele_fault_log(t->dev, &count);
	is_uint(0, count, "from memory");
	is_int(-ERANGE, stele_view_sample(view, t->count, &all[0]), "no such id");
	stele_view_close(view);
	free(all);
}

/* All have been handed out; few can be there. */
static void test_evicted(const struct test_dataset *t)
{
	const uint64_t memory = least(t);
	struct stele_view *view = open_view(t, memory);
	struct stele_sample *all = new_samples(t);
	uint64_t wrong = 0, present;

	is_uint(0, ask_all(t, view, all), "with little memory");
	for (unsigned int round = 0; round < 2; round++)
		for (uint64_t id = 0; id < t->count; id++)
			wrong += !test_is_sample(t, id, &all[id]);
	is_uint(0, wrong, "what was dropped comes back when it is touched");
	present = count_present(t, all);
	ok(present && present <= memory / PAGE, "never more than allowed: %ju of %ju",
	   (uintmax_t)present, (uintmax_t)(memory / PAGE));
	stele_view_close(view);
	free(all);
}

/* The kernel touches, too. */
static void test_syscall(const struct test_dataset *t)
{
	struct stele_view *view = open_view(t, least(t));
	struct stele_sample *all = new_samples(t);
	const struct test_sample *wanted;
	int fd = memfd_create("copy", MFD_CLOEXEC);
	uint64_t wrong = 0;
	char *copy;

	ask_all(t, view, all);
	for (uint64_t id = 0; id < t->count && !user_mode_only; id++) {
		wanted = t->live[id].sample;
		copy = malloc(wanted->size + 1);
		wrong += pwrite(fd, all[id].data, all[id].size, 0) !=
			 (ssize_t)wanted->size;
		wrong += pread(fd, copy, wanted->size, 0) != (ssize_t)wanted->size ||
			 memcmp(copy, wanted->data, wanted->size) != 0;
		free(copy);
	}
	if (user_mode_only)
		skip_block(1, "needs userfaultfd for system calls");
	else
		is_uint(0, wrong, "system calls bring samples in");
	close(fd);
	stele_view_close(view);
	free(all);
}

static void test_prefetch(const struct test_dataset *t)
{
	uint64_t *ids = calloc(t->count + 3, sizeof(*ids)), wrong = 0;
	struct stele_view *view = open_view(t, 0), *small;
	struct stele_sample *all = new_samples(t), sample;
	size_t count, reads;

	for (uint64_t i = 0; i < t->count; i++)
		ids[i] = (i * 11 + 3) % t->count;
	ids[t->count] = ids[0];
	stele_fault_log_clear(t->dev);
	is_int(0, stele_view_prefetch(view, ids, t->count + 1), "prefetch all");
	stele_fault_log(t->dev, &reads);
	is_uint(0, ask_all(t, view, all), "all right");
	stele_fault_log(t->dev, &count);
	is_uint(reads, count, "and there");
	ids[1] = t->count;
	is_int(-ERANGE, stele_view_prefetch(view, ids, 3), "no such id");
	is_int(0, stele_view_prefetch(view, NULL, 0), "nothing to prefetch");
	stele_view_close(view);

	small = open_view(t, least(t));
	ids[0] = t->count + 7;
	for (uint64_t i = 1; i <= t->count; i++)
		ids[i] = i - 1;
	stele_fault_log_clear(t->dev);
	is_int(-ERANGE, stele_view_prefetch(small, ids, t->count + 1),
	       "more than may be there");
	stele_fault_log(t->dev, &reads);
	wrong += stele_view_sample(small, 0, &sample) != 0;
	wrong += !test_is_sample(t, 0, &sample);
	stele_fault_log(t->dev, &count);
	is_uint(reads, count, "the first ones, after one that is none");
	is_uint(0, wrong, "rightly");
	stele_view_close(small);
	free(all);
	free(ids);
}

/* ---- threads ------------------------------------------------------------------ */

struct toucher {
	const struct test_dataset *t;
	struct stele_view *view;
	const struct stele_sample *all;
	uint64_t seed, wrong;
	uint64_t count;
};

/* test_is_sample() without words: TAP is for one thread. */
static bool is_right(const struct test_dataset *t, uint64_t id,
		     const struct stele_sample *sample)
{
	const struct test_sample *wanted = t->live[id].sample;

	return sample->size == wanted->size &&
	       !memcmp(sample->data, wanted->data, wanted->size) &&
	       !memcmp(sample->key, wanted->key, strlen(wanted->key));
}

static void *touch(void *arg)
{
	struct toucher *toucher = arg;
	const struct test_dataset *t = toucher->t;
	struct stele_sample sample;

	for (uint64_t i = 0; i < toucher->count; i++) {
		uint64_t id = test_random(&toucher->seed) % t->count;

		toucher->wrong += !is_right(t, id, &toucher->all[id]);
		id = test_random(&toucher->seed) % t->count;
		if (stele_view_sample(toucher->view, id, &sample) ||
		    !is_right(t, id, &sample))
			toucher->wrong++;
	}
	return NULL;
}

static void test_threads(const struct test_dataset *t, uint64_t memory)
{
	struct toucher touchers[THREADS];
	struct stele_sample *all = new_samples(t);
	struct stele_view *view = open_view(t, memory);
	pthread_t threads[THREADS];
	uint64_t wrong = 0, count = TOUCHED / t->ds->slot_size_max;

	ask_all(t, view, all);
	count = count < TOUCHES ? count : TOUCHES;
	for (unsigned int i = 0; i < THREADS; i++) {
		touchers[i] = (struct toucher){t, view, all, i + 1, 0, count};
		if (pthread_create(&threads[i], NULL, touch, &touchers[i]))
			bail("no thread");
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		wrong += touchers[i].wrong;
	}
	is_uint(0, wrong, "threads that touch and ask at once");
	stele_view_close(view);
	free(all);
}

/* ---- damage ------------------------------------------------------------------- */

static sigjmp_buf back;

static void on_signal(int number)
{
	siglongjmp(back, number);
}

/* 0, or the signal that looking at all its bytes raises; zeros where there should be none: -1. */
static int look(const struct test_dataset *t, uint64_t id,
		const struct stele_sample *sample)
{
	const struct test_sample *wanted = t->live[id].sample;
	int number = sigsetjmp(back, 1);

	if (number)
		return number;
	return memcmp(sample->data, wanted->data, wanted->size) ? -1 : 0;
}

static void flip(const struct test_dataset *t, uint64_t id)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	uint8_t block[4096] __attribute__((aligned(4096)));
	const uint32_t size = t->dev->limits.logical_block;
	uint64_t offset;

	stele_dataset_locate(t->ds, id, &extent);
	offset = extent.offset / size * size;
	if (stele_device_read(t->dev, block, offset, size))
		bail("cannot read");
	block[extent.offset - offset] ^= 4;
	t->dev->writable = true;
	if (stele_device_write(t->dev, block, offset, size))
		bail("cannot write");
}

/* How all samples look under old pointers, while one of them is damaged. */
static void look_at_damage(const struct test_dataset *t, uint64_t bad,
			   const struct stele_sample *all)
{
	unsigned int zeros = 0, others = 0;

	is_int(SIGBUS, look(t, bad, &all[bad]), "a touch of what is damaged");
	is_int(SIGBUS, look(t, bad, &all[bad]), "and another one");
	for (uint64_t id = 0; id < t->count; id++) {
		int seen = look(t, id, &all[id]);

		zeros += seen < 0;
		others += seen > 0 && id != bad;
	}
	is_uint(0, zeros, "nobody sees what is not of a sample");
	ok(others < 2 * PAGE / 16, "nor SIGBUS but on its pages: %u", others);
}

static void test_damage(const struct test_dataset *t)
{
	const uint64_t bad = t->count / 2;
	struct stele_view *view = open_view(t, least(t));
	struct stele_sample *all = new_samples(t), sample;
	const uint64_t ids[] = {bad, bad + 1, 0}, around[] = {bad - 1, bad, bad + 1};
	struct stele_view *large;
	uint64_t wrong = 0;

	ask_all(t, view, all);
	stele_view_sample(view, 0, &sample);
	stele_view_sample(view, t->count - 1, &sample);
	flip(t, bad);
	look_at_damage(t, bad, all);
	is_int(-EBADMSG, stele_view_sample(view, bad, &sample), "damage");
	ok(!sample.data && sample.status == -EBADMSG, "no bytes");
	for (uint64_t id = 0; id < t->count; id++)
		if (id != bad)
			wrong += stele_view_sample(view, id, &sample) ||
				 !test_is_sample(t, id, &sample);
	is_uint(0, wrong, "all others, also on its pages");
	is_int(-EBADMSG, stele_view_prefetch(view, ids, 3), "prefetch");
	is_int(0, stele_view_prefetch(view, ids + 1, 1), "of its neighbour");
	large = open_view(t, 0);
	is_int(-EBADMSG, stele_view_prefetch(large, around, 3), "of all three");
	is_int(-EBADMSG, stele_view_sample(large, bad, &sample), "and when asked");
	stele_view_close(large);
	flip(t, bad);
	is_int(0, stele_view_sample(view, bad, &sample), "intact again");
	ok(test_is_sample(t, bad, &sample), "with all bytes");
	is_int(0, look(t, bad, &all[bad]), "also under the old pointer");
	stele_view_close(view);
	free(all);
}

static void fail_reads(const struct test_dataset *t, uint64_t id, uint64_t count)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL, .error = EIO,
					.count = count};

	stele_dataset_locate(t->ds, id, &extent);
	rule.offset = extent.offset;
	rule.size = extent.slot_size;
	stele_fault_set_rules(t->dev, &rule, 1);
}

static struct test_read blocks_of(const struct test_dataset *t, uint64_t id)
{
	struct test_read reads[64], all;
	unsigned int count = test_reads_of(t, id, reads, 64);

	all = reads[0];
	all.size = reads[count - 1].offset + reads[count - 1].size - all.offset;
	return all;
}

/* Samples that have a byte in a block of this one. */
static uint64_t lost_max(const struct test_dataset *t, uint64_t bad)
{
	const struct test_read read = blocks_of(t, bad);
	uint64_t count = 0;

	for (uint64_t id = 0; id < t->count; id++) {
		const struct test_read other = blocks_of(t, id);

		count += other.offset < read.offset + read.size &&
			 read.offset < other.offset + other.size;
	}
	return count;
}

static void test_device(const struct test_dataset *t)
{
	const uint64_t bad = t->count / 3;
	struct stele_view *view = open_view(t, least(t));
	struct stele_sample *all = new_samples(t), sample;
	const uint64_t ids[] = {bad, 0, t->count - 1};
	uint64_t wrong = 0, lost = 0;

	ask_all(t, view, all);
	fail_reads(t, bad, 0);
	is_int(-EIO, stele_view_sample(view, bad, &sample), "the device fails");
	is_int(-EIO, stele_view_prefetch(view, ids, 3), "prefetch");
	is_int(SIGBUS, look(t, bad, &all[bad]), "a touch");
	is_int(0, stele_view_sample(view, 0, &sample), "others can be read");
	ok(test_is_sample(t, 0, &sample), "with all bytes");
	for (uint64_t id = 0; id < t->count; id++) {
		int err = stele_view_sample(view, id, &sample);

		lost += err == -EIO;
		wrong += err ? err != -EIO : !test_is_sample(t, id, &sample);
	}
	is_uint(0, wrong, "all of them, or they fail as well");
	ok(lost <= lost_max(t, bad), "if they are in the same blocks: %ju", (uintmax_t)lost);
	fail_reads(t, bad, 1);
	is_int(0, stele_view_sample(view, bad, &sample), "it fails once");
	ok(test_is_sample(t, bad, &sample), "with all bytes");
	stele_view_sample(view, 0, &sample);
	stele_view_sample(view, t->count - 1, &sample);
	fail_reads(t, bad, 1);
	is_int(0, look(t, bad, &all[bad]), "also while it is touched");
	stele_fault_set_rules(t->dev, NULL, 0);
	stele_view_close(view);
	free(all);
}

/* ---- processes ------------------------------------------------------------------ */

static int in_child(const struct test_dataset *t, struct stele_view *view,
		    const struct stele_sample *sample)
{
	const uint64_t id = 3;
	struct stele_sample other;

	if (look(t, id, sample) != SIGSEGV)
		return 1;
	if (stele_view_sample(view, id, &other) != -EOWNERDEAD)
		return 2;
	if (stele_view_prefetch(view, &id, 1) != -EOWNERDEAD)
		return 3;
	stele_view_close(view);
#ifndef __SANITIZE_THREAD__ /* it allows no threads there */
	view = open_view(t, 0);
	if (stele_view_sample(view, id, &other) || !test_is_sample(t, id, &other))
		return 4;
	stele_view_close(view);
#endif
	return 0;
}

/* The exit status of what `run` returns in a child. */
static int fork_child(int (*run)(const struct test_dataset *t))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(run(NULL));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		sysbail("fork");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct {
	const struct test_dataset *t;
	struct stele_view *view;
	struct stele_sample sample;
} parent;

static int run_forked(const struct test_dataset *t)
{
	(void)t;
	return in_child(parent.t, parent.view, &parent.sample);
}

static void test_fork(const struct test_dataset *t)
{
	parent.t = t;
	parent.view = open_view(t, 0);
	stele_view_sample(parent.view, 3, &parent.sample);
	is_int(0, fork_child(run_forked), "a child has no such memory, and says so");
	ok(test_is_sample(t, 3, &parent.sample), "its parent does");
	is_int(0, stele_view_sample(parent.view, 4, &parent.sample), "and goes on");
	stele_view_close(parent.view);
}

/* ---- kernels ---------------------------------------------------------------------- */

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define UNLESS(value, count) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(struct sock_filter *list, unsigned int count)
{
	struct sock_fprog prog = {(unsigned short)count, list};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		sysbail("no filter");
}

static void forbid_ioctl(unsigned int command, unsigned int error)
{
	struct sock_filter list[] = {
		LOAD(nr), UNLESS(SYS_ioctl, 3), LOAD(args[1]), UNLESS(command, 1),
		FAIL(error), ALLOW,
	};

	filter(list, sizeof(list) / sizeof(*list));
}

/* Unless it is for faults in user mode. */
static void forbid_userfaultfd(bool unless)
{
	struct sock_filter list[] = {
		LOAD(nr), UNLESS(SYS_userfaultfd, 4), LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, unless ? USER_MODE_ONLY : 0, 1, 0),
		FAIL(EPERM), ALLOW, ALLOW,
	};

	forbid_ioctl(IOC_NEW, EPERM);
	filter(list, sizeof(list) / sizeof(*list));
}

static void forbid_poison(void)
{
	forbid_ioctl(POISON, EINVAL);
}

static void check_kernel(const char *what, int (*run)(const struct test_dataset *t))
{
	is_int(0, fork_child(run), "%s", what);
}

static void open_small(struct test_dataset *t)
{
	struct test_plan plan = {.samples = 60, .size_max = 9000};

	test_dataset_open(t, &plan);
}

static int run_forbidden(const struct test_dataset *none)
{
	struct test_dataset t;
	struct stele_view *view;
	int err;

	(void)none;
	open_small(&t);
	forbid_userfaultfd(false);
	err = stele_view_open(t.ds, &STELE_OPTS(stele_view_opts,
						.flags = STELE_VIEW_FETCH), &view);
	if (err != -EPERM)
		return 1;
	return test_log_has(&t.log, "vm.unprivileged_userfaultfd=1") &&
			       strstr(stele_errmsg(), "vm.unprivileged_userfaultfd=1") ?
		       0 : 2;
}

/* Touches by the program work, those by the kernel are errors, and that is said. */
static int run_user_mode(const struct test_dataset *none)
{
	struct stele_sample *all;
	struct test_dataset t;
	struct stele_view *view;
	uint64_t wrong = 0;
	int fd = memfd_create("copy", MFD_CLOEXEC);

	(void)none;
	open_small(&t);
	forbid_userfaultfd(true);
	view = open_view(&t, least(&t));
	if (t.log.warnings != 1 || !test_log_has(&t.log, "EFAULT"))
		return 1;
	all = new_samples(&t);
	if (ask_all(&t, view, all))
		return 2;
	if (write(fd, all[0].data, all[0].size) >= 0 || errno != EFAULT)
		return 3;
	for (uint64_t id = 0; id < t.count; id++)
		wrong += !test_is_sample(&t, id, &all[id]);
	stele_view_close(view);
	return wrong ? 4 : 0;
}

/* Before Linux 6.6. */
static int run_unpoisoned(const struct test_dataset *none)
{
	struct test_dataset t;
	struct stele_view *view;
	struct stele_sample *all, sample;

	(void)none;
	open_small(&t);
	forbid_poison();
	all = new_samples(&t);
	view = open_view(&t, least(&t));
	ask_all(&t, view, all);
	flip(&t, 30);
	stele_view_sample(view, 0, &sample);
	for (unsigned int i = 0; i < 3; i++)
		if (look(&t, 30, &all[30]) != SIGBUS)
			return 1;
	flip(&t, 30);
	if (stele_view_sample(view, 30, &sample) || look(&t, 30, &all[30]))
		return 2;
	for (uint64_t id = 0; id < t.count; id++) /* it is dropped, and comes back */
		if (look(&t, id, &all[id]))
			return 3;
	flip(&t, 30);
	for (uint64_t id = 0; id < t.count; id++)
		if (look(&t, id, &all[id]) < 0)
			return 4;
	return look(&t, 30, &all[30]) == SIGBUS ? 0 : 5;
}

/* All memory of the process stays where it is; but not that of a view. */
static int run_locked(const struct test_dataset *none)
{
	struct test_dataset t;
	struct stele_view *view;
	struct stele_sample *all;

	(void)none;
	open_small(&t);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return 0; /* not allowed */
	all = new_samples(&t);
	view = open_view(&t, least(&t));
	if (ask_all(&t, view, all))
		return 1;
	if (count_present(&t, all) > least(&t) / PAGE)
		return 2;
	for (uint64_t id = 0; id < t.count; id++)
		if (look(&t, id, &all[id]))
			return 3;
	return 0;
}

/* ---- options ------------------------------------------------------------------------ */

static void test_options(const struct test_dataset *t)
{
	struct stele_view *view;

	is_int(-EINVAL,
	       stele_view_open(t->ds, &STELE_OPTS(stele_view_opts,
						  .flags = STELE_VIEW_FETCH,
						  .memory_size = least(t) - 1), &view),
	       "not enough for the largest sample");
	is_int(-EINVAL,
	       stele_view_open(t->ds, &STELE_OPTS(stele_view_opts, .memory_size = 1),
			       &view),
	       "memory of a view that has none");
	is_int(-EINVAL,
	       stele_view_open(t->ds, &STELE_OPTS(stele_view_opts, .flags = 2), &view),
	       "an unknown flag");
	is_int(-EOPNOTSUPP, stele_view_open(t->ds, NULL, &view),
	       "memory cannot be mapped");
	ok(strstr(stele_errmsg(), "STELE_VIEW_FETCH"), "it can be fetched");
}

static void check(const struct test_plan *plan)
{
	struct test_dataset t;

	test_dataset_open(&t, plan);
	diag("%ju samples of up to %ju bytes, granule %u", (uintmax_t)t.count,
	     (uintmax_t)plan->size_max, plan->granule);
	test_equal(&t, STELE_VERIFY_CRC);
	test_equal(&t, STELE_VERIFY_DIGEST);
	test_evicted(&t);
	test_syscall(&t);
	test_prefetch(&t);
	test_threads(&t, 0);
	test_threads(&t, least(&t) + (64u << 10));
	test_damage(&t);
	test_device(&t);
	test_fork(&t);
	test_options(&t);
	test_dataset_close(&t);
}

int main(void)
{
	static const struct test_plan plans[] = {
		{.segments = 3, .samples = 400, .size_max = 300, .delete_every = 7},
		{.segments = 2, .samples = 120, .size_max = 30000, .delete_every = 6},
		{.samples = 100, .size_max = 20000, .granule = 4096,
		 .logical_block = 4096},
		{.samples = 150, .size_max = 50000, .granule = 512,
		 .boundary = 65536, .delete_every = 2},
		{.samples = 24, .size_max = 1000000},
	};
	struct test_dataset t;
	struct stele_view *view;

	signal(SIGBUS, on_signal);
	signal(SIGSEGV, on_signal);
	open_small(&t);
	view = try_view(t.ds, STELE_VERIFY_DEFAULT, 0);
	if (!view && strstr(stele_errmsg(), "userfaultfd"))
		skip_all("needs userfaultfd");
	user_mode_only = test_log_has(&t.log, "EFAULT");
	stele_view_close(view);
	test_dataset_close(&t);
	plan_lazy();
	for (unsigned int i = 0; i < sizeof(plans) / sizeof(*plans); i++)
		check(&plans[i]);
	check_kernel("a kernel that forbids it", run_forbidden);
	check_kernel("a kernel that serves user mode only", run_user_mode);
	check_kernel("a kernel without UFFDIO_POISON", run_unpoisoned);
	check_kernel("a program that has locked its memory", run_locked);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-fork.c - loaders do not cross fork()
 *
 * A child has the memory of a loader, and none of its threads. Whatever it calls returns,
 * and takes nothing from the parent; a loader of its own works.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture/loader.h"
#include "tests/fixture/rest.h"
#include "tests/tap.h"

/* Exit status: which check failed. */
static int close_old(struct stele_loader *old, struct stele_batch *held,
		     uint8_t state[STELE_LOADER_STATE_SIZE])
{
	struct stele_loader_stats stats = {.size = sizeof(stats)};
	struct stele_batch batch = {.size = sizeof(batch)};
	int64_t label;

	if (stele_loader_next(old, &batch) != -EOWNERDEAD)
		return 1;
	stele_loader_save(old, state);
	if (stele_loader_restore(old, state) != -EOWNERDEAD ||
	    stele_loader_fd(old) != -EOWNERDEAD)
		return 2;
	stele_loader_stats(old, &stats);
	if (stele_sample_i64(&held->samples[0], 1, &label) != -EOWNERDEAD)
		return 6;
	stele_loader_release(old, held);
	stele_loader_close(old);
	return 0;
}

static int go_on(struct test_dataset *t, uint64_t count,
		 const uint8_t state[STELE_LOADER_STATE_SIZE])
{
	struct stele_loader_source source = {.ds = t->ds};
	struct test_load load = {0};
	struct stele_loader *loader =
		test_loader(&source, 1,
			    (struct stele_loader_opts){.batch_size = 7});

	if (stele_loader_restore(loader, state))
		return 3;
	if (test_load(loader, t, UINT64_MAX, &load))
		return 4;
	if (load.wrong || load.count != count)
		return 5;
	stele_loader_close(loader);
	return 0;
}

/*
 * With a prefetch of nothing and a batch that is ready, the loader's thread is at rest:
 * no lock of the test's own devices is held, which a child could never take.
 */
static void check(const char *backend, bool at_rest)
{
	struct test_plan plan = {
		.samples = 80, .size_max = 30000, .backend = backend};
	struct stele_loader_opts opts = {.batch_size = 4,
					 .prefetch_size = at_rest};
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct stele_loader_source source;
	struct stele_loader *loader;
	struct test_load load = {0};
	struct stele_batch held = {.size = sizeof(held)};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	source = (struct stele_loader_source){.ds = t.ds};
	loader = test_loader(&source, 1, opts);
	if (stele_loader_next(loader, &held) != 1)
		bail("no batch");
	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		struct pollfd poll_fd = {.fd = stele_loader_fd(loader),
					 .events = POLLIN};
		int status = -1;
		pid_t pid;

		if (at_rest) {
			poll(&poll_fd, 1, -1);
			test_others_rest();
		}
		pid = fork();
		if (!pid) {
			status = close_old(loader, &held, state);
			if (!status && at_rest)
				status = go_on(&t, t.count - 4 - load.count,
					       state);
			_exit(status);
		}
		test_load(loader, &t, 2, &load);
		waitpid(pid, &status, 0);
		is_int(0, status, "%s, %s: child %d",
		       backend ? backend : "memory",
		       at_rest ? "at rest" : "busy", i);
	}
	is_int(0, test_load(loader, &t, UINT64_MAX, &load),
	       "the parent goes on");
	is_uint(t.count - 4, load.count, "and misses nothing");
	is_uint(0, load.wrong, "nor is anything wrong");
	for (uint32_t i = 0; i < held.count; i++)
		ok(test_is_sample(&t, held.samples[i].id, &held.samples[i]),
		   "it holds what it held");
	test_load_release(&load);
	stele_loader_close(loader);
	test_dataset_close(&t);
}

int main(void)
{
	/* Neither sanitizer can fork while other threads run. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip_all("sanitizers do not fork threads");
#endif
	plan_lazy();
	check(NULL, true);
	check(NULL, false);
	check("uring", true);
	check("uring", false);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - threads of the library: processors, signals, names, errors
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/base/workers.h"
#include "tests/tap.h"

#define COUNT 4u

struct job {
	pthread_t caller;
	atomic_uint ran, own, ticks;
	atomic_bool signals, named;
	unsigned int failing; /* index */
};

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Named by who started it, perhaps only after it began to run. */
static bool has_name(void)
{
	char name[16] = "";

	for (int i = 0; i < 1000; i++) {
		pthread_getname_np(pthread_self(), name, sizeof(name));
		if (!strcmp(name, "stele-test"))
			return true;
		sleep_ms(1);
	}
	return false;
}

static int work(void *user, unsigned int index)
{
	struct job *job = user;
	sigset_t mask;

	job->ran |= 1u << index;
	if (pthread_equal(pthread_self(), job->caller)) {
		job->own++;
	} else {
		pthread_sigmask(SIG_SETMASK, NULL, &mask);
		if (!sigismember(&mask, SIGINT))
			job->signals = true;
		if (!has_name())
			job->named = false;
	}
	return index == job->failing ? -EDOM : 0;
}

/* Until it has been watched for a while. */
static int work_long(void *user, unsigned int index)
{
	struct job *job = user;

	while (job->ticks < 2)
		sleep_ms(1);
	return work(user, index);
}

static void tick(void *user)
{
	struct job *job = user;

	job->ticks++;
}

static void test_run(void)
{
	struct job job = {.caller = pthread_self(), .named = true,
			  .failing = COUNT};
	sigset_t mask;

	is_int(0, stele_workers_run("stele-test", COUNT, work, NULL, &job),
	       "workers without a watch");
	is_uint((1u << COUNT) - 1, job.ran, "each index runs");
	is_uint(1, job.own, "the caller's thread is one of them");
	ok(job.named, "threads have their name");
	ok(!job.signals, "and take no signals");
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	ok(!sigismember(&mask, SIGINT), "the caller takes them as before");

	job = (struct job){.caller = pthread_self(), .named = true,
			   .failing = 2};
	is_int(-EDOM,
	       stele_workers_run("stele-test", COUNT, work_long, tick, &job),
	       "an error of a watched worker comes back");
	is_uint((1u << COUNT) - 1, job.ran, "after all have run");
	is_uint(0, job.own, "none on the caller's thread");
	ok(job.ticks >= 2, "which watches");
	is_int(-EDOM,
	       stele_workers_run("stele-test", 3, work, NULL, &job),
	       "an error of the caller's own share comes back");
}

struct telling {
	unsigned int teller; /* of the first two: this one logs */
	int second; /* what the second one returns */
	const char *why; /* what the first explains; NULL: nothing */
	atomic_bool ended;
};

/* The second ends after the first, which ends silently unless it is the one that logs. */
static int tell(void *user, unsigned int index)
{
	struct telling *telling = user;
	int ret = -ENOSPC;

	if (index > 1)
		return 0;
	if (index == 1) {
		while (!telling->ended)
			sleep_ms(1);
		sleep_ms(20); /* until its result was taken */
		ret = telling->second;
	}
	if (index == telling->teller)
		stele_error_note(index ? "cannot do the second" : "cannot do the first");
	if (index == 0 && telling->why)
		stele_error_explain(ret, telling->why);
	if (index == 0)
		telling->ended = true;
	return ret;
}

static void test_line(void)
{
	static const struct {
		unsigned int teller;
		int second;
		const char *line, *what, *why;
	} cases[] = {
		{0, -ENOSPC, "cannot do the first", "the one that failed first says why", NULL},
		{1, -ENOSPC, "cannot do the second", "another one that failed alike does",
		 NULL},
		{1, -EIO, "cannot test: the target is too small", "no other error is its reason",
		 NULL},
		{2, -EIO, "cannot test: it is full", "what it explained is", "it is full"},
	};

	for (unsigned int i = 0; i < 4; i++) {
		struct telling telling = {.teller = cases[i].teller,
					  .second = cases[i].second,
					  .why = cases[i].why};
		int ret = STELE_CALL(stele_workers_run("stele-test", 3, tell, NULL, &telling),
				     "cannot test");

		is_int(-ENOSPC, ret, "the first error comes back");
		is_string(cases[i].line, stele_errmsg(), "%s", cases[i].what);
	}
}

/* As under taskset(1) or in a cpuset. */
static void test_processors(void)
{
	cpu_set_t all, one;
	int first = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		sysbail("sched_getaffinity");
	is_uint((unsigned int)CPU_COUNT(&all), stele_processors(),
		"as many processors as may be used");
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		sysbail("sched_setaffinity");
	is_uint(1, stele_processors(), "one on a machine of %d that gives one",
		CPU_COUNT(&all));
	sched_setaffinity(0, sizeof(all), &all);
}

int main(void)
{
	plan_lazy();
	test_run();
	test_line();
	test_processors();
	return done();
}

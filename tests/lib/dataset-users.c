/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-users.c - a dataset is not closed under what reads it
 *
 * Readers, cursors, views and loaders keep it: a close before theirs is refused, says so and
 * changes nothing. In a forked child the parent's handles count until they are closed
 * there; and a thread that is done with its reader is done with the dataset.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define THREADS 4u
#define ROUNDS	20u

/* Neither sanitizer can fork while other threads run. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FORK false
#else
#define CAN_FORK true
#endif

static const struct test_plan image = {
	.samples = 60, .size_max = 4000, .backend = "threads"};

/* ---- one of each -------------------------------------------------------------------- */

/* A handle of every kind; the file itself, for the view. */
struct users {
	struct stele_dataset *ds;
	struct stele_reader *reader;
	struct stele_cursor *cursor;
	struct stele_view *view;
	struct stele_loader *loader;
};

static struct stele_dataset *open_plain(struct test_dataset *t)
{
	struct stele_open_opts opts = STELE_OPTS(stele_open_opts,
						 .log = t->log.log.fn,
						 .log_user = t->log.log.user);
	struct stele_target target = {0};
	struct stele_dataset *ds;
	struct stele_device *dev;

	if (stele_device_open_file(t->path, 0, NULL, NULL, &dev) ||
	    stele_dataset_create(dev, &target, &opts, &ds))
		bail("cannot open '%s'", t->path);
	return ds;
}

static void open_users(struct users *u, struct test_dataset *t)
{
	struct stele_loader_source source;

	u->ds = open_plain(t);
	source = (struct stele_loader_source){.ds = u->ds};
	if (stele_reader_open(u->ds, NULL, &u->reader) ||
	    stele_cursor_open(u->ds, NULL, 0, &u->cursor) ||
	    stele_view_open(u->ds, NULL, &u->view) ||
	    stele_loader_open(&source, 1, NULL, &u->loader))
		bail("no users");
}

static void is_refused(struct users *u, struct test_dataset *t, unsigned int count)
{
	char line[100];

	snprintf(line, sizeof(line), "%u of its readers, cursors and views are open",
		 count);
	t->log.size = 0;
	t->log.text[0] = 0;
	is_int(-EBUSY, stele_dataset_close(u->ds), "%u users: refused", count);
	ok(test_log_has(&t->log, line), "and it says how many they are");
}

static bool all_work(struct users *u, struct test_dataset *t)
{
	struct stele_cursor_entry entry;
	struct stele_sample sample;
	struct stele_batch batch = {.size = sizeof(batch)};
	uint64_t id = 7;
	bool right = stele_cursor_next(u->cursor, &entry) == 1 &&
		     !stele_view_sample(u->view, id, &sample) &&
		     test_is_sample(t, id, &sample);

	right = right && stele_loader_next(u->loader, &batch) == 1;
	stele_loader_release(u->loader, &batch);
	return right && test_read_all(t, u->reader, &id, 1) == 0;
}

static void test_kinds(void)
{
	struct test_dataset t;
	struct users u;

	test_dataset_open(&t, &image);
	open_users(&u, &t);
	is_refused(&u, &t, 4);
	ok(all_work(&u, &t), "nothing was closed");
	stele_loader_close(u.loader);
	is_refused(&u, &t, 3);
	stele_view_close(u.view);
	is_refused(&u, &t, 2);
	stele_cursor_close(u.cursor);
	is_refused(&u, &t, 1);
	is_int(-EINVAL, stele_cursor_open(u.ds, NULL, 1, &u.cursor),
	       "what was not opened");
	is_int(-EINVAL,
	       stele_reader_open(u.ds, &STELE_OPTS(stele_reader_opts,
						   .arena_size = UINT64_MAX),
				 &(struct stele_reader *){NULL}),
	       "a reader that was not opened");
	is_refused(&u, &t, 1);
	stele_reader_close(u.reader);
	is_int(0, stele_dataset_close(u.ds), "the last one is closed");
	is_int(0, stele_dataset_close(NULL), "none");
	test_dataset_close(&t);
}

/* ---- threads --------------------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	struct stele_dataset *ds;
	pthread_barrier_t *opened;
	uint64_t failed;
};

static void *work(void *arg)
{
	struct stele_sample samples[8];
	struct worker *w = arg;
	struct stele_reader *reader;

	if (stele_reader_open(w->ds, NULL, &reader))
		bail("no reader");
	pthread_barrier_wait(w->opened);
	for (uint64_t id = 0; id < 8; id++)
		w->failed += stele_reader_submit(reader, &id, NULL, 1) != 1;
	w->failed += stele_reader_collect(reader, samples, 8, 8) != 8;
	for (unsigned int i = 0; i < 8; i++)
		w->failed += samples[i].status != 0;
	stele_reader_close(reader);
	return NULL;
}

/* Closed by who has none, as soon as it may be. */
static uint64_t close_under(struct test_dataset *t)
{
	struct worker workers[THREADS];
	struct stele_dataset *ds = open_plain(t);
	pthread_barrier_t opened;
	uint64_t failed = 0;

	pthread_barrier_init(&opened, NULL, THREADS + 1);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.ds = ds, .opened = &opened};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			bail("no thread");
	}
	pthread_barrier_wait(&opened);
	while (stele_dataset_close(ds))
		sched_yield();
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		failed += workers[i].failed;
	}
	pthread_barrier_destroy(&opened);
	return failed;
}

static void test_threads(void)
{
	struct test_dataset t;
	uint64_t failed = 0;

	test_dataset_open(&t, &image);
	for (unsigned int i = 0; i < ROUNDS; i++)
		failed += close_under(&t);
	is_uint(0, failed, "closed behind the last reader of %u threads", THREADS);
	test_dataset_close(&t);
}

/* ---- children ---------------------------------------------------------------------------- */

/* Exit status: which check failed. */
static int child(struct users *u)
{
	if (stele_dataset_close(u->ds) != -EBUSY)
		return 1;
	stele_reader_close(u->reader);
	stele_loader_close(u->loader);
	stele_cursor_close(u->cursor);
	if (stele_dataset_close(u->ds) != -EBUSY)
		return 2;
	stele_view_close(u->view);
	return stele_dataset_close(u->ds) ? 3 : 0;
}

static void test_fork(void)
{
	struct test_dataset t;
	int status = -1;
	struct users u;
	pid_t pid;

	test_dataset_open(&t, &image);
	open_users(&u, &t);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(child(&u));
	waitpid(pid, &status, 0);
	is_int(0, status, "a child closes what it has of the parent's");
	is_refused(&u, &t, 4);
	ok(all_work(&u, &t), "which are the parent's as before");
	stele_reader_close(u.reader);
	stele_loader_close(u.loader);
	stele_cursor_close(u.cursor);
	stele_view_close(u.view);
	is_int(0, stele_dataset_close(u.ds), "until it closes them, too");
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	test_kinds();
	test_threads();
	if (CAN_FORK)
		test_fork();
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor-ahead.c - pages of keys are read while those before are used: which, and what of errors
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "format/keys.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

/* Neither sanitizer can fork while other threads run. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FORK false
#else
#define CAN_FORK true
#endif

#define SAMPLES	  300000u
#define MOST	  256u /* pages at a time */
#define DOUBLINGS 8u   /* 1, 2, 4 ... 128 pages, each by one read */
#define WAIT_MS	  10000
#define QUIET_MS  100

static struct test_dataset t;
static struct stele_section keys;
static uint64_t pages, first_page; /* offset */
static uint64_t pieces; /* reads for MOST pages */
static uint64_t first_read;

static void open_all(void)
{
	const struct test_plan plan = {.samples = SAMPLES, .size_max = 2, .delete_every = 2};
	const struct stele_descriptor *d;

	test_dataset_open(&t, &plan);
	d = &t.ds->snapshot.segments[0].descriptor;
	if (stele_descriptor_find_section(d, STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys))
		bail("no keys");
	pages = keys.size / STELE_BLOCK_SIZE;
	first_page = d->offset + keys.offset;
	pieces = MOST * STELE_BLOCK_SIZE / t.dev->limits.transfer_max;
	if (pages < 4 * MOST)
		bail("only %u pages", (unsigned int)pages);
}

static struct stele_cursor *cursor_new(void)
{
	struct stele_cursor *cursor;

	stele_fault_set_rules(t.dev, NULL, 0);
	stele_fault_log_clear(t.dev);
	first_read = stele_fault_count(t.dev);
	if (stele_cursor_open(t.ds, NULL, 0, &cursor))
		bail("no cursor");
	return cursor;
}

/* Reads since the cursor was opened; the log may grow while it is looked at. */
static uint64_t begun(void)
{
	return stele_fault_count(t.dev) - first_read;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static uint64_t walk_all(struct stele_cursor *cursor, int *ret)
{
	struct stele_cursor_entry entry;
	uint64_t count = 0;

	while ((*ret = stele_cursor_next(cursor, &entry)) == 1)
		count++;
	return count;
}

/* To the first key of the first MOST pages, while those after them are read. */
static uint64_t walk_to_ahead(struct stele_cursor *cursor)
{
	struct stele_cursor_entry entry;
	uint64_t count = 0;

	while (begun() < DOUBLINGS + pieces && stele_cursor_next(cursor, &entry) == 1)
		count++;
	for (int i = 0; begun() < DOUBLINGS + 2 * pieces && i < WAIT_MS / 10; i++)
		sleep_ms(10);
	return count;
}

/* 1, 2, 4 ... pages, and as many as a transfer has from then on: all of them, each once. */
static void test_reads(void)
{
	struct stele_cursor *cursor = cursor_new();
	const struct stele_fault_entry *log;
	const uint64_t most = t.dev->limits.transfer_max / STELE_BLOCK_SIZE;
	uint64_t page = 0, wrong = 0, count = 1;
	size_t n;
	int ret;

	is_uint(t.count, walk_all(cursor, &ret), "all keys");
	is_int(0, ret, "and an end");
	stele_cursor_close(cursor);
	log = stele_fault_log(t.dev, &n);
	for (size_t i = 0; i < n; i++) {
		if (count > pages - page)
			count = pages - page;
		wrong += log[i].op != STELE_OP_READ ||
			 log[i].offset != first_page + page * STELE_BLOCK_SIZE ||
			 log[i].size != count * STELE_BLOCK_SIZE;
		page += count;
		count = count < most ? 2 * count : most;
	}
	is_uint(0, wrong, "what is read, in which order");
	is_uint(pages, page, "%u pages by %u reads", (unsigned int)pages, (unsigned int)n);
}

static void test_ahead(void)
{
	struct stele_cursor *cursor = cursor_new();

	walk_to_ahead(cursor);
	is_uint(DOUBLINGS + 2 * pieces, begun(),
		"the next ones are read while nobody asks for their keys");
	sleep_ms(QUIET_MS);
	is_uint(DOUBLINGS + 2 * pieces, begun(), "and no others");
	stele_cursor_close(cursor);
	is_uint(DOUBLINGS + 2 * pieces, begun(), "which are dropped when nobody wants them");
}

static uint64_t keys_before(uint64_t page)
{
	static _Alignas(4096) struct stele_disk_block block;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < page; i++) {
		struct stele_disk_keys_page head;

		if (stele_device_read(t.dev, &block, first_page + i * STELE_BLOCK_SIZE,
				      sizeof(block)))
			bail("read");
		memcpy(&head, block.payload, sizeof(head));
		sum += le16_get(head.count);
	}
	return sum;
}

/* Of a page in the second read ahead. Every second key is deleted: about as many are seen. */
static void test_error(enum stele_fault_kind kind, uint64_t count, int wanted, const char *what)
{
	const uint64_t bad = 3 * MOST + 7;
	const struct stele_fault_rule rule = {
		.kind = kind, .count = count, .error = EIO, .arg = 8 * 100,
		.offset = first_page + bad * STELE_BLOCK_SIZE, .size = STELE_BLOCK_SIZE};
	const uint64_t before = keys_before(bad);
	struct stele_cursor *cursor = cursor_new();
	struct stele_cursor_entry entry;
	uint64_t seen;
	int ret;

	stele_fault_set_rules(t.dev, &rule, 1);
	test_log_init(&t.log);
	seen = walk_all(cursor, &ret);
	is_int(wanted, ret, "%s", what);
	if (!wanted && kind == STELE_FAULT_FAIL)
		is_uint(0, t.log.errors, "%s: nobody need know", what);
	if (wanted)
		ok(seen > before * 9 / 20 && seen <= before * 11 / 20,
		   "%s: only after the keys before it", what);
	else
		is_uint(t.count, seen, "%s: all keys", what);
	is_int(wanted, stele_cursor_next(cursor, &entry), "%s: that stays", what);
	stele_cursor_close(cursor);
}

static void test_seek(void)
{
	const char *last = NULL;
	struct stele_cursor *cursor;
	struct stele_cursor_entry entry = {0};
	int ret;

	for (uint64_t i = 0; i < t.count; i++)
		if (!last || strcmp(last, t.live[i].sample->key) < 0)
			last = t.live[i].sample->key;
	cursor = cursor_new();
	walk_to_ahead(cursor);
	is_int(0, stele_cursor_seek(cursor, last, strlen(last)), "over what is being read");
	is_int(1, stele_cursor_next(cursor, &entry), "to a key");
	ok(entry.key_size == strlen(last) && !memcmp(entry.key, last, entry.key_size),
	   "the last one");
	is_uint(0, walk_all(cursor, &ret), "and no more");
	stele_cursor_close(cursor);
}

struct rest {
	struct stele_cursor *cursor;
	uint64_t count;
	int ret;
};

static void *walk_rest(void *user)
{
	struct rest *rest = user;

	rest->count = walk_all(rest->cursor, &rest->ret);
	return NULL;
}

static void test_threads(void)
{
	struct rest rest = {.cursor = cursor_new()};
	uint64_t count = walk_to_ahead(rest.cursor);
	pthread_t thread;

	if (pthread_create(&thread, NULL, walk_rest, &rest))
		bail("no thread");
	pthread_join(thread, NULL);
	is_int(0, rest.ret, "another thread goes on");
	is_uint(t.count, count + rest.count, "to the end");
	stele_cursor_close(rest.cursor);
}

static void test_fork(void)
{
	struct rest rest = {.cursor = cursor_new()};
	uint64_t count = walk_to_ahead(rest.cursor);
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		walk_rest(&rest);
		stele_cursor_close(rest.cursor);
		_exit(rest.ret || count + rest.count != t.count);
	}
	waitpid(pid, &status, 0);
	is_int(0, status, "a child goes on without the thread");
	walk_rest(&rest);
	is_uint(t.count, count + rest.count, "and its parent with it");
	stele_cursor_close(rest.cursor);
}

int main(void)
{
	plan_lazy();
	open_all();
	test_reads();
	test_ahead();
	test_error(STELE_FAULT_FAIL, 0, -EIO, "unreadable");
	test_error(STELE_FAULT_FAIL, 1, 0, "unreadable once");
	test_error(STELE_FAULT_FLIP, 0, -EBADMSG, "damaged");
	test_error(STELE_FAULT_FLIP, 1, 0, "damaged once");
	test_seek();
	test_threads();
	if (CAN_FORK)
		test_fork();
	test_dataset_close(&t);
	return done();
}

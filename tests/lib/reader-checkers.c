/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-checkers.c - threads that check change nothing but who does it
 *
 * The same reads with the same faults, checked by the reader's thread and by
 * others: each sample has the same status and bytes, and the counts are the same.
 * Digests are not read by the thread that collects. Poll, close and fork are right
 * while checkers have work.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define SAMPLES 300u
#define BATCH	16u

static struct stele_reader *open_reader(struct test_dataset *t,
					enum stele_verify verify,
					uint32_t threads)
{
	struct stele_reader *reader;

	if (stele_reader_open(t->ds,
			      &STELE_OPTS(stele_reader_opts, .depth = 8,
					  .verify = verify,
					  .check_threads = threads),
			      &reader))
		bail("no reader");
	return reader;
}

/* Some samples fail for ever, some once; by place, not by order. */
static void set_rules(struct test_dataset *t)
{
	static const enum stele_fault_kind kinds[] = {
		STELE_FAULT_FAIL, STELE_FAULT_FLIP, STELE_FAULT_FLIP,
		STELE_FAULT_SHORTEN, STELE_FAULT_LOSE, STELE_FAULT_FAIL,
	};
	struct stele_fault_rule rules[24] = {0};
	struct test_read read;

	for (unsigned int i = 0; i < 24; i++) {
		test_reads_of(t, 7 + 11 * i, &read, 1);
		rules[i] = (struct stele_fault_rule){
			.kind = kinds[i % 6],
			.ops = 1 << STELE_OP_READ,
			.count = i % 2,
			.offset = read.offset,
			.size = read.size,
			.error = i % 4 ? EREMOTEIO : EIO,
			.arg = 4096,
		};
	}
	stele_fault_set_rules(t->dev, rules, 24);
}

struct outcome {
	int status[SAMPLES];
	unsigned int seen[SAMPLES], wrong;
	struct stele_reader_stats stats;
};

static void take(struct test_dataset *t, struct stele_reader *reader,
		 struct stele_sample *s, struct outcome *out)
{
	out->status[s->id] = s->status;
	out->seen[s->id]++;
	out->wrong += s->tag != s->id + 1000;
	if (!s->status)
		out->wrong += !test_is_sample(t, s->id, s);
	stele_reader_release(reader, s);
}

static struct outcome read_all(struct test_dataset *t, enum stele_verify verify,
			       uint32_t threads, bool by_poll)
{
	struct stele_reader *reader = open_reader(t, verify, threads);
	struct pollfd p = {.events = POLLIN};
	struct stele_sample samples[BATCH];
	struct outcome out = {0};
	unsigned int next = 0, count = 0;

	set_rules(t);
	p.fd = by_poll ? stele_reader_fd(reader) : -1;
	while (count < SAMPLES) {
		uint64_t id = next, tag = id + 1000;
		int n;

		if (next < SAMPLES &&
		    stele_reader_submit(reader, &id, &tag, 1) == 1) {
			next++;
			continue;
		}
		if (by_poll && poll(&p, 1, -1) != 1)
			bail("poll");
		n = stele_reader_collect(reader, samples, BATCH,
					 by_poll ? 0 : 1 + next % 5);
		if (n < 0)
			bail("collect: %d", n);
		for (int i = 0; i < n; i++)
			take(t, reader, &samples[i], &out);
		count += (unsigned int)n;
	}
	out.stats.size = sizeof(out.stats);
	stele_reader_stats(reader, &out.stats);
	stele_reader_close(reader);
	stele_fault_set_rules(t->dev, NULL, 0);
	return out;
}

static void test_same(struct test_dataset *t, enum stele_verify verify,
		      const char *what)
{
	struct outcome alone = read_all(t, STELE_VERIFY_CRC, 0, false);

	ok(alone.stats.failed >= 8 && alone.stats.reread >= 12,
	   "%s: the faults are there: %ju failed, %ju read again", what,
	   (uintmax_t)alone.stats.failed, (uintmax_t)alone.stats.reread);
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int threads = 1 + 2 * (i / 2), twice = 0;
		struct outcome out = read_all(t, verify, threads, i % 2);

		for (unsigned int id = 0; id < SAMPLES; id++)
			twice += out.seen[id] != 1;
		is_uint(0, twice, "%s, %u threads: each once", what, threads);
		is_uint(0, out.wrong, "bytes and tags");
		ok(!memcmp(alone.status, out.status, sizeof(out.status)),
		   "each has the status that it had without");
		is_uint(alone.stats.failed, out.stats.failed, "failed");
		is_uint(alone.stats.reread, out.stats.reread, "read again");
		is_uint(alone.stats.bytes, out.stats.bytes, "bytes");
		is_uint(alone.stats.device_reads - alone.stats.check_reads,
			out.stats.device_reads - out.stats.check_reads,
			"reads of samples");
		if (verify == STELE_VERIFY_CRC)
			is_uint(alone.stats.check_reads, out.stats.check_reads,
				"reads of checks");
	}
}

/* What a reader of 8 at a time takes: work for the checkers for a while. */
static unsigned int fill(struct stele_reader *reader)
{
	uint64_t ids[BATCH];

	for (unsigned int i = 0; i < BATCH; i++)
		ids[i] = SAMPLES - 1 - i;
	return (unsigned int)stele_reader_submit(reader, ids, NULL, BATCH);
}

static void test_close(struct test_dataset *t)
{
	struct stele_sample sample;

	for (unsigned int i = 0; i < 20; i++) {
		struct stele_reader *reader =
			open_reader(t, STELE_VERIFY_DIGEST, 1 + i % 3);

		set_rules(t);
		if (fill(reader) != BATCH)
			bail("submit");
		if (i % 2 && stele_reader_collect(reader, &sample, 1, 1) != 1)
			bail("collect");
		stele_reader_close(reader);
		stele_fault_set_rules(t->dev, NULL, 0);
	}
	ok(true, "closed with samples at the checkers");
}

static int child(struct stele_reader *reader)
{
	struct stele_sample sample;
	uint64_t id = 0;
	int wrong = 0;

	wrong |= stele_reader_submit(reader, &id, NULL, 1) != -EOWNERDEAD;
	wrong |= stele_reader_collect(reader, &sample, 1, 1) != -EOWNERDEAD;
	wrong |= stele_reader_fd(reader) != -EOWNERDEAD;
	wrong |= stele_reader_in_flight(reader) != 0;
	stele_reader_close(reader);
	return wrong;
}

static void test_fork(struct test_dataset *t)
{
	struct stele_sample samples[BATCH];
	int status = -1, right = 0;

	for (unsigned int i = 0; i < 5; i++) {
		struct stele_reader *reader =
			open_reader(t, STELE_VERIFY_DIGEST, 2);
		pid_t pid;

		fill(reader);
		stele_reader_collect(reader, samples, 1, 1);
		stele_reader_release(reader, &samples[0]);
		pid = fork();
		if (!pid)
			_exit(child(reader));
		if (waitpid(pid, &status, 0) != pid || status)
			break;
		right += stele_reader_collect(reader, samples, BATCH, BATCH) ==
			 BATCH - 1;
		stele_reader_close(reader);
	}
	is_int(0, status, "a child is told, and can close");
	is_int(5, right, "its parent goes on");
}

/* How often a thread slept, if it is a checker; 0: it is none. -1: it does not sleep now. */
static long slept_of(const char *id)
{
	char path[64], line[128], state = 0;
	bool checker = false;
	long count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", id);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		checker |= !strcmp(line, "Name:\tstele-check\n");
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %ld", &count);
	}
	if (file)
		fclose(file);
	if (!checker)
		return 0;
	return state == 'S' ? count : -1;
}

/* Of all checkers, once they all sleep. */
static long slept(void)
{
	long sum, count;

	do {
		DIR *dir = opendir("/proc/self/task");
		struct dirent *entry;

		if (!dir)
			bail("no threads to look at");
		for (sum = count = 0; count >= 0 && (entry = readdir(dir)); sum += count)
			count = slept_of(entry->d_name);
		closedir(dir);
	} while (count < 0);
	return sum;
}

/* To wake a thread takes as long as a few checksums do. */
static void test_share(struct test_dataset *t)
{
	struct stele_reader *reader = open_reader(t, STELE_VERIFY_CRC, 2);
	struct stele_sample samples[BATCH];
	long before = slept();
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < 20; i++) {
		int n = fill(reader) == BATCH ?
				stele_reader_collect(reader, samples, BATCH, BATCH) :
				-1;

		wrong += n != BATCH;
		for (int k = 0; k < n; k++)
			stele_reader_release(reader, &samples[k]);
	}
	is_uint(0, wrong, "collected");
	is_int(before, slept(), "no thread was woken for a few");
	fill(reader);
	for (unsigned int n = 0; n < BATCH;)
		n += (unsigned int)stele_reader_collect(reader, samples, BATCH, 0);
	ok(slept() > before, "but while the collecting thread does not wait");
	stele_reader_close(reader);
}

static void test_options(struct test_dataset *t)
{
	struct stele_reader *reader;

	is_int(-EINVAL,
	       stele_reader_open(t->ds,
				 &STELE_OPTS(stele_reader_opts,
					     .check_threads = 65),
				 &reader),
	       "too many threads");
	is_int(0,
	       stele_reader_open(t->ds,
				 &STELE_OPTS(stele_reader_opts,
					     .check_threads = 64),
				 &reader),
	       "as many as there may be");
	stele_reader_close(reader);
}

static void check(const char *backend)
{
	struct test_plan plan = {.samples = SAMPLES,
				 .size_max = 20000,
				 .granule = 4096,
				 .backend = backend};
	struct test_dataset t;

	diag("%s", backend ? backend : "memory");
	test_dataset_open(&t, &plan);
	test_same(&t, STELE_VERIFY_CRC, "checksums");
	test_same(&t, STELE_VERIFY_DIGEST, "digests");
	test_share(&t);
	test_close(&t);
	test_fork(&t);
	test_options(&t);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check(NULL);
	check("uring");
	return done();
}

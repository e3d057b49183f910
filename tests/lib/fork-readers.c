/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork-readers.c - readers do not cross fork(), datasets do
 *
 * As a training job does it: a reader is open and has samples in flight when
 * five workers are forked. In the child each entry of it says -EOWNERDEAD, and
 * closing it takes nothing from the parent; a reader of the child's own works
 * while the parent goes on with the first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define CHILDREN 5u
#define READS	 1500u

static int old_reader_is_dead(struct stele_reader *reader, char *memory)
{
	const struct stele_destination to = {.memory = memory,
					     .memory_size = 65536};
	struct stele_sample sample = {0};
	uint64_t id = 0;
	int bad = 0;

	bad |= stele_reader_submit(reader, &id, NULL, 1) != -EOWNERDEAD;
	bad |= stele_reader_submit_into(reader, &to, 1) != -EOWNERDEAD;
	bad |= stele_reader_collect(reader, &sample, 1, 1) != -EOWNERDEAD;
	bad |= stele_reader_fd(reader) != -EOWNERDEAD;
	bad |= stele_reader_in_flight(reader) != 0;
	stele_reader_release(reader, &sample);
	return bad;
}

/* Nor is its memory there: what would look into it says so. */
static int old_sample_is_dead(const struct stele_sample *held)
{
	struct stele_sample sample = *held;
	const void *data;
	uint64_t size;
	int64_t label;
	double score;
	int bad = 0;

	bad |= stele_sample_i64(&sample, 1, &label) != -EOWNERDEAD;
	bad |= stele_sample_bytes(&sample, 0, &data, &size) != -EOWNERDEAD;
	bad |= stele_sample_f64(&sample, 1, &score) != -EINVAL;
	stele_sample_release(&sample);
	return bad;
}

/* What the child maps where the arena was must outlive the old reader. */
static int close_spares_the_childs(struct stele_reader *reader,
				   const struct stele_sample *held)
{
	size_t page = 4096;
	char *where = (char *)((uintptr_t)held->data & ~(page - 1));
	char *mine = mmap(where, page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			  0);

	if (mine != where) {
		stele_reader_close(reader);
		return 1; /* the arena is still there: it was to be left out */
	}
	memset(mine, 0x5a, page);
	stele_reader_close(reader);
	return mine[17] != 0x5a;
}

/* Exit status: which check failed. */
static int child(struct test_dataset *t, struct stele_reader *old,
		 const struct stele_sample *held, char *memory, uint64_t seed)
{
	struct stele_reader *reader;
	struct stele_sample sample;
	uint64_t ids[READS], wrong;

	if (old_reader_is_dead(old, memory))
		return 1;
	if (old_sample_is_dead(held))
		return 6;
	if (seed % 2 && close_spares_the_childs(old, held))
		return 2;
	if (stele_reader_open(t->ds, NULL, &reader))
		return 3;
	test_random_ids(t, ids, READS, seed);
	wrong = test_read_all(t, reader, ids, READS);
	stele_reader_close(reader);
	if (wrong)
		return 4;
	if (stele_dataset_read(t->ds, 3, &sample) ||
	    !test_is_sample(t, 3, &sample))
		return 5;
	stele_sample_release(&sample);
	return 0;
}

static void start_some(struct stele_reader *reader, unsigned int count)
{
	for (uint64_t id = 0; count--; id++)
		if (stele_reader_submit(reader, &id, &id, 1) != 1)
			bail("submit");
}

static void check(const char *backend)
{
	struct test_plan plan = {
		.samples = 80, .size_max = 30000, .backend = backend};
	struct stele_sample held, samples[16];
	struct stele_reader *reader;
	struct test_dataset t;
	uint64_t ids[READS], first = 7, right = 0;
	char *memory = aligned_alloc(4096, 65536);
	pid_t pids[CHILDREN];

	test_dataset_open(&t, &plan);
	if (stele_reader_open(t.ds, NULL, &reader) ||
	    stele_reader_submit(reader, &first, NULL, 1) != 1 ||
	    stele_reader_collect(reader, &held, 1, 1) != 1)
		bail("no reader");
	start_some(reader, 16);
	fflush(stdout);
	for (unsigned int i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(child(&t, reader, &held, memory, i + 1));
	}
	/* What was in flight at the fork arrives here, and here alone. */
	for (int n = 0; n < 16;)
		n += stele_reader_collect(reader, samples + n,
					  16 - (unsigned int)n, 1);
	for (unsigned int i = 0; i < 16; i++) {
		right += test_is_sample(&t, samples[i].tag, &samples[i]);
		stele_reader_release(reader, &samples[i]);
	}
	is_uint(16, right, "%s: in flight at the fork: with the parent",
		backend ? backend : "memory");
	test_random_ids(&t, ids, READS, 99);
	is_uint(0, test_read_all(&t, reader, ids, READS),
		"the parent reads on");
	ok(test_is_sample(&t, 7, &held), "and holds what it held");
	for (unsigned int i = 0; i < CHILDREN; i++) {
		int status = -1;

		waitpid(pids[i], &status, 0);
		is_int(0, status, "child %u", i);
	}
	is_uint(0, test_read_all(&t, reader, ids, READS),
		"also when all children are gone");
	stele_reader_close(reader);
	test_dataset_close(&t);
	free(memory);
}

int main(void)
{
	plan_lazy();
	check(NULL);
	check("uring");
	/* Neither sanitizer can fork while other threads run. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	check("threads");
#endif
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-threads.c - one dataset, many threads, each with what is its own
 *
 * Readers, one-shot reads, look-ups and a cursor side by side: what they share
 * is immutable, which TSan proves and the bytes confirm.
 */
#include <pthread.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define THREADS 4u
#define READS	600u

struct work {
	pthread_t thread;
	const struct test_dataset *t;
	uint64_t seed, wrong;
};

static void read_by_reader(struct work *w)
{
	struct stele_reader *reader;
	uint64_t ids[READS];

	if (stele_reader_open(w->t->ds,
			      &STELE_OPTS(stele_reader_opts,
					  .arena_size = 1u << 20, .depth = 8),
			      &reader)) {
		w->wrong++;
		return;
	}
	test_random_ids(w->t, ids, READS, w->seed);
	w->wrong += test_read_all(w->t, reader, ids, READS);
	stele_reader_close(reader);
}

static void read_one_by_one(struct work *w)
{
	uint64_t ids[READS / 6];

	test_random_ids(w->t, ids, READS / 6, w->seed + 1);
	for (unsigned int i = 0; i < READS / 6; i++) {
		const char *key = w->t->live[ids[i]].sample->key;
		struct stele_sample sample;
		uint64_t id;

		w->wrong += stele_dataset_lookup(w->t->ds, key, strlen(key),
					       &id) ||
			    id != ids[i];
		stele_dataset_read(w->t->ds, ids[i], &sample);
		w->wrong += !test_is_sample(w->t, ids[i], &sample);
		stele_sample_release(&sample);
	}
}

static void walk_keys(struct work *w)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	uint64_t count = 0;

	if (stele_cursor_open(w->t->ds, NULL, 0, &cursor)) {
		w->wrong++;
		return;
	}
	while (stele_cursor_next(cursor, &entry) == 1)
		count++;
	w->wrong += count != w->t->count;
	stele_cursor_close(cursor);
}

static void *run(void *user)
{
	struct work *w = user;

	read_by_reader(w);
	read_one_by_one(w);
	walk_keys(w);
	return NULL;
}

static void check(const char *backend, enum stele_verify verify)
{
	struct test_plan plan = {.segments = 2,
				 .samples = 200,
				 .size_max = 20000,
				 .delete_every = 5,
				 .backend = backend,
				 .verify = verify};
	struct work work[THREADS];
	struct test_dataset t;
	uint64_t wrong = 0;

	test_dataset_open(&t, &plan);
	for (unsigned int i = 0; i < THREADS; i++) {
		work[i] = (struct work){.t = &t, .seed = i + 1};
		if (pthread_create(&work[i].thread, NULL, run, &work[i]))
			bail("no thread");
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(work[i].thread, NULL);
		wrong += work[i].wrong;
	}
	is_uint(0, wrong, "%s, verify %d: %u threads on one dataset",
		backend ? backend : "memory", verify, THREADS);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check(NULL, STELE_VERIFY_CRC);
	check("uring", STELE_VERIFY_CRC);
	check("threads", STELE_VERIFY_CRC);
	check(NULL, STELE_VERIFY_DIGEST);
	return done();
}

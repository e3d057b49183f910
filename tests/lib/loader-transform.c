/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-transform.c - the callback: once for each sample, in place, on any thread
 *
 * What it writes is what the caller gets, in the right place of the right batch; its tag
 * comes along. It takes no signals of the program's.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define COUNT 150u

struct seen {
	atomic_uint calls[COUNT];
	atomic_uint wrong;
	pthread_t caller;
	const struct test_dataset *t;
};

static int turn(void *user, struct stele_sample *sample)
{
	struct seen *seen = user;
	unsigned char *bytes = (unsigned char *)(uintptr_t)sample->data;
	sigset_t mask;

	atomic_fetch_add(&seen->calls[sample->id], 1);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (!test_is_sample(seen->t, sample->id, sample) ||
	    pthread_equal(pthread_self(), seen->caller) ||
	    !sigismember(&mask, SIGINT) || sample->tag)
		atomic_fetch_add(&seen->wrong, 1);
	for (uint64_t i = 0; i < sample->size; i++)
		bytes[i] ^= 0xff;
	sample->tag = 1000 + sample->id;
	return 0;
}

static bool is_turned(const struct test_dataset *t,
		      const struct stele_sample *sample)
{
	const struct test_sample *wanted = t->live[sample->id].sample;
	const unsigned char *a = wanted->data, *b = sample->data;
	bool same = sample->size == wanted->size &&
		    sample->tag == 1000 + sample->id;

	for (uint64_t i = 0; same && i < wanted->size; i++)
		same = (a[i] ^ b[i]) == 0xff;
	return same;
}

static void check(const struct test_dataset *t, uint32_t threads,
		  uint32_t as_completed)
{
	struct stele_loader_source source = {.ds = t->ds};
	static struct seen seen;
	struct stele_loader_opts opts = {.batch_size = 8,
					 .threads = threads,
					 .as_completed = as_completed,
					 .transform = turn,
					 .transform_user = &seen};
	uint64_t ids[2 * COUNT], count = 0, wrong = 0;
	struct stele_shuffle *shuffle;
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};

	memset(&seen, 0, sizeof(seen));
	seen.caller = pthread_self();
	seen.t = t;
	loader = test_loader(&source, 1, opts);
	while (stele_loader_next(loader, &batch) > 0) {
		for (uint32_t i = 0; i < batch.count; i++) {
			wrong += !is_turned(t, &batch.samples[i]);
			if (i < batch.count - batch.padded)
				ids[count++] = batch.samples[i].id;
		}
		stele_loader_release(loader, &batch);
	}
	stele_loader_close(loader);
	is_uint(0, wrong, "%u threads: bytes and tags are the callback's",
		threads);
	is_uint(0, atomic_load(&seen.wrong), "which saw whole samples");
	is_uint(0, test_load_odd(ids, count, 0, COUNT, 1), "each once");
	if (as_completed)
		return;
	stele_shuffle_open(COUNT, NULL, &shuffle);
	for (uint64_t i = 0; i < count; i++)
		wrong += ids[i] != stele_shuffle_at(shuffle, i);
	is_uint(0, wrong, "in order");
	stele_shuffle_close(shuffle);
}

/* Closed and restored while callbacks run. */
static void test_interrupted(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	static struct seen seen;
	struct stele_loader_opts opts = {.batch_size = 8,
					 .threads = 3,
					 .transform = turn,
					 .transform_user = &seen};
	uint8_t state[STELE_LOADER_STATE_SIZE];
	uint64_t wrong = 0;

	memset(&seen, 0, sizeof(seen));
	seen.caller = pthread_self();
	seen.t = t;
	for (unsigned int i = 0; i < 12; i++) {
		struct stele_loader *loader = test_loader(&source, 1, opts);
		struct stele_batch batch = {.size = sizeof(batch)};

		stele_loader_save(loader, state);
		for (unsigned int j = 0; j < i; j++) {
			wrong += stele_loader_next(loader, &batch) != 1 ||
				 batch.index != 0;
			wrong += stele_loader_restore(loader, state) != 0;
			for (uint32_t k = 0; k < batch.count; k++)
				wrong += !is_turned(t, &batch.samples[k]);
			if (j % 2)
				stele_loader_release(loader, &batch);
		}
		stele_loader_close(loader);
	}
	is_uint(0, wrong + atomic_load(&seen.wrong),
		"restored and closed under way");
}

int main(void)
{
	struct test_plan plan = {.samples = COUNT, .size_max = 6000};
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	check(&t, 1, 0);
	check(&t, 4, 0);
	check(&t, 4, 1);
	check(&t, 0, 0);
	test_interrupted(&t);
	test_dataset_close(&t);
	return done();
}

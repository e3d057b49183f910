/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_worker.c - one thread of a benchmark, with a reader of its own
 *
 * The closed loop keeps the reader full: it submits what is taken, waits for one sample
 * (or a batch), hands back all that are there. The synchronous one asks for a batch and
 * waits for all of it, as programs do that do not read ahead.
 */
#include "bench_worker.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define COLLECT_MAX 64u /* samples at once, when no batch is asked for */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* ---- loops -------------------------------------------------------------------- */

static void note_failure(struct bench_part *part,
			 const struct stele_sample *sample)
{
	if (part->sample_error)
		return;
	part->sample_error = sample->status;
	part->sample_id = sample->id;
}

void bench_deliver(struct bench_worker *w, unsigned int count)
{
	struct bench_part *part = w->part;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < count; i++) {
		bytes += w->samples[i].size;
		if (w->samples[i].status)
			note_failure(part, &w->samples[i]);
		stele_reader_release(w->reader, &w->samples[i]);
	}
	/* Nobody else writes them. */
	__atomic_store_n(&w->samples_done, w->samples_done + count,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&w->bytes_done, w->bytes_done + bytes,
			 __ATOMIC_RELAXED);
	if (!part->first_sample)
		part->first_sample = bench_clock();
	if (!part->first_batch && w->samples_done >= w->config->batch)
		part->first_batch = bench_clock();
}

/* Submit up to `limit` samples, as long as there is room. */
static int ask(struct bench_worker *w, unsigned int limit)
{
	struct bench_ids *ids = &w->ids;
	unsigned int wanted;
	int taken, err;

	while (limit) {
		if (ids->next == ids->count) {
			err = bench_ids_fill(ids);
			if (err || !ids->count)
				return err;
		}
		wanted = least(ids->count - ids->next, limit);
		taken = stele_reader_submit(w->reader, &ids->ids[ids->next],
					    NULL, wanted);
		if (taken < 0)
			return taken;
		ids->next += (unsigned int)taken;
		limit -= (unsigned int)taken;
		if ((unsigned int)taken < wanted)
			break;
	}
	return 0;
}

/* Also when it has been stopped: what was asked for counts. */
static int drain(struct bench_worker *w)
{
	int count;

	do {
		count = stele_reader_collect(w->reader, w->samples,
					     w->sample_max, 1);
		if (count > 0)
			bench_deliver(w, (unsigned int)count);
	} while (count > 0);
	return count;
}

static int closed_loop(struct bench_worker *w)
{
	unsigned int min = w->config->batch;
	int count, err;

	while (!bench_stopped(w)) {
		err = ask(w, UINT_MAX);
		if (err)
			return err;
		count = stele_reader_collect(w->reader, w->samples,
					     w->sample_max, min);
		if (count <= 0)
			return count;
		bench_deliver(w, (unsigned int)count);
	}
	return drain(w);
}

static int sync_loop(struct bench_worker *w)
{
	int err;

	while (!bench_stopped(w)) {
		err = ask(w, w->config->batch);
		if (err || !stele_reader_outstanding(w->reader))
			return err;
		err = drain(w);
		if (err)
			return err;
	}
	return 0;
}

/* ---- the thread ------------------------------------------------------------------ */

static int prepare(struct bench_worker *w)
{
	const struct bench_config *config = w->config;
	struct stele_reader_opts opts = STELE_OPTS(
		stele_reader_opts, .arena_size = config->memory,
		.depth = config->depth, .verify = 1 + config->verify,
		.check_threads = config->check_threads);

	w->sample_max = config->batch > 1 ? config->batch : COLLECT_MAX;
	w->samples = calloc(w->sample_max, sizeof(*w->samples));
	w->latency = stele_histogram_new();
	w->device_latency = stele_histogram_new();
	w->part->rounds = calloc(BENCH_HISTORY_MAX, sizeof(*w->part->rounds));
	if (!w->samples || !w->latency || !w->device_latency ||
	    !w->part->rounds)
		return -ENOMEM;
	return stele_reader_open(w->ds, &opts, &w->reader);
}

/* Return: whether the others are there, too. */
static bool pass(struct bench_gate *gate)
{
	bool stopped;

	pthread_mutex_lock(&gate->lock);
	gate->ready++;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->lock);
	stopped = __atomic_load_n(&gate->stop, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&gate->lock);
	return !stopped;
}

static void leave(struct bench_gate *gate, int error)
{
	pthread_mutex_lock(&gate->lock);
	if (error)
		__atomic_store_n(&gate->stop, true, __ATOMIC_RELAXED);
	gate->done++;
	pthread_cond_broadcast(&gate->changed);
	/* Closing is not measured. */
	while (!gate->over)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void gather(struct bench_worker *w)
{
	const struct stele_histogram *from;
	struct bench_part *part = w->part;

	stele_reader_stats(w->reader, &part->stats);
	part->round_count = stele_reader_history(w->reader, part->rounds,
						 BENCH_HISTORY_MAX);
	from = stele_reader_latency(w->reader, STELE_LATENCY_DEVICE);
	if (from)
		stele_histogram_add(w->device_latency, from);
	from = stele_reader_latency(w->reader, STELE_LATENCY_SAMPLE);
	if (from && !w->config->rate)
		stele_histogram_add(w->latency, from);
}

static int loop(struct bench_worker *w)
{
	if (w->config->rate)
		return bench_open_loop(w);
	return w->config->sync ? sync_loop(w) : closed_loop(w);
}

static void *work(void *argument)
{
	struct bench_worker *w = argument;
	struct bench_part *part = w->part;

	part->error = prepare(w);
	if (part->error)
		__atomic_store_n(&w->gate->stop, true, __ATOMIC_RELAXED);
	if (pass(w->gate)) {
		part->error = loop(w);
		if (!part->end)
			part->end = bench_clock();
		gather(w);
	}
	leave(w->gate, part->error);
	stele_reader_close(w->reader);
	bench_ids_release(&w->ids);
	free(w->samples);
	return NULL;
}

int bench_worker_start(struct bench_worker *w)
{
	return -pthread_create(&w->thread, NULL, work, w);
}

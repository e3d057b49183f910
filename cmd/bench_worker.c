/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_worker.c - the life of a worker's thread, whatever it reads with
 */
#include "bench_worker.h"

#include <errno.h>

void bench_count(struct bench_worker *w, uint64_t samples, uint64_t bytes)
{
	struct bench_part *part = w->part;

	/* Nobody else writes them. */
	__atomic_store_n(&w->samples_done, w->samples_done + samples,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&w->bytes_done, w->bytes_done + bytes,
			 __ATOMIC_RELAXED);
	if (!part->first_sample)
		part->first_sample = bench_clock();
	if (!part->first_batch && w->samples_done >= w->config->batch)
		part->first_batch = bench_clock();
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

static const struct bench_engine *engine_of(const struct bench_config *config)
{
	return config->loader ? &bench_loader_engine : &bench_reader_engine;
}

static int prepare(struct bench_worker *w)
{
	w->latency = stele_histogram_new();
	w->sample_latency = stele_histogram_new();
	w->device_latency = stele_histogram_new();
	if (!w->latency || !w->sample_latency || !w->device_latency)
		return -ENOMEM;
	return engine_of(w->config)->open(w);
}

static void *work(void *argument)
{
	struct bench_worker *w = argument;
	struct bench_part *part = w->part;

	part->error = prepare(w);
	if (part->error)
		__atomic_store_n(&w->gate->stop, true, __ATOMIC_RELAXED);
	if (pass(w->gate)) {
		part->error = engine_of(w->config)->loop(w);
		part->end = bench_clock();
		part->samples = w->samples_done;
		part->bytes = w->bytes_done;
		engine_of(w->config)->gather(w);
	}
	leave(w->gate, part->error);
	engine_of(w->config)->close(w);
	bench_ids_release(&w->ids);
	return NULL;
}

int bench_worker_start(struct bench_worker *w)
{
	return -pthread_create(&w->thread, NULL, work, w);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_worker.h - one thread of a benchmark, with a reader of its own
 *
 * A worker opens its reader, waits at the gate until all others have one too,
 * reads until it is told to stop or there is nothing left, collects what is in flight,
 * and tells what its reader counted. What it does between submit and collect must
 * cost next to nothing: it is part of what is measured.
 */
#ifndef STELE_CMD_BENCH_WORKER_H
#define STELE_CMD_BENCH_WORKER_H

#include <pthread.h>

#include "bench.h"
#include "bench_order.h"

/* Where workers and the main thread wait for each other. */
struct bench_gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t ready, done; /* workers; a failed one counts */
	bool open, over; /* to begin; to close the readers */
	uint64_t opened; /* when */
	bool stop;	 /* atomic */
};

struct bench_worker {
	const struct bench_config *config;
	struct stele_dataset *ds;
	struct bench_gate *gate;
	uint32_t index;
	pthread_t thread;
	struct bench_part *part;
	struct bench_ids ids;
	struct stele_reader *reader;
	struct stele_sample *samples;
	unsigned int sample_max;
	/* Of the samples, and of device reads. An open loop records the first itself. */
	struct stele_histogram *latency, *device_latency;
	/* For the main thread while it runs; atomic. */
	uint64_t samples_done, bytes_done;
} __attribute__((aligned(64)));

/* Return: 0; negative errno. Ends with the thread, which is then joined. */
int bench_worker_start(struct bench_worker *worker);

static inline bool bench_stopped(const struct bench_worker *worker)
{
	return __atomic_load_n(&worker->gate->stop, __ATOMIC_RELAXED);
}

/* Count and release samples that were collected. */
void bench_deliver(struct bench_worker *worker, unsigned int count);

/* The open loop of bench_open.c. Return: 0; negative errno of the reader. */
int bench_open_loop(struct bench_worker *worker);

#endif

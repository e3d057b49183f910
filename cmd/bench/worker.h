/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - one thread of a benchmark, with a reader or a loader of its own
 *
 * A worker opens what it reads with, waits at the gate until all others have done so,
 * reads until it is told to stop or there is nothing left, takes what is in flight, and
 * tells what was counted. What it does in between must cost next to nothing: it is part
 * of what is measured.
 */
#ifndef STELE_CMD_BENCH_WORKER_H
#define STELE_CMD_BENCH_WORKER_H

#include <pthread.h>

#include "bench.h"

/*
 * Which sample is read next, by whichever thread asks: all take blocks of positions from one
 * counter, so that each position is done once, and no thread has to wait for another in the
 * end. Position p is that of epoch p / count. Ids are computed a block at a time, before they
 * are wanted: that must not be part of what is measured.
 */
#define BENCH_BLOCK_MAX 256u /* positions */

struct bench_order {
	uint64_t count; /* samples of the dataset */
	uint64_t total; /* positions to do; UINT64_MAX: no end */
	uint64_t next;	/* position; atomic */
	uint32_t block;
	struct stele_shuffle_opts opts; /* but for the epoch */
};

/* Of one thread. */
struct bench_ids {
	struct bench_order *order;
	struct stele_shuffle *shuffle; /* of `epoch` */
	uint64_t epoch;
	unsigned int next, count; /* of ids[], those not yet used */
	uint64_t ids[BENCH_BLOCK_MAX];
};

/*
 * Take a block, when all of the last one are used.
 * Return: 0, with ids->count 0 at the end; negative errno.
 */
int bench_ids_fill(struct bench_ids *ids);

/* Where workers and the main thread wait for each other. */
struct bench_gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t ready, done; /* workers; a failed one counts */
	bool open, over; /* to begin; to close what was opened */
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
	struct stele_loader *loader;
	struct stele_sample *samples;
	unsigned int sample_max;
	struct stele_histogram *latency; /* of what it waited for: see bench_waits() */
	struct stele_histogram *sample_latency, *device_latency; /* the readers' */
	/* For the main thread while it runs; atomic. */
	uint64_t samples_done, bytes_done;
} __attribute__((aligned(64)));

/* What a worker reads with. Each returns 0 or a negative errno. */
struct bench_engine {
	int (*open)(struct bench_worker *worker);
	int (*loop)(struct bench_worker *worker);
	void (*gather)(struct bench_worker *worker); /* into worker->part */
	void (*close)(struct bench_worker *worker); /* also when open failed */
};
extern const struct bench_engine bench_reader_engine, bench_loader_engine;

static inline bool bench_stopped(const struct bench_worker *worker)
{
	return __atomic_load_n(&worker->gate->stop, __ATOMIC_RELAXED);
}

/* Add to what was done, and note when the first of it was. */
void bench_count(struct bench_worker *worker, uint64_t samples, uint64_t bytes);

/* Samples at given times. Return: 0; negative errno of the reader. */
int bench_open_loop(struct bench_worker *worker);

#endif

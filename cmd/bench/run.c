/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a benchmark from the first to the last sample: order, threads, sums
 *
 * Counters of the system are read while all readers are open and none has anything in
 * flight. The main thread does nothing in between but look at the clock ten times a
 * second.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "accelerator.h"
#include "progress.h"
#include "stop.h"
#include "text.h"

/* ---- which sample is next ---------------------------------------------------- */

#define BLOCKS_PER_THREAD 16u /* at least, of what there is to do */

static uint32_t block_size(uint64_t positions, uint32_t threads)
{
	uint64_t block = positions / ((uint64_t)BLOCKS_PER_THREAD * threads);

	if (threads == 1 || block > BENCH_BLOCK_MAX)
		return BENCH_BLOCK_MAX;
	return block ? (uint32_t)block : 1;
}

/* `total` 0: no end. Threads share what there is in blocks that suit their number. */
static void order_init(struct bench_order *order, uint64_t count,
		       uint64_t total, uint32_t threads,
		       const struct stele_shuffle_opts *opts)
{
	*order = (struct bench_order){
		.count = count,
		.total = total ? total : UINT64_MAX,
		.block = block_size(total && total < count ? total : count,
				    threads),
		.opts = *opts,
	};
}

static void ids_init(struct bench_ids *ids, struct bench_order *order)
{
	ids->order = order;
	ids->shuffle = NULL;
	ids->next = ids->count = 0;
}

static int begin_epoch(struct bench_ids *ids, uint64_t epoch)
{
	struct stele_shuffle_opts opts = ids->order->opts;

	if (ids->shuffle && ids->epoch == epoch)
		return 0;
	stele_shuffle_close(ids->shuffle);
	ids->shuffle = NULL;
	ids->epoch = opts.epoch = epoch;
	return stele_shuffle_open(ids->order->count, &opts, &ids->shuffle);
}

int bench_ids_fill(struct bench_ids *ids)
{
	struct bench_order *order = ids->order;
	uint64_t position = __atomic_fetch_add(&order->next, order->block,
					       __ATOMIC_RELAXED);
	uint64_t left = position < order->total ? order->total - position : 0;
	int err;

	ids->next = 0;
	ids->count = left < order->block ? (unsigned int)left : order->block;
	for (unsigned int i = 0; i < ids->count; i++, position++) {
		err = begin_epoch(ids, position / order->count);
		if (err) {
			ids->count = 0;
			return err;
		}
		ids->ids[i] = stele_shuffle_at(ids->shuffle,
					       position % order->count);
	}
	return 0;
}

static void ids_release(struct bench_ids *ids)
{
	stele_shuffle_close(ids->shuffle);
	ids->shuffle = NULL;
}

/* ---- a worker ---------------------------------------------------------------- */

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
	ids_release(&w->ids);
	return NULL;
}

/* Return: 0; negative errno. Ends with the thread, which is then joined. */
static int worker_start(struct bench_worker *w)
{
	return -pthread_create(&w->thread, NULL, work, w);
}

#define TICK_NS 100000000u

struct run {
	const struct bench_config *config;
	struct bench_result *result;
	struct bench_order order;
	struct bench_gate gate;
	struct bench_worker *workers;
	uint32_t started;
	uint64_t opening; /* when the first reader was */
	struct stele_histogram *latency, *sample_latency, *device_latency;
	/* Of the last line: */
	uint64_t line_time, line_samples, line_bytes;
};

uint64_t bench_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- while it runs ----------------------------------------------------------- */

static void show_progress(struct run *run, uint64_t now)
{
	const struct bench_config *config = run->config;
	uint64_t samples = 0, bytes = 0;
	double seconds;

	for (uint32_t i = 0; i < run->started; i++) {
		samples += __atomic_load_n(&run->workers[i].samples_done,
					   __ATOMIC_RELAXED);
		bytes += __atomic_load_n(&run->workers[i].bytes_done,
					 __ATOMIC_RELAXED);
	}
	progress_update("reading", &(struct stele_progress){
					   .samples_done = samples,
					   .samples_total = config->samples,
					   .bytes_done = bytes,
				   });
	seconds = (double)(now - run->line_time) / 1e9;
	/* A tick may come a little early. */
	if (!config->interval || seconds < config->interval - TICK_NS / 2e9)
		return;
	progress_hide();
	(config->json ? bench_json_interval : bench_text_interval)(
		(double)(now - run->gate.opened) / 1e9,
		(double)(samples - run->line_samples) / seconds,
		(double)(bytes - run->line_bytes) / seconds);
	run->line_time = now;
	run->line_samples = samples;
	run->line_bytes = bytes;
}

static void set_stop(struct run *run)
{
	__atomic_store_n(&run->gate.stop, true, __ATOMIC_RELAXED);
}

/* With the lock held: until something changed, or the next tick, or `deadline`. */
static uint64_t wait_tick(struct run *run, uint64_t deadline)
{
	uint64_t until = bench_clock() + TICK_NS;
	struct timespec time;

	if (until > deadline)
		until = deadline;
	time.tv_sec = (time_t)(until / 1000000000);
	time.tv_nsec = (long)(until % 1000000000);
	pthread_cond_timedwait(&run->gate.changed, &run->gate.lock, &time);
	return bench_clock();
}

/* From opening the gate until all workers are done. */
static void watch(struct run *run)
{
	struct bench_gate *gate = &run->gate;
	double seconds = run->config->seconds;
	uint64_t now, deadline = UINT64_MAX;

	gate->opened = run->line_time = bench_clock();
	if (seconds > 0)
		deadline = gate->opened + (uint64_t)(seconds * 1e9);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	while (gate->done < run->started) {
		now = wait_tick(run, deadline);
		if (stop_requested() && !run->result->interrupted) {
			run->result->interrupted = true;
			set_stop(run);
		}
		if (now >= deadline) {
			set_stop(run);
			deadline = UINT64_MAX;
		}
		if (gate->done < run->started)
			show_progress(run, now);
	}
}

/* ---- before and after ---------------------------------------------------------- */

static int start(struct run *run, struct stele_dataset *ds)
{
	const struct bench_config *config = run->config;
	struct bench_worker *w;
	int err = 0;

	for (uint32_t i = 0; i < config->threads && !err; i++) {
		w = &run->workers[i];
		w->config = config;
		w->ds = ds;
		w->gate = &run->gate;
		w->index = i;
		w->part = &run->result->parts[i];
		w->part->stats.size = sizeof(w->part->stats);
		ids_init(&w->ids, &run->order);
		err = worker_start(w);
		if (!err)
			run->started++;
	}
	return err;
}

/* Return: 0; negative errno (said). */
static int measure(struct run *run, struct stele_dataset *ds)
{
	struct bench_machine before = {0};
	struct bench_gate *gate = &run->gate;
	char count[TEXT_SIZE];
	int err;

	bench_machine_find(&before, run->config->target);
	run->opening = bench_clock();
	err = start(run, ds);
	pthread_mutex_lock(&gate->lock);
	while (gate->ready < run->started)
		pthread_cond_wait(&gate->changed, &gate->lock);
	if (err)
		set_stop(run);
	run->result->used = before;
	bench_machine_read(&before);
	watch(run);
	bench_machine_read(&run->result->used);
	bench_machine_subtract(&run->result->used, &before);
	gate->over = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
	for (uint32_t i = 0; i < run->started; i++)
		pthread_join(run->workers[i].thread, NULL);
	progress_hide();
	if (err)
		cmd_error(err, "cannot start %s",
			  text_counted(count, run->config->threads, "thread"));
	return err;
}

static int end_of(struct run *run)
{
	for (uint32_t i = 0; i < run->started; i++) {
		const struct bench_part *part = &run->result->parts[i];

		if (!part->error)
			continue;
		cmd_error(part->error, "%s '%s'",
			  part->samples ? "cannot go on reading"
					: "cannot read",
			  run->config->target);
		return part->error;
	}
	return 0;
}

/* ---- the sum of all readers ------------------------------------------------------- */

/* The readers' own latencies in the sum, and in `shown` what was waited for instead. */
static void set_latencies(struct run *run)
{
	struct bench_result *result = run->result;

	for (uint32_t i = 0; i < run->started; i++) {
		const struct bench_worker *w = &run->workers[i];

		stele_histogram_add(run->latency, w->latency);
		stele_histogram_add(run->sample_latency, w->sample_latency);
		stele_histogram_add(run->device_latency, w->device_latency);
	}
	stele_stats_latencies(&result->sum, run->sample_latency,
			      run->device_latency);
	result->shown = result->sum;
	if (bench_waits(run->config))
		stele_stats_latencies(&result->shown, run->latency, NULL);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void set_windows(struct bench_result *result)
{
	double *windows = calloc((size_t)result->part_count * BENCH_HISTORY_MAX,
				 sizeof(*windows));
	unsigned int count = 0;

	for (uint32_t i = 0; windows && i < result->part_count; i++) {
		const struct bench_part *part = &result->parts[i];

		for (unsigned int j = 0; j < part->round_count; j++)
			windows[count++] = part->rounds[j].window;
	}
	if (count) {
		qsort(windows, count, sizeof(*windows), by_value);
		result->window_min = windows[0];
		result->window_median = windows[count / 2];
		result->window_max = windows[count - 1];
		result->rounds = count;
	}
	free(windows);
}

static void set_ratios(struct bench_result *result)
{
	const struct stele_reader_stats *sum = &result->sum;

	if (sum->samples)
		result->reads_per_sample =
			(double)(sum->device_reads - sum->pending_reads) /
			(double)sum->samples;
	if (sum->bytes)
		result->bytes_per_byte =
			(double)(sum->device_bytes - sum->pending_bytes) /
			(double)sum->bytes;
}

static double since(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) / 1e9 : 0;
}

static void sum_up(struct run *run)
{
	struct bench_result *result = run->result;
	uint64_t sample = UINT64_MAX, batch = UINT64_MAX, end = 0;

	for (uint32_t i = 0; i < run->started; i++) {
		const struct bench_part *part = &result->parts[i];

		stele_stats_add(&result->sum, &part->stats);
		result->samples += part->samples;
		result->failed += part->failed;
		result->bytes += part->bytes;
		result->padded += part->padded;
		result->unstarted += part->unstarted;
		if (part->end > end)
			end = part->end;
		if (part->first_sample && part->first_sample < sample)
			sample = part->first_sample;
		if (part->first_batch && part->first_batch < batch)
			batch = part->first_batch;
	}
	result->seconds = since(run->gate.opened, end);
	result->batches = result->samples / run->config->batch;
	result->epochs = (double)result->samples / (double)run->order.count;
	result->start.readers = since(run->opening, run->gate.opened);
	if (sample != UINT64_MAX)
		result->start.first_sample = since(run->gate.opened, sample);
	if (batch != UINT64_MAX)
		result->start.first_batch = since(run->gate.opened, batch);
	set_latencies(run);
	set_ratios(result);
	set_windows(result);
	bench_model_sum(result);
}

static int init(struct run *run, uint64_t count)
{
	const struct bench_config *config = run->config;
	struct bench_result *result = run->result;
	struct stele_shuffle_opts order = STELE_OPTS(
		stele_shuffle_opts, .seed = config->seed, .kind = config->order,
		.block_size = config->block_size,
		.block_count = config->block_count);
	pthread_condattr_t attr;

	order_init(&run->order, count, config->samples, config->threads,
			 &order);
	pthread_mutex_init(&run->gate.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&run->gate.changed, &attr);
	pthread_condattr_destroy(&attr);
	run->workers = aligned_alloc(_Alignof(struct bench_worker),
				     config->threads * sizeof(*run->workers));
	result->parts = calloc(config->threads, sizeof(*result->parts));
	result->part_count = config->threads;
	run->latency = stele_histogram_new();
	run->sample_latency = stele_histogram_new();
	run->device_latency = stele_histogram_new();
	if (!run->workers || !result->parts || !run->latency ||
	    !run->sample_latency || !run->device_latency)
		return -ENOMEM;
	memset(run->workers, 0, config->threads * sizeof(*run->workers));
	return 0;
}

static void release(struct run *run)
{
	for (uint32_t i = 0; i < run->started; i++) {
		stele_histogram_free(run->workers[i].latency);
		stele_histogram_free(run->workers[i].sample_latency);
		stele_histogram_free(run->workers[i].device_latency);
	}
	free(run->workers);
	stele_histogram_free(run->latency);
	stele_histogram_free(run->sample_latency);
	stele_histogram_free(run->device_latency);
	pthread_cond_destroy(&run->gate.changed);
	pthread_mutex_destroy(&run->gate.lock);
}

int bench_run(struct stele_dataset *ds, const struct bench_config *config,
	      struct bench_result *result)
{
	struct run run = {.config = config, .result = result};
	int err;

	result->info.size = sizeof(result->info);
	result->sum.size = sizeof(result->sum);
	stele_dataset_info(ds, &result->info);
	err = init(&run, result->info.sample_count);
	if (err)
		cmd_error(err, "cannot bench '%s'", config->target);
	else
		err = measure(&run, ds);
	if (!err)
		err = end_of(&run);
	if (!err)
		sum_up(&run);
	release(&run);
	return err;
}

static void part_release(struct bench_part *part)
{
	free(part->rounds);
	free(part->reads.reads);
}

void bench_result_release(struct bench_result *result)
{
	for (uint32_t i = 0; result->parts && i < result->part_count; i++)
		part_release(&result->parts[i]);
	free(result->parts);
	memset(result, 0, sizeof(*result));
}

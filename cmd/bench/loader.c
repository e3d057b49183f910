/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - a worker that reads batches from a loader, and may compute on them
 *
 * A loader reads ahead as soon as it is open, so that is not before time counts. Each
 * worker is one rank of a job. What it waited for a batch is its latency: what the loader
 * had ready costs nothing. An accelerator is emulated by sleeping; its time counts from
 * the end of its first wait, which is that of the start and not of the device.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "accelerator.h"

static int prepare(struct bench_worker *w)
{
	(void)w;
	/* Else sleep ends up to 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	return 0;
}

static int open_loader(struct bench_worker *w)
{
	const struct bench_config *config = w->config;
	struct stele_loader_source source = {.ds = w->ds};
	struct stele_loader_opts opts = STELE_OPTS(
		stele_loader_opts, .seed = config->seed,
		.batch_size = config->batch, .rank = w->index,
		.world = config->threads, .on_error = STELE_ON_ERROR_SKIP,
		.shuffle = config->order, .block_count = config->block_count,
		.block_size = config->block_size,
		.prefetch_size = config->memory, .depth = config->depth,
		.verify = config->verify);

	return stele_loader_open(&source, 1, &opts, &w->loader);
}

static uint64_t bytes_of(const struct stele_batch *batch)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < batch->count; i++)
		bytes += batch->samples[i].size;
	return bytes;
}

static void compute(struct bench_worker *w, uint64_t arrived)
{
	const struct bench_model_info *model = bench_model_info(w->config->model);
	uint64_t ns = (uint64_t)(model->compute[w->config->gpu] * 1e9);
	uint64_t until = arrived + ns;
	struct timespec time = {.tv_sec = (time_t)(until / 1000000000),
				.tv_nsec = (long)(until % 1000000000)};

	if (!w->part->steps)
		w->part->total_ns = arrived; /* for now: when it began */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) ==
	       EINTR)
		;
	w->part->steps++;
	w->part->busy_ns += ns;
}

/* Samples of this rank that are left to do. */
static uint64_t share_of(const struct bench_worker *w)
{
	uint64_t all = w->config->samples;
	uint32_t threads = w->config->threads;

	return all ? all / threads + (w->index < all % threads) : UINT64_MAX;
}

static void take(struct bench_worker *w, struct stele_batch *batch,
		 uint64_t waited, uint64_t now)
{
	stele_histogram_record(w->latency, waited ? waited : 1);
	w->part->failed += batch->skipped;
	if (!w->part->sample_error)
		w->part->sample_error = batch->skip_error;
	w->part->padded += batch->padded;
	bench_count(w, batch->count + batch->skipped, bytes_of(batch));
	if (w->config->model)
		compute(w, now);
	stele_loader_release(w->loader, batch);
}

static int loop(struct bench_worker *w)
{
	uint64_t left = share_of(w), asked, now, samples;
	struct stele_batch batch = {.size = sizeof(batch)};
	int got, err = open_loader(w);

	if (err)
		return err;
	while (!bench_stopped(w) && left) {
		asked = bench_clock();
		got = stele_loader_next(w->loader, &batch);
		if (got < 0)
			return got;
		/* The end of an epoch; the next call begins another. */
		if (!got)
			continue;
		now = bench_clock();
		samples = batch.count + batch.skipped - batch.padded;
		take(w, &batch, now - asked, now);
		left -= samples < left ? samples : left;
	}
	if (w->part->steps)
		w->part->total_ns = bench_clock() - w->part->total_ns;
	return 0;
}

static void gather(struct bench_worker *w)
{
	struct stele_loader_stats stats = {.size = sizeof(stats)};

	if (!w->loader)
		return;
	stele_loader_stats(w->loader, &stats);
	stele_loader_reader_stats(w->loader, &w->part->stats);
	w->part->wait_ns = stats.wait_ns;
	stele_loader_latency(w->loader, STELE_LATENCY_SAMPLE, w->sample_latency);
	stele_loader_latency(w->loader, STELE_LATENCY_DEVICE, w->device_latency);
}

static void close_loader(struct bench_worker *w)
{
	stele_loader_close(w->loader);
}

const struct bench_engine bench_loader_engine = {
	.open = prepare,
	.loop = loop,
	.gather = gather,
	.close = close_loader,
};

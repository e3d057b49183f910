/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_reader.c - a worker that reads with a reader
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
	part->failed++;
	if (part->sample_error)
		return;
	part->sample_error = sample->status;
	part->sample_id = sample->id;
}

void bench_deliver(struct bench_worker *w, unsigned int count)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < count; i++) {
		bytes += w->samples[i].size;
		if (w->samples[i].status)
			note_failure(w->part, &w->samples[i]);
		stele_reader_release(w->reader, &w->samples[i]);
	}
	bench_count(w, count, bytes);
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

/* All that was asked for counts, also when it has been stopped. */
static int drain(struct bench_worker *w)
{
	int count;

	do {
		count = stele_reader_collect(w->reader, w->samples,
					     w->sample_max, w->sample_max);
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

/* ---- the engine ------------------------------------------------------------------- */

static int open_reader(struct bench_worker *w)
{
	const struct bench_config *config = w->config;
	struct stele_reader_opts opts = STELE_OPTS(
		stele_reader_opts, .arena_size = config->memory,
		.depth = config->depth, .verify = config->verify,
		.check_threads = config->check_threads);

	w->sample_max = config->batch > 1 ? config->batch : COLLECT_MAX;
	w->samples = calloc(w->sample_max, sizeof(*w->samples));
	w->part->rounds = calloc(BENCH_HISTORY_MAX, sizeof(*w->part->rounds));
	if (!w->samples || !w->part->rounds)
		return -ENOMEM;
	return stele_reader_open(w->ds, &opts, &w->reader);
}

static void gather(struct bench_worker *w)
{
	struct bench_part *part = w->part;

	stele_reader_stats(w->reader, &part->stats);
	part->round_count = stele_reader_history(w->reader, part->rounds,
						 BENCH_HISTORY_MAX);
	stele_histogram_add(w->device_latency,
			    stele_reader_latency(w->reader,
						 STELE_LATENCY_DEVICE));
	stele_histogram_add(w->sample_latency,
			    stele_reader_latency(w->reader,
						 STELE_LATENCY_SAMPLE));
}

static int loop(struct bench_worker *w)
{
	if (w->config->rate)
		return bench_open_loop(w);
	return w->config->sync ? sync_loop(w) : closed_loop(w);
}

static void close_reader(struct bench_worker *w)
{
	stele_reader_close(w->reader);
	free(w->samples);
}

const struct bench_engine bench_reader_engine = {
	.open = open_reader,
	.loop = loop,
	.gather = gather,
	.close = close_reader,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - a worker that reads with a reader
 *
 * The closed loop keeps the reader full: it submits what is taken, waits for one sample
 * (or a batch), hands back all that are there. The synchronous one asks for a batch and
 * waits for all of it, as programs do that do not read ahead.
 *
 * The open loop asks for samples at given times, whether or not the last ones are there.
 * Latency counts from the moment at which a sample was due, not from when there was room
 * for it: a device that stalls is not excused from what it kept waiting. What was due and
 * never begun before the end counts with the time that it had waited until then, which is
 * less than it would have taken.
 */
#include "worker.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>

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

/* Count and release samples that were collected. */
static void deliver(struct bench_worker *w, unsigned int count)
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
			deliver(w, (unsigned int)count);
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
		deliver(w, (unsigned int)count);
	}
	return drain(w);
}

static int sync_loop(struct bench_worker *w)
{
	int err;

	while (!bench_stopped(w)) {
		err = ask(w, w->config->batch);
		if (err || !stele_reader_in_flight(w->reader))
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
		.check_threads = config->check_threads,
		.trace = config->iolog ? bench_reads_add : NULL,
		.trace_user = &w->part->reads);

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

#define DUE_MAX	     64u	/* submitted at once */
#define WAIT_MAX_NS  100000000u /* until it looks whether to stop */
#define POLL_FAST_NS 50000u	/* where there is nothing to poll */

struct schedule {
	double next; /* when, ns */
	double mean; /* ns between two of this thread */
	uint64_t random;
	bool fixed;
};

/* xorshift64*, after Marsaglia and Vigna: in (0, 1]. */
static double draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return ((double)((*state * UINT64_C(0x2545f4914f6cdd1d)) >> 11) + 1) *
	       0x1p-53;
}

static void advance(struct schedule *schedule)
{
	schedule->next += schedule->fixed
				  ? schedule->mean
				  : -log(draw(&schedule->random)) * schedule->mean;
}

static void schedule_init(struct schedule *schedule,
			  const struct bench_worker *w)
{
	const struct bench_config *config = w->config;
	double apart = 1e9 / (double)config->rate;

	*schedule = (struct schedule){
		.next = (double)w->gate->opened + apart * w->index,
		.mean = apart * config->threads,
		/* Never 0, and another one for each thread. */
		.random = (config->seed * 1000003 + w->index) * 2 + 1,
		.fixed = config->arrivals == BENCH_FIXED,
	};
	if (schedule->fixed)
		return;
	schedule->next = (double)w->gate->opened;
	for (int i = 0; i < 8; i++)
		draw(&schedule->random);
	advance(schedule);
}

/* Return: 1; 0: all samples were asked for; negative errno. */
static int more(struct bench_worker *w)
{
	int err = 0;

	if (w->ids.next == w->ids.count)
		err = bench_ids_fill(&w->ids);
	return err ? err : w->ids.count > 0;
}

/* Submit what is due by then. *full: there was no room for all of it. */
static int submit_due(struct bench_worker *w, struct schedule *schedule,
		      double then, bool *full)
{
	struct schedule after[DUE_MAX];
	struct bench_ids *ids = &w->ids;
	uint64_t due[DUE_MAX];
	unsigned int count = 0;
	int taken;

	*full = false;
	while (count < DUE_MAX && ids->next + count < ids->count &&
	       schedule->next <= then) {
		due[count] = (uint64_t)schedule->next;
		after[count] = *schedule;
		advance(schedule);
		count++;
	}
	if (!count)
		return 0;
	taken = stele_reader_submit(w->reader, &ids->ids[ids->next], due, count);
	if (taken < 0)
		return taken;
	ids->next += (unsigned int)taken;
	/* The others stay due. */
	if ((unsigned int)taken < count) {
		*schedule = after[taken];
		*full = true;
	}
	return taken;
}

static void wait_until(struct bench_worker *w, int fd, double when, bool full)
{
	struct pollfd poll = {.fd = fd, .events = POLLIN};
	struct timespec time = {0};
	double left = full ? WAIT_MAX_NS : when - (double)bench_clock();

	if (left <= 0)
		return;
	if (left > WAIT_MAX_NS)
		left = WAIT_MAX_NS;
	if (fd < 0 && left > POLL_FAST_NS &&
	    stele_reader_in_flight(w->reader))
		left = POLL_FAST_NS;
	time.tv_nsec = (long)left;
	ppoll(&poll, fd >= 0, &time, NULL);
}

/* Return: count; negative errno. */
static int take(struct bench_worker *w, unsigned int min)
{
	int count = stele_reader_collect(w->reader, w->samples, w->sample_max,
					 min);
	uint64_t now, due;

	if (count <= 0)
		return count;
	now = bench_clock();
	for (int i = 0; i < count; i++) {
		due = w->samples[i].tag;
		stele_histogram_record(w->latency, now > due ? now - due : 1);
	}
	deliver(w, (unsigned int)count);
	return count;
}

/*
 * The end. What became due since it last looked gets its turn, if there is room; what
 * does not counts with the time that it has waited.
 */
static int finish(struct bench_worker *w, struct schedule *schedule)
{
	double end = (double)bench_clock();
	bool full = false;
	int left = 1;

	while (left > 0 && schedule->next < end && !full) {
		left = more(w);
		if (left > 0)
			left = submit_due(w, schedule, end, &full);
	}
	if (left < 0 || !full)
		return left;
	for (; schedule->next < end; advance(schedule)) {
		stele_histogram_record(w->latency,
				       (uint64_t)(end - schedule->next) + 1);
		w->part->unstarted++;
	}
	return 0;
}

int bench_open_loop(struct bench_worker *w)
{
	int fd = stele_reader_fd(w->reader), count = 0, left = 1;
	struct schedule schedule;
	bool full;

	/* Else sleep ends up to 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	schedule_init(&schedule, w);
	while (!bench_stopped(w) && (left = more(w)) > 0) {
		left = submit_due(w, &schedule, (double)bench_clock(), &full);
		if (left < 0)
			return left;
		count = take(w, 0);
		if (count < 0)
			return count;
		if (!count)
			wait_until(w, fd, schedule.next, full);
	}
	if (left >= 0)
		left = finish(w, &schedule);
	if (left < 0)
		return left;
	do
		count = take(w, 1);
	while (count > 0);
	return count;
}

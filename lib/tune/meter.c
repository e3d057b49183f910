/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.c - see meter.h
 */
#include "lib/tune/meter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "format/checked.h"
#include "lib/read/fetch.h"

#define PAGE_BYTES    4096u
#define LEAD	      0.2 /* of seconds_min: not counted */
#define WINDOWS_MIN   8
#define WINDOWS_MAX   64
#define ERROR_MAX     0.03
#define READS_LEAST   3u   /* else there is no rate at all ... */
#define TIME_LEAST    0.25 /* ... nor in less than this share of seconds_max ... */
#define SECONDS_LEAST 30.0 /* ... unless so much has passed */
#define MIX_READS     4096

struct stele_tune_read {
	struct stele_request request;
	uint64_t issued; /* nanoseconds */
};

double stele_tune_clock(void)
{
	return (double)stele_fetch_clock() / 1e9;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- init, release ------------------------------------------------------------- */

int stele_tune_meter_init(struct stele_tune_meter *meter,
			  struct stele_device *dev,
			  const struct stele_dataset *ds,
			  const struct stele_tune_space *space,
			  unsigned int depth_max)
{
	int err;

	memset(meter, 0, sizeof(*meter));
	meter->ds = ds;
	meter->space = space;
	meter->dev = dev;
	meter->depth_max = depth_max;
	meter->random = 1;
	meter->reads = calloc(depth_max, sizeof(*meter->reads));
	meter->done = calloc(depth_max, sizeof(struct stele_request *));
	err = meter->reads && meter->done ? 0 : -ENOMEM;
	if (!err)
		err = stele_arena_init(&meter->arena, STELE_TUNE_MEMORY_SIZE,
				       PAGE_BYTES);
	if (!err)
		err = stele_queue_open(dev, depth_max, meter->arena.memory,
				       meter->arena.size, &meter->queue);
	if (err)
		stele_tune_meter_release(meter);
	return err;
}

void stele_tune_meter_release(struct stele_tune_meter *meter)
{
	/* What a queue that broke may still write to stays, for good. */
	if (!stele_queue_close(meter->queue))
		stele_arena_release(&meter->arena, false);
	free(meter->reads);
	free(meter->done);
	memset(meter, 0, sizeof(*meter));
}

/* What a read of that size may take; of the mix, the largest slot's blocks. */
static uint32_t stride(const struct stele_tune_meter *meter, uint32_t size)
{
	const struct stele_limits *limits = &meter->dev->limits;
	uint64_t most = meter->ds->slot_size_max + 2 * limits->logical_block;

	if (!size)
		size = most < limits->transfer_max ? (uint32_t)most :
						     limits->transfer_max;
	return (uint32_t)round_up(size, PAGE_BYTES);
}

uint32_t stele_tune_meter_depth(const struct stele_tune_meter *meter,
				uint32_t size)
{
	uint64_t room = meter->arena.size / stride(meter, size);

	return room < meter->depth_max ? (uint32_t)room : meter->depth_max;
}

/* ---- what is read -------------------------------------------------------------- */

/* The next read of a sample by chance: its blocks, in parts. */
static void next_of_mix(struct stele_tune_meter *meter,
			struct stele_request *request)
{
	const struct stele_limits *limits = &meter->dev->limits;

	if (!meter->rest) {
		uint64_t id = stele_random_next(&meter->random) %
			      stele_dataset_count(meter->ds), end;
		struct stele_extent slot = {.size = sizeof(slot)};

		stele_dataset_locate(meter->ds, id, &slot);
		end = round_up(slot.offset + slot.slot_size,
			       limits->logical_block);
		meter->offset = round_down(slot.offset, limits->logical_block);
		meter->rest = end - meter->offset;
	}
	request->offset = meter->offset;
	request->size = meter->rest < limits->transfer_max ?
				(uint32_t)meter->rest :
				limits->transfer_max;
	meter->offset += request->size;
	meter->rest -= request->size;
}

static void next_read(struct stele_tune_meter *meter, uint32_t size,
		      struct stele_request *request)
{
	if (!size) {
		next_of_mix(meter, request);
		return;
	}
	request->size = size;
	request->offset = stele_tune_space_pick(meter->space, size,
						&meter->random);
}

double stele_tune_meter_mix(struct stele_tune_meter *meter)
{
	struct stele_request request;
	double sum = 0;

	meter->rest = 0;
	for (int i = 0; i < MIX_READS; i++) {
		next_of_mix(meter, &request);
		sum += request.size;
	}
	meter->rest = 0;
	return sum / MIX_READS;
}

/* ---- the loop ------------------------------------------------------------------ */

struct run {
	struct stele_tune_meter *meter;
	const struct stele_tune_cell *cell;
	struct stele_histogram *latency;
	double began, counted, window_began; /* counted: the lead's end */
	double rates[WINDOWS_MAX]; /* bytes/s, by window */
	int windows;
	bool counting;	      /* the lead is over */
	uint64_t completions; /* from the begin on */
	uint64_t window_bytes, window_reads;
	uint64_t reads, bytes; /* of all windows */
	double seconds, cpu;   /* the same */
};

static int issue(struct run *run, struct stele_tune_read *read)
{
	next_read(run->meter, run->cell->size, &read->request);
	read->issued = stele_fetch_clock();
	return stele_queue_submit(run->meter->queue, &read->request);
}

static int fill(struct run *run)
{
	struct stele_tune_meter *meter = run->meter;
	const uint32_t apart = stride(meter, run->cell->size);
	int err = 0;

	for (uint32_t i = 0; !err && i < run->cell->depth; i++) {
		struct stele_tune_read *read = &meter->reads[i];

		*read = (struct stele_tune_read){
			.request = {.op = STELE_OP_READ,
				    .data = meter->arena.memory +
					    (uint64_t)i * apart,
				    .user = read},
		};
		err = issue(run, read);
	}
	return err;
}

/* Half of the interval that holds the mean at 95 %, as a share of it. */
static double error_of(const double *rates, int count)
{
	double mean = 0, sum = 0, quantile;

	if (count < 2)
		return INFINITY;
	for (int i = 0; i < count; i++)
		mean += rates[i] / count;
	for (int i = 0; i < count; i++)
		sum += (rates[i] - mean) * (rates[i] - mean);
	quantile = 1.96 + 2.8 / (count - 1); /* near Student's, from 5 on */
	return mean > 0 ? quantile * sqrt(sum / (count - 1) / count) / mean :
			  INFINITY;
}

static void end_window(struct run *run, double now)
{
	run->rates[run->windows++] =
		(double)run->window_bytes / (now - run->window_began);
	run->reads += run->window_reads;
	run->bytes += run->window_bytes;
	run->seconds += now - run->window_began;
	run->window_bytes = 0;
	run->window_reads = 0;
	run->window_began = now;
}

/* Look at the clock: the lead is over, a window is, all is. Return: all. */
static bool is_over(struct run *run)
{
	const struct stele_tune_cell *cell = run->cell;
	const double now = stele_tune_clock(), length = now - run->began;
	const double window = cell->seconds_min * (1 - LEAD) / WINDOWS_MIN;
	bool late = length >= cell->seconds_max;

	if (!run->counting) {
		/* All that came back at first was issued at once. */
		if (length >= cell->seconds_min * LEAD &&
		    (run->completions >= cell->depth ||
		     length >= cell->seconds_max / 2)) {
			run->counting = true;
			run->counted = now;
			run->window_began = now;
			run->cpu = cpu_seconds();
		}
		return false;
	}
	if (now - run->window_began < window && !late)
		return false;
	/* What comes back in one heap tells nothing, as long as there is no other. */
	late = late && run->reads + run->window_reads >= READS_LEAST &&
	       now - run->counted >= TIME_LEAST * cell->seconds_max;
	late = late || length >= SECONDS_LEAST;
	if (!late && !run->window_reads)
		return false;
	end_window(run, now);
	return late || run->windows == WINDOWS_MAX ||
	       (run->windows >= WINDOWS_MIN && run->reads >= cell->reads_min &&
		length >= cell->seconds_min &&
		error_of(run->rates, run->windows) < ERROR_MAX);
}

/* Wait for all that is in flight; a failure here counts as well. */
static int drain(struct run *run)
{
	struct stele_tune_meter *meter = run->meter;
	int count = 0, err = 0;

	while (count >= 0 && meter->queue->in_flight) {
		count = stele_queue_reap(meter->queue, meter->done,
					 meter->depth_max, 1);
		for (int i = 0; i < count && !err; i++)
			err = meter->done[i]->status;
	}
	return count < 0 ? count : err;
}

static int take(struct run *run, struct stele_request *request)
{
	struct stele_tune_read *read = request->user;

	if (request->status)
		return request->status;
	run->completions++;
	if (run->counting) {
		run->window_reads++;
		run->window_bytes += request->size;
		stele_histogram_record(run->latency,
				       stele_fetch_clock() - read->issued);
	}
	return issue(run, read);
}

static int loop(struct run *run, const struct stele_log *log)
{
	struct stele_tune_meter *meter = run->meter;
	int err = fill(run), count;

	while (!err && !is_over(run)) {
		count = stele_queue_reap(meter->queue, meter->done,
					 meter->depth_max, 1);
		err = count < 0 ? count : 0;
		for (int i = 0; !err && i < count; i++) {
			struct stele_request *request = meter->done[i];
			uint64_t offset = request->offset;
			uint32_t size = request->size;

			err = take(run, request);
			if (err)
				stele_log_error(log, "cannot read %u bytes at offset %llu: %s",
						size, (unsigned long long)offset,
						stele_strerror(err));
		}
	}
	run->cpu = cpu_seconds() - run->cpu;
	if (drain(run) && !err)
		err = -EIO;
	return err;
}

int stele_tune_meter_run(struct stele_tune_meter *meter,
			 const struct stele_tune_cell *cell,
			 const struct stele_log *log,
			 struct stele_tune_result *out)
{
	struct run run = {.meter = meter, .cell = cell};
	struct stele_tune_point *point = &out->point;
	int err;

	memset(out, 0, sizeof(*out));
	if (!cell->depth ||
	    cell->depth > stele_tune_meter_depth(meter, cell->size))
		return -EINVAL;
	run.latency = stele_histogram_new();
	if (!run.latency)
		return -ENOMEM;
	run.began = stele_tune_clock();
	err = loop(&run, log);
	if (!err && !run.reads)
		err = -ETIMEDOUT;
	if (!err) {
		out->error = error_of(run.rates, run.windows);
		out->cpu_seconds = run.cpu / (double)run.reads;
		*point = (struct stele_tune_point){
			.size = cell->size,
			.depth = cell->depth,
			.reads_per_second = (double)run.reads / run.seconds,
			.bytes_per_second = (double)run.bytes / run.seconds,
			.p50_ns = stele_histogram_quantile(run.latency, 0.5),
			.p99_ns = stele_histogram_quantile(run.latency, 0.99),
			.noisy = !(out->error < ERROR_MAX),
		};
	}
	stele_histogram_free(run.latency);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_io.c - the thread that reads for a loader
 *
 * It opens its readers itself, as a ring serves who made it. Each round takes what
 * others left for it, plans and submits as much as there is room for, and collects. It
 * sleeps in the one reader, or the one ring of many, that has requests under way, or on the
 * descriptors of several beside its own, which others write to when there is nothing to
 * collect. Of several it also sleeps in one that has no descriptor: the ring of a backend
 * that polls.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "format/checked.h"
#include "lib/read/loader/loader.h"
#include "lib/read/reader.h"

#define COLLECT_MAX 128u /* samples at once */
#define WAIT_MAX    32u	 /* of them that are waited for */

/* ---- readers -------------------------------------------------------------------- */

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Twice all that there is to read, or what no arena is larger than. */
static uint64_t size_of_all(const struct stele_dataset_info *info)
{
	uint64_t size;

	if (!checked_mul(info->sample_count, 2 * STELE_ARENA_PAGE_SIZE, &size) ||
	    !checked_add(size, info->slots_size, &size) ||
	    !checked_mul(size, 2, &size))
		size = UINT64_MAX;
	return min_of(size, STELE_ARENA_SIZE_MAX - STELE_ARENA_PAGE_SIZE);
}

/*
 * Its share of the prefetch, an eighth more for what lies fragmented, and the largest
 * sample; but no more than twice all that there is to read.
 */
static uint64_t arena_size(const struct stele_loader *l, uint32_t source,
			   double share)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	uint64_t all, largest;
	double size;

	stele_dataset_info(l->lanes[source].ds, &info);
	if (!checked_add(info.slot_size_max, 2 * (uint64_t)info.logical_block,
			 &largest))
		largest = UINT64_MAX;
	all = size_of_all(&info);
	/* A program may ask for more bytes than there are numbers: no integer yet. */
	size = share * (double)l->opts.prefetch_size * 9 / 8 +
	       (double)min_of(largest, l->opts.prefetch_size);
	return (size < (double)all ? (uint64_t)size : all) +
	       STELE_ARENA_PAGE_SIZE;
}

/* Bytes that each source has of an epoch, about. */
static double bytes_of(const struct stele_loader *l, uint32_t source)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	stele_dataset_info(l->lanes[source].ds, &info);
	return (double)stele_mixture_draws(&l->order.mixture, source) *
	       ((double)info.slots_size /
			(double)(info.sample_count + info.deleted_count) +
		STELE_ARENA_PAGE_SIZE);
}

/* Reads begin once a source has as many: of many sources that is a lot to plan first. */
static uint32_t chunk_of(double share)
{
	const double chunk = STELE_LOADER_CHUNKS * share;

	if (chunk < STELE_LOADER_CHUNK_MIN)
		return STELE_LOADER_CHUNK_MIN;
	return chunk < STELE_LOADER_CHUNK ? (uint32_t)chunk : STELE_LOADER_CHUNK;
}

static int open_readers(struct stele_loader *l)
{
	double all = 0;
	int err = 0;

	for (uint32_t i = 0; i < l->source_count; i++)
		all += bytes_of(l, i);
	for (uint32_t i = 0; !err && i < l->source_count; i++) {
		struct stele_loader_lane *lane = &l->lanes[i];
		const double share = bytes_of(l, i) / all;

		lane->chunk = chunk_of(share);
		lane->arena_size = arena_size(l, i, share);
		err = stele_reader_open_share(
			lane->ds,
			&STELE_OPTS(stele_reader_opts,
				    .arena_size = lane->arena_size,
				    .depth = l->opts.depth,
				    .verify = l->opts.verify),
			share, &l->group, &lane->reader);
		lane->fd = !err && l->source_count > 1
				   ? stele_reader_wait_fd(lane->reader)
				   : -1;
	}
	return err;
}

static void close_readers(struct stele_loader *l)
{
	for (uint32_t i = 0; i < l->source_count; i++)
		stele_reader_close(l->lanes[i].reader);
}

/* ---- statistics ------------------------------------------------------------------- */

static void sum_latency(const struct stele_loader *l, enum stele_latency which,
			struct stele_histogram *sum)
{
	for (uint32_t i = 0; i < l->source_count; i++) {
		const struct stele_histogram *one =
			stele_reader_latency(l->lanes[i].reader, which);

		if (one)
			stele_histogram_add(sum, one);
	}
}

/* Quantiles do not add up; those of all samples come from what lies behind them. */
static void merge_latencies(const struct stele_loader *l,
			    struct stele_reader_stats *stats)
{
	struct stele_histogram *samples = stele_histogram_new();
	struct stele_histogram *device = stele_histogram_new();

	if (samples && device) {
		sum_latency(l, STELE_LATENCY_SAMPLE, samples);
		sum_latency(l, STELE_LATENCY_DEVICE, device);
		stele_stats_latencies(stats, samples, device);
	}
	stele_histogram_free(samples);
	stele_histogram_free(device);
}

static void sum_stats(const struct stele_loader *l,
		      struct stele_reader_stats *stats)
{
	struct stele_reader_stats one = {.size = sizeof(one)};

	stele_reader_stats(l->lanes[0].reader, stats);
	for (uint32_t i = 1; i < l->source_count; i++) {
		stele_reader_stats(l->lanes[i].reader, &one);
		stele_stats_add(stats, &one);
	}
	if (l->source_count > 1)
		merge_latencies(l, stats);
}

/* ---- from others ------------------------------------------------------------------- */

static void recycle(struct stele_loader *l, struct stele_loader_batch *batch)
{
	for (uint32_t i = 0; i < batch->planned; i++)
		stele_loader_item_release(l, &batch->items[i]);
	stele_fifo_push(&l->free, batch);
}

/* The caller waits for it. */
static void answer(struct stele_loader *l,
		   const struct stele_loader_question *question)
{
	if (question->stats)
		sum_stats(l, question->stats);
	if (question->latency)
		sum_latency(l, question->which, question->latency);
	pthread_mutex_lock(&l->lock);
	l->question = NULL;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

/* What was left here. False: stop. */
static bool take_news(struct stele_loader *l)
{
	struct stele_loader_batch_list released;
	struct stele_loader_item_list failed;
	struct stele_loader_cursor cursor;
	struct stele_loader_batch *batch;
	struct stele_loader_item *item;
	const struct stele_loader_question *question;
	bool restart, stop;
	uint64_t seed;

	pthread_mutex_lock(&l->lock);
	released = l->released;
	failed = l->failed;
	l->released.head = NULL;
	l->failed.head = NULL;
	l->head = l->queue.head;
	cursor = l->restart;
	seed = l->restart_seed;
	restart = l->restarting;
	l->restarting = false;
	question = l->question;
	l->news = false;
	stop = l->stop;
	pthread_mutex_unlock(&l->lock);
	while ((batch = stele_fifo_pop(&released)))
		recycle(l, batch);
	while ((item = stele_fifo_pop(&failed)))
		stele_loader_plan_failed(l, item, item->status);
	if (restart)
		stele_loader_plan_restart(l, &cursor, seed);
	if (question)
		answer(l, question);
	return !stop;
}

/* ---- collect ------------------------------------------------------------------------ */

static void take_sample(struct stele_loader *l, struct stele_sample *sample,
			struct stele_loader_item_list *intact)
{
	struct stele_loader_item *item =
		(struct stele_loader_item *)(uintptr_t)sample->tag;

	l->outstanding--;
	item->buffer = sample->buffer;
	if (sample->status) {
		stele_loader_plan_failed(l, item, sample->status);
		return;
	}
	item->sample = *sample;
	item->sample.tag = 0;
	item->sample.buffer = NULL; /* the batch's: not for the caller */
	/* Nor for a child, wherever it is. */
	item->sample.reader = l->lanes[item->source].reader;
	if (l->opts.transform)
		stele_fifo_push(intact, item);
	else
		stele_loader_item_finish(l, item);
}

/* Return: how many came. */
static int collect(struct stele_loader *l, struct stele_loader_lane *lane,
		   unsigned int wait)
{
	struct stele_sample samples[COLLECT_MAX];
	struct stele_loader_item_list intact = {0};
	int n = stele_reader_collect(lane->reader, samples, COLLECT_MAX, wait);

	if (n < 0) {
		pthread_mutex_lock(&l->lock);
		l->broken = n;
		pthread_cond_signal(&l->changed);
		stele_loader_update_event(l);
		pthread_mutex_unlock(&l->lock);
		return n;
	}
	for (int i = 0; i < n; i++)
		take_sample(l, &samples[i], &intact);
	stele_loader_pool_push(&l->pool, &intact);
	return n;
}

static bool share_ring(const struct stele_loader_lane *a,
		       const struct stele_loader_lane *b)
{
	return a->reader->fetch.queue->grouped &&
	       b->reader->fetch.queue->grouped && a->fd == b->fd;
}

/* Each ring once; see stele_queue_gather(). */
static void gather(struct stele_loader *l, unsigned int wait)
{
	const struct stele_loader_lane *last = NULL;

	for (uint32_t i = 0; i < l->source_count; i++) {
		const struct stele_loader_lane *lane = &l->lanes[i];

		if (!lane->reader->fetch.queue->grouped ||
		    (last && share_ring(last, lane)))
			continue;
		stele_queue_gather(lane->reader->fetch.queue, wait);
		last = lane;
	}
}

/*
 * What is there; `wait` for so many requests, where rings are shared. If there is nothing,
 * one that cannot be polled is waited for.
 */
static int collect_all(struct stele_loader *l, unsigned int wait)
{
	struct stele_loader_lane *blind = NULL;
	int all = 0;

	gather(l, wait);
	for (uint32_t i = 0; all >= 0 && i < l->source_count; i++) {
		struct stele_loader_lane *lane = &l->lanes[i];
		int n;

		if (!stele_reader_in_flight(lane->reader))
			continue;
		n = collect(l, lane, 0);
		all = n < 0 ? n : all + n;
		if (lane->fd < 0)
			blind = lane;
	}
	if (!all) /* nothing is left behind, whoever sleeps now */
		gather(l, 0);
	return all || !blind ? all : collect(l, blind, 1);
}

/* Enough to make the wait worth it, and no more than the batch that is due lacks. */
static unsigned int worth_waiting_for(const struct stele_loader *l)
{
	uint64_t count = min_of(l->outstanding / 4 + 1, WAIT_MAX);
	uint64_t missing = l->head ? atomic_load(&l->head->missing) : 0;

	return (unsigned int)(missing ? min_of(count, missing) : count);
}

/* ---- sleep ---------------------------------------------------------------------------- */

/* That alone, or beside others of its ring, has something under way; NULL: there are more. */
static struct stele_loader_lane *busy_lane(const struct stele_loader *l)
{
	struct stele_loader_lane *busy = NULL;

	for (uint32_t i = 0; i < l->source_count; i++) {
		if (!stele_reader_in_flight(l->lanes[i].reader))
			continue;
		if (busy && !share_ring(busy, &l->lanes[i]))
			return NULL;
		busy = &l->lanes[i];
	}
	return busy;
}

static void poll_lanes(struct stele_loader *l)
{
	struct pollfd fds[STELE_LOADER_SOURCES_MAX + 1];
	nfds_t count = 1;
	eventfd_t value;

	fds[0] = (struct pollfd){.fd = l->wake_fd, .events = POLLIN};
	/* What broke polls readable for ever. */
	for (uint32_t i = 0; !l->broken && i < l->source_count; i++)
		if (stele_reader_in_flight(l->lanes[i].reader))
			fds[count++] = (struct pollfd){.fd = l->lanes[i].fd,
						       .events = POLLIN};
	poll(fds, count, -1);
	if (fds[0].revents)
		eventfd_read(l->wake_fd, &value);
}

static void sleep_until_news(struct stele_loader *l)
{
	bool nothing;

	pthread_mutex_lock(&l->lock);
	nothing = !l->news;
	l->sleeping = nothing;
	pthread_mutex_unlock(&l->lock);
	if (!nothing)
		return;
	poll_lanes(l);
	pthread_mutex_lock(&l->lock);
	l->sleeping = false;
	pthread_mutex_unlock(&l->lock);
}

/* False: there is nothing to do but wait. */
static bool read_on(struct stele_loader *l)
{
	struct stele_loader_lane *busy;

	stele_loader_plan(l);
	busy = busy_lane(l);
	if (busy && !busy->reader->fetch.queue->grouped)
		return collect(l, busy, worth_waiting_for(l)) != 0;
	return l->outstanding &&
	       collect_all(l, busy ? worth_waiting_for(l) : 0) != 0;
}

static void work(struct stele_loader *l)
{
	while (take_news(l))
		if (l->broken || !read_on(l))
			sleep_until_news(l);
}

void *stele_loader_io_main(void *arg)
{
	struct stele_loader *l = arg;
	int err = open_readers(l);

	pthread_mutex_lock(&l->lock);
	l->opened = true;
	l->refused = err;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (!err)
		work(l);
	close_readers(l);
	return NULL;
}

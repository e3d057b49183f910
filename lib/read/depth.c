/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.c - what is in flight, and rounds
 *
 * Completions come in batches of one time. A round ends and begins between two
 * batches, never within one: else the next would have the rest of it for nothing.
 */
#include "lib/read/depth.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NS_PER_SECOND 1e9

/* Cost of a request beside its bytes: between that of NVMe (6 KiB) and RBD (60 KiB). */
#define OVERHEAD 16384u

/* A round lasts at least as many mean latencies ... */
#define ROUND_LATENCIES 2u
/* ... but with a slow device nobody waits for so many. */
#define PATIENCE_NS    UINT64_C(1000000000)
#define PATIENCE_COUNT 16u

/* One in so many that were issued under another window may be out when a round begins. */
#define STRAGGLERS 8u

/* A round's mean size counts for a quarter in that of late. */
#define SMOOTHING 4

void stele_depth_init(struct stele_depth *d,
		      const struct stele_depth_config *config)
{
	memset(d, 0, sizeof(*d));
	d->config = *config;
	if (!d->config.depth_max)
		d->config.depth_max = 1;
	if (!d->config.start)
		d->config.start = STELE_DEPTH_DEFAULT;
	if (d->config.pinned > d->config.depth_max)
		d->config.pinned = d->config.depth_max;
	stele_search_init(&d->search, config->now);
	if (d->config.pinned)
		d->search.phase = STELE_DEPTH_PINNED;
	d->seeding = d->settling = true;
	d->unsettled = 1;
	d->switched = UINT64_MAX;
	d->last = d->sum.start = d->quickest.since = d->search.best.since =
		config->now;
}

static uint64_t cost_in_flight(const struct stele_depth *d)
{
	return d->bytes_in_flight + d->in_flight * (uint64_t)OVERHEAD;
}

bool stele_depth_admits(const struct stele_depth *d, uint32_t size)
{
	if (!d->in_flight)
		return true;
	if (d->config.pinned)
		return d->in_flight < d->config.pinned;
	return d->in_flight < d->config.depth_max &&
	       d->bytes_in_flight + size <= d->config.bytes_max &&
	       cost_in_flight(d) < d->limit;
}

/* ---- the window ---------------------------------------------------------- */

static double mean_cost(const struct stele_depth *d)
{
	return d->mean_size + OVERHEAD;
}

/* The most that depth_max and bytes_max let be of any use. */
static double most_cost(const struct stele_depth *d)
{
	double requests = d->config.depth_max;

	if (d->mean_size > 0)
		requests = fmin(requests, (double)d->config.bytes_max / d->mean_size);
	return fmax(1, requests) * mean_cost(d);
}

static void set_limit(struct stele_depth *d)
{
	double most = most_cost(d);

	/* Also where a window is no number. */
	d->limit = (uint64_t)(d->search.window < most ? d->search.window : most);
}

/* In the first round: by the sizes that were issued so far. */
static void seed(struct stele_depth *d, uint32_t size)
{
	d->mean_size += (size - d->mean_size) / (double)(d->in_flight + d->sum.count);
	d->search.window = d->config.start * mean_cost(d);
	set_limit(d);
}

uint32_t stele_depth_window(const struct stele_depth *d)
{
	double window;

	if (d->config.pinned)
		return d->config.pinned;
	if (!d->limit)
		return d->config.start < d->config.depth_max ?
			       d->config.start :
			       d->config.depth_max;
	window = (double)d->limit / mean_cost(d) + 0.5;
	if (!(window >= 1))
		return 1;
	return window < d->config.depth_max ? (uint32_t)window
					    : d->config.depth_max;
}

/* ---- latency --------------------------------------------------------------- */

/*
 * By the round of late whose mean was lowest. Not by a single request: some are quick
 * because a cache answers, and beside those all others would seem to queue.
 */
static double slowdown(struct stele_depth *d)
{
	double mean = (double)d->sum.latency / (double)d->sum.count;

	if (mean > 0)
		stele_recent_add(&d->quickest, 1 / mean, d->last);
	return mean * stele_recent_max(&d->quickest);
}

/* ---- rounds ----------------------------------------------------------------- */

static void begin_sum(struct stele_depth *d)
{
	d->sum = (struct stele_depth_sum){.start = d->last};
	d->settling = false;
}

static bool is_over(const struct stele_depth *d)
{
	const struct stele_depth_sum *s = &d->sum;
	uint64_t elapsed = d->last - s->start;

	if (elapsed < d->search.round_ns)
		return false;
	if (elapsed >= PATIENCE_NS && s->count >= PATIENCE_COUNT)
		return true;
	return s->count >= d->search.round_count &&
	       elapsed / ROUND_LATENCIES >= s->latency / s->count;
}

static void record(struct stele_depth *d, const struct stele_measure *m)
{
	double seconds = (double)(d->last - d->sum.start) / NS_PER_SECOND;

	d->rounds[d->round_count++ % STELE_DEPTH_HISTORY] =
		(struct stele_depth_round){
			.time_ns = d->last - d->config.now,
			.window = d->config.pinned
					  ? d->config.pinned
					  : (double)d->limit / m->mean,
			.bytes_per_second = (double)d->sum.bytes / seconds,
			.reads_per_second = (double)d->sum.count / seconds,
			.slowdown = m->slowdown,
			.phase = d->search.phase,
			.starved = m->starved,
		};
}

static struct stele_measure measure(struct stele_depth *d)
{
	const struct stele_depth_sum *s = &d->sum;
	double seconds = s->busy ? (double)s->busy / NS_PER_SECOND : INFINITY;
	double reads = (double)s->busy_count / seconds;
	double bytes = (double)s->busy_bytes / seconds;
	double size = (double)s->bytes / (double)s->count;

	d->mean_size += d->seeding ? size - d->mean_size
				   : (size - d->mean_size) / SMOOTHING;
	return (struct stele_measure){
		.time = d->last,
		.rates = {bytes + reads * OVERHEAD, reads, bytes},
		.slowdown = slowdown(d),
		.mean = mean_cost(d),
		.most = most_cost(d),
		.starved = s->busy_count < s->count / 2,
	};
}

/* All that is in flight was issued before `now`, what follows will not be. */
static void settle(struct stele_depth *d, uint64_t now, bool grown)
{
	d->grown = grown;
	d->settling = true;
	d->switched = now;
	d->unsettled = d->in_flight;
	d->tolerated = d->in_flight / STRAGGLERS;
}

static void end_round(struct stele_depth *d, uint64_t now)
{
	struct stele_measure m = measure(d);
	uint64_t limit = d->limit;

	d->seeding = false;
	record(d, &m);
	begin_sum(d);
	if (d->config.pinned)
		return;
	stele_search_round(&d->search, &m);
	set_limit(d);
	if (d->limit != limit)
		settle(d, now, d->limit > limit);
}

void stele_depth_issued(struct stele_depth *d, uint32_t size, uint64_t now)
{
	if (!d->in_flight && now > d->last)
		d->last = now;
	d->in_flight++;
	d->bytes_in_flight += size;
	if (d->seeding)
		seed(d, size);
}

static bool is_transport(int status)
{
	return status == -ETIMEDOUT || status == -ENOLINK || status == -EBUSY;
}

/* Once for all that was in flight then: the next that counts was issued later. */
static void fail(struct stele_depth *d, uint64_t now)
{
	if (d->sum.failed || d->config.pinned)
		return;
	d->seeding = false; /* else the next request would widen it again */
	stele_search_fail(&d->search, mean_cost(d));
	set_limit(d);
	d->sum.failed = true;
	settle(d, now, false);
}

static void add(struct stele_depth_sum *s, uint32_t size, uint64_t latency,
		bool busy)
{
	s->count++;
	s->bytes += size;
	s->latency += latency;
	if (busy) {
		s->busy_count++;
		s->busy_bytes += size;
	}
}

/* Time has gone on: what came before is whole batches. */
static void advance(struct stele_depth *d, uint64_t now, bool starved)
{
	if (d->settling && d->unsettled <= d->tolerated) {
		if (d->grown)
			settle(d, now, false);
		else
			begin_sum(d);
	} else if (!d->settling && is_over(d)) {
		end_round(d, now);
	}
	if (!starved)
		d->sum.busy += now - d->last;
	d->last = now;
}

void stele_depth_completed(struct stele_depth *d, uint32_t size,
			   uint64_t issued, uint64_t now, int status,
			   bool starved)
{
	uint64_t latency = now > issued ? now - issued : 0;

	if (now > d->last)
		advance(d, now, starved);
	d->in_flight--;
	d->bytes_in_flight -= size;
	add(&d->sum, size, latency, !starved);
	if (d->unsettled && issued < d->switched)
		d->unsettled--;
	if (is_transport(status))
		fail(d, now);
}

unsigned int stele_depth_history(const struct stele_depth *d,
				 struct stele_depth_round *out,
				 unsigned int max)
{
	uint64_t count = d->round_count;

	if (count > STELE_DEPTH_HISTORY)
		count = STELE_DEPTH_HISTORY;
	if (count > max)
		count = max;
	for (uint64_t i = 0; i < count; i++)
		out[i] = d->rounds[(d->round_count - count + i) %
				   STELE_DEPTH_HISTORY];
	return (unsigned int)count;
}

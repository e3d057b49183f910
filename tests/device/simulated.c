/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated.c - discrete events: what is in flight is a heap by its end
 */
#include "tests/device/simulated.h"

#include <math.h>
#include <string.h>

#include "lib/base/random.h"
#include "tests/tap.h"

#define BEGIN	    (1000 * SECOND)
#define STALL_EVERY (100 * MS)
#define WRITES_EVERY (40 * MS) /* half of them bursts, half pauses */
#define WANDERS_EVERY (8 * MS) /* and 32 times as rarely */
#define BURST	     8u
#define LATENCY_MIN  1e-6
#define LATENCY_STEP 1.07

/* 0 ... 1 */
static double uniform(struct simulated *s)
{
	return (double)(stele_random_next(&s->random) >> 11) / 9007199254740992.0;
}

static uint32_t draw_size(struct simulated *s)
{
	const struct simulated_caller *c = &s->caller;

	if (c->size_min == c->size_max)
		return c->size_min;
	return (uint32_t)(c->size_min *
			  pow((double)c->size_max / c->size_min, uniform(s)));
}

void simulated_open(struct simulated *s, const struct simulated_device *device,
		    const struct simulated_caller *caller,
		    const struct stele_depth_config *config)
{
	struct stele_depth_config mine = *config;

	memset(s, 0, sizeof(*s));
	s->device = *device;
	s->caller = *caller;
	s->now = mine.now = BEGIN;
	s->random = 88172645463325252;
	s->next_size = draw_size(s);
	s->next_stall = BEGIN + STALL_EVERY;
	stele_depth_init(&s->depth, &mine);
}

/* ---- the device ---------------------------------------------------------- */

static void push(struct simulated *s, struct simulated_request r)
{
	uint32_t i = s->count++;

	for (; i && s->heap[(i - 1) / 2].done > r.done; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = r;
}

static struct simulated_request pop(struct simulated *s)
{
	struct simulated_request first = s->heap[0], last = s->heap[--s->count];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < s->count) {
		if (child + 1 < s->count &&
		    s->heap[child + 1].done < s->heap[child].done)
			child++;
		if (s->heap[child].done >= last.done)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

static uint64_t ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

static double rate_time(double rate, double amount)
{
	return rate > 0 ? amount / rate : 0;
}

static void stand_still(struct simulated *s, double seconds)
{
	if (s->link_free < s->now)
		s->link_free = s->now;
	s->link_free += ns(seconds);
}

static void stall(struct simulated *s)
{
	stand_still(s, s->device.stall * 2 * uniform(s));
	s->next_stall = s->now + (uint64_t)(2 * uniform(s) * STALL_EVERY);
}

/* By time alone: all depths meet the same. */
static double drawn_at(uint64_t slot)
{
	uint64_t state = slot * UINT64_C(0x9e3779b97f4a7c15) | 1;

	stele_random_next(&state);
	return 2 * ((double)(stele_random_next(&state) >> 11) / 9007199254740992.0) - 1;
}

static double pace(const struct simulated *s)
{
	uint64_t slot = s->now / WANDERS_EVERY;

	if (!(s->device.wander > 0))
		return 1;
	return (1 + s->device.wander * drawn_at(slot)) *
	       (1 + s->device.wander * drawn_at(~(slot / 32)));
}

/* When the throttle lets one pass that comes now. */
static uint64_t throttled(struct simulated *s)
{
	const struct simulated_device *d = &s->device;
	double interval = 1e9 / d->bucket_rate, now = (double)s->now, early;

	if (s->throttle < now)
		s->throttle = now;
	s->throttle += interval;
	early = s->throttle - interval * (d->bucket_size + 1);
	return (uint64_t)fmax(now, early);
}

/* When it has passed the link. */
static uint64_t pass_link(struct simulated *s, uint32_t size)
{
	const struct simulated_device *d = &s->device;
	uint64_t start = d->bucket_rate > 0 ? throttled(s) : s->now;
	double share = 1;

	if (s->link_free > start)
		start = s->link_free;
	if (start / (WRITES_EVERY / 2) % 2)
		share -= d->writes;
	share /= pace(s);
	start += ns((rate_time(d->iops_max, 1) + rate_time(d->bytes_max, size)) /
		    share);
	s->link_free = start;
	return start;
}

static double draw_factor(struct simulated *s, bool slow_server)
{
	const struct simulated_device *d = &s->device;
	double factor = 1 + d->noise * (2 * uniform(s) - 1);

	if (d->noise > 0 && uniform(s) < 0.01)
		factor *= 5;
	if (d->servers ? slow_server
		       : d->slow_share > 0 && uniform(s) < d->slow_share)
		factor *= d->slow_factor;
	return factor;
}

/* When a request that is issued now will be done. */
static uint64_t serve(struct simulated *s, uint32_t size)
{
	const struct simulated_device *d = &s->device;
	uint32_t servers = d->servers ? d->servers : 1;
	uint32_t each = d->channels / servers, server = 0;
	uint64_t *channel, start;
	double seconds;

	if (d->stall > 0 && s->now >= s->next_stall)
		stall(s);
	start = pass_link(s, size);
	if (servers > 1)
		server = (uint32_t)(uniform(s) * servers);
	channel = &s->channel_free[server * each];
	for (uint32_t i = 1; i < each; i++)
		if (s->channel_free[server * each + i] < *channel)
			channel = &s->channel_free[server * each + i];
	if (*channel > start)
		start = *channel;
	seconds = d->latency * draw_factor(s, server < d->slow_servers) /
		  (1 + d->sorting * log2(s->count + 1.0));
	*channel = start + ns(pace(s) * (seconds + rate_time(d->stream_rate, size)));
	return *channel;
}

/* ---- the caller ---------------------------------------------------------- */

static bool wants(const struct simulated *s)
{
	return !s->caller.outstanding || s->count < s->caller.outstanding;
}

static void issue(struct simulated *s)
{
	uint32_t at_once = 0;

	while (wants(s) && stele_depth_admits(&s->depth, s->next_size)) {
		if (s->count >= SIMULATED_MAX)
			bail("more in flight than a simulated device takes");
		push(s, (struct simulated_request){
				.issued = s->now,
				.done = serve(s, s->next_size),
				.size = s->next_size,
			});
		stele_depth_issued(&s->depth, s->next_size, s->now);
		s->bytes_in_flight += s->next_size;
		if (s->count > s->peak)
			s->peak = s->count;
		if (s->bytes_in_flight > s->bytes_peak)
			s->bytes_peak = s->bytes_in_flight;
		s->next_size = draw_size(s);
		if (++at_once > BURST && s->device.burst > 0)
			stand_still(s, s->device.burst);
	}
	if (!s->count)
		bail("nothing is in flight");
}

static void count_latency(struct simulated *s, double seconds)
{
	double i = log(fmax(1, seconds / LATENCY_MIN)) / log(LATENCY_STEP);

	s->latency += seconds;
	s->latencies[(uint32_t)fmin(i, SIMULATED_LATENCIES - 1)]++;
}

double simulated_quantile(const struct simulated *s, double share)
{
	uint64_t left = (uint64_t)((double)s->served * share);
	uint32_t i = 0;

	while (i + 1 < SIMULATED_LATENCIES && left >= s->latencies[i])
		left -= s->latencies[i++];
	return LATENCY_MIN * pow(LATENCY_STEP, i + 0.5);
}

static void reap(struct simulated *s)
{
	uint64_t time, work = 0;
	bool starved = !wants(s);

	if (s->heap[0].done > s->now)
		s->now = s->heap[0].done;
	time = s->now;
	while (s->count && s->heap[0].done <= time) {
		struct simulated_request r = pop(s);

		stele_depth_completed(&s->depth, r.size, r.issued, time,
				      s->status, starved);
		s->bytes_in_flight -= r.size;
		s->served++;
		s->bytes += r.size;
		count_latency(s, (double)(time - r.issued) / 1e9);
		work += s->caller.work;
		if (s->caller.pause && s->served % 256 == 0)
			work += s->caller.pause;
	}
	s->now = time + work;
}

void simulated_run(struct simulated *s, uint64_t span)
{
	uint64_t end = s->now + span;

	s->served = 0;
	s->bytes = s->latency = 0;
	memset(s->latencies, 0, sizeof(s->latencies));
	s->peak = 0;
	s->bytes_peak = 0;
	while (s->now < end) {
		issue(s);
		reap(s);
	}
}

double simulated_best(const struct simulated_device *device,
		      const struct simulated_caller *caller, uint32_t depth_max,
		      uint64_t bytes_max, uint64_t span, uint32_t *depth)
{
	static struct simulated s;
	double best = 0;

	for (uint32_t i = 1; i <= depth_max; i += i / 3 + 1) {
		simulated_open(&s, device, caller,
			       &(struct stele_depth_config){
				       .pinned = i,
				       .depth_max = depth_max,
				       .bytes_max = bytes_max,
			       });
		simulated_run(&s, span / 5);
		simulated_run(&s, span);
		/* The shallowest of those that are as good. */
		if (s.bytes > 1.005 * best) {
			best = s.bytes;
			*depth = i;
		}
	}
	return best / ((double)span / 1e9);
}

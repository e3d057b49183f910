/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_stats.c - what a reader tells of itself, and its descriptor
 *
 * The descriptor is an epoll of the queue's, the checkers', and one that is readable
 * while samples wait for collect: each of them covers what the others cannot see.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/options.h"

#include "lib/read/reader.h"

/* ---- stats ------------------------------------------------------------------- */

static void set_latencies(struct stele_reader_stats *stats,
			  const struct stele_histogram *samples,
			  const struct stele_histogram *device)
{
	if (samples) {
		stats->p50_ns = stele_histogram_quantile(samples, 0.5);
		stats->p90_ns = stele_histogram_quantile(samples, 0.9);
		stats->p99_ns = stele_histogram_quantile(samples, 0.99);
		stats->p999_ns = stele_histogram_quantile(samples, 0.999);
		stats->max_ns = stele_histogram_quantile(samples, 1);
		stats->mean_ns = stele_histogram_mean(samples);
	}
	if (device) {
		stats->device_p50_ns = stele_histogram_quantile(device, 0.5);
		stats->device_p99_ns = stele_histogram_quantile(device, 0.99);
		stats->device_mean_ns = stele_histogram_mean(device);
	}
}

static int stats_latencies(struct stele_reader_stats *stats,
			   const struct stele_histogram *samples,
			   const struct stele_histogram *device)
{
	const struct stele_log log = {0};
	struct stele_reader_stats known;

	stele_output_load(stats, &known, sizeof(known));
	set_latencies(&known, samples, device);
	return stele_output_set(stats, &known, tier, &log);
}

int stele_stats_latencies(struct stele_reader_stats *stats,
			  const struct stele_histogram *samples,
			  const struct stele_histogram *device)
{
	return STELE_CALL(stats_latencies(stats, samples, device),
			  "cannot set latencies");
}

static void add(struct stele_reader_stats *sum,
		const struct stele_reader_stats *one)
{
	sum->samples += one->samples;
	sum->failed += one->failed;
	sum->bytes += one->bytes;
	sum->device_reads += one->device_reads;
	sum->device_bytes += one->device_bytes;
	sum->check_reads += one->check_reads;
	sum->check_bytes += one->check_bytes;
	sum->pending_reads += one->pending_reads;
	sum->pending_bytes += one->pending_bytes;
	sum->reread += one->reread;
	sum->retries += one->retries;
	sum->enters += one->enters;
	sum->registered += one->registered;
	sum->depth += one->depth;
	sum->window += one->window;
	sum->depth_peak += one->depth_peak;
	/* Each reader counts those of the whole process. */
	if (one->workers > sum->workers)
		sum->workers = one->workers;
	if (one->huge_pages < sum->huge_pages || !sum->tier[0])
		sum->huge_pages = one->huge_pages;
	if (!sum->tier[0])
		memcpy(sum->tier, one->tier, sizeof(sum->tier));
}

static int stats_add(struct stele_reader_stats *to,
		     const struct stele_reader_stats *from)
{
	const struct stele_log log = {0};
	struct stele_reader_stats sum, one;

	if (stele_output_check(from, tier, &log))
		return -EINVAL;
	stele_output_load(from, &one, sizeof(one));
	stele_output_load(to, &sum, sizeof(sum));
	add(&sum, &one);
	return stele_output_set(to, &sum, tier, &log);
}

int stele_stats_add(struct stele_reader_stats *sum,
		    const struct stele_reader_stats *one)
{
	return STELE_CALL(stats_add(sum, one), "cannot add statistics");
}

/* Checks read by themselves, one at a time: what the queue knows nothing of. */
static void add_checks(const struct stele_reader *r,
		       struct stele_reader_stats *stats)
{
	struct stele_tally tally = {0};

	stele_checker_count_reads(&r->checker, &tally);
	if (r->checkers)
		stele_checkers_count_reads(r->checkers, &tally);
	stats->check_reads = tally.reads;
	stats->check_bytes = tally.bytes;
	stats->device_reads += tally.reads;
	stats->device_bytes += tally.bytes;
	stats->retries += tally.retries;
}

static void fill_stats(const struct stele_reader *r,
		       struct stele_reader_stats *stats)
{
	const struct stele_queue_stats *queue = &r->fetch.queue->stats;

	*stats = r->stats;
	stats->device_reads = r->fetch.requests;
	stats->device_bytes = r->fetch.bytes;
	stats->pending_reads = r->fetch.requests - r->settled_reads;
	stats->pending_bytes = r->fetch.bytes - r->settled_bytes;
	stats->retries = queue->retries;
	stats->enters = queue->enters;
	stats->registered = queue->registered;
	add_checks(r, stats);
	set_latencies(stats, r->latency, r->fetch.latency);
	stats->depth = r->fetch.in_flight;
	stats->window = stele_depth_window(&r->fetch.depth);
	stats->depth_peak = r->fetch.in_flight_peak;
	stats->workers = stele_device_workers();
	stats->huge_pages = r->arena.pages.kind;
	if (!stele_reader_is_forked(r))
		stele_queue_describe(r->fetch.queue, stats->tier,
				     sizeof(stats->tier));
}

static int reader_stats(const struct stele_reader *r,
			struct stele_reader_stats *stats)
{
	struct stele_reader_stats known;

	fill_stats(r, &known);
	return stele_output_set(stats, &known, tier, &r->ds->image.log);
}

int stele_reader_stats(const struct stele_reader *r,
		       struct stele_reader_stats *stats)
{
	return STELE_CALL(reader_stats(r, stats), "no statistics of the reader");
}

unsigned int stele_reader_history(const struct stele_reader *r,
				  struct stele_depth_round *rounds,
				  unsigned int max)
{
	return stele_depth_history(&r->fetch.depth, rounds, max);
}

const struct stele_histogram *
stele_reader_latency(const struct stele_reader *r, enum stele_latency which)
{
	switch (which) {
	case STELE_LATENCY_SAMPLE:
		return r->latency;
	case STELE_LATENCY_DEVICE:
		return r->fetch.latency;
	}
	return NULL;
}

/* ---- descriptor -------------------------------------------------------------- */

void stele_reader_update_event(struct stele_reader *r)
{
	bool wanted = r->fetch.arrived.head || r->checked.head || r->broken;
	uint64_t value = 1;
	ssize_t n;

	if (r->event_fd < 0 || wanted == r->signalled)
		return;
	n = wanted ? write(r->event_fd, &value, sizeof(value))
		   : read(r->event_fd, &value, sizeof(value));
	if (n == sizeof(value))
		r->signalled = wanted;
}

static int watch(int poll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_all(struct stele_reader *r, int poll_fd, int event_fd)
{
	int queue_fd = stele_queue_fd(r->fetch.queue), err;

	if (queue_fd < 0)
		return queue_fd;
	err = watch(poll_fd, event_fd);
	if (!err)
		err = watch(poll_fd, queue_fd);
	if (!err && r->checkers)
		err = watch(poll_fd, stele_checkers_fd(r->checkers));
	return err;
}

static int reader_fd(struct stele_reader *r)
{
	int poll_fd, event_fd, err = stele_queue_claim(r->fetch.queue);

	if (err)
		return err;
	if (r->poll_fd >= 0)
		return r->poll_fd;
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poll_fd < 0)
		return -errno;
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = event_fd < 0 ? -errno : watch_all(r, poll_fd, event_fd);
	if (err) {
		close(poll_fd);
		if (event_fd >= 0)
			close(event_fd);
		return err;
	}
	r->poll_fd = poll_fd;
	r->event_fd = event_fd;
	stele_reader_update_event(r);
	return poll_fd;
}

int stele_reader_wait_fd(struct stele_reader *r)
{
	return r->checkers ? reader_fd(r) : stele_queue_fd(r->fetch.queue);
}

int stele_reader_fd(struct stele_reader *r)
{
	return STELE_CALL(reader_fd(r),
			  "no descriptor to wait for the reader");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth-changes.c - what the window does when device or caller change
 *
 * In simulated time. A device that becomes slower or faster, errors of the
 * transport, a caller who wants little, limits, a pinned depth, a beginning that is
 * right, wrong or nonsense.
 */
#include <errno.h>
#include <math.h>

#include "tests/device/simulated.h"
#include "tests/tap.h"

#define DEPTH_MAX 1024u
#define BYTES_MAX (UINT64_C(64) << 20)
#define SIZE	  75000u

static struct simulated s;

static const struct simulated_device nvme = {
	.channels = 32,
	.latency = 80e-6,
	.stream_rate = 3e9,
	.bytes_max = 7e9,
	.noise = 0.3,
};
static const struct simulated_device rbd = {
	.channels = 128,
	.latency = 1.2e-3,
	.bytes_max = 3e9,
	.noise = 0.6,
};
static const struct simulated_caller greedy = {.size_min = SIZE,
					       .size_max = SIZE};

static struct stele_depth_config automatic(void)
{
	return (struct stele_depth_config){.depth_max = DEPTH_MAX,
					   .bytes_max = BYTES_MAX};
}

static void open_automatic(const struct simulated_device *device,
			   const struct simulated_caller *caller)
{
	struct stele_depth_config config = automatic();

	simulated_open(&s, device, caller, &config);
}

static double rate(uint64_t span)
{
	simulated_run(&s, span);
	return s.bytes / ((double)span / 1e9);
}

static double latency(void)
{
	return s.latency / (double)s.served;
}

/* ---- the device changes ------------------------------------------------- */

/* A probe is of a window on its own side of that of the round before. */
static void check_probes(void)
{
	struct stele_depth_round rounds[STELE_DEPTH_HISTORY];
	unsigned int wrong = 0, count;

	count = stele_depth_history(&s.depth, rounds, STELE_DEPTH_HISTORY);
	for (unsigned int i = 1; i < count; i++) {
		double more = rounds[i].window - rounds[i - 1].window;

		wrong += (rounds[i].phase == STELE_DEPTH_PROBE_UP && more <= 0) ||
			 (rounds[i].phase == STELE_DEPTH_PROBE_DOWN && more >= 0);
	}
	is_uint(0, wrong, "probes up are up, probes down are down");
}

static void check_speed(void)
{
	double before, alone;

	open_automatic(&nvme, &greedy);
	simulated_run(&s, SECOND);
	before = rate(SECOND);
	alone = nvme.latency + SIZE / nvme.stream_rate;
	ok(latency() < 4 * alone, "latency is not that of a deep queue: %.2f",
	   latency() / alone);
	s.device.bytes_max /= 2;
	simulated_run(&s, 15 * SECOND);
	ok(rate(SECOND) > 0.475 * before, "half as fast: all of it");
	ok(latency() < 6 * alone, "latency has come down again: %.2f",
	   latency() / alone);
	s.device.bytes_max *= 2;
	simulated_run(&s, 2 * SECOND);
	ok(rate(SECOND) > 0.95 * before, "as fast as before: in two seconds");
	check_probes();

	open_automatic(&rbd, &greedy);
	s.device.latency /= 4;
	simulated_run(&s, SECOND);
	before = rate(SECOND);
	s.device.latency *= 4;
	simulated_run(&s, 2 * SECOND);
	ok(rate(SECOND) > 0.95 * before, "four times as far: as fast in two seconds");
}

/* A neighbour for a few seconds: the window waits until it is gone. */
static void check_neighbour(void)
{
	double before;
	uint32_t window;

	open_automatic(&nvme, &greedy);
	simulated_run(&s, 2 * SECOND);
	before = rate(SECOND);
	window = stele_depth_window(&s.depth);
	s.device.bytes_max /= 3;
	simulated_run(&s, 5 * SECOND);
	ok(2 * stele_depth_window(&s.depth) > window,
	   "a slow while does not make the window small: %u of %u",
	   stele_depth_window(&s.depth), window);
	s.device.bytes_max *= 3;
	ok(rate(SECOND / 2) > 0.93 * before, "and it is fast at once after it");
}

static void check_errors(void)
{
	uint32_t before, failed;

	open_automatic(&rbd, &greedy);
	simulated_run(&s, 2 * SECOND);
	before = stele_depth_window(&s.depth);
	s.status = -EIO;
	simulated_run(&s, SECOND / 4);
	ok(2 * stele_depth_window(&s.depth) > before,
	   "a medium error says nothing of depth");
	s.status = -ETIMEDOUT;
	simulated_run(&s, 4 * MS);
	failed = stele_depth_window(&s.depth);
	ok(failed < 0.8 * before, "timeouts shrink it: %u to %u", before, failed);
	simulated_run(&s, SECOND);
	is_uint(1, stele_depth_window(&s.depth), "down to one request");
	s.status = 0;
	simulated_run(&s, 10 * SECOND);
	ok(2 * stele_depth_window(&s.depth) > before, "it grows again: %u",
	   stele_depth_window(&s.depth));
	open_automatic(&rbd, &greedy);
	before = stele_depth_window(&s.depth);
	s.status = -ETIMEDOUT;
	simulated_run(&s, 8 * MS);
	failed = stele_depth_window(&s.depth);
	ok(failed < 0.8 * before, "timeouts from the first read on: %u to %u",
	   before, failed);
}

/* ---- the caller ---------------------------------------------------------- */

static void check_caller(void)
{
	struct simulated_caller few = greedy;
	struct stele_depth_round rounds[STELE_DEPTH_HISTORY];
	unsigned int count, starved = 0;

	few.outstanding = 5;
	open_automatic(&rbd, &few);
	simulated_run(&s, 5 * SECOND);
	is_uint(STELE_DEPTH_DEFAULT, stele_depth_window(&s.depth),
		"of a caller who wants little it learns nothing");
	count = stele_depth_history(&s.depth, rounds, STELE_DEPTH_HISTORY);
	for (unsigned int i = 0; i < count; i++)
		starved += rounds[i].starved;
	ok(count > 20, "%u rounds", count);
	is_uint(count, starved, "all of them starved");
	s.caller.outstanding = 0;
	simulated_run(&s, SECOND);
	ok(rate(SECOND) > 0.95 * rbd.bytes_max, "one who then wants all gets it");

	/* Bursts: 256 at once, then nothing for longer than they take. */
	few = greedy;
	few.pause = 20 * MS;
	open_automatic(&rbd, &few);
	simulated_run(&s, 5 * SECOND);
	ok(stele_depth_window(&s.depth) >= 32,
	   "pauses do not make the window small: %u",
	   stele_depth_window(&s.depth));
}

/* ---- limits -------------------------------------------------------------- */

static void check_limits(void)
{
	struct stele_depth_config config = automatic();
	struct simulated_caller caller = greedy;

	config.depth_max = 7;
	simulated_open(&s, &rbd, &caller, &config);
	simulated_run(&s, SECOND);
	is_uint(7, s.peak, "never more than depth_max");
	is_uint(7, stele_depth_window(&s.depth), "which is the window");
	config = automatic();
	config.bytes_max = 10 * SIZE + 1;
	simulated_open(&s, &rbd, &caller, &config);
	simulated_run(&s, SECOND);
	is_uint(10 * SIZE, s.bytes_peak, "never more than bytes_max");
	config.bytes_max = 1;
	simulated_open(&s, &rbd, &caller, &config);
	simulated_run(&s, SECOND);
	is_uint(1, s.peak, "but one request always");
	config.pinned = 33;
	simulated_open(&s, &rbd, &caller, &config);
	s.status = -ETIMEDOUT;
	simulated_run(&s, SECOND);
	is_uint(33, s.peak, "a pinned depth is kept");
	is_uint(33, stele_depth_window(&s.depth), "whatever happens");
	simulated_run(&s, SECOND);
	is_uint(33, s.peak, "and longer");
}

static void check_history(void)
{
	struct stele_depth_round rounds[STELE_DEPTH_HISTORY];
	unsigned int seen = 0, count;
	bool sane = true;

	open_automatic(&nvme, &greedy);
	is_uint(0, stele_depth_history(&s.depth, rounds, 256), "no round yet");
	simulated_run(&s, 2 * SECOND);
	count = stele_depth_history(&s.depth, rounds, STELE_DEPTH_HISTORY);
	for (unsigned int i = 0; i < count; i++) {
		const struct stele_depth_round *r = &rounds[i];

		seen |= 1u << r->phase;
		sane = sane && r->window >= 1 && r->window <= DEPTH_MAX &&
		       r->bytes_per_second > 1e8 && r->bytes_per_second < 8e9 &&
		       r->slowdown > 0.5 && r->slowdown < 100 &&
		       (!i || r->time_ns > rounds[i - 1].time_ns);
	}
	ok(sane, "numbers that can be");
	is_uint(STELE_DEPTH_STARTUP, rounds[0].phase, "it begins with doubling");
	ok(fabs(rounds[1].window - 2 * rounds[0].window) < 1, "which doubles");
	is_hex(0x3e, seen, "all phases");
	simulated_run(&s, 10 * SECOND);
	is_uint(STELE_DEPTH_HISTORY,
		stele_depth_history(&s.depth, rounds, 1000), "the last 256");
	is_uint(3, stele_depth_history(&s.depth, rounds + 10, 3), "or fewer");
	is_blob(&rounds[253], &rounds[10], 3 * sizeof(*rounds), "the newest");
}

/* ---- where it begins ------------------------------------------------------- */

static void check_start(void)
{
	static const uint32_t starts[] = {1, 7, 200, DEPTH_MAX, 4096};
	struct stele_depth_config config = automatic();

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		uint32_t wanted = starts[i] < DEPTH_MAX ? starts[i] : DEPTH_MAX;

		config.start = starts[i];
		simulated_open(&s, &nvme, &greedy, &config);
		is_uint(wanted, stele_depth_window(&s.depth), "it begins at %u", starts[i]);
		simulated_run(&s, nvme.latency * 0.9 * (double)SECOND);
		ok(wanted > 500 || /* more than come before the first is back */
			   (s.peak + 1 >= wanted  && s.peak <= wanted + 1),
		   "so many are in flight first: %u", s.peak);
		simulated_run(&s, SECOND);
		ok(rate(SECOND / 2) > 0.9 * nvme.bytes_max * 0.97,
		   "and soon as many as there should be");
	}
}

int main(void)
{
	plan_lazy();
	check_speed();
	check_neighbour();
	check_errors();
	check_caller();
	check_limits();
	check_history();
	check_start();
	return done();
}

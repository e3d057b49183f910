/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth-knee.c - the smallest depth that delivers what the device can
 *
 * 324 simulated devices in simulated time, with fixed seeds: nine kinds, four mixes
 * of sizes, nine ways to be difficult. Of each, the *knee* is the smallest fixed depth
 * that delivers 97 % of the best one. The automatic depth is set against both, from one
 * second after its start on. Some of these devices have no knee that could be found
 * in a second, so the demands are on how many meet a limit; what a change to the search
 * moves is seen in the medians that are printed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/simulated.h"
#include "tests/tap.h"

#define BYTES_MAX   (UINT64_C(512) << 20)
#define DEPTH_MAX   1024u
#define SERVED	    3000u	  /* requests that a fixed depth is judged by */
#define SLICE	    (25 * MS)
#define SETTLE	    (SECOND / SLICE)
#define SLICES	    (SETTLE + 20)
#define MODELS_MAX  512u
#define KNEE	    0.97

enum difficulty { PLAIN, CALM, BIMODAL, WRITES, STALLS, THROTTLED, SERVERS, WANDERS, BURSTS,
		  DIFFICULTIES };

static const struct {
	const char *name;
	struct simulated_device device;
} kinds[] = {
	{"NVMe", {.channels = 32, .latency = 80e-6, .stream_rate = 3e9, .bytes_max = 7e9,
		  .iops_max = 1e6, .noise = 0.3}},
	{"fast NVMe", {.channels = 256, .latency = 80e-6, .stream_rate = 3e9,
		       .bytes_max = 14e9, .iops_max = 2e6, .noise = 0.3}},
	{"SATA", {.channels = 8, .latency = 100e-6, .stream_rate = 1e9, .bytes_max = 5.5e8,
		  .iops_max = 9e4, .noise = 0.4}},
	{"virtual disk", {.channels = 16, .latency = 250e-6, .stream_rate = 1e9,
			  .bytes_max = 8e8, .iops_max = 4e4, .noise = 0.5}},
	{"RBD", {.channels = 128, .latency = 1.2e-3, .stream_rate = 1e9, .bytes_max = 3e9,
		 .iops_max = 5e4, .noise = 0.6}},
	{"small RBD", {.channels = 12, .latency = 2e-3, .stream_rate = 3e8, .bytes_max = 1e9,
		       .iops_max = 2e4, .noise = 0.6}},
	{"RBD of disks", {.channels = 200, .latency = 12e-3, .bytes_max = 3e9, .noise = 0.8}},
	{"iSCSI", {.channels = 64, .latency = 500e-6, .stream_rate = 1e9, .bytes_max = 1.1e9,
		   .iops_max = 6e4, .noise = 0.3}},
	/* Whoever finds a die busy waits: q requests keep 4 q / (q + 3) of them busy. */
	{"few dies", {.channels = 4, .servers = 4, .latency = 50e-6, .stream_rate = 1e9,
		      .bytes_max = 2.2e9, .noise = 0.5}},
};

static const uint32_t sizes[][2] = {
	{75000, 75000}, {2048, 262144}, {20000, 20000}, {1024, 1024}};

struct figures {
	double rate;	  /* by the best fixed depth's */
	double in_flight; /* by the knee */
	double p99;	  /* by that at the knee */
	double settled;   /* seconds until a tenth of one was as it should be */
};

struct fixed {
	uint32_t knee;
	double best, p99; /* bytes/s; seconds, at the knee */
};

static struct simulated s;

static void make_difficult(struct simulated_device *d, enum difficulty how, uint32_t size)
{
	double iops = d->iops_max > 0 ? d->iops_max : 1e5;

	switch (how) {
	case CALM:
		d->noise = 0;
		break;
	case BIMODAL:
		d->slow_share = 0.1;
		d->slow_factor = 6;
		break;
	case WRITES:
		d->writes = 0.5;
		break;
	case STALLS:
		d->stall = 3e-3;
		break;
	case THROTTLED: /* to three tenths, with the bursts of a cloud's bucket */
		d->bucket_rate = 0.3 / (1 / iops + size / d->bytes_max);
		d->bucket_size = d->bucket_rate * 0.05;
		break;
	case WANDERS:
		d->wander = 0.2;
		break;
	case BURSTS:
		d->burst = 30e-6;
		break;
	case SERVERS:
		d->servers = d->channels < 64 ? 4 : 8;
		d->slow_servers = 1;
		d->slow_factor = 3;
		break;
	default:
		break;
	}
}

static struct stele_depth_config config(uint32_t pinned)
{
	return (struct stele_depth_config){
		.pinned = pinned, .depth_max = DEPTH_MAX, .bytes_max = BYTES_MAX};
}

/* ---- fixed depths ---------------------------------------------------------- */

static double rate_of_span(double *p99)
{
	const uint64_t span = (SLICES - SETTLE) * SLICE;

	simulated_run(&s, SETTLE * SLICE);
	simulated_run(&s, span);
	*p99 = simulated_quantile(&s, 0.99);
	return s.bytes / ((double)span / 1e9);
}

static double run_fixed(const struct simulated_device *device,
			const struct simulated_caller *caller, uint32_t depth, double *p99)
{
	struct stele_depth_config fixed = config(depth);
	static uint32_t latencies[SIMULATED_LATENCIES];
	uint64_t served = 0, time = 0;
	double bytes = 0;

	memset(latencies, 0, sizeof(latencies));
	simulated_open(&s, device, caller, &fixed);
	if (device->wander > 0) /* the very time by which the automatic one is judged */
		return rate_of_span(p99);
	/* Buckets run dry, and slow servers full, in their time. */
	simulated_run(&s, device->bucket_rate > 0 || device->servers ? SECOND : 100 * MS);
	while (served < SERVED && time < 2 * SECOND) {
		simulated_run(&s, SLICE);
		time += SLICE;
		served += s.served;
		bytes += s.bytes;
		for (uint32_t i = 0; i < SIMULATED_LATENCIES; i++)
			latencies[i] += s.latencies[i];
	}
	memcpy(s.latencies, latencies, sizeof(latencies));
	s.served = served;
	*p99 = simulated_quantile(&s, 0.99);
	return bytes / ((double)time / 1e9);
}

static struct fixed find_knee(const struct simulated_device *device,
			      const struct simulated_caller *caller)
{
	double rates[64], p99s[64];
	uint32_t depths[64], count = 0, flat = 0, i;
	struct fixed fixed = {0};

	for (uint32_t depth = 1; depth <= DEPTH_MAX && flat < 6; depth += depth / 4 + 1) {
		depths[count] = depth;
		rates[count] = run_fixed(device, caller, depth, &p99s[count]);
		flat = rates[count] > 1.005 * fixed.best ? 0 : flat + 1;
		fixed.best = fmax(fixed.best, rates[count++]);
	}
	for (i = 0; rates[i] < KNEE * fixed.best;)
		i++;
	fixed.knee = depths[i];
	fixed.p99 = p99s[i];
	return fixed;
}

/* ---- the automatic one ------------------------------------------------------ */

static double first_settled(const double *rates, const double *in_flight,
			    const struct fixed *fixed)
{
	for (uint32_t i = 0; i + 4 <= SLICES; i++) {
		double rate = 0, requests = 0;

		for (uint32_t k = i; k < i + 4; k++) {
			rate += rates[k] / 4;
			requests += in_flight[k] / 4;
		}
		if (rate >= 0.95 * fixed->best && requests <= 2 * fixed->knee)
			return i * (double)SLICE / 1e9;
	}
	return INFINITY;
}

static struct figures run_automatic(const struct simulated_device *device,
				    const struct simulated_caller *caller,
				    const struct fixed *fixed)
{
	const double slice = (double)SLICE / 1e9, span = (SLICES - SETTLE) * slice;
	struct stele_depth_config automatic = config(0);
	static uint32_t latencies[SIMULATED_LATENCIES];
	double rates[SLICES], in_flight[SLICES], bytes = 0, latency = 0;
	uint64_t served = 0;

	memset(latencies, 0, sizeof(latencies));
	simulated_open(&s, device, caller, &automatic);
	for (uint32_t i = 0; i < SLICES; i++) {
		simulated_run(&s, SLICE);
		rates[i] = s.bytes / slice;
		in_flight[i] = s.latency / slice; /* Little's law */
		if (i < SETTLE)
			continue;
		bytes += s.bytes;
		latency += s.latency;
		served += s.served;
		for (uint32_t k = 0; k < SIMULATED_LATENCIES; k++)
			latencies[k] += s.latencies[k];
	}
	memcpy(s.latencies, latencies, sizeof(latencies));
	s.served = served;
	return (struct figures){
		.rate = bytes / span / fixed->best,
		.in_flight = latency / span / fixed->knee,
		.p99 = simulated_quantile(&s, 0.99) / fixed->p99,
		.settled = first_settled(rates, in_flight, fixed),
	};
}

static struct figures judge(const char *name, const struct simulated_device *device,
			    uint32_t size_min, uint32_t size_max)
{
	const struct simulated_caller caller = {
		.size_min = size_min,
		.size_max = size_max,
		.work = 300 + size_min / 20, /* checksums */
	};
	struct fixed fixed = find_knee(device, &caller);
	struct figures f = run_automatic(device, &caller, &fixed);

	if (f.rate < 0.95 || f.in_flight > 2 || f.p99 > 2)
		diag("%s, %u to %u: knee %u, rate %.3f, in flight x %.2f, p99 x %.2f, "
		     "settled in %.2f s", name, size_min, size_max, fixed.knee, f.rate,
		     f.in_flight, f.p99, f.settled);
	return f;
}

/* ---- all of them ------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* At least `share` of them are at most `limit`. */
static void demand(const char *what, double *values, uint32_t count, double limit, double share)
{
	uint32_t met = 0;

	qsort(values, count, sizeof(*values), by_value);
	while (met < count && values[met] <= limit)
		met++;
	ok(met >= share * count, "%s: %u of %u devices within %.4g", what, met, count, limit);
	diag("median %.3f, 75 %% %.3f, 95 %% %.3f", values[count / 2], values[count * 3 / 4],
	     values[count * 19 / 20]);
}

int main(void)
{
	static double loss[MODELS_MAX], in_flight[MODELS_MAX], p99[MODELS_MAX],
		settled[MODELS_MAX];
	uint32_t count = 0;

	plan_lazy();
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		for (size_t z = 0; z < sizeof(sizes) / sizeof(*sizes); z++)
			for (int how = 0; how < DIFFICULTIES; how++) {
				struct simulated_device device = kinds[k].device;
				struct figures f;

				make_difficult(&device, how, sizes[z][1]);
				f = judge(kinds[k].name, &device, sizes[z][0], sizes[z][1]);
				loss[count] = 1 - f.rate;
				in_flight[count] = f.in_flight;
				p99[count] = f.p99;
				settled[count++] = f.settled;
			}
	ok(count >= 200, "%u devices", count);
	demand("loss against the best fixed depth", loss, count, 0.03, 0.82);
	demand("loss against the best fixed depth", loss, count, 0.07, 0.94);
	demand("requests in flight, by the knee", in_flight, count, 2, 0.88);
	demand("p99 of latency, by that at the knee", p99, count, 2, 0.86);
	demand("seconds to settle", settled, count, 1, 0.91);
	return done();
}

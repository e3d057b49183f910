/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth-devices.c - the depth that is found delivers what the best fixed one does
 *
 * Simulated devices of many kinds, in simulated time: nothing depends on the
 * machine. Fast ones have a second to find it, slow ones what a few hundred
 * requests take.
 */
#include "tests/device/simulated.h"
#include "tests/tap.h"

#define BYTES_MAX (UINT64_C(64) << 20)
#define RATIO_MIN 0.95

struct row {
	const char *name;
	struct simulated_device device;
	uint32_t size_min, size_max;
	uint64_t settle, span; /* ns */
	uint32_t depth_max;
};

/* clang-format off */
#define NVME .channels = 32, .latency = 80e-6, .stream_rate = 3e9, .bytes_max = 7e9, \
	     .iops_max = 1e6, .noise = 0.3
#define FAST .channels = 256, .latency = 80e-6, .stream_rate = 3e9, .bytes_max = 14e9, \
	     .iops_max = 3e6, .noise = 0.3
#define SATA .channels = 8, .latency = 100e-6, .stream_rate = 1e9, .bytes_max = 5.5e8, \
	     .iops_max = 9e4, .noise = 0.4
#define RBD  .channels = 128, .latency = 1.2e-3, .stream_rate = 1e9, .bytes_max = 3e9, \
	     .iops_max = 5e4, .noise = 0.6
#define DISK .channels = 1, .latency = 9e-3, .stream_rate = 2e8, .noise = 0.7, .sorting = 0.12
#define CLOUD .channels = 64, .latency = 500e-6, .noise = 0.3
static const struct row rows[] = {
	{"NVMe, 75 kB", {NVME}, 75000, 75000, SECOND, SECOND, 1024},
	{"NVMe, one block", {NVME}, 512, 512, SECOND, SECOND / 2, 1024},
	{"NVMe, sizes span 512x", {NVME}, 1024, 524288, SECOND, SECOND, 1024},
	{"NVMe that stands still at times", {NVME, .stall = 5e-3},
	 75000, 75000, 3 * SECOND, 2 * SECOND, 1024},
	{"fast NVMe, 16 kB", {FAST}, 16384, 16384, SECOND, SECOND / 4, 1024},
	{"SATA, sizes span 512x", {SATA}, 1024, 524288, SECOND, 2 * SECOND, 64},
	{"RBD, 75 kB", {RBD}, 75000, 75000, SECOND, SECOND, 1024},
	{"RBD, sizes span 512x", {RBD}, 1024, 524288, SECOND, SECOND, 1024},
	{"RBD of disks", {.channels = 600, .latency = 15e-3, .noise = 0.8},
	 75000, 75000, 3 * SECOND, 2 * SECOND, 1024},
	{"disk", {DISK}, 75000, 75000, 60 * SECOND, 120 * SECOND, 128},
	{"3000 reads/s", {CLOUD, .iops_max = 3000}, 16384, 16384, 2 * SECOND, 4 * SECOND, 256},
	{"3000 reads/s, sizes span 512x", {CLOUD, .iops_max = 3000},
	 1024, 524288, 2 * SECOND, 4 * SECOND, 256},
	{"125 MB/s", {CLOUD, .bytes_max = 125e6}, 75000, 75000, 2 * SECOND, 4 * SECOND, 256},
	{"125 MB/s, sizes span 512x", {CLOUD, .bytes_max = 125e6},
	 1024, 524288, 2 * SECOND, 4 * SECOND, 256},
	{"one read every two seconds", {.channels = 1, .latency = 2},
	 75000, 75000, 600 * SECOND, 2000 * SECOND, 256},
	{"one at a time", {.channels = 1, .latency = 1e-4, .noise = 0.3},
	 4096, 4096, SECOND, SECOND, 256},
};
/* clang-format on */

static void check(const struct row *row)
{
	static struct simulated s;
	const struct simulated_caller caller = {
		.size_min = row->size_min,
		.size_max = row->size_max,
		.work = 300,
	};
	uint32_t depth = 0;
	double best, ratio;

	best = simulated_best(&row->device, &caller, row->depth_max, BYTES_MAX,
			      row->span / 4, &depth);
	simulated_open(&s, &row->device, &caller,
		       &(struct stele_depth_config){
			       .depth_max = row->depth_max,
			       .bytes_max = BYTES_MAX,
		       });
	simulated_run(&s, row->settle);
	simulated_run(&s, row->span);
	ratio = s.bytes / ((double)row->span / 1e9) / best;
	ok(ratio >= RATIO_MIN, "%s: %.3f of the best fixed depth", row->name,
	   ratio);
	diag("window %u, best %u", stele_depth_window(&s.depth), depth);
}

int main(void)
{
	plan_lazy();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check(&rows[i]);
	return done();
}

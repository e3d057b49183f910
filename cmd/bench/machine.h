/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - what the system counts while a benchmark runs
 *
 * Processor time of this process and of the whole machine, and the requests and
 * bytes that block devices say they read. Counters are read before and after; their
 * difference is what was used, by whomever.
 */
#ifndef STELE_CMD_BENCH_MACHINE_H
#define STELE_CMD_BENCH_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_DEVICES_MAX 4

struct bench_device {
	char name[64];	  /* as the kernel calls it: "nvme0n1", "loop3" */
	uint32_t major, minor;
	uint64_t reads;	 /* commands that were completed */
	uint64_t merged; /* requests that went along with another one */
	uint64_t bytes;
};

struct bench_machine {
	double user, system; /* seconds, of this process */
	double busy, steal;  /* seconds, of all processors; steal is not in busy */
	bool has_busy;
	/* What the target is or lies on, then what that lies on, and so on. */
	struct bench_device devices[BENCH_DEVICES_MAX];
	unsigned int device_count;
};

/* The file or device that a target is read from; false: none, as in Ceph. */
bool bench_machine_file(const char *target, char path[PATH_MAX]);
/* Of a target in Ceph, or on no block device, there are none. */
void bench_machine_find(struct bench_machine *machine, const char *target);
/* All counters, of the devices that were found. */
void bench_machine_read(struct bench_machine *machine);
/* after -= before */
void bench_machine_subtract(struct bench_machine *after,
			    const struct bench_machine *before);

#endif

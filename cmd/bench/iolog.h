/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iolog.h - the device reads of a run, as a log that fio replays
 *
 * Each reader keeps a list in memory: writing to a file meanwhile could disturb the very
 * device that is measured. In the end they become one file, version 3 of fio's iolog, in the
 * order in which they were issued.
 */
#ifndef STELE_CMD_BENCH_IOLOG_H
#define STELE_CMD_BENCH_IOLOG_H

#include <stddef.h>
#include <stdint.h>

struct bench_config;
struct bench_result;

/* Of one reader. All zeros is an empty one. */
struct bench_reads {
	struct bench_read {
		uint64_t time, offset; /* ns, bytes */
		uint32_t size;
	} *reads; /* malloc'ed */
	size_t count, room;
	int error; /* no memory: the rest was lost */
};

/* A stele_trace_fn. */
void bench_reads_add(void *reads, uint64_t time, uint64_t offset, uint32_t size);

/* Could it be written, for fio to replay? Return: 0; negative errno (said). */
int bench_iolog_check(const struct bench_config *config);
/* Return: 0; negative errno (said). */
int bench_iolog_write(const struct bench_config *config,
		      const struct bench_result *result);

#endif

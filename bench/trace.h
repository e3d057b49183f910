/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - device reads of an image's samples, in a random order, as a file
 *
 * An array of these, in the machine's own byte order: it is made and read on one machine.
 */
#ifndef STELE_BENCH_TRACE_H
#define STELE_BENCH_TRACE_H

#include <stdint.h>

struct trace_read {
	uint64_t offset, size; /* whole logical blocks */
	uint64_t payload; /* bytes of the sample that this read completes; else 0 */
};

#endif

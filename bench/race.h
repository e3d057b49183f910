/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race.h - threads that read samples as fast as they can, and what came of it
 *
 * Each thread takes the next sample of one common order, random by a seed or ascending, until
 * the time is over or all were read: none is read twice, for the second time it would come
 * from the page cache. What was read goes to stdout as one line of JSON.
 */
#ifndef STELE_BENCH_RACE_H
#define STELE_BENCH_RACE_H

#include <stddef.h>
#include <stdint.h>

struct race {
	unsigned int threads;
	double seconds;
	uint64_t seed; /* 0: ascending */
	uint64_t count;
	size_t buffer_size; /* of each thread */
	void *context;
	/* Optional: what a thread needs of its own. */
	void *(*begin)(void *context);
	void (*end)(void *own);
	/* Read sample i into the buffer; bytes, or -errno. */
	int64_t (*read)(void *context, void *own, uint64_t i, void *buffer);
};

/* -t THREADS -s SECONDS -r SEED; optind then stands on the first argument behind. */
void race_options(int argc, char **argv, const char *usage, struct race *race);
/* Exits with a message on an error. */
void race_run(const struct race *race);

/* The order of a race: count indices; exits when there is no memory. */
uint32_t *race_order(uint64_t count, uint64_t seed);
uint64_t race_now(void); /* nanoseconds, monotonic */
/* Zeroed, aligned to 4096; exits when there is none. */
void *race_memory(size_t size);

#endif

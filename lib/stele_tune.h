/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_tune.h - measure a device: how deep a queue, by which backend; part of stele.h
 *
 * Readers find their depth by themselves, in the first tenths of a second; nothing of this is
 * kept. It is for who wants to see the device, to pin a depth, or to choose a backend.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_TUNE_H
#define STELE_TUNE_H

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_TUNE_POINTS_MAX 128u

/** One cell of the sweep. It never grows. */
struct stele_tune_point {
	uint32_t size;	/* bytes of each read; 0: the snapshot's own mix of sizes */
	uint32_t depth;
	double reads_per_second, bytes_per_second;
	uint64_t p50_ns, p99_ns;
	bool noisy; /* repeats differed by more than 3 % */
	uint64_t reserved[2];
};

struct stele_tuning {
	size_t size;
	char backend[32];     /* the best, as stele_open_opts takes it */
	uint32_t depth;	      /* the knee for the snapshot's sizes */
	uint32_t point_count;
	uint64_t slots_size;  /* bytes that reads could go to */
	uint64_t mean_size;   /* bytes of a read of the snapshot's sizes */
	struct stele_tune_point points[STELE_TUNE_POINTS_MAX]; /* by size, the mix last */
};

enum stele_tune_flags {
	STELE_TUNE_QUICK = 1 << 2, /* about 5 s instead of 40 s */
};

struct stele_tune_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	const char *backend; /* as stele_open_opts; also: only this one is measured */
	/* After each cell, in order; nonzero stops (-ECANCELED). Share of the time: 0 ... 1. */
	int (*point)(void *user, const struct stele_tune_point *point, double done);
	void *point_user;
	uint32_t flags; /* enum stele_tune_flags */
	uint32_t reserved;
};

/* Samples that take up less may have been read from caches. */
#define STELE_TUNE_SIZE_MIN (UINT64_C(1) << 30)

/**
 * stele_tune() - measure sizes x depths at random places of an image
 * @target: as stele_dataset_open(); only read
 *
 * @out may be NULL.
 * Return: 0; -ENOENT (an image without samples); -ECANCELED; errors of stele_dataset_open()
 * and of reading.
 */
STELE_API int stele_tune(const char *target, const struct stele_tune_opts *opts,
			 struct stele_tuning *out);

/**
 * stele_tuning_depth() - the smallest depth that is good enough for reads of one size
 *
 * Good enough is 97 % of the best throughput at that size.
 * @size: one of the table; 0: the snapshot's own mix. Return: depth; 0: no such size.
 */
STELE_API uint32_t stele_tuning_depth(const struct stele_tuning *tuning, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif

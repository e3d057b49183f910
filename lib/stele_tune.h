/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_tune.h - measure a device once, so that readers know it; part of stele.h
 *
 * What stele_tune() finds is the *profile* of a device: two settings, the backend to read with
 * and the depth to start at, and the table of measurements that they were chosen from. Readers
 * start with them, and adjust the depth as they go. Profiles are text files below
 * $STELE_STATE_DIR (default: /var/lib/stele for root, else $XDG_STATE_HOME/stele or
 * ~/.local/state/stele), one for each identity of a device. Users without a profile of their own
 * get the one that root measured.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_TUNE_H
#define STELE_TUNE_H

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_STATE_DIR_ENV	"STELE_STATE_DIR"
#define STELE_STATE_DIR_DEFAULT "/var/lib/stele"

#define STELE_PROFILE_POINTS_MAX 128u

/** One cell of the sweep. It never grows. */
struct stele_tune_point {
	uint32_t size;	/* bytes of each read; 0: the snapshot's own mix of sizes */
	uint32_t depth;
	double reads_per_second, bytes_per_second;
	uint64_t p50_ns, p99_ns;
	bool noisy; /* repeats differed by more than 3 % */
	uint64_t reserved[2];
};

struct stele_profile {
	size_t size;
	char device[128];     /* its identity: model and serial number, for instance */
	char backend[32];     /* to read with, as stele_open_opts takes it */
	uint32_t depth;	      /* to start at: the knee for the snapshot's sizes */
	uint32_t point_count;
	char host[72];	      /* where it was measured ... */
	char target[256];     /* ... on what; cut if longer ... */
	int64_t time;	      /* ... and when: seconds since 1970 */
	uint64_t slots_size;  /* bytes that reads could go to */
	uint64_t mean_size;   /* bytes of a read of the snapshot's sizes */
	struct stele_tune_point points[STELE_PROFILE_POINTS_MAX]; /* by size, the mix last */
};

/* And STELE_FORCE: replace a profile that was measured on more. */
enum stele_tune_flags {
	STELE_TUNE_QUICK = 1 << 2,   /* about 5 s instead of 40 s */
	STELE_TUNE_NO_SAVE = 1 << 3, /* measure only */
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
 * stele_tune() - measure sizes x depths at random places of an image, keep the profile
 * @target: as stele_dataset_open(); only read
 *
 * An image whose samples take up less than STELE_TUNE_SIZE_MIN does not replace a valid
 * profile that was measured on at least that much, except with STELE_FORCE.
 *
 * @out may be NULL.
 * Return: 0; -ENOENT (an image without samples); -EEXIST (such a profile exists: nothing is
 * measured); -ECANCELED; errors of stele_dataset_open() and of reading; errno of the state
 * directory (if the profile could not be written, @out is filled all the same).
 */
STELE_API int stele_tune(const char *target, const struct stele_tune_opts *opts,
			 struct stele_profile *out);

/**
 * stele_dataset_profile() - what readers of this dataset start with
 * Return: 0; -ENOENT (none is known for this device); -EINVAL.
 */
STELE_API int stele_dataset_profile(const struct stele_dataset *ds,
				    struct stele_profile *out);

/**
 * stele_profile_path() - the file that holds this profile once it is saved
 * Return: 0; -ENOENT (a device that nothing tells from others, or no place to
 * keep one); -ENAMETOOLONG (@size is too small).
 */
STELE_API int stele_profile_path(const struct stele_profile *profile,
				 char *path, size_t size);

/**
 * stele_profile_depth() - the smallest depth that is good enough for reads of one size
 *
 * Good enough is 97 % of the best throughput at that size.
 * @size: one of the table; 0: the snapshot's own mix. Return: depth; 0: no such size.
 */
STELE_API uint32_t stele_profile_depth(const struct stele_profile *profile,
				       uint32_t size);

#ifdef __cplusplus
}
#endif

#endif

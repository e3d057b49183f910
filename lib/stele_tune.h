/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_tune.h - how fast a device is, measured and remembered; part of stele.h
 *
 * A *profile* says what a device does at which size and depth, in the few numbers of a
 * model. Readers begin with it; without one they find their depth alone, a little
 * later. Profiles are files below $STELE_STATE_DIR (default: /var/lib/stele for root, else
 * $XDG_STATE_HOME/stele, ~/.local/state/stele), one for each identity of a device.
 * Without one of their own, users have those that root measured.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_TUNE_H
#define STELE_TUNE_H

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_STATE_DIR_ENV	"STELE_STATE_DIR"
#define STELE_STATE_DIR_DEFAULT "/var/lib/stele"

struct stele_profile {
	char device[128];     /* its identity: model and serial, or what else tells it */
	char backend[32];     /* that was measured best, as stele_open_opts takes it */
	double latency;	      /* seconds, of an empty request on an idle device */
	double stream_rate;   /* bytes/s of one request at a time */
	double iops_max;      /* requests/s */
	double bytes_max;     /* bytes/s */
	double kappa;	      /* bandwidth-delay products in flight at the knee */
	double residual;      /* of the fit: median relative error */
	uint32_t depth;	      /* at the knee, for this image's sizes */
	uint32_t depth_max;   /* what the device can always queue */
	uint32_t transfer_max; /* bytes */
	uint32_t gap;	      /* bytes below which merging two reads pays: bytes_max / iops_max */
	uint64_t p99_ns;      /* at that depth */
	int64_t time;	      /* of the measurement, seconds since 1970 */
};

/** One cell of the sweep. */
struct stele_tune_point {
	uint32_t size;	/* bytes of each read; 0: the image's own mix of sizes */
	uint32_t depth;
	uint64_t reads;
	double seconds;
	double reads_per_second, bytes_per_second;
	uint64_t p50_ns, p99_ns;
	bool noisy; /* repeats differed by more than 3 % */
};

enum stele_tune_flags {
	STELE_TUNE_QUICK = 1 << 0,   /* about 5 s instead of 40 s */
	STELE_TUNE_NO_SAVE = 1 << 1, /* measure only */
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

/**
 * stele_tune() - sweep sizes and depths over an image's own extents, fit, store
 * @target: as stele_dataset_open(); only reads
 *
 * Return: 0; -ENODATA (an image without samples); -ECANCELED; errors of
 * stele_dataset_open() and of reading; errno of the state directory (@out is filled
 * all the same).
 */
STELE_API int stele_tune(const char *target, const struct stele_tune_opts *opts,
			 struct stele_profile *out);

/**
 * stele_dataset_profile() - what readers of this dataset begin with
 * Return: 0; -ENOENT (none is known for this device).
 */
STELE_API int stele_dataset_profile(const struct stele_dataset *ds,
				    struct stele_profile *out);

/**
 * stele_profile_path() - the file that keeps this profile, once it was saved
 * Return: 0; -ENOENT (a device that nothing tells from others, or no place to
 * keep one); -ENAMETOOLONG (@size is too small).
 */
STELE_API int stele_profile_path(const struct stele_profile *profile,
				 char *path, size_t size);

/** Bytes/s that the model says for a size and depth. */
STELE_API double stele_profile_throughput(const struct stele_profile *profile,
					  uint64_t size, double depth);
/** Depth at the knee, for reads of one size. */
STELE_API double stele_profile_depth(const struct stele_profile *profile,
				     uint64_t size);

#ifdef __cplusplus
}
#endif

#endif

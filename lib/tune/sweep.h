/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - measure a device at several sizes and depths, and choose settings by that
 */
#ifndef STELE_TUNE_SWEEP_H
#define STELE_TUNE_SWEEP_H

#include "lib/read/dataset.h"

struct stele_tune_time {
	double seconds; /* for all, about */
	double cell;	/* seconds of one, at least, if there is time */
	uint64_t reads;	/* of one, at least, if there is time */
};

/* stele_tune() of an open dataset, in that time. `compare`: also look at other backends. */
int stele_tune_dataset(struct stele_dataset *ds,
		       const struct stele_tune_opts *opts,
		       const struct stele_tune_time *time, bool compare,
		       struct stele_tuning *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - the parts of stele_tune(), which share the time there is
 *
 * A *sweep* fills the table of sizes x depths, whose last row is the image's own mix of sizes:
 * its knee is the depth that readers start at. There, other backends are compared with the
 * default one. Tests give less time.
 */
#ifndef STELE_TUNE_PARTS_H
#define STELE_TUNE_PARTS_H

#include "lib/tune/meter.h"

struct stele_tune_time {
	double seconds; /* for all, about */
	double cell;	/* seconds of one, at least, if there is time */
	uint64_t reads;	/* of one, at least, if there is time */
};

struct stele_tune_sweep {
	struct stele_dataset *ds;
	struct stele_log log;
	const struct stele_tune_opts *opts; /* the callback */
	struct stele_tune_time time;
	struct stele_tune_space space;
	struct stele_tune_meter meter;
	struct stele_profile *profile; /* that is being made */
	double began;
};

/* Fill profile->points. Return: 0; -ENODATA (no size fits); as meter_run; -ECANCELED. */
int stele_tune_sweep_run(struct stele_tune_sweep *sweep);

/*
 * At profile->depth: is another backend than the dataset's worth it? Its name in
 * profile->backend. Return: 0; errno of the dataset's.
 */
int stele_tune_backends(struct stele_tune_sweep *sweep);

/* Tell the log what can be seen that limits or slows down what was measured. */
void stele_tune_notes(const struct stele_tune_sweep *sweep);

/*
 * stele_tune() of an open dataset, in that time, without saving. `compare`: also
 * look at other backends.
 */
int stele_tune_dataset(struct stele_dataset *ds,
		       const struct stele_tune_opts *opts,
		       const struct stele_tune_time *time, bool compare,
		       struct stele_profile *out);

#endif

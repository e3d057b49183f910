/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - the parts of stele_tune(), which share the time there is
 *
 * A *sweep* fills the cells of sizes x depths, a model is fitted, the image's
 * own mix of sizes is read at the depth that the model names, and what other
 * backends there are is compared with the default one there. Tests give less time.
 */
#ifndef STELE_TUNE_PARTS_H
#define STELE_TUNE_PARTS_H

#include "lib/tune/meter.h"

struct stele_tune_time {
	double seconds; /* for all, about */
	double cell;	/* seconds of one, at least, if there is time */
	uint64_t reads;	/* of one, at least, if there is time */
};

#define STELE_TUNE_POINTS_MAX 256u

struct stele_tune_sweep {
	struct stele_dataset *ds;
	struct stele_log log;
	const struct stele_tune_opts *opts; /* the callback */
	struct stele_tune_time time;
	struct stele_tune_space space;
	struct stele_tune_meter meter;
	double began;
	unsigned int count;
	struct stele_tune_point points[STELE_TUNE_POINTS_MAX];
};

/* A cell of the image's own mix: at that depth, or what there is memory for. */
uint32_t stele_tune_mix_depth(const struct stele_tune_sweep *sweep,
			      uint32_t depth);
/* Measure, and tell the caller of it. Return: as meter_run; -ECANCELED. */
int stele_tune_sweep_cell(struct stele_tune_sweep *sweep,
			  const struct stele_tune_cell *cell,
			  struct stele_tune_result *out);
/* Fill points[]. Return: 0; -ENODATA (no size fits); as above. */
int stele_tune_sweep_run(struct stele_tune_sweep *sweep);

/*
 * At that depth: is another backend than the dataset's worth it? Its name in
 * profile->backend. Return: 0; -ECANCELED; errno of the dataset's.
 */
int stele_tune_backends(struct stele_tune_sweep *sweep,
			struct stele_profile *profile);

/* Tell the log what can be seen that bounds or slows down what was measured. */
void stele_tune_notes(const struct stele_tune_sweep *sweep,
		      const struct stele_profile *profile);

/*
 * stele_tune() of an open dataset, in that time, without saving. `compare`: also
 * look at other backends.
 */
int stele_tune_dataset(struct stele_dataset *ds,
		       const struct stele_tune_opts *opts,
		       const struct stele_tune_time *time, bool compare,
		       struct stele_profile *out);

#endif

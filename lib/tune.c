/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - stele_tune(), stele_dataset_profile()
 */
#include <errno.h>

#include "lib/read/dataset.h"

int stele_tune(const char *target, const struct stele_tune_opts *opts,
	       struct stele_profile *out)
{
	(void)target, (void)opts, (void)out;
	return -EOPNOTSUPP;
}

int stele_dataset_profile(const struct stele_dataset *ds,
			  struct stele_profile *out)
{
	if (!ds->has_profile)
		return -ENOENT;
	*out = ds->profile;
	return 0;
}

double stele_profile_throughput(const struct stele_profile *profile,
				uint64_t size, double depth)
{
	struct stele_model model;

	if (!stele_model_set(&model, profile) || !(depth > 0) || !size)
		return 0;
	return stele_model_throughput(&model, size, depth);
}

double stele_profile_depth(const struct stele_profile *profile, uint64_t size)
{
	struct stele_model model;

	return stele_model_set(&model, profile) ?
		       stele_model_depth(&model, size) :
		       1;
}

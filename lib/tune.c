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

static struct stele_model model_of(const struct stele_profile *profile)
{
	return (struct stele_model){
		.latency = profile->latency,
		.stream_rate = profile->stream_rate,
		.iops_max = profile->iops_max,
		.bytes_max = profile->bytes_max,
		.kappa = profile->kappa,
	};
}

double stele_profile_throughput(const struct stele_profile *profile,
				uint64_t size, double depth)
{
	struct stele_model model = model_of(profile);

	return stele_model_throughput(&model, size, depth);
}

double stele_profile_depth(const struct stele_profile *profile, uint64_t size)
{
	struct stele_model model = model_of(profile);

	return stele_model_depth(&model, size);
}

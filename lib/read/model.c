/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - the arithmetic of model.h
 */
#include "lib/read/model.h"

#include "lib/stele.h"

#include <math.h>

#define KNEE_SHARPNESS 4.0 /* p */

static bool is_rate(double value)
{
	return isfinite(value) && value > 0;
}

bool stele_model_valid(const struct stele_model *model)
{
	return is_rate(model->latency) && is_rate(model->stream_rate) &&
	       is_rate(model->iops_max) && is_rate(model->bytes_max) &&
	       is_rate(model->kappa);
}

bool stele_model_set(struct stele_model *model,
		     const struct stele_profile *profile)
{
	*model = (struct stele_model){
		.latency = profile->latency,
		.stream_rate = profile->stream_rate,
		.iops_max = profile->iops_max,
		.bytes_max = profile->bytes_max,
		.kappa = profile->kappa,
	};
	return stele_model_valid(model);
}

double stele_model_cost(const struct stele_model *model, uint64_t size)
{
	return 1 / model->iops_max + (double)size / model->bytes_max;
}

double stele_model_latency(const struct stele_model *model, uint64_t size)
{
	return model->latency + (double)size / model->stream_rate;
}

double stele_model_throughput(const struct stele_model *model, uint64_t size,
			      double depth)
{
	double alone = depth * (double)size / stele_model_latency(model, size);
	double most = (double)size / stele_model_cost(model, size);

	return pow(pow(alone, -KNEE_SHARPNESS) + pow(most, -KNEE_SHARPNESS),
		   -1 / KNEE_SHARPNESS);
}

double stele_model_depth(const struct stele_model *model, uint64_t size)
{
	double depth = model->kappa * stele_model_latency(model, size) /
		       stele_model_cost(model, size);

	return depth < 1 ? 1 : depth;
}

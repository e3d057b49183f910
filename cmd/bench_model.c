/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_model.c - emulated accelerators: a training job that only waits and sleeps
 */
#include "bench_model.h"

#include <math.h>
#include <stdio.h>

#include "json.h"
#include "text.h"

#define LIKE_MAX   1.5	/* times larger or smaller: still alike */
#define BATCHES_MIN 3	/* of a loader, in memory: in hand, complete, on its way */
#define MEMORY_MIN (UINT64_C(256) << 20)
#define MEMORY_MAX (UINT64_C(8) << 30)

static const struct bench_model_info models[] = {
	[BENCH_RESNET50] = {"resnet50", 114660, 400, 0.9, {0.224, 0.435}},
	[BENCH_COSMOFLOW] = {"cosmoflow", 2828486, 1, 0.7, {0.00350, 0.00551}},
	[BENCH_UNET3D] = {"unet3d", 146600628, 7, 0.9, {0.323, 0.636}},
};

const struct bench_model_info *bench_model_info(uint32_t model)
{
	return &models[model];
}

const char *bench_gpu_name(uint32_t gpu)
{
	return gpu == BENCH_A100 ? "a100" : "h100";
}

void bench_model_configure(struct bench_config *config,
			   const struct stele_dataset_info *info)
{
	const struct bench_model_info *model = &models[config->model];
	double mean = (double)info->payload_size / (double)info->sample_count;
	double memory = mean * model->batch * BATCHES_MIN;

	config->batch = model->batch;
	config->threads = config->accelerators;
	if (config->memory)
		return;
	config->memory = memory < (double)MEMORY_MIN   ? MEMORY_MIN
			 : memory > (double)MEMORY_MAX ? MEMORY_MAX
						       : (uint64_t)memory;
}

void bench_model_sum(struct bench_result *result)
{
	double share = 0;

	for (uint32_t i = 0; i < result->part_count; i++) {
		const struct bench_part *part = &result->parts[i];

		if (part->total_ns)
			share += (double)part->busy_ns / (double)part->total_ns;
	}
	result->utilisation = share / result->part_count;
}

bool bench_model_resembles(const struct bench_model_info *model,
			   const struct stele_dataset_info *info)
{
	double mean = (double)info->payload_size / (double)info->sample_count;

	return mean * LIKE_MAX >= model->sample_size &&
	       mean <= model->sample_size * LIKE_MAX;
}

void bench_model_text(const struct bench_config *config,
		      const struct bench_result *result)
{
	const struct bench_model_info *model = &models[config->model];
	const char *gpu = bench_gpu_name(config->gpu);
	char a[TEXT_SIZE], b[TEXT_SIZE];

	printf("%-12s%.1f %% of %u emulated %s%s, %s: %s the %.0f %% that are "
	       "wanted\n",
	       "computed", 100 * result->utilisation, config->accelerators, gpu,
	       config->accelerators == 1 ? "" : "s", model->name,
	       result->utilisation >= model->threshold ? "at least" : "less than",
	       100 * model->threshold);
	if (!bench_model_resembles(model, &result->info))
		printf("%-12sof %s on average are not like those of %s, %s\n",
		       "samples",
		       text_size(a, result->info.payload_size /
					    result->info.sample_count),
		       model->name, text_size(b, (uint64_t)model->sample_size));
	printf("%-12san emulation; not a result of the MLPerf Storage benchmark\n",
	       "");
}

json_t *bench_model_json(const struct bench_config *config,
			 const struct bench_result *result)
{
	const struct bench_model_info *model = &models[config->model];
	json_t *object = json_object(), *list = json_array();

	json_set_text(object, "model", model->name);
	json_set_text(object, "gpu", bench_gpu_name(config->gpu));
	json_set_number(object, "count", config->accelerators);
	json_object_set_new(object, "compute_seconds",
			    json_real(model->compute[config->gpu]));
	json_object_set_new(object, "model_sample_size",
			    json_real(model->sample_size));
	json_object_set_new(object, "resembles",
			    json_boolean(bench_model_resembles(
				    model, &result->info)));
	json_object_set_new(object, "threshold", json_real(model->threshold));
	json_object_set_new(object, "utilisation", json_real(result->utilisation));
	json_object_set_new(object, "met",
			    json_boolean(result->utilisation >=
					 model->threshold));
	for (uint32_t i = 0; i < result->part_count; i++)
		json_array_append_new(
			list, json_integer((json_int_t)result->parts[i].steps));
	json_object_set_new(object, "steps", list);
	return object;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator.c - emulated accelerators: a training job that only waits and sleeps
 */
#include "accelerator.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "json.h"
#include "text.h"

#define LIKE_MAX   1.5	/* times larger or smaller: still alike */
#define BATCHES_MIN 3	/* of a loader, in memory: in hand, complete, on its way */
#define MEMORY_MIN (UINT64_C(64) << 20)
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

static const char *gpu_name(uint32_t gpu)
{
	return gpu == BENCH_A100 ? "a100" : "h100";
}

static uint64_t memory_of(const struct bench_model_info *model,
			  const struct stele_dataset_info *info)
{
	double mean = (double)info->payload_size / (double)info->sample_count;
	double memory = mean * model->batch * BATCHES_MIN;

	if (memory > (double)MEMORY_MAX)
		return MEMORY_MAX;
	return memory < (double)MEMORY_MIN ? MEMORY_MIN : (uint64_t)memory;
}

/* Accelerators whose loaders' memory this machine can have. */
static uint32_t count_max(uint64_t memory)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		       (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t count = all / 2 / memory;

	return count < BENCH_THREADS_MAX ? (uint32_t)count : BENCH_THREADS_MAX;
}

/* Busy: they compute as much as is wanted. Return: 0; negative errno (said). */
static int search(struct stele_dataset *ds, struct bench_config *config,
		  struct bench_result *result, uint32_t most)
{
	double wanted = models[config->model].threshold;
	struct bench_start start = result->start;
	uint32_t busy = 0, idle = most + 1, count = 1;
	int err = 0;

	/* The first run is kept, and then whatever keeps more of them busy. */
	while (!err && busy + 1 < idle && !result->interrupted) {
		struct bench_result trial = {.start = start};

		config->threads = count;
		err = bench_run(ds, config, &trial);
		if (!err && (!result->part_count || trial.interrupted ||
			     trial.utilisation >= wanted)) {
			bench_result_release(result);
			*result = trial;
		} else {
			bench_result_release(&trial);
		}
		if (result->part_count == count && result->utilisation >= wanted)
			busy = count;
		else
			idle = count;
		count = idle <= most ? (busy + idle) / 2 : 2 * busy;
		if (count > most)
			count = most;
	}
	config->threads = config->accelerators = result->part_count;
	result->most = busy;
	return err;
}

int bench_model_run(struct stele_dataset *ds, struct bench_config *config,
		    struct bench_result *result)
{
	const struct bench_model_info *model = &models[config->model];
	struct stele_dataset_info info = {.size = sizeof(info)};
	char text[TEXT_SIZE];
	uint32_t most;

	stele_dataset_info(ds, &info);
	config->batch = model->batch;
	config->threads = config->accelerators;
	if (!config->memory)
		config->memory = memory_of(model, &info);
	most = count_max(config->memory);
	config->search = config->accelerators == BENCH_SEARCH;
	if (config->search && most)
		return search(ds, config, result, most);
	if (config->accelerators <= most)
		return bench_run(ds, config, result);
	cmd_message("memory is too small for this: %s for each accelerator; "
		    "see --memory",
		    text_size(text, config->memory));
	return -ENOMEM;
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

/* Are the image's samples like the model's? */
static bool model_resembles(const struct bench_model_info *model,
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
	const char *gpu = gpu_name(config->gpu);
	char a[TEXT_SIZE], b[TEXT_SIZE];

	printf(ROW "%.1f %% of the time: %u emulated %s%s, %s; %.0f %% is wanted, "
		   "%s\n",
	       "busy", 100 * result->utilisation, config->accelerators, gpu,
	       config->accelerators == 1 ? "" : "s", model->name,
	       100 * model->threshold,
	       result->utilisation >= model->threshold ? "met" : "missed");
	if (config->search)
		printf(ROW "%u at once are kept that busy\n", "", result->most);
	if (!model_resembles(model, &result->info))
		printf(ROW "samples of %s on average are not like those of %s, "
			   "%s\n",
		       "",
		       text_size(a, result->info.payload_size /
					    result->info.sample_count),
		       model->name, text_size(b, (uint64_t)model->sample_size));
	printf(ROW "an emulation, and no result of the MLPerf Storage benchmark\n",
	       "");
}

json_t *bench_model_json(const struct bench_config *config,
			 const struct bench_result *result)
{
	const struct bench_model_info *model = &models[config->model];
	json_t *object = json_make(), *list = json_make_list();

	json_set_text(object, "model", model->name);
	json_set_text(object, "gpu", gpu_name(config->gpu));
	json_set_number(object, "count", config->accelerators);
	if (config->search)
		json_set_number(object, "most", result->most);
	json_set_seconds(object, "compute_seconds", model->compute[config->gpu]);
	json_set_real(object, "model_sample_size", model->sample_size);
	json_set(object, "resembles",
			    json_boolean(model_resembles(
				    model, &result->info)));
	json_set_real(object, "threshold", model->threshold);
	json_set_real(object, "utilisation", result->utilisation);
	json_set(object, "met",
			    json_boolean(result->utilisation >=
					 model->threshold));
	for (uint32_t i = 0; i < result->part_count; i++)
		json_add(
			list, json_number(result->parts[i].steps));
	json_set(object, "steps", list);
	return object;
}

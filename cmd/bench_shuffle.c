/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shuffle.c - how well an order mixes the samples, without reading them
 *
 * What it costs to read in an order that the device likes better is one question, what
 * that order is worth for training another: this answers the second.
 */
#include <stdio.h>

#include "bench.h"
#include "json.h"
#include "shuffle_quality.h"

static void print(const struct bench_config *config,
		  const struct stele_dataset_info *info,
		  const struct shuffle_quality *quality)
{
	json_t *object;

	if (config->json) {
		object = bench_json_head(config, info);
		json_set_text(object, "order", bench_order_name(config->order));
		json_set_number(object, "seed", config->seed);
		json_set(object, "shuffle",
				    shuffle_quality_json(quality));
		json_line(object);
		return;
	}
	bench_text_head(config, info);
	printf("%-12s%s\n\n", "order", bench_order_name(config->order));
	shuffle_quality_print(quality);
}

int bench_shuffle(struct stele_dataset *ds, const struct bench_config *config)
{
	struct stele_shuffle_opts opts = STELE_OPTS(
		stele_shuffle_opts, .seed = config->seed, .kind = config->order,
		.block_size = config->block_size,
		.block_count = config->block_count);
	int labelled = stele_dataset_field_index(ds, "label") >= 0;
	struct stele_dataset_info info;
	struct shuffle_quality quality;
	int err = shuffle_quality_measure(ds, &opts, config->batch, labelled,
					  &quality);

	stele_dataset_info(ds, &info);
	if (err)
		cmd_error(err, "cannot look at the order of '%s'",
			  config->target);
	else
		print(config, &info, &quality);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator.h - emulated accelerators: a training job that only waits and sleeps
 *
 * Each accelerator takes a batch from a loader of its own, "computes" for as long as
 * the MLPerf Storage benchmark (v2.0, its workload files) says that the real one does, and
 * takes the next. Utilisation is the share of time that it computed. That is the
 * idea of that benchmark, not the benchmark: its rules are not followed, its data
 * not generated, and no result of it may be claimed from this.
 */
#ifndef STELE_CMD_BENCH_ACCELERATOR_H
#define STELE_CMD_BENCH_ACCELERATOR_H

#include <jansson.h>

#include "bench.h"

struct bench_model_info {
	const char *name;
	double sample_size; /* bytes, on average */
	uint32_t batch;
	double threshold;  /* of utilisation, that the benchmark wants */
	double compute[2]; /* seconds for a batch, by enum bench_gpu */
};

/* Of any but BENCH_NO_MODEL. */
const struct bench_model_info *bench_model_info(uint32_t model);
/*
 * Emulate config->accelerators, or search how many are kept busy: then *config and
 * *result are those of the most that are, or of one.
 * Return: 0; negative errno (said).
 */
int bench_model_run(struct stele_dataset *ds, struct bench_config *config,
		    struct bench_result *result);
/* Utilisation, from the parts. */
void bench_model_sum(struct bench_result *result);
void bench_model_text(const struct bench_config *config,
		      const struct bench_result *result);
json_t *bench_model_json(const struct bench_config *config,
			 const struct bench_result *result);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - stele_tune(), and what it says
 */
#include "lib/tune/sweep.h"

#include "lib/base/error.h"
#include "lib/base/options.h"

#include <errno.h>
#include <stdlib.h>

#define KNEE 0.97 /* of the best throughput of a row */

static const struct stele_tune_time normal = {40, 0.5, 2000};
static const struct stele_tune_time quick = {5, 0.06, 200};

static bool is_backend_given(const struct stele_tune_opts *opts)
{
	const char *given = opts->backend;

	if (!given || !*given)
		given = getenv(STELE_BACKEND_ENV);
	return given && *given;
}

/* Return: 0; -EINVAL (logged). */
static int check_options(const struct stele_tune_opts *opts,
			 const struct stele_log *log)
{
	int err = stele_options_flags(opts->flags, STELE_TUNE_QUICK, log);

	if (err)
		return err;
	return stele_options_check(&(struct stele_option){
		"reserved", opts->reserved, 0}, 1, log);
}

static int tune(const char *target, const struct stele_tune_opts *opts,
		struct stele_tuning *out)
{
	struct stele_tuning tuning;
	struct stele_tune_opts known;
	struct stele_dataset *ds;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (!err)
		err = check_options(&known, &log);
	if (!err)
		err = stele_output_check(out, points, &log);
	if (!err)
		err = stele_dataset_open(target,
					 &STELE_OPTS(stele_open_opts,
						     .log = known.log,
						     .log_user = known.log_user,
						     .backend = known.backend),
					 &ds);
	if (err)
		return err;
	err = stele_tune_dataset(ds, &known,
				 known.flags & STELE_TUNE_QUICK ? &quick : &normal,
				 !is_backend_given(&known), &tuning);
	if (!err)
		stele_output_fill(out, &tuning, sizeof(tuning));
	stele_dataset_close(ds);
	return err;
}

int stele_tune(const char *target, const struct stele_tune_opts *opts,
	       struct stele_tuning *out)
{
	return STELE_CALL(tune(target, opts, out), "cannot tune '%s'", target);
}

uint32_t stele_tuning_depth(const struct stele_tuning *tuning, uint32_t size)
{
	const struct stele_tune_point *points = tuning->points;
	uint32_t depth = 0;
	double best = 0;

	for (uint32_t i = 0; i < tuning->point_count; i++)
		if (points[i].size == size && points[i].bytes_per_second > best)
			best = points[i].bytes_per_second;
	for (uint32_t i = 0; i < tuning->point_count; i++)
		if (points[i].size == size && points[i].bytes_per_second >= KNEE * best &&
		    (!depth || points[i].depth < depth))
			depth = points[i].depth;
	return depth;
}

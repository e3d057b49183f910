/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - stele_tune(), stele_dataset_profile(), what a profile says
 */
#include "lib/tune/tune.h"

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/node/open.h"
#include "lib/node/profile.h"
#include "lib/read/model_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX      1024u
#define MIX_SHARE      0.05 /* of all time */
#define MIX_ERROR_MAX  0.15 /* between model and measurement: that is said */
#define RESIDUAL_MAX   0.15 /* the same of the fit */

static const struct stele_tune_time normal = {40, 0.5, 2000};
static const struct stele_tune_time quick = {5, 0.06, 200};

/* ---- model ------------------------------------------------------------------- */

static int fit(const struct stele_tune_sweep *sweep, struct stele_model *model,
	       struct stele_profile *out)
{
	struct stele_fit_point points[STELE_TUNE_POINTS_MAX];
	int err;

	for (unsigned int i = 0; i < sweep->count; i++) {
		const struct stele_tune_point *point = &sweep->points[i];

		points[i] = (struct stele_fit_point){
			point->size, point->depth, point->bytes_per_second,
			point->noisy};
	}
	err = stele_model_fit(points, sweep->count, model, &out->residual);
	if (err)
		return err;
	out->latency = model->latency;
	out->stream_rate = model->stream_rate;
	out->iops_max = model->iops_max;
	out->bytes_max = model->bytes_max;
	out->kappa = model->kappa;
	if (out->residual > RESIDUAL_MAX)
		stele_log_warning(&sweep->log,
				  "the model fits badly (median error %.0f %%): "
				  "is the device busy with something else?",
				  100 * out->residual);
	return 0;
}

static void set_limits(const struct stele_tune_sweep *sweep,
		       const struct stele_model *model, double mix,
		       struct stele_profile *out)
{
	const struct stele_device *dev = sweep->ds->image.dev;
	double depth = stele_model_depth(model, (uint64_t)mix);
	double gap = model->bytes_max / model->iops_max;

	out->depth_max = dev->limits.depth_max;
	out->transfer_max = dev->limits.transfer_max;
	out->gap = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
	out->depth = (uint32_t)fmin(ceil(depth), sweep->meter.depth_max);
	strncpy(out->backend, stele_device_backend(dev),
		sizeof(out->backend) - 1);
}

/* The image's own mix of sizes, at the depth of the knee. */
static int check_mix(struct stele_tune_sweep *sweep,
		     const struct stele_model *model, double mix,
		     struct stele_profile *out)
{
	double seconds = MIX_SHARE * sweep->time.seconds;
	const struct stele_tune_cell cell = {
		.depth = stele_tune_mix_depth(sweep, out->depth),
		.seconds_min = seconds / 2,
		.seconds_max = seconds,
		.reads_min = sweep->time.reads,
	};
	struct stele_tune_result result;
	double ratio;
	int err = stele_tune_sweep_cell(sweep, &cell, &result);

	if (err)
		return err;
	out->p99_ns = result.point.p99_ns;
	ratio = result.point.bytes_per_second /
		stele_model_throughput(model, (uint64_t)mix, cell.depth);
	if (fabs(log(ratio)) > MIX_ERROR_MAX)
		stele_log_warning(&sweep->log,
				  "the snapshot's own sizes come at %.2f times "
				  "the throughput that the model says", ratio);
	return 0;
}

/* ---- tune -------------------------------------------------------------------- */

static int measure(struct stele_tune_sweep *sweep, bool compare,
		   struct stele_profile *out)
{
	struct stele_model model;
	double mix;
	int err = stele_tune_sweep_run(sweep);

	if (err == -ENODATA)
		stele_log_error(&sweep->log,
				"the snapshot's slots are too few to measure");
	if (!err)
		err = fit(sweep, &model, out);
	if (err)
		return err;
	mix = stele_tune_meter_mix(&sweep->meter);
	set_limits(sweep, &model, mix, out);
	err = check_mix(sweep, &model, mix, out);
	if (!err && compare)
		err = stele_tune_backends(sweep, out);
	if (!err)
		stele_tune_notes(sweep, out);
	return err;
}

static unsigned int depth_max(const struct stele_device *dev)
{
	return dev->limits.depth_max < DEPTH_MAX ? dev->limits.depth_max :
						   DEPTH_MAX;
}

int stele_tune_dataset(struct stele_dataset *ds,
		       const struct stele_tune_opts *opts,
		       const struct stele_tune_time *time, bool compare,
		       struct stele_profile *out)
{
	struct stele_tune_sweep *sweep = calloc(1, sizeof(*sweep));
	int err;

	if (!sweep)
		return -ENOMEM;
	memset(out, 0, sizeof(*out));
	sweep->ds = ds;
	sweep->opts = opts;
	sweep->log = (struct stele_log){opts->log, opts->log_user};
	sweep->time = *time;
	sweep->began = stele_tune_clock();
	err = ds->snapshot.sample_count ?
		      stele_tune_space_init(&sweep->space, ds) :
		      -ENODATA;
	if (!err)
		err = stele_tune_meter_init(&sweep->meter, ds->image.dev, ds,
					    &sweep->space,
					    depth_max(ds->image.dev));
	if (!err)
		err = measure(sweep, compare, out);
	else if (err == -ENODATA)
		stele_log_error(&sweep->log, "the snapshot has %s",
				ds->snapshot.sample_count ?
					"too few bytes to measure" :
					"no samples");
	stele_tune_meter_release(&sweep->meter);
	stele_tune_space_release(&sweep->space);
	free(sweep);
	return err;
}

/* Rounded as it is kept: who made it sees what others will. */
static void settle(struct stele_profile *profile,
		   const struct stele_profile_facts *facts)
{
	char text[STELE_PROFILE_SIZE_MAX];
	struct stele_profile_facts again;
	const char *why;

	stele_profile_encode(profile, facts, text);
	stele_profile_decode(text, strlen(text), profile, &again, &why);
}

static int save(struct stele_dataset *ds, bool wanted,
		const struct stele_log *log, struct stele_profile *out)
{
	struct stele_profile_source source;
	int err = stele_profile_source_of_device(ds->image.dev, &source);

	out->time = time(NULL);
	if (err) {
		stele_log_warning(log, "nothing tells this device from others: "
				       "its profile is not saved");
		return err == -ENOENT ? 0 : err;
	}
	memcpy(out->device, source.device, sizeof(out->device));
	settle(out, &source.facts);
	return wanted ? stele_profile_save(out, &source, log) : 0;
}

static bool is_backend_given(const struct stele_tune_opts *opts)
{
	const char *given = opts->backend;

	if (!given || !*given)
		given = getenv(STELE_BACKEND_ENV);
	return given && *given;
}

static int tune(const char *target, const struct stele_tune_opts *opts,
		struct stele_profile *out)
{
	struct stele_profile profile;
	struct stele_tune_opts known;
	struct stele_dataset *ds;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (!err)
		err = stele_options_flags(known.flags, STELE_TUNE_QUICK |
						       STELE_TUNE_NO_SAVE, &log);
	if (!err)
		err = stele_options_check(&(struct stele_option){
			"reserved", known.reserved, 0}, 1, &log);
	if (err)
		return err;
	err = stele_dataset_open_fresh(target,
				       &STELE_OPTS(stele_open_opts,
						   .log = known.log,
						   .log_user = known.log_user,
						   .backend = known.backend),
				       &ds);
	if (err)
		return err;
	if (!(known.flags & STELE_TUNE_NO_SAVE)) /* now, not after a minute */
		err = stele_profile_check(&log);
	if (!err)
		err = stele_tune_dataset(ds, &known,
				 known.flags & STELE_TUNE_QUICK ? &quick :
								  &normal,
				 !is_backend_given(&known), &profile);
	if (!err) {
		err = save(ds, !(known.flags & STELE_TUNE_NO_SAVE), &log,
			   &profile);
		if (out)
			*out = profile;
	}
	stele_dataset_close(ds);
	return err;
}

int stele_tune(const char *target, const struct stele_tune_opts *opts,
	       struct stele_profile *out)
{
	return STELE_CALL(tune(target, opts, out),
			  "cannot tune '%s'", target);
}

static int dataset_profile(const struct stele_dataset *ds,
			   struct stele_profile *out)
{
	if (!ds->has_profile)
		return -ENOENT;
	*out = ds->profile;
	return 0;
}

int stele_dataset_profile(const struct stele_dataset *ds,
			  struct stele_profile *out)
{
	return STELE_CALL(dataset_profile(ds, out),
			  "no profile of the device");
}

static int profile_path(const struct stele_profile *profile, char *path,
			size_t size)
{
	return *profile->device ?
		       stele_profile_file(profile->device, path, size) :
		       -ENOENT;
}

int stele_profile_path(const struct stele_profile *profile, char *path,
		       size_t size)
{
	return STELE_CALL(profile_path(profile, path, size),
			  "no path of the profile");
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - stele_tune(), stele_dataset_profile(), what a profile says
 */
#include "lib/tune/sweep.h"

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/node/open.h"
#include "lib/node/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KNEE	  0.97 /* of the best throughput of a row */

static const struct stele_tune_time normal = {40, 0.5, 2000};
static const struct stele_tune_time quick = {5, 0.06, 200};

/* ---- what is kept ------------------------------------------------------------- */

/* As a line of the file may hold it. */
static void copy_plain(char *to, size_t size, const char *from, char blank)
{
	size_t i;

	for (i = 0; from[i] && i < size - 1; i++)
		to[i] = from[i] == ' ' ? blank : from[i] > ' ' && from[i] <= '~' ? from[i] : '?';
	to[i] = '\0';
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

static void set_origin(struct stele_profile *profile, const char *target,
		       const struct stele_profile_source *source)
{
	char host[sizeof(profile->host)] = "";

	gethostname(host, sizeof(host) - 1);
	copy_plain(profile->host, sizeof(profile->host), host, '?');
	copy_plain(profile->target, sizeof(profile->target), target, ' ');
	profile->time = time(NULL);
	memcpy(profile->device, source->device, sizeof(profile->device));
	if (*profile->device)
		settle(profile, &source->facts);
}

/* Is the device's profile worth more than what this image can tell? */
static int check_kept(const struct stele_dataset *ds,
		      const struct stele_profile_source *source,
		      const struct stele_log *log)
{
	const double mib = 1 << 20;
	struct stele_profile kept;
	uint64_t size = stele_tune_slots_size(ds);

	if (size >= STELE_TUNE_SIZE_MIN || stele_profile_load(source, log, &kept) ||
	    kept.slots_size < STELE_TUNE_SIZE_MIN)
		return 0;
	stele_log_error(log, "the profile of this device was measured on %.0f MiB of samples; "
			     "%.1f MiB are too few to replace it",
			(double)kept.slots_size / mib, (double)size / mib);
	return -EEXIST;
}

/* Now, not after a minute. Return: 0; errno (logged). */
static int check_save(const struct stele_dataset *ds, uint32_t flags,
		      const struct stele_profile_source *source,
		      const struct stele_log *log)
{
	int err;

	if (flags & STELE_TUNE_NO_SAVE)
		return 0;
	err = stele_profile_check(log);
	if (!err && *source->device && !(flags & STELE_FORCE))
		err = check_kept(ds, source, log);
	return err;
}

static int save(const struct stele_profile *profile, uint32_t flags,
		const struct stele_profile_source *source,
		const struct stele_log *log)
{
	if (!*source->device)
		stele_log_warning(log, "nothing distinguishes this device from others: "
				       "its profile is not saved");
	if (!*source->device || (flags & STELE_TUNE_NO_SAVE))
		return 0;
	return stele_profile_save(profile, source, log);
}

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
	int err = stele_options_flags(opts->flags,
				      STELE_TUNE_QUICK | STELE_TUNE_NO_SAVE |
					      STELE_FORCE,
				      log);

	if (err)
		return err;
	return stele_options_check(&(struct stele_option){
		"reserved", opts->reserved, 0}, 1, log);
}

static int tune(const char *target, const struct stele_tune_opts *opts,
		struct stele_profile *out)
{
	struct stele_profile_source source = {0};
	struct stele_profile profile;
	struct stele_tune_opts known;
	struct stele_dataset *ds;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (!err)
		err = check_options(&known, &log);
	if (!err)
		err = stele_output_check(out, points, &log);
	if (!err)
		err = stele_dataset_open_fresh(target,
				       &STELE_OPTS(stele_open_opts,
						   .log = known.log,
						   .log_user = known.log_user,
						   .backend = known.backend),
				       &ds);
	if (err)
		return err;
	err = stele_profile_source_of_device(ds->image.dev, &source);
	if (err == -ENOENT)
		err = 0;
	if (!err)
		err = check_save(ds, known.flags, &source, &log);
	if (!err)
		err = stele_tune_dataset(ds, &known,
				 known.flags & STELE_TUNE_QUICK ? &quick :
								  &normal,
				 !is_backend_given(&known), &profile);
	if (!err) {
		set_origin(&profile, target, &source);
		err = save(&profile, known.flags, &source, &log);
		stele_output_fill(out, &profile, sizeof(profile));
	}
	stele_dataset_close(ds);
	return err;
}

int stele_tune(const char *target, const struct stele_tune_opts *opts,
	       struct stele_profile *out)
{
	return STELE_CALL(tune(target, opts, out), "cannot tune '%s'", target);
}

/* ---- what a profile says ------------------------------------------------------- */

static int dataset_profile(const struct stele_dataset *ds,
			   struct stele_profile *out)
{
	if (!ds->profile)
		return -ENOENT;
	return stele_output_set(out, ds->profile, points, &ds->image.log);
}

int stele_dataset_profile(const struct stele_dataset *ds,
			  struct stele_profile *out)
{
	return STELE_CALL(dataset_profile(ds, out), "no profile of the device");
}

static int profile_path(const struct stele_profile *profile, char *path,
			size_t size)
{
	const struct stele_log log = {0};

	if (stele_output_check(profile, points, &log))
		return -EINVAL;
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

uint32_t stele_profile_depth(const struct stele_profile *profile, uint32_t size)
{
	const struct stele_tune_point *points = profile->points;
	uint32_t depth = 0;
	double best = 0;

	for (uint32_t i = 0; i < profile->point_count; i++)
		if (points[i].size == size && points[i].bytes_per_second > best)
			best = points[i].bytes_per_second;
	for (uint32_t i = 0; i < profile->point_count; i++)
		if (points[i].size == size && points[i].bytes_per_second >= KNEE * best &&
		    (!depth || points[i].depth < depth))
			depth = points[i].depth;
	return depth;
}

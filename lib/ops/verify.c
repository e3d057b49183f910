/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - stele_verify(): open a target and check what it holds
 *
 * Always reads the device itself: a mapping has no say in what lies there.
 */
#include "lib/verify/verify.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/image/snapshot.h"
#include "lib/node/open.h"

/* What recovery and loading warn of is damage, which is reported. */
static void pass_errors(void *user, enum stele_log_level level,
			const char *line)
{
	const struct stele_log *log = user;

	if (level == STELE_LOG_ERROR)
		stele_log_error(log, "%s", line);
}

/* Where nothing is verified, nothing is reported; it may be why a snapshot is not there. */
static void warn_of_load(struct stele_device *dev, const struct stele_log *log)
{
	struct stele_image image;

	if (stele_image_load(dev, log, &image))
		return;
	image.dev = NULL; /* the caller's */
	stele_image_release(&image);
}

static int find_snapshot(const struct stele_image *image,
			 const struct stele_target *target,
			 const struct stele_log *log, uint32_t *index)
{
	int ret = stele_snapshot_find(image, target->snapshot,
				      stele_target_digest(target), index);

	if (ret == -ENOENT && target->mapped)
		return stele_target_gone(target, log);
	if (ret == -ENOENT)
		warn_of_load(image->dev, log);
	return ret < 0 ? stele_snapshot_log_choice(image, ret) : 0;
}

/* What cannot be loaded because it is damaged is reported, and makes no call fail. */
static int load(struct stele_device *dev, const struct stele_log *log,
		const struct stele_verify_opts *opts, struct stele_image *image,
		struct stele_verify_report *report)
{
	struct stele_log_held held;
	int ret;

	stele_log_hold(&held, log);
	ret = stele_image_load(dev, &held.log, image);
	if (ret == -EBADMSG || ret == -EUCLEAN || ret == -ENODATA)
		ret = stele_verify_lost(dev, ret, held.last ? held.last : "", opts, report);
	stele_log_end(&held, ret <= 0);
	image->log = *log;
	return ret;
}

/* Return: as stele_verify(); -EAGAIN: somebody has committed meanwhile. */
static int verify_once(struct stele_device *dev,
		       const struct stele_target *target,
		       const struct stele_log *log, const struct stele_log *errors,
		       const struct stele_verify_opts *opts,
		       struct stele_verify_report *report)
{
	const bool one = target->snapshot || target->pinned;
	struct stele_image image;
	uint32_t index;
	int ret;

	memset(report, 0, sizeof(*report));
	ret = load(dev, errors, opts, &image, report);
	if (ret)
		return ret;
	if (one)
		ret = find_snapshot(&image, target, log, &index);
	if (ret == 0)
		ret = stele_verify_image(&image, one ? (int64_t)index : -1,
					 opts, report);
	image.dev = NULL; /* the caller's */
	stele_image_release(&image);
	return ret;
}

static int verify_device(struct stele_device *dev,
			 const struct stele_target *target,
			 struct stele_log *log,
			 const struct stele_verify_opts *opts,
			 struct stele_verify_report *report)
{
	const struct stele_log errors = {pass_errors, log};
	int ret = -EAGAIN;

	for (unsigned int i = 0; i < STELE_LOAD_TRIES && ret == -EAGAIN; i++)
		ret = verify_once(dev, target, log, &errors, opts, report);
	if (ret == -EAGAIN) {
		stele_log_error(log, "the image is changed faster than it can "
				     "be checked");
		ret = -EBUSY;
	}
	stele_device_close(dev);
	return ret;
}

static int verify(const char *text, const struct stele_verify_opts *opts,
		  struct stele_verify_report *report)
{
	struct stele_verify_report made = {0};
	struct stele_target target = {0};
	struct stele_verify_opts known;
	struct stele_device *dev;
	struct stele_log log;
	int ret;

	ret = stele_options_get(opts, &known, sizeof(known), &log);
	if (!ret)
		ret = stele_options_check(&(struct stele_option){
			"reserved", known.reserved, 0}, 1, &log);
	if (!ret)
		ret = stele_output_check(report, notes, &log);
	if (ret < 0)
		return ret;
	ret = stele_target_open(text, false, known.backend, &log, &target,
				&dev);
	if (ret < 0)
		return ret;
	ret = verify_device(dev, &target, &log, &known, &made);
	stele_output_fill(report, &made, sizeof(made));
	stele_target_release(&target);
	return ret;
}

int stele_verify(const char *text, const struct stele_verify_opts *opts,
		 struct stele_verify_report *report)
{
	return STELE_CALL(verify(text, opts, report),
			  "cannot verify '%s'", text);
}

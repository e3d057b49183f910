/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - an image follows its target
 *
 * The target grows first, if it is ours to make larger; the image when that is
 * done. Killed in between, the target is larger than its image, which harms nothing;
 * after a failure it has its old size again.
 */
#include "lib/ops/resize.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/error.h"

static int refuse(const struct stele_writer *writer, const char *why,
		  uint64_t size, uint64_t now)
{
	stele_log_error(&writer->log, "%s: %" PRIu64 " bytes wanted, %" PRIu64
			" now", why, size, now);
	return -EINVAL;
}

/* Have the target so large. Return: 0; -EINVAL (it is not ours to set). */
static int grow_target(struct stele_writer *writer, uint64_t size,
		       uint64_t target_size)
{
	int ret;

	if (size <= target_size)
		return 0;
	ret = stele_edit_enlarge(&writer->edit, size);
	if (ret == -EOPNOTSUPP)
		return refuse(writer, "only files and RBD images can be made "
			      "larger here; enlarge the device first",
			      size, target_size);
	if (ret < 0)
		stele_log_error(&writer->log,
				"cannot make the target larger: %s",
				stele_strerror(ret));
	return ret;
}

int stele_change_resize(struct stele_writer *writer,
			const struct stele_change *change, uint64_t size,
			struct stele_resize_report *report)
{
	const uint64_t now = writer->image.sb.image_size;
	uint64_t target_size;
	int ret;

	*report = (struct stele_resize_report){now, now};
	ret = stele_device_size(writer->image.dev, &target_size);
	if (ret < 0)
		return ret;
	if (!size)
		size = round_down(target_size, STELE_BLOCK_SIZE);
	if (size > STELE_IMAGE_SIZE_MAX)
		size = STELE_IMAGE_SIZE_MAX;
	if (!is_aligned(size, STELE_BLOCK_SIZE))
		return refuse(writer, "not a multiple of 4096", size, now);
	if (size < now)
		return refuse(writer, "an image does not become smaller", size,
			      now);
	ret = grow_target(writer, size, target_size);
	if (ret < 0 || size == now)
		return ret;
	ret = stele_edit_grow(&writer->edit, size);
	if (ret == 0)
		ret = stele_writer_commit(writer, change->opts.time);
	if (ret == 0)
		report->new_size = size;
	return ret;
}

static int resize(const char *target, uint64_t size,
		  const struct stele_change_opts *opts,
		  struct stele_resize_report *report)
{
	struct stele_resize_report unwanted;
	struct stele_writer writer = {0};
	struct stele_change change;
	int ret = stele_change_init(&change, opts, 0);

	if (!report)
		report = &unwanted;
	memset(report, 0, sizeof(*report));
	if (ret < 0)
		return ret;
	ret = stele_writer_open(&writer, target, change.opts.backend,
				&change.log);
	if (ret == 0)
		ret = stele_change_resize(&writer, &change, size, report);
	stele_writer_close(&writer);
	return ret;
}

int stele_resize(const char *target, uint64_t size,
		 const struct stele_change_opts *opts,
		 struct stele_resize_report *report)
{
	return STELE_CALL(resize(target, size, opts, report),
			  "cannot resize '%s'", target);
}

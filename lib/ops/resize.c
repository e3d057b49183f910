/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - an image follows its target
 *
 * The target grows first, if it is ours to make larger; the image when that is
 * done. Killed in between, the target is larger than its image, which harms nothing;
 * after a failure it has its old size again.
 */
#include "lib/ops/change.h"

#include <errno.h>
#include <inttypes.h>

#include "lib/base/error.h"
#include "lib/base/options.h"

static int refuse(const struct stele_txn *txn, const char *why, uint64_t size,
		  uint64_t now)
{
	stele_log_error(&txn->log, "invalid size %" PRIu64 ": %s (now %" PRIu64
			")", size, why, now);
	return -EINVAL;
}

/* Have the target so large. Return: 0; -EINVAL (it is not ours to set). */
static int grow_target(struct stele_txn *txn, uint64_t size,
		       uint64_t target_size)
{
	int ret;

	if (size <= target_size)
		return 0;
	ret = stele_txn_enlarge(txn, size);
	if (ret == -EOPNOTSUPP)
		return refuse(txn, "only files and RBD images can be made "
			      "larger here; enlarge the device first",
			      size, target_size);
	if (ret < 0)
		stele_log_error(&txn->log, "cannot make the target larger: %s",
				stele_device_strerror(txn->image->dev, ret));
	return ret;
}

static int txn_resize(struct stele_txn *txn, uint64_t size,
		      struct stele_resize_report *report)
{
	const uint64_t now = txn->image_size;
	struct stele_resize_report made = {.old_size = now, .new_size = now};
	uint64_t target_size;
	int ret = stele_output_set(report, &made, new_size, &txn->log);

	if (ret == 0)
		ret = stele_device_size(txn->image->dev, &target_size);
	if (ret < 0)
		return ret;
	if (!size)
		size = target_size < STELE_IMAGE_SIZE_MAX ?
			       round_down(target_size, STELE_BLOCK_SIZE) :
			       STELE_IMAGE_SIZE_MAX;
	if (!is_aligned(size, STELE_BLOCK_SIZE))
		return refuse(txn, "not a multiple of 4096", size, now);
	if (size > STELE_IMAGE_SIZE_MAX)
		return refuse(txn, "more than an image can have", size, now);
	if (size < now)
		return refuse(txn, "an image cannot shrink", size, now);
	if (size > now)
		ret = stele_txn_overwrite(txn);
	if (ret == 0)
		ret = grow_target(txn, size, target_size);
	if (ret < 0 || size == now)
		return ret;
	ret = stele_txn_grow(txn, size);
	if (ret < 0)
		return ret;
	made.new_size = size;
	stele_output_fill(report, &made, sizeof(made));
	return 0;
}

int stele_txn_resize(struct stele_txn *txn, uint64_t size,
		     struct stele_resize_report *report)
{
	return STELE_TXN_CALL(txn, txn_resize(txn, size, report),
			  "cannot resize '%s'",
			  txn && txn->target.path ? txn->target.path : "the image");
}

static int resize(const char *target, uint64_t size,
		  const struct stele_txn_opts *opts,
		  struct stele_resize_report *report)
{
	struct stele_txn txn;
	int ret = stele_change_begin(&txn, target, STELE_CHANGE_OF_IMAGE, opts,
				     STELE_CHANGE_ADDS, 0);

	if (ret == 0)
		ret = stele_txn_resize(&txn, size, report);
	return stele_change_end(&txn, ret);
}

int stele_resize(const char *target, uint64_t size,
		 const struct stele_txn_opts *opts,
		 struct stele_resize_report *report)
{
	return STELE_CALL(resize(target, size, opts, report),
			  "cannot resize '%s'", target);
}

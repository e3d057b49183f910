/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocate.c - the space that a transaction hands out
 *
 * What is handed out is used at once, so that nothing is handed out twice. The
 * last bytes are not for data: a generation of which nothing can be deleted would
 * be full for ever.
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/txn/intent.h"

static int add_all(struct stele_extents *extents,
		   const struct stele_extents *more)
{
	int ret = 0;

	for (uint32_t i = 0; more && i < more->count && ret == 0; i++)
		ret = stele_extents_add(extents, more->list[i].offset,
					more->list[i].size);
	return ret;
}

int stele_txn_refresh(struct stele_txn *txn)
{
	struct stele_device *dev = txn->image->dev;
	int ret;

	if (!txn->stale)
		return 0;
	stele_extents_release(&txn->used);
	ret = stele_extents_add_copies(&txn->used, txn->image);
	if (ret == 0)
		ret = add_all(&txn->used, stele_intent_avoided(dev));
	if (ret == 0)
		ret = add_all(&txn->used, stele_intent_reserved(dev));
	if (ret == 0)
		txn->stale = false;
	return ret;
}

int stele_txn_search(struct stele_txn *txn,
		      int (*look)(struct stele_txn *txn, void *user),
		      void *user)
{
	int ret = look(txn, user);

	if (ret != -ENOSPC || !stele_intent_stop_avoiding(txn->image->dev))
		return ret;
	txn->stale = true;
	ret = stele_txn_refresh(txn);
	return ret < 0 ? ret : look(txn, user);
}

/* ---- the target ------------------------------------------------------------ */

int stele_txn_enlarge(struct stele_txn *txn, uint64_t target_size)
{
	struct stele_device *dev = txn->image->dev;
	uint64_t now;
	int ret = stele_device_size(dev, &now);

	if (ret < 0 || now >= target_size)
		return ret;
	ret = stele_intent_confirm(dev);
	if (ret == 0)
		ret = stele_device_grow(dev, target_size);
	if (ret == 0 && !txn->old_target_size)
		txn->old_target_size = now;
	return ret;
}

int stele_txn_reserve_blocks(struct stele_txn *txn, uint64_t offset, uint64_t size)
{
	int ret = stele_device_reserve_file(txn->image->dev, offset, size);

	if (ret == -EOPNOTSUPP) /* not a file */
		return 0;
	txn->reserved = true;
	if (ret == 0)
		return 0;
	stele_log_error(&txn->image->log,
			"cannot allocate %" PRIu64 " bytes of the image's "
			"file: %s",
			size, ret == -ENOSPC ? "its filesystem is full" :
					       stele_strerror(ret));
	return ret;
}

int stele_txn_reserve(struct stele_txn *txn, uint64_t offset, uint64_t size)
{
	int ret = stele_intent_reserve(txn->image->dev,
				       txn->image->generation_max + 1, offset,
				       size);

	if (ret == 0)
		ret = stele_extents_add(&txn->used, offset, size);
	return ret < 0 ? ret : stele_txn_reserve_blocks(txn, offset, size);
}

void stele_txn_keep_space(struct stele_txn *txn)
{
	txn->old_target_size = 0;
	txn->reserved = false;
	stele_device_keep_file(txn->image->dev);
}

struct give_back {
	struct stele_permit permit; /* first */
	const struct stele_image *image;
};

/* What somebody else, whom no lock held off, has put there by now is his. */
static int is_ours(struct stele_permit *permit)
{
	const struct stele_image *image = ((struct give_back *)permit)->image;
	struct stele_copies now;
	int ret = stele_intent_confirm(image->dev);

	if (ret == 0)
		ret = stele_copies_read(image->dev, &now);
	return ret < 0 ? ret : stele_copies_compare(&image->copies, &now);
}

/* Blocks below an image that is not one yet are its claim's to give back. */
void stele_txn_give_back(struct stele_txn *txn)
{
	struct give_back ask = {{.check = is_ours}, txn->image};
	struct stele_device *dev = txn->image->dev;
	const uint64_t size = txn->old_target_size;
	int ret = -EOPNOTSUPP;

	if (!txn->reserved && !size)
		return;
	if (txn->image->publishing || is_ours(&ask.permit) < 0) {
		stele_txn_keep_space(txn);
		return;
	}
	if (txn->image->sb.state == STELE_STATE_READY)
		ret = stele_device_unreserve_file(dev, 0, size ? size : UINT64_MAX,
						  &ask.permit);
	/* Not a file; nothing was changed since it was asked. */
	if (ret == -EOPNOTSUPP && size)
		stele_device_resize(dev, size);
}

/* ---- space ----------------------------------------------------------------- */

int stele_txn_make_larger(struct stele_txn *txn, uint64_t size,
			   uint64_t align)
{
	uint64_t end = stele_extents_end(&txn->used);
	int ret;

	if (!stele_txn_is_elastic(txn) || !checked_round_up(end, align, &end) ||
	    !range_ok(end, size, STELE_IMAGE_SIZE_MAX))
		return stele_txn_log_no_space(txn, size);
	end += size;
	ret = stele_txn_enlarge(txn, end);
	if (ret < 0) {
		stele_log_error(&txn->image->log,
				"cannot make the target %" PRIu64
				" bytes large: %s", end,
				ret == -ENOSPC ? "its filesystem is full" :
						 stele_strerror(ret));
		return ret;
	}
	txn->image_size = end;
	return 0;
}

/* `user`: the size of a catalog, for which there are two places. */
static int look_for_room(struct stele_txn *txn, void *user)
{
	const uint64_t size = *(const uint64_t *)user;
	uint64_t first, second;
	int ret = stele_extents_find(&txn->used, size, STELE_BLOCK_SIZE,
				     txn->image_size, &first);

	if (ret < 0)
		return ret;
	ret = stele_extents_add(&txn->used, first, size);
	if (ret == 0)
		ret = stele_extents_find(&txn->used, size, STELE_BLOCK_SIZE,
					 txn->image_size, &second);
	stele_extents_remove(&txn->used, first, size);
	return ret;
}

/*
 * Is there room besides for the catalog of this generation, and for that of a next
 * one? What is yet to be added to the catalog only the commit knows.
 */
static int leave_room(struct stele_txn *txn)
{
	uint64_t size;
	int ret = stele_txn_commit_size(txn, &size);

	if (ret == 0)
		ret = stele_txn_search(txn, look_for_room, &size);
	return ret == -ENOSPC ? stele_txn_log_no_space(txn, size) : ret;
}

struct wanted {
	uint64_t size, align, offset;
};

static int look_for_extent(struct stele_txn *txn, void *user)
{
	struct wanted *wanted = user;

	return stele_extents_find(&txn->used, wanted->size, wanted->align,
				  txn->image_size, &wanted->offset);
}

static int find_extent(struct stele_txn *txn, struct wanted *wanted)
{
	int ret = stele_txn_search(txn, look_for_extent, wanted);

	if (ret != -ENOSPC)
		return ret;
	ret = stele_txn_make_larger(txn, wanted->size, wanted->align);
	return ret < 0 ? ret : look_for_extent(txn, wanted);
}

/*
 * Nothing was written to what could not be had: it is free for something smaller, and a
 * target that was made larger for it is as large as before. Blocks that a file has got
 * below that stay until the end: others may lie among them that are in use.
 */
static void forgo(struct stele_txn *txn, const struct wanted *wanted,
		  uint64_t image_size, uint64_t target_size)
{
	struct give_back ask = {{.check = is_ours}, txn->image};
	struct stele_device *dev = txn->image->dev;

	stele_extents_remove(&txn->used, wanted->offset, wanted->size);
	if (txn->image_size == image_size || is_ours(&ask.permit) < 0)
		return;
	if (stele_device_unreserve_file(dev, target_size, target_size,
					&ask.permit) == -EOPNOTSUPP)
		stele_device_resize(dev, target_size);
	txn->image_size = image_size;
	if (txn->old_target_size == target_size)
		txn->old_target_size = 0;
}

static int allocate(struct stele_txn *txn, uint64_t size, uint64_t align,
		    uint64_t *offset)
{
	struct wanted wanted = {size, align ? align : STELE_BLOCK_SIZE, 0};
	const uint64_t image_size = txn->image_size;
	uint64_t target_size;
	int ret;

	align = wanted.align;
	if (size == 0 || !is_aligned(size, STELE_BLOCK_SIZE) ||
	    !is_power_of_two(align) || align < STELE_BLOCK_SIZE)
		return -EINVAL;
	ret = stele_txn_refresh(txn);
	if (ret == 0)
		ret = stele_device_size(txn->image->dev, &target_size);
	if (ret == 0)
		ret = find_extent(txn, &wanted);
	*offset = wanted.offset;
	if (ret < 0)
		return ret;
	ret = stele_txn_reserve(txn, *offset, size);
	if (ret < 0)
		forgo(txn, &wanted, image_size, target_size);
	return ret;
}

int stele_txn_allocate(struct stele_txn *txn, uint64_t size, uint64_t align,
			uint64_t *offset)
{
	int ret = allocate(txn, size, align, offset);

	if (ret < 0)
		return ret;
	txn->takes = true;
	return stele_txn_is_elastic(txn) ? 0 : leave_room(txn);
}

int stele_txn_allocate_again(struct stele_txn *txn, uint64_t size, uint64_t next,
			     uint64_t *offset)
{
	struct wanted wanted = {next, STELE_BLOCK_SIZE, 0};
	int ret = allocate(txn, size, 0, offset);

	if (ret < 0 || !next || !txn->takes || stele_txn_is_elastic(txn))
		return ret;
	ret = look_for_extent(txn, &wanted);
	return ret == -ENOSPC ? stele_txn_log_no_space(txn, next) : ret;
}

int stele_txn_grow(struct stele_txn *txn, uint64_t image_size)
{
	uint64_t target_size;
	int ret = stele_device_size(txn->image->dev, &target_size);

	if (ret < 0)
		return ret;
	if (image_size < txn->image_size || image_size > target_size ||
	    image_size > STELE_IMAGE_SIZE_MAX ||
	    !is_aligned(image_size, STELE_BLOCK_SIZE))
		return -EINVAL;
	txn->image_size = image_size;
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

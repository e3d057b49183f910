/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_space.c - the space that an edit hands out
 *
 * What is handed out is used at once, so that nothing is handed out twice. The
 * last bytes are not for data: a generation of which nothing can be deleted would
 * be full for ever.
 */
#include "lib/txn/edit.h"

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

int stele_edit_refresh(struct stele_edit *edit)
{
	struct stele_device *dev = edit->image->dev;
	int ret;

	if (!edit->stale)
		return 0;
	stele_extents_release(&edit->used);
	ret = stele_extents_add_copies(&edit->used, edit->image);
	if (ret == 0)
		ret = add_all(&edit->used, stele_intent_avoided(dev));
	if (ret == 0)
		ret = add_all(&edit->used, stele_intent_reserved(dev));
	if (ret == 0)
		edit->stale = false;
	return ret;
}

int stele_edit_search(struct stele_edit *edit,
		      int (*look)(struct stele_edit *edit, void *user),
		      void *user)
{
	int ret = look(edit, user);

	if (ret != -ENOSPC || !stele_intent_stop_avoiding(edit->image->dev))
		return ret;
	edit->stale = true;
	ret = stele_edit_refresh(edit);
	return ret < 0 ? ret : look(edit, user);
}

/* Is there anything that it would give back, as the image is on the device? */
static bool gc_helps(const struct stele_edit *edit)
{
	uint64_t kept = 0;

	for (uint32_t i = 0; i < edit->segment_count; i++)
		if (edit->segments[i].unused_since)
			return true;
	return edit->image->sb.state == STELE_STATE_READY &&
	       stele_image_kept_size(edit->image, &kept) == 0 && kept;
}

int stele_edit_log_no_space(const struct stele_edit *edit, uint64_t size)
{
	const char *advice = "take a larger target";
	uint64_t target_size = 0;

	if (!edit->image->dev->resizable)
		stele_device_size(edit->image->dev, &target_size);
	if (target_size >= edit->image_size + size)
		advice = "its target has more: resize it";
	else if (gc_helps(edit))
		advice = "free some with gc, or take a larger target";
	else if (edit->snapshot_count)
		advice = "delete snapshots and free their space with gc, or "
			 "take a larger target";
	stele_log_error(&edit->image->log,
			"no space left: %" PRIu64 " bytes in one piece are "
			"needed, the image has %" PRIu64 "; %s",
			size, edit->image_size, advice);
	return -ENOSPC;
}

/* ---- the target ------------------------------------------------------------ */

int stele_edit_enlarge(struct stele_edit *edit, uint64_t target_size)
{
	struct stele_device *dev = edit->image->dev;
	uint64_t now;
	int ret = stele_device_size(dev, &now);

	if (ret < 0 || now >= target_size)
		return ret;
	ret = stele_intent_confirm(dev);
	if (ret == 0)
		ret = stele_device_grow(dev, target_size);
	if (ret == 0 && !edit->old_target_size)
		edit->old_target_size = now;
	return ret;
}

int stele_edit_reserve(struct stele_edit *edit, uint64_t offset, uint64_t size)
{
	struct stele_device *dev = edit->image->dev;
	int ret = stele_intent_reserve(dev, edit->image->generation_max + 1,
				       offset, size);

	if (ret == 0)
		ret = stele_extents_add(&edit->used, offset, size);
	if (ret < 0)
		return ret;
	ret = stele_device_reserve_file(dev, offset, size);
	if (ret == -EOPNOTSUPP) /* not a file */
		return 0;
	edit->reserved = true;
	if (ret == 0)
		return 0;
	stele_log_error(&edit->image->log,
			"cannot allocate %" PRIu64 " bytes of the image's "
			"file: %s",
			size, stele_strerror(ret));
	return ret;
}

void stele_edit_keep_space(struct stele_edit *edit)
{
	edit->old_target_size = 0;
	edit->reserved = false;
	stele_device_keep_file(edit->image->dev);
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
void stele_edit_give_back(struct stele_edit *edit)
{
	struct give_back ask = {{.check = is_ours}, edit->image};
	struct stele_device *dev = edit->image->dev;
	const uint64_t size = edit->old_target_size;
	int ret = -EOPNOTSUPP;

	if (!edit->reserved && !size)
		return;
	if (edit->image->publishing || is_ours(&ask.permit) < 0) {
		stele_edit_keep_space(edit);
		return;
	}
	if (edit->image->sb.state == STELE_STATE_READY)
		ret = stele_device_unreserve_file(dev, 0, size ? size : UINT64_MAX,
						  &ask.permit);
	/* Not a file; nothing was changed since it was asked. */
	if (ret == -EOPNOTSUPP && size)
		stele_device_resize(dev, size);
}

/* ---- space ----------------------------------------------------------------- */

int stele_edit_make_larger(struct stele_edit *edit, uint64_t size,
			   uint64_t align)
{
	struct stele_device *dev = edit->image->dev;
	uint64_t end = stele_extents_end(&edit->used);
	int ret;

	if (!dev->resizable || !checked_round_up(end, align, &end) ||
	    !range_ok(end, size, STELE_IMAGE_SIZE_MAX))
		return stele_edit_log_no_space(edit, size);
	end += size;
	ret = stele_edit_enlarge(edit, end);
	if (ret < 0) {
		stele_log_error(&edit->image->log,
				"cannot make the target %" PRIu64
				" bytes large: %s",
				end, strerror(-ret));
		return ret;
	}
	edit->image_size = end;
	return 0;
}

/* `user`: the size of a catalog, for which there are two places. */
static int look_for_room(struct stele_edit *edit, void *user)
{
	const uint64_t size = *(const uint64_t *)user;
	uint64_t first, second;
	int ret = stele_extents_find(&edit->used, size, STELE_BLOCK_SIZE,
				     edit->image_size, &first);

	if (ret < 0)
		return ret;
	ret = stele_extents_add(&edit->used, first, size);
	if (ret == 0)
		ret = stele_extents_find(&edit->used, size, STELE_BLOCK_SIZE,
					 edit->image_size, &second);
	stele_extents_remove(&edit->used, first, size);
	return ret;
}

/*
 * Is there room besides for the catalog of this generation, and for that of a next
 * one? What is yet to be added to the catalog only the commit knows.
 */
static int leave_room(struct stele_edit *edit)
{
	uint64_t size;
	int ret = stele_edit_commit_size(edit, &size);

	if (ret == 0)
		ret = stele_edit_search(edit, look_for_room, &size);
	return ret == -ENOSPC ? stele_edit_log_no_space(edit, size) : ret;
}

struct wanted {
	uint64_t size, align, offset;
};

static int look_for_extent(struct stele_edit *edit, void *user)
{
	struct wanted *wanted = user;

	return stele_extents_find(&edit->used, wanted->size, wanted->align,
				  edit->image_size, &wanted->offset);
}

int stele_edit_allocate(struct stele_edit *edit, uint64_t size, uint64_t align,
			uint64_t *offset)
{
	struct wanted wanted = {size, align ? align : STELE_BLOCK_SIZE, 0};
	int ret;

	align = wanted.align;
	if (size == 0 || !is_aligned(size, STELE_BLOCK_SIZE) ||
	    !is_power_of_two(align) || align < STELE_BLOCK_SIZE)
		return -EINVAL;
	ret = stele_edit_refresh(edit);
	if (ret < 0)
		return ret;
	ret = stele_edit_search(edit, look_for_extent, &wanted);
	if (ret == -ENOSPC) {
		ret = stele_edit_make_larger(edit, size, align);
		if (ret == 0)
			ret = look_for_extent(edit, &wanted);
	}
	*offset = wanted.offset;
	if (ret == 0)
		ret = stele_edit_reserve(edit, *offset, size);
	edit->takes = true;
	return ret < 0 || edit->image->dev->resizable ? ret : leave_room(edit);
}

int stele_edit_grow(struct stele_edit *edit, uint64_t image_size)
{
	uint64_t target_size;
	int ret = stele_device_size(edit->image->dev, &target_size);

	if (ret < 0)
		return ret;
	if (image_size < edit->image_size || image_size > target_size ||
	    image_size > STELE_IMAGE_SIZE_MAX ||
	    !is_aligned(image_size, STELE_BLOCK_SIZE))
		return -EINVAL;
	edit->image_size = image_size;
	return 0;
}

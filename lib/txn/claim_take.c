/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_take.c - all has been asked: overwrite, or undo it when the build fails
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/block.h"
#include "format/intent.h"
#include "lib/base/error.h"
#include "lib/device/guard.h"
#include "lib/device/name.h"
#include "lib/device/reserve.h"
#include "lib/image/image.h"
#include "lib/txn/intent.h"

#define FRONT_END  (STELE_INTENT_OFFSET + STELE_BLOCK_SIZE) /* of what no wipe erases */

/*
 * Erasing both ends takes the end of an older image, and spares the mirrors
 * that lead to it: before, all its superblocks say "unfinished". They are of
 * the older image still: cut short, it is sound.
 */
static int disown(struct stele_claim *claim)
{
	struct stele_superblock *sb = &claim->old;
	struct stele_image image;
	int ret;

	if (!sb->image_size)
		sb->image_size = claim->size < STELE_IMAGE_SIZE_MAX ?
					 claim->size :
					 STELE_IMAGE_SIZE_MAX;
	sb->image_size = round_down(sb->image_size, STELE_BLOCK_SIZE);
	if (sb->image_size <= STELE_DATA_OFFSET)
		return 0; /* cut off: nothing of it can be read */
	memcpy(sb->label, claim->lost, sizeof(sb->label));
	ret = stele_image_begin(claim->dev, &claim->log, sb, &image);
	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	return ret;
}

/* Say where else than to an image's new space writes may be in flight. */
static int announce(struct stele_claim *claim, uint64_t offset, uint64_t end)
{
	const uint64_t floor = stele_intent_floor(claim->dev);
	const uint64_t seen = claim->seen.generation_max;

	offset = round_down(offset, STELE_BLOCK_SIZE);
	end = round_up(end, STELE_BLOCK_SIZE);
	return end <= offset ? 0 :
			       stele_intent_reserve(claim->dev,
						    (floor > seen ? floor : seen) + 1,
						    offset, end - offset);
}

/*
 * What is still in flight when another writer takes over must hit nothing of his:
 * superblocks and intent are spared, of the end he is told.
 */
static int wipe(struct stele_claim *claim)
{
	uint64_t back = STELE_DATA_OFFSET;
	int ret;

	if (claim->size > back + STELE_GUARD_WIPE_SIZE)
		back = claim->size - STELE_GUARD_WIPE_SIZE;
	ret = announce(claim, back, claim->size);
	if (!ret)
		ret = stele_guard_wipe(claim->dev, STELE_BLOCK_SIZE, FRONT_END, &claim->log);
	return stele_device_log_full(claim->dev, &claim->log, "zeros to both its ends", ret);
}

/* What was asked about must still be what is there. */
static int check_unchanged(const struct stele_claim *claim)
{
	struct stele_copies now;
	int ret = stele_copies_read(claim->dev, &now);

	return ret < 0 ? ret : stele_copies_compare(&claim->seen, &now);
}

/* Say that we write. */
static int take_turn(struct stele_claim *claim)
{
	int ret = 0;

	if (claim->regular && claim->size < STELE_DATA_OFFSET)
		ret = stele_device_grow(claim->dev, claim->image_size);
	if (!ret)
		ret = stele_intent_begin(claim->dev, &claim->log,
					 claim->seen.generation_max);
	if (!ret)
		ret = check_unchanged(claim);
	if (ret == -ESTALE && claim->dev->permit)
		stele_log_error(&claim->log,
				"'%s' was changed by somebody else meanwhile",
				claim->path);
	return ret;
}

/* `had`: bytes, before any were allocated; more than is needed: of no account. */
static void log_full(const struct stele_claim *claim, int error, uint64_t had)
{
	char has[48] = "";

	/* A filesystem may count as free what no file can get. */
	if (had < claim->needed)
		snprintf(has, sizeof(has), ", and has %" PRIu64, had);
	if (error == -ENOSPC)
		stele_log_error(&claim->log,
				"cannot write '%s': its filesystem is full: needs %" PRIu64
				" bytes%s%s", claim->path, claim->needed,
				claim->real ? " beside the old image" : "", has);
	else
		stele_log_error(&claim->log,
				"cannot write '%s': no quota for %" PRIu64 " bytes",
				claim->path, claim->needed);
}

static int reserve(struct stele_claim *claim)
{
	uint64_t had = UINT64_MAX;
	int ret;

	/* A rehearsal of a new file has none. */
	if (stele_reserve_free(stele_device_fd(claim->dev), &had))
		had = UINT64_MAX;
	/* In two pieces: see give_back(). */
	ret = stele_device_reserve_file(claim->dev, 0, STELE_DATA_OFFSET);
	if (!ret)
		ret = stele_device_reserve_file(claim->dev, STELE_DATA_OFFSET,
						claim->needed - STELE_DATA_OFFSET);
	if (ret == -ENOSPC || ret == -EDQUOT)
		log_full(claim, ret, had);
	return ret;
}

/*
 * Where an image is, the turn comes first: who is refused has touched nothing. What
 * others wrote is not written over, not even by that, before there is room.
 */
static int take_space(struct stele_claim *claim)
{
	int ret = claim->ours ? take_turn(claim) : 0;

	if (!ret && claim->regular)
		ret = reserve(claim);
	if (!ret && !claim->ours)
		ret = take_turn(claim);
	return ret;
}

/* A file that is smaller becomes no smaller, whoever made it larger meanwhile. */
static int set_size(struct stele_claim *claim)
{
	const uint64_t size = claim->image_size;
	int ret = stele_intent_confirm(claim->dev);

	if (!ret)
		ret = claim->size > size ? stele_device_resize(claim->dev, size) :
					   stele_device_grow(claim->dev, size);
	return ret;
}

static int prepare(struct stele_claim *claim)
{
	int ret = 0;

	if (claim->ours)
		ret = disown(claim);
	if (!ret && claim->rbd)
		return stele_claim_empty_rbd(claim, claim->image_size);
	if (!ret && claim->force && claim->size)
		ret = wipe(claim);
	if (!ret && claim->regular)
		ret = set_size(claim);
	return ret;
}

int stele_claim_take(struct stele_claim *claim)
{
	int ret = claim->created ? 0 : stele_claim_check_mapped(claim); /* since it was opened */

	if (ret < 0)
		return ret;
	if (stele_claim_wants_beside(claim))
		ret = stele_claim_begin_beside(claim);
	if (ret || claim->resumed)
		return ret;
	ret = take_space(claim);
	if (!ret)
		ret = stele_claim_remove_snaps(claim, claim->dev);
	if (!ret) {
		claim->touched = true;
		ret = prepare(claim);
	}
	/* To read what was cut off fails as well. */
	if (ret < 0 && claim->dev && stele_file_check_whole(claim->dev) < 0)
		ret = -ESTALE;
	if (ret < 0 && ret != -ENOSPC && ret != -EDQUOT && ret != -ESTALE)
		stele_log_error(&claim->log, "cannot prepare '%s': %s",
				claim->path, stele_strerror(ret));
	return ret;
}

/* A build may have failed when all was there but the acknowledgement. */
static bool holds_image(const struct stele_claim *claim)
{
	struct stele_image image;

	if (stele_image_load(claim->dev, NULL, &image) < 0)
		return false;
	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	return true;
}

struct undo {
	struct stele_permit permit; /* first */
	const struct stele_claim *claim;
};

/*
 * Is it still what we found, or made of it? Without a turn of our own nobody else may
 * have one: who was refused has nothing to undo.
 */
static int is_ours(struct stele_permit *permit)
{
	const struct stele_claim *claim = ((struct undo *)permit)->claim;
	int ret = claim->dev->permit ? stele_intent_confirm(claim->dev) :
				       stele_intent_silent(claim->dev);

	if (ret < 0)
		return ret;
	if (!claim->touched)
		return check_unchanged(claim);
	return claim->size && claim->regular && holds_image(claim) ? -EEXIST : 0;
}

/* What says that we write lies at the front, and may have been a hole, too. */
static void give_back(struct stele_claim *claim, struct stele_permit *permit)
{
	int ret = announce(claim, STELE_DATA_OFFSET, claim->needed);

	if (ret || stele_device_unreserve_file(claim->dev, STELE_DATA_OFFSET,
					       claim->size, permit))
		return;
	stele_intent_end(claim->dev);
	stele_device_unreserve_file(claim->dev, 0, claim->size, permit);
}

static void log_lost(const struct stele_claim *claim)
{
	struct stele_image image;
	int ret = stele_image_probe(claim->dev, NULL, false, &image);

	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	if (*claim->lost)
		stele_log_error(&claim->log,
				"'%s' has lost the image that it held: %s",
				claim->path, claim->lost);
	/* Of a target that never held one, and got none. */
	if (ret != -EMEDIUMTYPE)
		stele_log_error(&claim->log,
				"'%s' is left with an unfinished image", claim->path);
}

/*
 * What was cut off holds nothing of ours; of anybody else's only what he has begun. A file
 * without data holds nothing at all: that is how it is left when memory runs out early.
 */
static bool is_left_over(struct stele_claim *claim)
{
	struct stele_image image;
	int ret;

	if (!stele_file_check_whole(claim->dev) &&
	    stele_guard_signatures(claim->dev, NULL, NULL) < 0)
		return false;
	if (stele_intent_silent(claim->dev) < 0)
		return false;
	ret = stele_image_probe(claim->dev, NULL, false, &image);
	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	return ret == -EMEDIUMTYPE;
}

static void undo(struct stele_claim *claim)
{
	struct undo ask = {{.check = is_ours}, claim};
	int ret;

	if (claim->created && claim->rbd)
		return; /* removed when it is closed */
	if (claim->beside) {
		if (!claim->keep && stele_file_is(claim->dev, claim->beside))
			stele_device_destroy(claim->beside, &claim->log);
		return;
	}
	ret = is_ours(&ask.permit);
	if (ret < 0 && ret != -EEXIST && !(claim->created && is_left_over(claim)))
		return; /* it is somebody else's by now */
	if (claim->created) {
		if (stele_file_is(claim->dev, claim->path))
			stele_device_destroy(claim->path, &claim->log);
		return;
	}
	if (claim->regular && !ret)
		give_back(claim, &ask.permit);
	if (claim->regular && !claim->size)
		return;
	if (claim->touched && claim->rbd && !claim->force)
		stele_claim_empty_rbd(claim, claim->size);
	else if (claim->touched)
		log_lost(claim);
}

void stele_claim_drop(struct stele_claim *claim, bool failed)
{
	stele_rbd_snaps_release(&claim->old_snaps);
	if (claim->dev && failed && !claim->dry)
		undo(claim);
	stele_intent_end(claim->dev);
	stele_device_close(claim->dev);
	claim->dev = NULL;
	stele_claim_release_beside(claim);
	if (failed && claim->created && claim->rbd && !claim->dry)
		stele_device_destroy(claim->path, &claim->log);
	claim->created = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_beside.c - a file that is overwritten keeps its content until the new one is durable
 *
 * The image is built in a file of its own in the same directory, which then takes the
 * name of the old one. That stays open, and locked, until then: no other writer comes
 * between; one whom no lock holds off, on another machine, is noticed before. Its readers
 * keep what they have open. If anything fails the new file goes, unless it is an unfinished
 * copy: that has a name which the same copy finds again. What else has that name is left
 * alone, and is in nobody's way; likewise what is the source, or in use, by another name. Other
 * names (hard links) of the old file keep its content; a symlink keeps leading to the name.
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"
#include "lib/base/error.h"
#include "lib/device/guard.h"
#include "lib/device/name.h"
#include "lib/device/rehearsal.h"
#include "lib/image/image.h"

#define TRACES_SIZE (UINT64_C(8) << 20) /* of what was written first, to look for them */

bool stele_claim_wants_beside(const struct stele_claim *claim)
{
	return claim->replace && claim->regular && claim->size &&
	       !claim->dev->dry && !stele_file_is_mounted_on(claim->dev);
}

/* Of what it is a copy; 0: it is none. */
static uint32_t tag_of(const struct stele_claim *claim)
{
	const uint8_t *d = claim->copy_of ? claim->copy_of->digest : NULL;

	return d ? (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 |
			   (uint32_t)d[2] << 8 | d[3] : 0;
}

/* ---- what has the name of an unfinished copy -------------------------------- */

enum left {
	LEFT_OTHER,   /* not known to be one */
	LEFT_DAMAGED, /* one that nobody can go on with, or there is nothing yet */
	LEFT_WHOLE,
};

static bool is_of_copy(const struct stele_claim *claim, uint64_t segment_id)
{
	const struct stele_snapshot *snapshot = claim->copy_of;

	for (uint32_t i = 0; i < snapshot->segment_count; i++)
		if (snapshot->segments[i].descriptor.id == segment_id)
			return true;
	return false;
}

/* An unfinished copy has segments of its source, and perhaps the snapshot, by any name. */
static bool holds_other(const struct stele_claim *claim, const struct stele_catalog *catalog)
{
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog_segment segment;

	for (uint32_t i = 0; i < catalog->counts.snapshots + catalog->counts.deleted; i++) {
		stele_catalog_snapshot(catalog, i, &snapshot);
		if (memcmp(snapshot.digest, claim->copy_of->digest, STELE_DIGEST_SIZE))
			return true;
	}
	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		stele_catalog_segment(catalog, i, &segment);
		if (!stele_catalog_is_tree(&segment) && !is_of_copy(claim, segment.id))
			return true;
	}
	return false;
}

/* Where no catalog tells: is a block there that only a segment of the source has? */
static bool has_traces(const struct stele_claim *claim)
{
	const uint64_t end = STELE_DATA_OFFSET + TRACES_SIZE;
	struct stele_disk_block *block = stele_device_alloc(claim->dev, STELE_BLOCK_SIZE);
	bool found = false;

	for (uint64_t at = STELE_DATA_OFFSET; block && !found && at < end;
	     at += STELE_BLOCK_SIZE) {
		if (stele_device_read(claim->dev, block, at, STELE_BLOCK_SIZE) < 0)
			break;
		found = le32_get(block->type) >= STELE_BLOCK_DESCRIPTOR &&
			le32_get(block->type) <= STELE_BLOCK_NAMES &&
			is_of_copy(claim, le64_get(block->owner)) &&
			!stele_block_check(block, le32_get(block->type), at,
					   le64_get(block->owner), NULL);
	}
	free(block);
	return found;
}

static enum left judge(const struct stele_claim *claim)
{
	struct stele_image image;
	bool other, whole;
	int ret = stele_image_load(claim->dev, NULL, &image);

	if (ret == -EINPROGRESS)
		return LEFT_DAMAGED;
	if (ret == -EMEDIUMTYPE) /* a file that is all hole holds nothing */
		return stele_guard_signatures(claim->dev, NULL, NULL) ? LEFT_OTHER :
									LEFT_DAMAGED;
	if (ret < 0)
		return has_traces(claim) ? LEFT_DAMAGED : LEFT_OTHER;
	other = holds_other(claim, &image.catalog);
	whole = !image.fork;
	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	if (other)
		return LEFT_OTHER;
	return whole ? LEFT_WHOLE : has_traces(claim) ? LEFT_DAMAGED : LEFT_OTHER;
}

#define LEFT_ALONE "it is left alone, and the new file gets another name"

/*
 * Is the source read from it, or does anybody use it, be it by a loop device? Then it is not
 * ours to write to, rename or remove, whatever it holds. Said.
 */
static bool is_in_use(const struct stele_claim *claim, const char *name)
{
	struct stele_log_held held;
	bool used;

	stele_log_hold(&held, &claim->log);
	used = stele_guard_in_use(name, &held.log) < 0;
	if (used)
		stele_log_warning(&claim->log, "%s; " LEFT_ALONE, held.last ? held.last : name);
	stele_log_end(&held, false);
	if (used || !claim->copy_from || !stele_file_shares(claim->copy_from, name))
		return used;
	stele_log_warning(&claim->log, "'%s' is the source itself, or overlaps it; " LEFT_ALONE,
			  name);
	return true;
}

/*
 * Go on with what the same copy has left, if that is whole; a damaged one is of no use. *left:
 * what is there of that name, and is not gone on with.
 */
static void resume(struct stele_claim *claim, char **left)
{
	struct stele_device *const replaced = claim->dev;
	enum left found = LEFT_OTHER;
	char *name;
	int ret;

	if (!tag_of(claim))
		return;
	name = stele_file_name_beside(claim->real, tag_of(claim));
	if (!name || is_in_use(claim, name)) {
		*left = name;
		return;
	}
	free(name);
	ret = stele_file_open_beside(claim->real, tag_of(claim), !claim->dry, claim->backend,
				     &claim->log, &claim->beside, &claim->dev);
	if (ret < 0 && ret != -EPERM)
		return;
	if (ret == 0) {
		found = judge(claim);
		claim->resumed = found == LEFT_WHOLE;
		if (claim->resumed)
			return;
		stele_device_close(claim->dev);
	}
	claim->dev = replaced;
	*left = claim->beside;
	claim->beside = NULL;
	if (found == LEFT_OTHER)
		stele_log_warning(&claim->log,
				  "'%s' is no unfinished copy of this snapshot: " LEFT_ALONE,
				  *left);
	else if (!claim->dry)
		stele_device_destroy(*left, &claim->log);
}

/* ---- the new file ------------------------------------------------------------ */

static int create(struct stele_claim *claim)
{
	int ret;

	if (claim->dry)
		return stele_rehearsal_create(claim->real, 0, 0, &claim->log,
					      &claim->dev);
	ret = stele_file_create_beside(claim->real, tag_of(claim), claim->backend,
				       &claim->log, &claim->beside, &claim->dev);
	if (ret != -EEXIST || !claim->copy_of)
		return ret;
	claim->copy_of = NULL; /* somebody else's: nothing to come back to */
	return stele_file_create_beside(claim->real, 0, claim->backend,
					&claim->log, &claim->beside, &claim->dev);
}

/* Sets claim->dev, unless it fails. */
static int open_beside(struct stele_claim *claim)
{
	char *left = NULL;

	resume(claim, &left);
	stele_file_warn_beside(claim->real, claim->path, left ? left : claim->beside, &claim->log);
	free(left);
	if (!claim->resumed)
		return create(claim);
	return claim->dry ? stele_rehearsal_open(claim->dev, &claim->dev) : 0;
}

static int log_irreplaceable(const struct stele_claim *claim, int error)
{
	stele_log_error(&claim->log, "cannot replace '%s': %s", claim->path,
			error == -ESTALE ? "somebody has changed it meanwhile, and keeps it" :
					   strerror(-error));
	return error;
}

int stele_claim_begin_beside(struct stele_claim *claim)
{
	struct stele_device *const replaced = claim->dev;
	int ret;

	claim->real = realpath(claim->path, NULL);
	ret = claim->real ? stele_file_may_replace(claim->real) : -errno;
	if (ret) /* better before all is written than after */
		return log_irreplaceable(claim, ret);
	ret = open_beside(claim);
	if (ret < 0) {
		stele_log_error(&claim->log,
				"cannot create a file beside '%s', to take its place: %s",
				claim->path, stele_error_describe(ret));
		claim->dev = replaced;
		return ret;
	}
	claim->replaced = replaced;
	claim->replaced_seen = claim->seen;
	claim->created = true;
	claim->ours = false;
	claim->size = 0;
	*claim->lost = '\0'; /* nothing is, until this takes its place, whole */
	return stele_copies_read(claim->dev, &claim->seen);
}

/* What was looked at in the beginning is what goes. */
static int check_replaced(const struct stele_claim *claim)
{
	struct stele_copies now;
	int ret = stele_copies_read(claim->replaced, &now);

	return ret < 0 ? ret : stele_copies_compare(&claim->replaced_seen, &now);
}

int stele_claim_finish(struct stele_claim *claim)
{
	int ret;

	if (!claim->beside)
		return claim->real ? 0 : stele_file_check_place(claim->dev);
	ret = stele_file_check_place(claim->dev);
	if (ret)
		return ret;
	ret = stele_file_adopt(claim->dev, claim->replaced);
	if (!ret)
		ret = check_replaced(claim);
	if (!ret)
		ret = stele_file_replace(claim->beside, claim->replaced, claim->real);
	if (ret)
		return log_irreplaceable(claim, ret);
	free(claim->beside);
	claim->beside = NULL;
	claim->created = false; /* it has a name that was there before */
	ret = stele_file_sync_directory(claim->real);
	if (ret)
		stele_log_error(&claim->log,
				"cannot make the new '%s' durable: %s",
				claim->path, strerror(-ret));
	return ret;
}

void stele_claim_release_beside(struct stele_claim *claim)
{
	stele_device_close(claim->replaced);
	claim->replaced = NULL;
	free(claim->beside);
	free(claim->real);
	claim->beside = claim->real = NULL;
}

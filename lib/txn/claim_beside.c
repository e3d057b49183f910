/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_beside.c - a file that is overwritten keeps its content until the new one is durable
 *
 * The image is built in a file of its own in the same directory, which then takes the
 * name of the old one. That stays open, and locked, until then: no other writer comes
 * between; one whom no lock holds off, on another machine, is noticed before. Its readers
 * keep what they have open. If anything fails the new file goes, unless it is an unfinished
 * copy: that has a name which the same copy finds again. Other names (hard links) of the
 * old file keep its content; a symlink keeps leading to the name.
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/name.h"
#include "lib/device/rehearsal.h"
#include "lib/image/image.h"

bool stele_claim_wants_beside(const struct stele_claim *claim)
{
	return claim->replace && claim->regular && claim->size &&
	       !claim->dev->dry && !stele_file_is_mounted_on(claim->dev);
}

/* Of what it is a copy; 0: it is none. */
static uint32_t tag_of(const struct stele_claim *claim)
{
	const uint8_t *d = claim->copy_of;

	return d ? (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 |
			   (uint32_t)d[2] << 8 | d[3] : 0;
}

/* Can a transaction begin on it? */
static bool is_whole(const struct stele_claim *claim)
{
	struct stele_image image;
	bool whole;

	if (stele_image_load(claim->dev, NULL, &image) < 0)
		return false;
	whole = !image.fork;
	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	return whole;
}

/* Go on with what the same copy has left, if that is whole; else it is of no use. */
static void resume(struct stele_claim *claim)
{
	struct stele_device *const replaced = claim->dev;

	if (!tag_of(claim) ||
	    stele_file_open_beside(claim->real, tag_of(claim), !claim->dry,
				   claim->backend, &claim->log, &claim->beside,
				   &claim->dev) < 0)
		return;
	claim->resumed = is_whole(claim);
	if (claim->resumed)
		return;
	stele_device_close(claim->dev);
	claim->dev = replaced;
	if (!claim->dry)
		stele_device_destroy(claim->beside, &claim->log);
	free(claim->beside);
	claim->beside = NULL;
}

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
	claim->real = realpath(claim->path, NULL);
	if (!claim->real)
		return -errno;
	resume(claim);
	stele_file_warn_beside(claim->real, claim->path, claim->beside, &claim->log);
	if (!claim->resumed)
		return create(claim);
	return claim->dry ? stele_rehearsal_open(claim->dev, &claim->dev) : 0;
}

int stele_claim_begin_beside(struct stele_claim *claim)
{
	struct stele_device *const replaced = claim->dev;
	int ret = open_beside(claim);

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
	if (ret) {
		stele_log_error(&claim->log, "cannot replace '%s': %s",
				claim->path,
				ret == -ESTALE ? "somebody has changed it "
						 "meanwhile, and keeps it" :
						 strerror(-ret));
		return ret;
	}
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

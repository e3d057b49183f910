/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_beside.c - a file that is overwritten keeps its content until the new one is durable
 *
 * The image is built in a file of its own in the same directory, which then takes the
 * name of the old one. That stays open, and locked, until then: no other writer comes
 * between; one whom no lock holds off, on another machine, is noticed before. Its readers
 * keep what they have open. If anything fails the new file goes. Other
 * names (hard links) of the old file keep its content; a symlink keeps leading to the name.
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/name.h"
#include "lib/device/rehearsal.h"

bool stele_claim_wants_beside(const struct stele_claim *claim)
{
	return claim->replace && claim->regular && claim->size &&
	       !claim->dev->dry && !stele_file_is_mounted_on(claim->dev);
}

static int create(struct stele_claim *claim, struct stele_device **dev)
{
	claim->real = realpath(claim->path, NULL);
	if (!claim->real)
		return -errno;
	stele_file_warn_beside(claim->real, claim->path, &claim->log);
	if (claim->dry)
		return stele_rehearsal_create(claim->real, 0, 0, &claim->log, dev);
	return stele_file_create_beside(claim->real, claim->backend, &claim->log,
					&claim->beside, dev);
}

int stele_claim_begin_beside(struct stele_claim *claim)
{
	struct stele_device *dev;
	int ret = create(claim, &dev);

	if (ret < 0) {
		stele_log_error(&claim->log,
				"cannot create a file beside '%s', to take its place: %s",
				claim->path, strerror(-ret));
		return ret;
	}
	claim->replaced = claim->dev;
	claim->replaced_seen = claim->seen;
	claim->dev = dev;
	claim->created = true;
	claim->ours = false;
	claim->size = 0;
	return stele_copies_read(dev, &claim->seen);
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
		return 0;
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

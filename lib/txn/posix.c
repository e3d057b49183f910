/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix.c - see posix.h
 */
#include "lib/txn/posix.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "lib/txn/intent.h"

/* Asked for a tree that it has: one that is damaged, or of no use here, is written anew. */
static int renew(struct stele_txn *txn)
{
	uint64_t differs;
	int ret = stele_posix_fits(txn->image) ? stele_posix_check(txn->image, &differs) :
						 -EOPNOTSUPP;

	if (ret == 0 || ret == -ENOMEM)
		return ret;
	stele_log_warning(&txn->log, "the tree of files %s, and %s written anew",
			  ret == -EOPNOTSUPP ? "has blocks that do not fit this device" :
					       "is damaged",
			  txn->dry ? "would be" : "is");
	txn->renew = true;
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

int stele_txn_set_posix(struct stele_txn *txn, bool on)
{
	int ret = on && txn->part_count ? renew(txn) : 0;

	if (ret < 0)
		return ret;
	if (txn->posix != on)
		txn->state = STELE_TXN_DIRTY;
	txn->takes |= on;
	txn->posix = on;
	return 0;
}

int stele_txn_publish_new(struct stele_txn *txn, int64_t time)
{
	const bool posix = txn->posix;
	int ret = posix ? stele_txn_set_posix(txn, false) : 0;

	if (ret == 0)
		ret = stele_txn_publish(txn, time);
	if (ret < 0 || !posix)
		return ret;
	ret = stele_txn_set_posix(txn, true);
	if (ret == 0)
		ret = stele_txn_publish(txn, time);
	if (ret < 0)
		stele_log_error(&txn->log, "the image is built, but cannot be mounted: %s",
				stele_error_describe(ret));
	return ret;
}

/* ---- after the commit ------------------------------------------------------------- */

/* What block 0 shall have. Return: 1 it has something else; 0; errno. */
static int compare_front(const struct stele_image *image, struct stele_disk_erofs_front *wanted)
{
	struct stele_disk_erofs_front now;
	struct stele_catalog_segment tree;
	int ret = stele_front_read(image->dev, &now);

	memset(wanted, 0, sizeof(*wanted));
	if (ret < 0)
		return ret;
	if (stele_posix_find(image, &tree))
		ret = stele_front_of_tree(image->dev, tree.offset, image->sb.uuid, wanted);
	else if (!stele_erofs_front_is_of(&now, image->sb.uuid))
		return 0;
	return ret < 0 ? ret : memcmp(&now, wanted, sizeof(now)) != 0;
}

bool stele_txn_is_shown(const struct stele_image *image)
{
	struct stele_disk_erofs_front wanted;

	return compare_front(image, &wanted) <= 0;
}

static int show(struct stele_image *image)
{
	struct stele_disk_erofs_front wanted;
	int ret = compare_front(image, &wanted);

	if (ret <= 0)
		return ret;
	ret = stele_intent_confirm(image->dev);
	return ret < 0 ? ret : stele_front_write(image->dev, &wanted);
}

int stele_txn_hide_tree(struct stele_device *dev)
{
	const struct stele_disk_erofs_front none = {0};
	struct stele_disk_erofs_front now;
	int ret = stele_front_read(dev, &now);

	if (ret < 0 || !stele_front_is_own(&now, NULL))
		return ret;
	return stele_front_write(dev, &none);
}

int stele_txn_show_tree(struct stele_txn *txn)
{
	int ret = show(txn->image);

	/* It is derived, and no reason to refuse a change: that writes another one. */
	if (ret == -EUCLEAN && txn->state != STELE_TXN_PUBLISHING) {
		stele_log_warning(&txn->image->log,
				  "the tree of files is damaged; the next change writes it "
				  "anew, or drops it");
		return 0;
	}
	/* Nor is it one to call a commit that is durable failed. */
	if (ret < 0 && ret != -ESTALE && txn->state == STELE_TXN_PUBLISHING) {
		stele_log_warning(&txn->image->log,
				  "the change is made, but block 0 cannot show its tree of files, "
				  "so it cannot be mounted: %s; the next change tries again",
				  stele_error_describe(ret));
		return 0;
	}
	if (ret < 0)
		stele_log_error(&txn->image->log,
				"block 0 cannot show the tree of files: %s",
				stele_error_describe(ret));
	return ret;
}

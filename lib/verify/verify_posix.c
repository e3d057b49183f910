/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_posix.c - the tree of files, and block 0
 *
 * A tree has no checksums: it is made anew, and compared. One that is not in use any more
 * is what somebody may still have mounted, and cannot be.
 */
#include <errno.h>

#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "lib/verify/check.h"

static void check_front(struct stele_check *check, const struct stele_catalog_segment *tree)
{
	const uint8_t *uuid = check->image->sb.uuid;
	struct stele_disk_erofs_front wanted, seen;
	int ret = stele_front_of_tree(check->image->dev, tree->offset, uuid, &wanted);

	if (ret == 0)
		ret = stele_front_read(check->image->dev, &seen);
	if (ret < 0)
		stele_check_report(check, ret, "tree", tree->offset, STELE_BLOCK_SIZE,
				   "no superblock of this image");
	else if (memcmp(&wanted, &seen, sizeof(seen)))
		stele_check_report(check, 0, "block 0", 0, STELE_BLOCK_SIZE,
				   "does not show the tree of files; the next writer "
				   "puts it right");
}

int stele_verify_posix(struct stele_check *check, const struct stele_catalog_segment *tree)
{
	uint64_t differs;
	int ret;

	if (tree->unused_since)
		return 0;
	ret = check->segments_broken ? 0 : stele_posix_check(check->image, &differs);
	if (ret == -ENOMEM)
		return ret;
	if (ret < 0)
		stele_check_report(check, ret, "tree", differs, STELE_BLOCK_SIZE,
				   "not what the snapshots make");
	check_front(check, tree);
	return stele_check_progress(check, tree->size, tree->size / STELE_BLOCK_SIZE, 0);
}

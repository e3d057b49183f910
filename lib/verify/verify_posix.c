/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_posix.c - the tree of files, and block 0
 *
 * A tree has no checksums: each of its parts is made anew, and compared. What is not in use
 * any more is what somebody may still have mounted, and cannot be.
 */
#include <errno.h>

#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "lib/verify/check.h"

static void check_front(struct stele_check *check, const struct stele_catalog_segment *root)
{
	const uint8_t *uuid = check->image->sb.uuid;
	struct stele_disk_erofs_front wanted, seen;
	int ret = stele_front_of_tree(check->image->dev, root->offset, uuid, &wanted);

	if (ret == 0)
		ret = stele_front_read(check->image->dev, &seen);
	if (ret < 0)
		stele_check_report(check, ret, "tree", root->offset, STELE_BLOCK_SIZE,
				   "no superblock of this image");
	else if (memcmp(&wanted, &seen, sizeof(seen)))
		stele_check_report(check, 0, "block 0", 0, STELE_BLOCK_SIZE,
				   "does not show the tree of files; the next writer "
				   "puts it right");
}

static void report(struct stele_check *check, int error, uint64_t offset)
{
	stele_check_report(check, error, "tree", offset, STELE_BLOCK_SIZE,
			   "not what the snapshots make");
}

static int check_part(struct stele_check *check, struct stele_posix_shown *shown,
		      const struct stele_catalog_segment *part)
{
	uint64_t differs;
	int ret = stele_posix_shown_check(shown, part, &differs);

	if (ret == -ENOMEM)
		return ret;
	if (ret < 0)
		report(check, ret, differs);
	return stele_check_progress(check, part->size, part->size / STELE_BLOCK_SIZE, 0);
}

static int check_parts(struct stele_check *check, const struct stele_catalog_segment *root)
{
	struct stele_posix_shown shown;
	int ret = stele_posix_shown_load(check->image, &shown);

	if (ret < 0 && ret != -ENOMEM) {
		report(check, ret, root->offset);
		ret = 0;
	} else {
		for (uint32_t i = 0; ret == 0 && i < shown.tree.segment_count; i++)
			if (stele_posix_is_part(&shown.segments[i]))
				ret = check_part(check, &shown, &shown.segments[i]);
	}
	stele_posix_shown_release(&shown);
	return ret;
}

int stele_verify_posix(struct stele_check *check)
{
	struct stele_catalog_segment root;
	int ret = 0;

	if (!stele_posix_find(check->image, &root))
		return 0;
	if (!check->segments_broken)
		ret = check_parts(check, &root);
	if (ret < 0)
		return ret;
	check_front(check, &root);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix.c - see posix.h
 */
#include "lib/txn/posix.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "lib/posix/tree.h"
#include "lib/txn/intent.h"

/* Asked for a tree that it has: one that is damaged, or of no use here, is written anew. */
static int renew(struct stele_txn *txn)
{
	uint64_t differs;
	int ret = stele_posix_fits(txn->image) ? stele_posix_check(txn->image, &differs) :
						 -EOPNOTSUPP;

	if (ret == 0 || ret == -ENOMEM)
		return ret;
	txn->tree_id = 0;
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

int stele_txn_set_posix(struct stele_txn *txn, bool on)
{
	int ret = on && txn->tree_id ? renew(txn) : 0;

	if (ret < 0)
		return ret;
	if (txn->posix != on)
		txn->state = STELE_TXN_DIRTY;
	txn->takes |= on;
	txn->posix = on;
	return 0;
}

/* ---- before the commit --------------------------------------------------------- */

/* Of one commit that failed, or of a rehearsal. */
static void drop_unpublished(struct stele_txn *txn)
{
	for (uint32_t i = txn->segment_count; i-- > 0;) {
		const struct stele_catalog_segment *s = &txn->segments[i];

		if (stele_catalog_is_tree(s) && s->id != txn->tree_id &&
		    !stele_txn_is_committed(txn, s->id))
			stele_txn_drop_segment(txn, s->id);
	}
}

static bool shows_ref(const struct stele_txn *txn, const struct stele_txn_ref *now,
		      const struct stele_catalog_ref *then)
{
	struct stele_catalog_segment segment;

	stele_catalog_segment(&txn->image->catalog, then->segment, &segment);
	return segment.id == now->segment_id &&
	       !memcmp(then->lists, now->at.lists, sizeof(then->lists));
}

static bool shows_snapshot(const struct stele_txn *txn, uint32_t index)
{
	const struct stele_txn_snapshot *now = &txn->snapshots[index];
	struct stele_catalog_snapshot then;
	struct stele_catalog_ref ref;

	stele_catalog_snapshot(&txn->image->catalog, index, &then);
	if (strcmp(now->info.name, then.name) || now->info.time != then.time ||
	    now->info.ref_count != then.ref_count)
		return false;
	for (uint32_t i = 0; i < then.ref_count; i++) {
		stele_catalog_ref(&txn->image->catalog, then.first_ref + i, &ref);
		if (!shows_ref(txn, &now->refs[i], &ref))
			return false;
	}
	return true;
}

/* Can block 0 be made from the tree that is there? */
static bool has_front(const struct stele_image *image)
{
	struct stele_disk_erofs_front front;
	struct stele_catalog_segment tree;

	return stele_posix_find(image, &tree) &&
	       stele_front_of_tree(image->dev, tree.offset, image->sb.uuid, &front) == 0;
}

/* Does the tree that is there show what the next generation has? */
static bool is_current(const struct stele_txn *txn)
{
	if (!txn->tree_id || txn->snapshot_count != txn->image->catalog.counts.snapshots ||
	    !has_front(txn->image))
		return false;
	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		if (!shows_snapshot(txn, i))
			return false;
	return true;
}

/* The lists of the tree: what they refer to is the transaction's. */
static int fill_snapshots(const struct stele_txn *txn, const uint32_t *by_id,
			  struct stele_posix_snapshot *out, struct stele_catalog_ref *refs)
{
	for (uint32_t i = 0; i < txn->snapshot_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];

		out[i] = (struct stele_posix_snapshot){
			.name = s->info.name,
			.time = s->info.time,
			.refs = refs,
			.ref_count = s->info.ref_count,
		};
		for (uint32_t j = 0; j < s->info.ref_count; j++, refs++) {
			*refs = s->refs[j].at;
			if (!stele_txn_index_of(txn, by_id, s->refs[j].segment_id,
						&refs->segment))
				return -EINVAL;
		}
	}
	return 0;
}

static uint64_t count_refs(const struct stele_txn *txn)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		count += txn->snapshots[i].info.ref_count;
	return count;
}

static void log_left_out(const struct stele_txn *txn, const struct stele_posix_tree *tree)
{
	const bool one = tree->left_out == 1;

	if (tree->left_out)
		stele_log_warning(&txn->image->log,
				  "%" PRIu64 " sample%s cannot be %s, such as '%s': mounted, "
				  "the image lacks %s",
				  tree->left_out, one ? "" : "s", one ? "a file" : "files",
				  tree->first_left_out, one ? "it" : "them");
}

/* By the generation that it is of: same image, same bytes. */
static uint64_t tree_id(const struct stele_txn *txn)
{
	uint64_t id = txn->image->generation_max + 1;

	while (!id || id == STELE_OWNER_ANY || stele_txn_segment(txn, id))
		id += UINT64_C(1) << 32;
	return id;
}

/* One that came with the image, to a device that no kernel can mount it on. */
static bool is_left_out(struct stele_txn *txn, const struct stele_posix_tree *tree)
{
	const uint32_t block = UINT32_C(1) << tree->block_bits;
	const uint32_t block_min = stele_posix_block_min(txn->image->dev);

	if (block >= block_min)
		return false;
	stele_log_warning(&txn->image->log,
			  "the image is no EROFS any more: no kernel can mount one with blocks of "
			  "%u bytes on this device, which has %u", block, block_min);
	txn->posix = false;
	return true;
}

static int write_tree(struct stele_txn *txn, struct stele_posix_tree *tree)
{
	struct stele_catalog_segment segment = {0};
	int ret = stele_posix_tree_plan(tree);

	if (ret == 0 && is_left_out(txn, tree))
		return 0;
	segment.size = tree->size;
	if (ret == 0)
		ret = stele_txn_allocate_again(txn, segment.size, &segment.offset);
	if (ret == 0)
		ret = stele_device_log_full(txn->image->dev, &txn->image->log, "the tree of files",
					    stele_posix_tree_write(tree, segment.offset));
	if (ret < 0)
		return ret;
	log_left_out(txn, tree);
	segment.id = tree_id(txn);
	ret = stele_txn_add_segment(txn, &segment);
	if (ret == 0)
		txn->tree_id = segment.id;
	return ret;
}

int stele_txn_prepare_tree(struct stele_txn *txn)
{
	struct stele_posix_tree tree = {.image = txn->image};
	struct stele_posix_snapshot *snapshots;
	struct stele_catalog_ref *refs;
	uint32_t *by_id = NULL;
	int ret;

	drop_unpublished(txn);
	if (txn->posix && is_current(txn))
		return 0;
	/* Of one that came with the image: nothing is refused that the user did not ask for. */
	tree.block_min = txn->tree_id && !stele_posix_fits(txn->image) ?
				 STELE_POSIX_GRANULE_MIN :
				 stele_posix_block_min(txn->image->dev);
	txn->tree_id = 0;
	if (!txn->posix)
		return 0;
	snapshots = calloc((size_t)txn->snapshot_count + 1, sizeof(*snapshots));
	refs = calloc(count_refs(txn) + 1, sizeof(*refs));
	ret = snapshots && refs ? stele_txn_sort_ids(txn, &by_id) : -ENOMEM;
	if (ret == 0)
		ret = fill_snapshots(txn, by_id, snapshots, refs);
	tree.segments = txn->segments;
	tree.segment_count = txn->segment_count;
	tree.snapshots = snapshots;
	tree.snapshot_count = txn->snapshot_count;
	if (ret == 0)
		ret = write_tree(txn, &tree);
	stele_posix_tree_release(&tree);
	free(by_id);
	free(refs);
	free(snapshots);
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

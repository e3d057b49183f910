/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - see tree.h
 */
#include "lib/txn/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/posix/shown.h"

/* What the next generation shall show. */
struct next_tree {
	struct stele_txn *txn;
	struct stele_posix_tree tree;
	struct stele_posix_snapshot *snapshots; /* owned, and what they refer to */
	struct stele_catalog_ref *refs;		/* owned */
	struct stele_catalog_segment *parts;	/* owned: written anew, not in the catalog yet */
	uint32_t part_count;
	uint64_t id; /* of the last part */
};

/* ---- what is there ------------------------------------------------------------ */

/* Does the device's catalog have it, at the same place? */
static bool is_there(const struct stele_txn *txn, const struct stele_catalog_segment *segment)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	struct stele_catalog_segment then;
	uint32_t low = 0, high = catalog->counts.segments;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		stele_catalog_segment(catalog, middle, &then);
		if (then.offset == segment->offset)
			return then.id == segment->id;
		if (then.offset < segment->offset)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

void stele_txn_undo_tree(struct stele_txn *txn)
{
	txn->part_count = 0;
	for (uint32_t i = txn->segment_count; i-- > 0;) {
		const struct stele_catalog_segment *s = &txn->segments[i];

		if (stele_catalog_is_tree(s) && !is_there(txn, s))
			stele_txn_drop_segment(txn, s->id);
	}
	stele_txn_load_parts(txn);
}

static bool shows_ref(const struct stele_txn *txn, const struct stele_txn_ref *now,
		      const struct stele_catalog_ref *then)
{
	struct stele_catalog_segment segment;

	stele_catalog_segment(&txn->image->catalog, then->segment, &segment);
	return segment.id == now->segment_id &&
	       !memcmp(then->lists, now->at.lists, sizeof(then->lists));
}

/* The same directories, whatever its name? */
static bool shows_snapshot(const struct stele_txn *txn, const struct stele_txn_snapshot *now,
			   const struct stele_catalog_snapshot *then)
{
	struct stele_catalog_ref ref;

	if (now->info.id != then->id || now->info.time != then->time ||
	    now->info.ref_count != then->ref_count)
		return false;
	for (uint32_t i = 0; i < then->ref_count; i++) {
		stele_catalog_ref(&txn->image->catalog, then->first_ref + i, &ref);
		if (!shows_ref(txn, &now->refs[i], &ref))
			return false;
	}
	return true;
}

/* Does the tree that is there show what the next generation has? */
static bool is_current(const struct stele_txn *txn)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	struct stele_catalog_snapshot then;

	if (txn->snapshot_count != catalog->counts.snapshots ||
	    !stele_posix_block_bits(txn->image))
		return false;
	for (uint32_t i = 0; i < txn->snapshot_count; i++) {
		const struct stele_txn_snapshot *now = &txn->snapshots[i];

		stele_catalog_snapshot(catalog, i, &then);
		if (strcmp(now->info.name, then.name) || !shows_snapshot(txn, now, &then))
			return false;
	}
	return true;
}

/* ---- what it shall show --------------------------------------------------------- */

static uint64_t count_refs(const struct stele_txn *txn)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		count += txn->snapshots[i].info.ref_count;
	return count;
}

/* The lists of the tree: what they refer to is the transaction's. */
static int fill_snapshots(struct next_tree *next, const uint32_t *by_id)
{
	const struct stele_txn *txn = next->txn;
	struct stele_catalog_ref *refs = next->refs;

	for (uint32_t i = 0; i < txn->snapshot_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];

		next->snapshots[i] = (struct stele_posix_snapshot){
			.name = s->info.name,
			.id = s->info.id,
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

static int fill(struct next_tree *next)
{
	const struct stele_txn *txn = next->txn;
	uint32_t *by_id = NULL;
	int ret = stele_txn_sort_ids(txn, &by_id);

	next->snapshots = calloc((size_t)txn->snapshot_count + 1, sizeof(*next->snapshots));
	next->refs = calloc(count_refs(txn) + 1, sizeof(*next->refs));
	next->parts = calloc((size_t)txn->segment_count + txn->snapshot_count + 1,
			     sizeof(*next->parts));
	if (ret == 0)
		ret = stele_txn_room_for_parts(next->txn);
	if (!next->snapshots || !next->refs || !next->parts)
		ret = -ENOMEM;
	if (ret == 0)
		ret = fill_snapshots(next, by_id);
	free(by_id);
	next->tree.segments = txn->segments;
	next->tree.segment_count = txn->segment_count;
	next->tree.snapshots = next->snapshots;
	next->tree.snapshot_count = txn->snapshot_count;
	return ret;
}

static void release(struct next_tree *next)
{
	stele_posix_tree_release(&next->tree);
	free(next->parts);
	free(next->refs);
	free(next->snapshots);
}

/* ---- parts that stay ------------------------------------------------------------- */

/* The index-th one, with all files that it leads to? */
static bool stays(const struct next_tree *next, uint32_t index,
		  const struct stele_catalog_snapshot *then)
{
	const struct stele_posix_snapshot *s = &next->snapshots[index];

	for (uint32_t i = 0; i < s->ref_count; i++)
		if (!stele_posix_tree_is_placed(&next->tree, STELE_PART_FILES,
						s->refs[i].segment))
			return false;
	return shows_snapshot(next->txn, &next->txn->snapshots[index], then);
}

static bool is_right(const struct next_tree *next, const struct stele_catalog_segment *part)
{
	struct stele_catalog_snapshot then;
	uint32_t index;

	if (!stele_posix_tree_find(&next->tree, part, &index))
		return false;
	/* A segment that was dropped, and is there again, may be elsewhere. */
	if (part->part == STELE_PART_FILES)
		return is_there(next->txn, &next->tree.segments[index]);
	if (!stele_catalog_find_snapshot(&next->txn->image->catalog, part->of, &then))
		return false;
	return stays(next, index, &then);
}

/* Of what is in use those that are of this kind, and still right. */
static void keep(struct next_tree *next, enum stele_catalog_part kind)
{
	const struct stele_catalog *catalog = &next->txn->image->catalog;
	struct stele_catalog_segment part;

	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		stele_catalog_segment(catalog, i, &part);
		if (part.part != kind || part.unused_since || !is_right(next, &part))
			continue;
		stele_posix_tree_place(&next->tree, &part);
		stele_txn_add_part(next->txn, part.id);
	}
}

/* ---- parts that are written ---------------------------------------------------------- */

/* By the generation, and the order in which they are written: same image, same bytes. */
static uint64_t next_id(struct next_tree *next)
{
	uint64_t id = next->id ? next->id + (UINT64_C(1) << 32) :
				 next->txn->image->generation_max + 1;

	while (!id || id == STELE_OWNER_ANY || stele_txn_segment(next->txn, id))
		id += UINT64_C(1) << 32;
	return next->id = id;
}

static int write_part(struct next_tree *next, enum stele_catalog_part kind, uint32_t index)
{
	struct stele_catalog_segment *part = &next->parts[next->part_count];
	struct stele_txn *txn = next->txn;
	int ret = stele_posix_part_plan(&next->tree, kind, index, part);

	/* A next generation that only gives back has but the root anew. */
	if (ret == 0)
		ret = stele_txn_allocate_again(txn, part->size,
					       kind == STELE_PART_ROOT ? part->size : 0,
					       &part->offset);
	if (ret == 0)
		ret = stele_device_log_full(txn->image->dev, &txn->image->log, "the tree of files",
					    stele_posix_part_write(&next->tree, part));
	if (ret < 0)
		return ret;
	part->id = next_id(next);
	next->part_count++;
	stele_posix_tree_place(&next->tree, part);
	return 0;
}

static int write_parts(struct next_tree *next)
{
	const struct stele_posix_tree *tree = &next->tree;
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < tree->segment_count; i++)
		if (stele_posix_tree_has_files(tree, i) &&
		    !stele_posix_tree_is_placed(tree, STELE_PART_FILES, i))
			ret = write_part(next, STELE_PART_FILES, i);
	for (uint32_t i = 0; ret == 0 && i < tree->snapshot_count; i++)
		if (!stele_posix_tree_is_placed(tree, STELE_PART_DIRECTORIES, i))
			ret = write_part(next, STELE_PART_DIRECTORIES, i);
	return ret < 0 ? ret : write_part(next, STELE_PART_ROOT, 0);
}

/* Only now: the table that the tree refers to moves. */
static int add_parts(struct next_tree *next)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < next->part_count; i++) {
		ret = stele_txn_add_segment(next->txn, &next->parts[i]);
		if (ret == 0)
			stele_txn_add_part(next->txn, next->parts[i].id);
	}
	return ret;
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

static void log_smaller(const struct stele_txn *txn, const struct stele_posix_tree *tree)
{
	stele_log_warning(&txn->image->log,
			  "a granule of %u comes to the tree of files, so all of it is written "
			  "anew with blocks of %u bytes, which Linux mounts since 6.4",
			  UINT32_C(1) << tree->block_bits, UINT32_C(1) << tree->block_bits);
}

static int make(struct next_tree *next)
{
	const uint32_t bits = next->tree.block_bits;
	int ret = stele_posix_tree_plan(&next->tree);

	if (ret < 0 || is_left_out(next->txn, &next->tree))
		return ret;
	if (next->tree.block_bits == bits) {
		keep(next, STELE_PART_FILES);
		keep(next, STELE_PART_DIRECTORIES);
	} else if (bits && next->txn->image->catalog.counts.snapshots) {
		log_smaller(next->txn, &next->tree);
	}
	ret = write_parts(next);
	if (ret < 0)
		return ret;
	log_left_out(next->txn, &next->tree);
	return add_parts(next);
}

int stele_txn_prepare_tree(struct stele_txn *txn)
{
	struct next_tree next = {.txn = txn, .tree.image = txn->image};
	bool fits, had;
	int ret;

	stele_txn_undo_tree(txn);
	had = txn->part_count && !txn->renew;
	if (txn->posix && had && is_current(txn))
		return 0;
	txn->part_count = 0;
	if (!txn->posix)
		return 0;
	/* Of one that came with the image: nothing is refused that the user did not ask for. */
	fits = had && stele_posix_fits(txn->image);
	next.tree.block_min = had && !fits ? STELE_POSIX_GRANULE_MIN :
					     stele_posix_block_min(txn->image->dev);
	next.tree.block_bits = fits ? stele_posix_block_bits(txn->image) : 0;
	ret = fill(&next);
	if (ret == 0)
		ret = make(&next);
	/* Of any snapshot, perhaps not of those that the change is about. */
	if (ret == -EBADMSG || ret == -EUCLEAN)
		stele_log_error(&txn->image->log,
				"without what is damaged, the tree of files cannot be made");
	release(&next);
	return ret;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit.c - how an image changes: begin, deleted lists, commit
 *
 * Order is everything. What a superblock references is durable, and has been
 * read back, before that superblock is written; the superblock goes over the
 * slot that recovery would not select; and nobody is told before it is
 * durable. Both copies of a slot are written in one flush epoch: recovery
 * takes either, and until one of them is whole the other slot. Before each copy
 * all of them are read again: who finds others than he knows writes none.
 */
#include "lib/image/image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "format/run.h"
#include "format/sections.h"
#include "lib/device/name.h"
#include "lib/image/catalog.h"
#include "lib/image/copies.h"
#include "lib/image/deleted.h"
#include "lib/image/fork.h"
#include "lib/image/lists.h"
#include "lib/txn/intent.h"
#include "lib/txn/posix.h"

static int check_begin(struct stele_device *dev, const struct stele_log *log,
		       uint64_t image_size)
{
	uint64_t target_size;
	int ret;

	if (image_size <= STELE_DATA_OFFSET ||
	    image_size > STELE_IMAGE_SIZE_MAX ||
	    !is_aligned(image_size, STELE_BLOCK_SIZE))
		return -EINVAL;
	ret = stele_device_size(dev, &target_size);
	if (ret == 0 && target_size < image_size) {
		stele_log_error(log,
				"the image takes %" PRIu64
				" bytes, its target has %" PRIu64,
				image_size, target_size);
		ret = -ENOSPC;
	}
	return ret;
}

/* The slot that recovery would take, were it to look at what is there now. */
static unsigned int newest_slot(const struct stele_copies *copies)
{
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		if (copies->copy[i].error == 0 &&
		    copies->copy[i].sb.generation == copies->generation_max)
			return i % 2;
	return 0;
}

/*
 * Both copies of a slot, unless somebody else has published or begun to write. The
 * second look keeps a late writer from the mirror, where the other's superblock is.
 */
static int write_slot(struct stele_image *image, unsigned int slot,
		      const struct stele_superblock *sb, void *block)
{
	struct stele_copies now;
	int ret = stele_device_check(image->dev); /* still the one who may? */

	for (unsigned int i = slot; ret == 0 && i < STELE_SUPERBLOCK_COPIES;
	     i += 2) {
		if (image->copies.copy[i].error == 0 &&
		    stele_superblock_same(&image->copies.copy[i].sb, sb))
			continue;
		ret = stele_intent_confirm(image->dev);
		if (ret == 0)
			ret = stele_image_check_fresh(image, &now);
		if (ret == 0)
			ret = stele_copies_write(image->dev, i, sb, block);
		if (ret < 0)
			break;
		image->copies.copy[i].error = 0;
		image->copies.copy[i].sb = *sb;
	}
	return ret;
}

/*
 * The older slot first: cut short, the older image is found at its newest
 * generation, or not at all. It may not be durable yet, see stele_txn_attach().
 */
static int write_unfinished(struct stele_image *image)
{
	const struct stele_superblock *sb = &image->sb;
	struct stele_device *dev = image->dev;
	unsigned int last;
	void *block;
	int ret;

	ret = stele_device_flush(dev);
	if (ret == 0)
		ret = stele_copies_read(dev, &image->copies);
	if (ret < 0)
		return ret;
	last = newest_slot(&image->copies);
	block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	ret = write_slot(image, !last, sb, block);
	if (ret == 0)
		ret = stele_device_flush(dev);
	if (ret == 0)
		ret = write_slot(image, last, sb, block);
	if (ret == 0)
		ret = stele_device_flush(dev);
	if (ret == 0)
		ret = stele_copies_read_back(dev, 0, sb, block);
	if (ret == 0)
		ret = stele_copies_read_back(dev, 1, sb, block);
	free(block);
	return ret;
}

int stele_image_begin(struct stele_device *dev, const struct stele_log *log,
		      const struct stele_superblock *sb,
		      struct stele_image *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	ret = check_begin(dev, log, sb->image_size);
	if (ret < 0)
		return ret;
	out->sb.state = STELE_STATE_UNFINISHED;
	memcpy(out->sb.uuid, sb->uuid, sizeof(sb->uuid));
	memcpy(out->sb.label, sb->label, sizeof(sb->label));
	out->sb.image_size = sb->image_size;
	out->sb.high_water = STELE_DATA_OFFSET;
	out->sb.create_time = sb->create_time;
	out->dev = dev;
	if (log)
		out->log = *log;
	ret = write_unfinished(out);
	if (ret == 0)
		ret = stele_txn_hide_tree(dev);
	if (ret < 0) {
		memset(out, 0, sizeof(*out));
		return ret;
	}
	out->generation_max = stele_intent_floor(dev);
	out->copies_good = STELE_SUPERBLOCK_COPIES;
	return 0;
}

/* Who does not know a ro_compat feature must not write; nor do we know signatures. */
int stele_image_check_writable(const struct stele_image *image)
{
	const uint64_t unknown = image->sb.feature_ro_compat & ~STELE_RO_COMPAT_SUPPORTED;

	if (image->fork && image->fork->lost) {
		stele_log_error(&image->log,
				"generation %" PRIu64 " was published, but its catalog is "
				"damaged: nothing is changed before 'stele repair' has "
				"chosen what to build on",
				image->fork->lost);
		return -ENOTUNIQ;
	}
	if (image->fork) {
		stele_log_error(&image->log,
				"two writers have published at once: nothing "
				"is changed before 'stele repair' has resolved it");
		return -ENOTUNIQ;
	}
	if (unknown)
		stele_log_error(&image->log,
				"unsupported ro_compat features 0x%" PRIx64
				"; image is read-only",
				unknown);
	else if (image->catalog.counts.signatures)
		stele_log_error(&image->log,
				"snapshots are signed, and this version cannot "
				"carry signatures along; image is read-only");
	else
		return 0;
	return -EOPNOTSUPP;
}

static bool is_whole(const struct stele_image *image, unsigned int index)
{
	const struct stele_copy *copy = &image->copies.copy[index];

	return copy->error == 0 && stele_superblock_same(&copy->sb, &image->sb);
}

unsigned int stele_image_wrong_copies(const struct stele_image *image)
{
	const struct stele_copy *old = &image->copies.copy[!image->slot];
	unsigned int wrong = (old[0].error < 0) + (old[2].error < 0);

	if (!wrong && !stele_superblock_same(&old[0].sb, &old[2].sb))
		wrong = 1;
	for (unsigned int i = image->slot; i < STELE_SUPERBLOCK_COPIES; i += 2)
		wrong += !is_whole(image, i);
	return wrong;
}

static bool is_wrong_place(const struct stele_image *image, const struct stele_superblock *sb)
{
	struct stele_catalog catalog;
	const char *why;
	void *blocks;
	int ret = stele_catalog_load_place(image->dev, sb, &blocks, &catalog, &why);

	free(blocks);
	return stele_error_of_blocks(image->dev, ret);
}

unsigned int stele_image_wrong_catalogs(const struct stele_image *image)
{
	const struct stele_copy *old = &image->copies.copy[!image->slot];
	const struct stele_superblock *sb = &image->sb;
	struct stele_superblock mirrored;
	unsigned int wrong = 0;

	if (sb->state != STELE_STATE_READY)
		return 0;
	wrong += is_wrong_place(image, sb);
	if (stele_superblock_mirrored(sb, &mirrored))
		wrong += is_wrong_place(image, &mirrored);
	else
		wrong += (sb->feature_incompat & STELE_FEATURE_MIRROR) &&
			 sb->catalog_size <= STELE_CATALOG_MIRROR_SIZE;
	if (old->error == 0 && old->sb.state == STELE_STATE_READY &&
	    !memcmp(old->sb.uuid, sb->uuid, sizeof(sb->uuid)))
		wrong += is_wrong_place(image, &old->sb);
	return wrong;
}

/* Not over what is newer, and was passed over: that may be read again one day. */
static int heal(struct stele_image *image)
{
	void *block;
	int ret;

	if (image->copies.generation_max > image->sb.generation ||
	    (is_whole(image, image->slot) && is_whole(image, image->slot + 2)))
		return 0;
	block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	ret = write_slot(image, image->slot, &image->sb, block);
	if (ret == 0)
		ret = stele_device_flush(image->dev);
	if (ret == 0)
		ret = stele_copies_read_back(image->dev, image->slot,
					     &image->sb, block);
	free(block);
	return ret;
}

int stele_image_announce(struct stele_image *image)
{
	int ret = stele_image_check_writable(image);
	uint64_t floor;

	if (ret == 0)
		ret = stele_intent_begin(image->dev, &image->log,
					 image->generation_max);
	floor = stele_intent_floor(image->dev);
	if (image->generation_max < floor)
		image->generation_max = floor;
	return ret < 0 ? ret : heal(image);
}

static void *alloc_zeroed(const struct stele_image *image, uint64_t size)
{
	void *data = stele_device_alloc(image->dev, size);

	if (data)
		memset(data, 0, size);
	return data;
}

uint64_t stele_image_deleted_size(uint64_t count)
{
	return stele_deleted_blocks(count) * STELE_BLOCK_SIZE;
}

int stele_image_write_deleted(struct stele_image *image, uint64_t offset,
			      const struct stele_deleted *deleted,
			      struct stele_catalog_list *out)
{
	const uint64_t count = deleted->word_count;
	const uint64_t generation = image->generation_max + 1;
	const uint64_t size = stele_image_deleted_size(count);
	struct stele_disk_block *blocks;
	int ret;

	if (count == 0)
		return -EINVAL;
	blocks = alloc_zeroed(image, size);
	if (!blocks)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		stele_deleted_put(blocks, i, deleted->words[i].index,
				  deleted->words[i].bits);
	stele_blocks_seal(blocks, size / STELE_BLOCK_SIZE, STELE_BLOCK_DELETED,
			  offset, generation);
	ret = stele_device_write(image->dev, blocks, offset, size);
	free(blocks);
	if (ret < 0)
		return ret;
	*out = (struct stele_catalog_list){offset, count, generation};
	return 0;
}

uint64_t stele_image_commit_size(const struct stele_catalog_draft *draft)
{
	uint64_t size = stele_catalog_stream_size(&draft->counts);

	return stele_stream_blocks(size) * STELE_BLOCK_SIZE;
}

static void encode_catalog(const struct stele_catalog_draft *draft,
			   const struct stele_superblock *sb,
			   struct stele_disk_block *blocks)
{
	const struct stele_catalog_counts *counts = &draft->counts;

	stele_catalog_begin(blocks, counts, draft->next_snapshot_id);
	for (uint32_t i = 0; i < counts->segments; i++)
		stele_catalog_put_segment(blocks, counts, i,
					  &draft->segments[i]);
	for (uint32_t i = 0; i < counts->snapshots + counts->deleted; i++)
		stele_catalog_put_snapshot(blocks, counts, i,
					   &draft->snapshots[i]);
	for (uint32_t i = 0; i < counts->refs; i++)
		stele_catalog_put_ref(blocks, counts, i, &draft->refs[i]);
	for (uint32_t i = 0; i < counts->free; i++)
		stele_catalog_put_free(blocks, counts, i, &draft->free[i]);
	if (counts->notes_size)
		stele_catalog_put_notes(blocks, counts, draft->notes);
	stele_catalog_end(blocks, counts, sb->catalog_offset, sb->generation);
}

/* The superblock of the next generation, but for the catalog's checksum, and its mirror. */
static void next_superblock(const struct stele_image *image,
			    const struct stele_catalog_draft *draft,
			    uint64_t catalog_size, struct stele_superblock *next)
{
	*next = image->sb;
	next->generation = image->generation_max + 1;
	next->state = STELE_STATE_READY;
	next->feature_ro_compat = draft->feature_ro_compat;
	next->feature_incompat |= draft->feature_incompat;
	next->feature_incompat &= ~(uint64_t)STELE_FEATURE_UNDELETE;
	if (draft->counts.deleted)
		next->feature_incompat |= STELE_FEATURE_UNDELETE;
	if (draft->image_size)
		next->image_size = draft->image_size;
	next->catalog_offset = draft->catalog_offset;
	next->catalog_size = catalog_size;
	next->mirror_offset = next->mirror_crc = 0; /* until it is written */
	next->high_water = draft->high_water;
	next->commit_time = draft->time;
	next->fence_mode = image->dev->fence_mode;
	next->fence_epoch += next->fence_mode != STELE_FENCE_LOCAL;
}

/* Encode, and make sure that recovery would take it. */
static int make_catalog(const struct stele_image *image,
			const struct stele_catalog_draft *draft,
			struct stele_superblock *sb,
			struct stele_disk_block *blocks,
			struct stele_catalog *catalog)
{
	const char *why = "";
	int ret;

	encode_catalog(draft, sb, blocks);
	sb->catalog_crc = stele_crc32c(0, blocks, sb->catalog_size);
	ret = stele_lists_decode(blocks, sb->catalog_size, sb, catalog, &why);
	if (ret == 0 || ret == -ENOMEM)
		return ret;
	stele_log_error(&image->log, "this catalog would be refused: %s", why);
	return -EINVAL;
}

static int log_mismatch(const struct stele_image *image, const char *what,
			int error)
{
	stele_log_error(&image->log, "%s does not read back as written", what);
	return error;
}

/* Return: 0; -EILSEQ (what is read back, into `seen`, is something else); errno. */
static int write_durably(const struct stele_image *image, uint64_t offset, uint64_t size,
			 const void *blocks, void *seen)
{
	int ret = stele_device_write(image->dev, blocks, offset, size);

	if (ret == 0)
		ret = stele_device_flush(image->dev);
	if (ret == 0)
		ret = stele_device_read(image->dev, seen, offset, size);
	if (ret == 0 && memcmp(blocks, seen, size) != 0)
		ret = -EILSEQ;
	return ret;
}

static int write_catalog(const struct stele_image *image,
			 const struct stele_superblock *sb, const void *blocks,
			 void *seen)
{
	int ret = write_durably(image, sb->catalog_offset, sb->catalog_size, blocks, seen);

	if (ret == -ENOSPC)
		stele_log_error(&image->log, "cannot write the catalog: %s",
				stele_device_strerror(image->dev, ret));
	return ret == -EILSEQ ? log_mismatch(image, "the catalog", -EIO) : ret;
}

/*
 * Not over that of this generation. A place that cannot be written is no reason to fail; if
 * the device takes no writes any more, the superblock's will fail.
 */
static void write_mirror(const struct stele_image *image, const struct stele_catalog_draft *draft,
			 const void *blocks, void *mirror, void *seen,
			 struct stele_superblock *sb)
{
	static const uint64_t places[] = STELE_CATALOG_MIRRORS;
	const uint64_t size = sb->catalog_size;
	int ret = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i] == image->sb.mirror_offset || size > STELE_CATALOG_MIRROR_SIZE)
			continue;
		/* Its blocks say where they are; all else is the catalog's. */
		memcpy(mirror, blocks, size);
		stele_catalog_end(mirror, &draft->counts, places[i], sb->generation);
		sb->mirror_crc = stele_crc32c(0, mirror, size);
		ret = write_durably(image, places[i], size, mirror, seen);
		if (ret == 0) {
			sb->mirror_offset = places[i];
			sb->feature_incompat |= STELE_FEATURE_MIRROR;
			return;
		}
	}
	sb->mirror_crc = 0;
	if (ret < 0)
		stele_log_warning(&image->log,
				  "the catalog is stored only once, for its mirror cannot be "
				  "written: %s",
				  ret == -EILSEQ ? "it does not read back as written" :
						   stele_device_strerror(image->dev, ret));
}

/* To both places. */
static int write_catalogs(const struct stele_image *image,
			  const struct stele_catalog_draft *draft, const void *blocks,
			  struct stele_superblock *sb)
{
	void *mirror = stele_device_alloc(image->dev, sb->catalog_size);
	void *seen = stele_device_alloc(image->dev, sb->catalog_size);
	int ret = mirror && seen ? write_catalog(image, sb, blocks, seen) : -ENOMEM;

	if (ret == 0)
		write_mirror(image, draft, blocks, mirror, seen, sb);
	free(mirror);
	free(seen);
	return ret;
}

static int publish(struct stele_image *image, const struct stele_superblock *sb)
{
	const unsigned int slot = !image->slot;
	void *block;
	int ret;

	block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	ret = write_slot(image, slot, sb, block);
	if (ret == 0)
		ret = stele_device_flush(image->dev);
	if (ret == 0) {
		ret = stele_copies_read_back(image->dev, slot, sb, block);
		if (ret == -EIO && stele_intent_confirm(image->dev) == -ESTALE)
			ret = -ESTALE;
		else if (ret < 0)
			log_mismatch(image, "the superblock", ret);
	}
	free(block);
	return ret;
}

/* What nobody can open any more, or not all of it, is not published. */
static int check_named(const struct stele_image *image)
{
	if (!stele_file_is_removed(image->dev))
		return stele_file_check_whole(image->dev);
	stele_log_error(&image->log, "the file was removed while it was being written");
	return -ESTALE;
}

int stele_image_commit(struct stele_image *image,
		       const struct stele_catalog_draft *draft)
{
	const uint64_t size = stele_image_commit_size(draft);
	struct stele_superblock next;
	struct stele_catalog catalog;
	void *blocks;
	int ret;

	ret = stele_image_check_writable(image);
	if (ret < 0)
		return ret;
	next_superblock(image, draft, size, &next);
	if (next.high_water > next.image_size)
		return -ENOSPC;
	blocks = alloc_zeroed(image, size);
	if (!blocks)
		return -ENOMEM;
	ret = make_catalog(image, draft, &next, blocks, &catalog);
	if (ret == 0)
		ret = write_catalogs(image, draft, blocks, &next);
	if (ret == 0)
		ret = check_named(image);
	if (ret == 0) {
		image->publishing = true;
		ret = publish(image, &next);
	}
	if (ret == 0)
		ret = check_named(image);
	if (ret < 0) {
		free(blocks);
		return ret;
	}
	free(image->catalog_blocks);
	image->catalog_blocks = blocks;
	image->catalog = catalog;
	image->mirrored = false;
	image->sb = next;
	image->publishing = false;
	image->slot = !image->slot;
	image->generation_max = next.generation;
	stele_intent_settle(image->dev);
	return 0;
}

/* First the slot that is not selected; then its own, whose mirror may be older. */
int stele_image_level(struct stele_image *image)
{
	int ret = publish(image, &image->sb);

	if (ret < 0)
		return ret;
	image->slot = !image->slot;
	return publish(image, &image->sb);
}

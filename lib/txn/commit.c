/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit.c - how an image changes: begin, deleted lists, commit
 *
 * Order is everything. What a superblock references is durable, and has been
 * read back, before that superblock is written; it is written first as a witness, where
 * that of the image is not, and once that is durable, over the slot that recovery would not
 * select; and nobody is told before it is durable there. From the witness on, the new
 * generation is what recovery finds. The copies of a slot are written one after the other is
 * durable: recovery takes either, and a crash never tears both, so a slot without one was
 * damaged. Before each of them all are read again: who finds others than he knows writes none.
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

/* The slot of the newest copy. */
static unsigned int newest_slot(const struct stele_copies *copies)
{
	uint64_t newest = 0;
	unsigned int slot = 0;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		if (copies->copy[i].error || copies->copy[i].sb.generation <= newest)
			continue;
		newest = copies->copy[i].sb.generation;
		slot = i % 2;
	}
	return slot;
}

/* May we still write, and has nobody else published or begun to? */
static int check_turn(const struct stele_image *image)
{
	struct stele_copies now;
	int ret = stele_device_check(image->dev);

	if (ret == 0)
		ret = stele_intent_confirm(image->dev);
	return ret < 0 ? ret : stele_image_check_fresh(image, &now);
}

/* Durably. */
static int write_copy(struct stele_image *image, unsigned int index,
		      const struct stele_superblock *sb, void *block)
{
	struct stele_copy *copy = &image->copies.copy[index];
	int ret;

	if (copy->error == 0 && stele_superblock_same(&copy->sb, sb))
		return 0;
	ret = check_turn(image);
	if (ret == 0)
		ret = stele_copies_write(image->dev, index, sb, block);
	if (ret == 0)
		ret = stele_device_flush(image->dev);
	if (ret == 0) {
		copy->error = 0;
		copy->sb = *sb;
	}
	return ret;
}

/*
 * One that does not decode first, so that one always does. The second look keeps a late
 * writer from the other copy, where the superblock of who replaced it is.
 */
static int write_slot(struct stele_image *image, unsigned int slot,
		      const struct stele_superblock *sb, void *block)
{
	const unsigned int first = image->copies.copy[slot + 2].error ? slot + 2 : slot;
	int ret = write_copy(image, first, sb, block);

	return ret < 0 ? ret : write_copy(image, first ^ 2, sb, block);
}

/*
 * Those of an older image: a reproducible one has the same UUID. Durable before the last
 * copy of it goes; a place that cannot be written is no reason to fail.
 */
static int forget_witnesses(struct stele_device *dev, void *block)
{
	static const uint64_t places[] = STELE_CATALOG_MIRRORS;

	memset(block, 0, STELE_BLOCK_SIZE);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		stele_device_write(dev, block, stele_superblock_witness(places[i]),
				   STELE_BLOCK_SIZE);
	return stele_device_flush(dev);
}

/* A generation that only its witness shows gets its copies: it may be all that is left. */
static int copy_witness(struct stele_image *image, void *block)
{
	const struct stele_copies *copies = &image->copies;
	unsigned int newest = STELE_SUPERBLOCKS;
	struct stele_superblock sb;

	for (unsigned int i = STELE_SUPERBLOCK_COPIES; i < STELE_SUPERBLOCKS; i++)
		if (!copies->copy[i].error &&
		    (newest == STELE_SUPERBLOCKS ||
		     copies->copy[i].sb.generation > copies->copy[newest].sb.generation))
			newest = i;
	if (newest == STELE_SUPERBLOCKS)
		return 0;
	sb = copies->copy[newest].sb;
	return write_slot(image, stele_copies_slot(copies, newest), &sb, block);
}

static int log_mismatch(const struct stele_image *image, const char *what,
			int error)
{
	stele_log_error(&image->log, "%s does not read back as written", what);
	return error;
}

/* What else it fails with, the device or its caller says. */
static int read_back_slot(const struct stele_image *image, unsigned int slot, void *block)
{
	const int ret = stele_copies_read_back(image->dev, slot, &image->sb, block);

	return ret == -EIO ? log_mismatch(image, "a superblock", ret) : ret;
}

/*
 * The older slot first, then the witnesses, then the newest slot: cut short, the older image is
 * found at its newest generation, or not at all. It may not be durable yet, see
 * stele_txn_attach().
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
	block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	ret = copy_witness(image, block);
	last = newest_slot(&image->copies);
	if (ret == 0)
		ret = write_slot(image, !last, sb, block);
	if (ret == 0)
		ret = forget_witnesses(dev, block);
	if (ret == 0)
		ret = write_slot(image, last, sb, block);
	if (ret == 0)
		ret = read_back_slot(image, 0, block);
	if (ret == 0)
		ret = read_back_slot(image, 1, block);
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
				"generation %" PRIu64 " %s: nothing is changed before 'stele "
				"repair' has chosen what to build on",
				image->fork->lost, stele_fork_fate(image->fork));
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

static bool is_wrong_witness(const struct stele_image *image)
{
	void *block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	int ret = block ? stele_copies_check_witness(image->dev, &image->sb, block) : -ENOMEM;

	free(block);
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
	else if (!sb->mirror_offset)
		wrong += (sb->feature_incompat & STELE_FEATURE_MIRROR) != 0;
	wrong += is_wrong_witness(image);
	if (old->error == 0 && old->sb.state == STELE_STATE_READY &&
	    !memcmp(old->sb.uuid, sb->uuid, sizeof(sb->uuid)))
		wrong += is_wrong_place(image, &old->sb);
	return wrong;
}

/* Not over what is newer, and was passed over: that may be read again one day. */
int stele_image_heal(struct stele_image *image)
{
	int ret = stele_image_check_writable(image);
	void *block;

	if (ret < 0 || image->copies.generation_max > image->sb.generation ||
	    (is_whole(image, image->slot) && is_whole(image, image->slot + 2)))
		return ret;
	block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	ret = stele_device_flush(image->dev); /* as in write_unfinished */
	if (ret == 0)
		ret = write_slot(image, image->slot, &image->sb, block);
	if (ret == 0)
		ret = read_back_slot(image, image->slot, block);
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
	return ret;
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
		return stele_device_log_full(image->dev, &image->log, "what is deleted", ret);
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
	next->parent = image->sb.generation;
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
	/* Until it holds something itself: who is cut short before that leaves it said. */
	if (draft->counts.snapshots)
		memset(next->lost, 0, sizeof(next->lost));
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

/* `seen`: memory of that size. Return: 0; -EILSEQ (it is something else); errno. */
static int read_back(const struct stele_image *image, uint64_t offset, uint64_t size,
		     const void *blocks, void *seen)
{
	int ret = stele_device_read(image->dev, seen, offset, size);

	return ret == 0 && memcmp(blocks, seen, size) != 0 ? -EILSEQ : ret;
}

static int write_durably(const struct stele_image *image, uint64_t offset, uint64_t size,
			 const void *blocks, void *seen)
{
	int ret = stele_device_write(image->dev, blocks, offset, size);

	if (ret == 0)
		ret = stele_device_flush(image->dev);
	return ret < 0 ? ret : read_back(image, offset, size, blocks, seen);
}

static int write_catalog(const struct stele_image *image,
			 const struct stele_superblock *sb, const void *blocks,
			 void *seen)
{
	int ret = write_durably(image, sb->catalog_offset, sb->catalog_size, blocks, seen);

	stele_device_log_full(image->dev, &image->log, "the catalog", ret);
	return ret == -EILSEQ ? log_mismatch(image, "the catalog", -EIO) : ret;
}

/* What nobody can open any more, or not all of it, is not published. */
static int check_named(const struct stele_image *image)
{
	if (!stele_file_is_removed(image->dev))
		return stele_file_check_whole(image->dev);
	stele_log_error(&image->log, "the file was removed while it was being written");
	return -ESTALE;
}

/* The mirror of a catalog, which is written to a place for it if there is room. */
struct mirror {
	const void *catalog; /* as it was written where it belongs */
	void *blocks, *seen; /* of its size, and at least a block */
	uint64_t size; /* 0: there is no room */
};

/* `sb` is that of the catalog, and is told of its mirror. */
static int write_mirror(const struct stele_image *image, const struct stele_catalog_draft *draft,
			const struct mirror *m, uint64_t place, struct stele_superblock *sb)
{
	sb->feature_incompat |= STELE_FEATURE_MIRROR;
	sb->mirror_offset = place;
	if (!m->size)
		return 0;
	/* Its blocks say where they are; all else is the catalog's. */
	memcpy(m->blocks, m->catalog, m->size);
	stele_catalog_end(m->blocks, &draft->counts, place, sb->generation);
	sb->mirror_crc = stele_crc32c(0, m->blocks, m->size);
	return write_durably(image, place, m->size, m->blocks, m->seen);
}

/* From here on, recovery may find the next generation. */
static int write_witness(struct stele_image *image, const struct stele_superblock *sb,
			 const struct mirror *m)
{
	const unsigned int index = stele_copies_witness(sb->mirror_offset);
	struct stele_copy *copy = &image->copies.copy[index];
	int ret;

	image->publishing = true;
	copy->error = 0;
	copy->sb = *sb;
	ret = stele_copies_write(image->dev, index, sb, m->blocks);
	if (ret == 0)
		ret = stele_device_flush(image->dev);
	if (ret == 0)
		ret = stele_copies_check_witness(image->dev, sb, m->seen);
	return ret;
}

/*
 * Not over those of this generation. A place that cannot be written is no reason to fail; if
 * the device takes no writes any more, the superblock's will fail. Return: 0; errno of
 * check_turn.
 */
static int announce_next(struct stele_image *image, const struct stele_catalog_draft *draft,
			 const struct mirror *m, struct stele_superblock *sb)
{
	static const uint64_t places[] = STELE_CATALOG_MIRRORS;
	int error = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct stele_superblock with = *sb;
		int ret;

		if (places[i] == image->sb.mirror_offset)
			continue;
		error = write_mirror(image, draft, m, places[i], &with);
		if (error == 0) {
			ret = check_turn(image);
			if (ret < 0)
				return ret;
			error = write_witness(image, &with, m);
		}
		if (error == 0) {
			*sb = with;
			return 0;
		}
	}
	stele_log_warning(&image->log,
			  "the catalog is stored only once, and there is no generation to fall "
			  "back on, for its mirror or witness cannot be written: %s",
			  error == -EILSEQ || stele_error_of_content(error) ?
				  "it does not read back as written" :
				  stele_device_strerror(image->dev, error));
	return 0;
}

/* To both places, and the witness. */
static int write_catalogs(struct stele_image *image,
			  const struct stele_catalog_draft *draft, const void *blocks,
			  struct stele_superblock *sb)
{
	const uint64_t size = sb->catalog_size;
	struct mirror m = {
		.catalog = blocks,
		.blocks = stele_device_alloc(image->dev, size),
		.seen = stele_device_alloc(image->dev, size),
		.size = size <= STELE_CATALOG_MIRROR_SIZE ? size : 0,
	};
	int ret = m.blocks && m.seen ? write_catalog(image, sb, blocks, m.seen) : -ENOMEM;

	if (ret == 0)
		ret = check_named(image);
	if (ret == 0)
		ret = announce_next(image, draft, &m, sb);
	free(m.blocks);
	free(m.seen);
	return ret;
}

/* After the first superblock was written: whoever looks may find it. */
static void log_effect(const struct stele_image *image, const struct stele_superblock *sb,
		       int error)
{
	bool written = false;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++)
		written = written || (image->copies.copy[i].error == 0 &&
				      image->copies.copy[i].sb.generation == sb->generation);
	if (written)
		stele_log_error(&image->log,
				"%s while this was published: it may have taken effect "
				"nonetheless, look before you try again",
				error == -ESTALE ? "another writer has taken over" :
						   stele_device_strerror(image->dev, error));
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
	if (ret == 0) {
		ret = stele_copies_read_back(image->dev, slot, sb, block);
		if (ret == -EIO && stele_intent_confirm(image->dev) == -ESTALE)
			ret = -ESTALE;
		else if (ret < 0)
			log_mismatch(image, "the superblock", ret);
	}
	if (ret < 0)
		log_effect(image, sb, ret);
	free(block);
	return ret;
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
	image->slot = !image->slot;
	image->generation_max = next.generation;
	stele_copies_forget_witnesses(&image->copies);
	/* Without a witness, the loss of its slot would pass unnoticed: so it is in both. */
	if (!next.mirror_offset)
		ret = stele_image_level(image);
	image->publishing = ret < 0; /* it is in use all the same */
	stele_intent_settle(image->dev);
	return ret;
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

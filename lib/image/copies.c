/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - read, compare and write superblocks, see copies.h
 */
#include "lib/image/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/decode.h"
#include "lib/device/guard.h"

static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;
static const uint64_t places[STELE_WITNESSES] = STELE_CATALOG_MIRRORS;

static uint64_t superblock_offset(unsigned int index)
{
	return index < STELE_SUPERBLOCK_COPIES ?
		       offsets[index] :
		       stele_superblock_witness(places[index - STELE_SUPERBLOCK_COPIES]);
}

static void read_copy(struct stele_device *dev, uint64_t target_size,
		      void *block, struct stele_copy *copy)
{
	uint64_t said;

	if (!range_ok(copy->offset, STELE_BLOCK_SIZE, target_size)) {
		copy->error = -EMEDIUMTYPE;
		copy->why = "superblock: beyond the end of the target";
		return;
	}
	copy->error = stele_device_read(dev, block, copy->offset,
					STELE_BLOCK_SIZE);
	if (copy->error < 0) {
		copy->why = "superblock: cannot be read";
		return;
	}
	copy->error = stele_superblock_decode(block, copy->offset, &copy->sb,
					      &copy->why);
	said = le64_get(((struct stele_disk_block *)block)->offset);
	copy->misplaced = copy->error == -EUCLEAN && said != copy->offset;
	copy->begin = said < copy->offset ? copy->offset - said : UINT64_MAX;
}

static bool is_lost(const struct stele_copies *copies, unsigned int slot)
{
	return copies->copy[slot].error && copies->copy[slot + 2].error;
}

/* Of the same image as one that decodes, if any: it is not what an earlier one left. */
static bool is_known(const struct stele_copies *copies, const struct stele_superblock *sb)
{
	if (!copies->good)
		return true;
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (!copy->error && copy->sb.create_time == sb->create_time &&
		    !memcmp(copy->sb.uuid, sb->uuid, sizeof(sb->uuid)))
			return true;
	}
	return false;
}

/* -1: none but of an unfinished image. */
static int newest_ready(const struct stele_copies *copies)
{
	int newest = -1;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (!copy->error && copy->sb.state == STELE_STATE_READY &&
		    (newest < 0 || copy->sb.generation > copies->copy[newest].sb.generation))
			newest = (int)i;
	}
	return newest;
}

/* 0: of an unfinished image, or none. */
static uint64_t slot_generation(const struct stele_copies *copies, unsigned int slot)
{
	const struct stele_copy *a = &copies->copy[slot], *b = a + 2;
	const uint64_t first = a->error ? 0 : a->sb.generation;

	return b->error || b->sb.generation < first ? first : b->sb.generation;
}

const char *stele_copies_lost(const struct stele_copies *copies)
{
	const struct stele_superblock *newest = NULL;
	const char *lost;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++) {
		const struct stele_superblock *sb = &copies->copy[i].sb;

		if (!copies->copy[i].error &&
		    (!newest || sb->generation > newest->generation ||
		     (sb->generation == newest->generation && !*newest->label)))
			newest = sb;
	}
	if (!newest)
		return NULL;
	lost = newest->state == STELE_STATE_UNFINISHED ? newest->label : newest->lost;
	return *lost ? lost : NULL;
}

unsigned int stele_copies_slot(const struct stele_copies *copies, unsigned int index)
{
	if (index < STELE_SUPERBLOCK_COPIES)
		return index % 2;
	if (is_lost(copies, 0) != is_lost(copies, 1))
		return is_lost(copies, 1);
	return slot_generation(copies, 0) >= slot_generation(copies, 1);
}

static uint64_t newest_copy(const struct stele_copies *copies)
{
	const uint64_t a = slot_generation(copies, 0), b = slot_generation(copies, 1);

	return a > b ? a : b;
}

/*
 * Is it of a generation that no copy shows, and that was not overtaken? Where an image has
 * begun, only that of its first one.
 */
static bool counts(const struct stele_copies *copies, const struct stele_superblock *sb)
{
	const uint64_t newest = newest_copy(copies);

	return sb->state == STELE_STATE_READY && sb->generation > newest && is_known(copies, sb) &&
	       (copies->good && !newest ? !sb->parent : sb->parent >= newest);
}

void stele_copies_forget_witnesses(struct stele_copies *copies)
{
	for (unsigned int i = STELE_SUPERBLOCK_COPIES; i < STELE_SUPERBLOCKS; i++)
		copies->copy[i].error = -EMEDIUMTYPE;
	copies->generation_max = newest_copy(copies);
	copies->doubt = false;
}

bool stele_copies_has_witness(const struct stele_copies *copies)
{
	bool has = false;

	for (unsigned int i = STELE_SUPERBLOCK_COPIES; i < STELE_SUPERBLOCKS; i++)
		has = has || !copies->copy[i].error;
	return has;
}

unsigned int stele_copies_witness(uint64_t mirror_offset)
{
	return STELE_SUPERBLOCK_COPIES + (mirror_offset != places[0]);
}

/* What the places for witnesses have, whether it counts or not. */
struct found {
	uint64_t generation[STELE_WITNESSES]; /* 0: none */
	bool blank[STELE_WITNESSES]; /* zeros, as before the second commit */
};

/* The second commit has a mirror of its catalog written there, before its witness. */
static bool has_catalog(struct stele_device *dev, uint64_t target_size, uint64_t place,
			struct stele_disk_block *block)
{
	return range_ok(place, STELE_BLOCK_SIZE, target_size) &&
	       stele_device_read(dev, block, place, STELE_BLOCK_SIZE) == 0 &&
	       !stele_block_check(block, STELE_BLOCK_CATALOG, place, STELE_OWNER_ANY, NULL) &&
	       le64_get(block->owner) > 1;
}

static void read_witnesses(struct stele_device *dev, uint64_t target_size, void *block,
			   struct stele_copies *copies, struct found *found)
{
	for (unsigned int i = 0; i < STELE_WITNESSES; i++) {
		struct stele_copy *copy = &copies->copy[STELE_SUPERBLOCK_COPIES + i];

		copy->offset = superblock_offset(STELE_SUPERBLOCK_COPIES + i);
		read_copy(dev, target_size, block, copy);
		found->generation[i] = copy->error ? 0 : copy->sb.generation;
		found->blank[i] = copy->error == -EMEDIUMTYPE &&
				  bytes_zero(block, STELE_BLOCK_SIZE) &&
				  !(copies->good && (is_lost(copies, 0) || is_lost(copies, 1)) &&
				    has_catalog(dev, target_size, places[i], block));
		if (copy->error || counts(copies, &copy->sb))
			continue;
		copy->error = -EMEDIUMTYPE;
		copy->why = "superblock: of an older generation";
	}
}

/*
 * Was there no generation after this one? Its witness would be in the other place, where
 * there still is that of an older one, or nothing, before the second commit.
 */
static bool is_last(const struct stele_superblock *sb, const struct found *found)
{
	for (unsigned int i = 0; i < STELE_WITNESSES; i++) {
		const uint64_t there = found->generation[i];

		if (places[i] != sb->mirror_offset && !(there && there <= sb->generation) &&
		    !(sb->generation == 1 && found->blank[i]))
			return false;
	}
	return true;
}

/* A slot is lost, and what was in it may have been newer than all that is left. */
static bool is_doubtful(const struct stele_copies *copies, const struct found *found)
{
	const int newest = newest_ready(copies);

	/* A build that is cut short has begun with slot 1, see commit.c. */
	if (newest < 0)
		return copies->good && is_lost(copies, 1);
	return is_lost(copies, !stele_copies_slot(copies, (unsigned int)newest)) &&
	       !is_last(&copies->copy[newest].sb, found);
}

static void read_all(struct stele_device *dev, uint64_t target_size, void *block,
		     struct stele_copies *out)
{
	struct found found;
	int newest;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		out->copy[i].offset = superblock_offset(i);
		read_copy(dev, target_size, block, &out->copy[i]);
		out->good += !out->copy[i].error;
	}
	read_witnesses(dev, target_size, block, out, &found);
	newest = newest_ready(out);
	out->generation_max = newest < 0 ? 0 : out->copy[newest].sb.generation;
	out->doubt = is_doubtful(out, &found);
	if (out->doubt && newest >= 0)
		out->generation_max++;
}

static bool begins_one(const uint64_t *begins, unsigned int count, uint64_t begin)
{
	while (count && begins[count - 1] != begin)
		count--;
	return count;
}

/* The superblocks of a partition's image lie among the places for those of the disk's. */
static void leave_partitions(struct stele_device *dev, struct stele_copies *copies)
{
	uint64_t begins[STELE_PARTITIONS_MAX];
	char table[STELE_GUARD_TABLE_SIZE];
	unsigned int count;

	if (!stele_copies_elsewhere(copies))
		return;
	count = stele_guard_partitions(dev, begins, STELE_PARTITIONS_MAX, table);
	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++) {
		struct stele_copy *copy = &copies->copy[i];

		if (!copy->misplaced || !begins_one(begins, count, copy->begin))
			continue;
		copy->misplaced = false;
		copy->error = -EMEDIUMTYPE;
		copy->why = "superblock: of an image on a partition";
	}
}

unsigned int stele_copies_find_partition(struct stele_device *dev, const uint64_t *begins,
					 unsigned int count)
{
	void *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	struct stele_superblock *sb = malloc(sizeof(*sb));
	bool found = false;
	unsigned int i = 0;

	for (; block && sb && !found && i < count; i++)
		for (unsigned int k = 0; k < STELE_SUPERBLOCK_COPIES && !found; k++)
			found = begins[i] < STELE_IMAGE_SIZE_MAX &&
				!stele_device_read(dev, block, begins[i] + offsets[k],
						   STELE_BLOCK_SIZE) &&
				!stele_superblock_decode(block, offsets[k], sb, NULL);
	free(sb);
	free(block);
	return found ? i - 1 : count;
}

int stele_copies_read(struct stele_device *dev, struct stele_copies *out)
{
	uint64_t size;
	void *block;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = stele_device_size(dev, &size);
	if (ret < 0)
		return ret;
	block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	read_all(dev, size, block, out);
	leave_partitions(dev, out);
	free(block);
	return 0;
}

bool stele_copies_elsewhere(const struct stele_copies *copies)
{
	bool found = false;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		found = found || copies->copy[i].misplaced;
	return found && !copies->good && !stele_copies_has_witness(copies);
}

uint64_t stele_copies_missing(const struct stele_copies *copies, uint64_t target_size)
{
	uint64_t size = target_size;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++)
		if (!copies->copy[i].error && copies->copy[i].sb.image_size > size)
			size = copies->copy[i].sb.image_size;
	return size - target_size;
}

bool stele_error_of_content(int error)
{
	return error == -EMEDIUMTYPE || error == -EBADMSG ||
	       error == -EUCLEAN;
}

bool stele_error_of_blocks(const struct stele_device *dev, int error)
{
	switch (error) {
	case -ENOMEM:
	case -ENODATA:
	case -ENODEV:
	case -ENXIO:
	case -ESTALE:
	case -ESHUTDOWN:
	case -EOWNERDEAD:
	case -ECANCELED:
		return false;
	case -ETIMEDOUT:
		return !dev->revocable;
	default:
		return error < 0;
	}
}

bool stele_copies_fork(const struct stele_copies *copies, uint64_t generation,
		       unsigned int *a, unsigned int *b)
{
	int first = -1;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (copy->error < 0 || copy->sb.generation != generation)
			continue;
		if (first < 0)
			first = (int)i;
		if (stele_superblock_same(&copies->copy[first].sb, &copy->sb))
			continue;
		*a = (unsigned int)first;
		*b = i;
		return true;
	}
	return false;
}

static int compare(const struct stele_copy *before, const struct stele_copy *now)
{
	if (before->error && !stele_error_of_content(before->error))
		return 0;
	if (now->error && !stele_error_of_content(now->error))
		return now->error;
	if (before->error != now->error)
		return -ESTALE;
	return before->error || stele_superblock_same(&before->sb, &now->sb) ?
		       0 :
		       -ESTALE;
}

static uint64_t newest(const struct stele_copies *copies)
{
	const int index = newest_ready(copies);

	return index < 0 ? 0 : copies->copy[index].sb.generation;
}

/* One that was there before counts by now if the copies were overwritten. */
static void leave_out_known(const struct stele_copies *before, struct stele_copies *now)
{
	for (unsigned int i = STELE_SUPERBLOCK_COPIES; i < STELE_SUPERBLOCKS; i++)
		if (!now->copy[i].error &&
		    stele_superblock_same(&before->copy[i].sb, &now->copy[i].sb))
			now->copy[i].error = -EMEDIUMTYPE;
}

int stele_copies_compare(const struct stele_copies *before,
			 const struct stele_copies *now)
{
	struct stele_copies others = *now;
	int ret = 0;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES && ret == 0; i++)
		ret = compare(&before->copy[i], &now->copy[i]);
	leave_out_known(before, &others);
	/* A witness, or a copy with a transient read error, may be the newest. */
	if (ret == 0 && newest(&others) > newest(before))
		ret = -ESTALE;
	return ret;
}

int stele_copies_write(struct stele_device *dev, unsigned int index,
		       const struct stele_superblock *sb, void *block)
{
	const uint64_t offset = superblock_offset(index);

	stele_superblock_encode(sb, offset, block);
	return stele_device_write(dev, block, offset, STELE_BLOCK_SIZE);
}

int stele_copies_check_witness(struct stele_device *dev, const struct stele_superblock *sb,
			       void *block)
{
	struct stele_copy witness = {.offset = stele_superblock_witness(sb->mirror_offset)};

	if (!sb->mirror_offset)
		return 0;
	read_copy(dev, STELE_DATA_OFFSET, block, &witness);
	if (witness.error == 0 && !stele_superblock_same(&witness.sb, sb))
		witness.error = -EUCLEAN;
	return witness.error;
}

int stele_copies_read_back(struct stele_device *dev, unsigned int slot,
			   const struct stele_superblock *sb, void *block)
{
	struct stele_disk_superblock want;
	int ret;

	for (unsigned int i = slot; i < STELE_SUPERBLOCK_COPIES; i += 2) {
		ret = stele_device_read(dev, block, offsets[i],
					STELE_BLOCK_SIZE);
		if (ret < 0)
			return ret;
		stele_superblock_encode(sb, offsets[i], &want);
		if (memcmp(block, &want, sizeof(want)) != 0)
			return -EIO;
	}
	return 0;
}

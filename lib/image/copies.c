/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - read, compare and write the four superblock copies
 */
#include "lib/image/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/decode.h"

static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;

static void read_copy(struct stele_device *dev, uint64_t target_size,
		      void *block, struct stele_copy *copy)
{
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
}

static bool has_lost_slot(const struct stele_copies *copies)
{
	const struct stele_copy *copy = copies->copy;

	return (copy[0].error && copy[2].error) || (copy[1].error && copy[3].error);
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

static const struct stele_superblock *newest_ready(const struct stele_copies *copies)
{
	const struct stele_superblock *newest = NULL;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (!copy->error && copy->sb.state == STELE_STATE_READY &&
		    (!newest || copy->sb.generation > newest->generation))
			newest = &copy->sb;
	}
	return newest;
}

/*
 * What has been read from a place shows whether the next generation of that image was there:
 * a witness, or, after the first commit, the zeros of its beginning. In its own place there
 * can be none.
 */
static bool tells_next(const struct stele_superblock *sb, uint64_t place,
		       const struct stele_copy *witness, const void *block)
{
	return place == sb->mirror_offset || witness->error == 0 ||
	       (sb->generation == 1 && bytes_zero(block, STELE_BLOCK_SIZE));
}

static void find_lost(struct stele_device *dev, uint64_t target_size, void *block,
		      struct stele_copies *copies)
{
	static const uint64_t places[] = STELE_CATALOG_MIRRORS;
	const struct stele_superblock *newest = newest_ready(copies);
	/* A build that is cut short has begun with slot 1, see commit.c. */
	bool doubt = !newest && copies->good && copies->copy[1].error && copies->copy[3].error;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct stele_copy witness = {.offset = stele_superblock_witness(places[i])};

		read_copy(dev, target_size, block, &witness);
		if (newest && !tells_next(newest, places[i], &witness, block))
			doubt = true;
		if (witness.error || witness.sb.state != STELE_STATE_READY ||
		    witness.sb.generation <= copies->generation_max ||
		    !is_known(copies, &witness.sb))
			continue;
		copies->lost = witness.sb;
		copies->generation_max = witness.sb.generation;
	}
	copies->doubt = doubt && !copies->lost.generation;
	if (copies->doubt && newest)
		copies->generation_max++;
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
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		struct stele_copy *copy = &out->copy[i];

		copy->offset = offsets[i];
		read_copy(dev, size, block, copy);
		if (copy->error < 0)
			continue;
		out->good++;
		if (copy->sb.generation > out->generation_max)
			out->generation_max = copy->sb.generation;
	}
	if (has_lost_slot(out))
		find_lost(dev, size, block, out);
	free(block);
	return 0;
}

uint64_t stele_copies_missing(const struct stele_copies *copies, uint64_t target_size)
{
	uint64_t size = target_size;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
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

/* 0: none but of an unfinished image. */
static uint64_t newest(const struct stele_copies *copies)
{
	const struct stele_superblock *sb = newest_ready(copies);

	return sb ? sb->generation : 0;
}

int stele_copies_compare(const struct stele_copies *before,
			 const struct stele_copies *now)
{
	int ret = 0;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES && ret == 0; i++)
		ret = compare(&before->copy[i], &now->copy[i]);
	/* A copy with a transient read error may be the newest. */
	if (ret == 0 && newest(now) > newest(before))
		ret = -ESTALE;
	return ret;
}

int stele_copies_write(struct stele_device *dev, unsigned int index,
		       const struct stele_superblock *sb, void *block)
{
	stele_superblock_encode(sb, offsets[index], block);
	return stele_device_write(dev, block, offsets[index], STELE_BLOCK_SIZE);
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

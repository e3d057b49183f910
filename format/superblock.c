/* SPDX-License-Identifier: Apache-2.0 */
/*
 * superblock.c - one copy of the superblock: encode, decode, compare
 *
 * Which copy counts is decided elsewhere (lib/image/): this only says whether
 * the bytes at one place are a superblock that this code may trust.
 */
#include "format/superblock.h"

#include "format/decode.h"

void stele_superblock_encode(const struct stele_superblock *sb, uint64_t offset,
			     struct stele_disk_superblock *out)
{
	memset(out, 0, sizeof(*out));
	out->version = le32_put(STELE_FORMAT_VERSION);
	out->state = le32_put(sb->state);
	out->feature_compat = le64_put(sb->feature_compat);
	out->feature_ro_compat = le64_put(sb->feature_ro_compat);
	out->feature_incompat = le64_put(sb->feature_incompat);
	memcpy(out->uuid, sb->uuid, sizeof(out->uuid));
	text_put(out->label, sizeof(out->label), sb->label);
	text_put(out->lost, sizeof(out->lost), sb->lost);
	out->image_size = le64_put(sb->image_size);
	out->high_water = le64_put(sb->high_water);
	out->catalog_offset = le64_put(sb->catalog_offset);
	out->catalog_size = le64_put(sb->catalog_size);
	out->catalog_crc = le32_put(sb->catalog_crc);
	out->mirror_offset = le64_put(sb->mirror_offset);
	out->mirror_crc = le32_put(sb->mirror_crc);
	out->parent = le64_put(sb->parent);
	out->fence_mode = le32_put(sb->fence_mode);
	out->fence_epoch = le64_put(sb->fence_epoch);
	out->create_time = le64_put((uint64_t)sb->create_time);
	out->commit_time = le64_put((uint64_t)sb->commit_time);
	stele_block_seal((struct stele_disk_block *)out, STELE_BLOCK_SUPERBLOCK,
			 offset, sb->generation);
}

static void superblock_read(const struct stele_disk_superblock *disk,
			    struct stele_superblock *out)
{
	const struct stele_disk_block *block = (const void *)disk;

	*out = (struct stele_superblock){
		.generation = le64_get(block->owner),
		.parent = le64_get(disk->parent),
		.state = le32_get(disk->state),
		.fence_mode = le32_get(disk->fence_mode),
		.feature_compat = le64_get(disk->feature_compat),
		.feature_ro_compat = le64_get(disk->feature_ro_compat),
		.feature_incompat = le64_get(disk->feature_incompat),
		.image_size = le64_get(disk->image_size),
		.high_water = le64_get(disk->high_water),
		.catalog_offset = le64_get(disk->catalog_offset),
		.catalog_size = le64_get(disk->catalog_size),
		.catalog_crc = le32_get(disk->catalog_crc),
		.mirror_offset = le64_get(disk->mirror_offset),
		.mirror_crc = le32_get(disk->mirror_crc),
		.fence_epoch = le64_get(disk->fence_epoch),
		.create_time = (int64_t)le64_get(disk->create_time),
		.commit_time = (int64_t)le64_get(disk->commit_time),
	};
	memcpy(out->uuid, disk->uuid, sizeof(out->uuid));
	memcpy(out->label, disk->label, sizeof(out->label));
	memcpy(out->lost, disk->lost, sizeof(out->lost));
}

static int check_sizes(const struct stele_superblock *sb, const char **why)
{
	if (!is_aligned(sb->image_size, STELE_BLOCK_SIZE) ||
	    sb->image_size <= STELE_DATA_OFFSET ||
	    sb->image_size > STELE_IMAGE_SIZE_MAX)
		return unclean(why, "superblock: image size out of range");
	if (!is_aligned(sb->high_water, STELE_BLOCK_SIZE) ||
	    sb->high_water < STELE_DATA_OFFSET ||
	    sb->high_water > sb->image_size)
		return unclean(why, "superblock: high water out of range");
	return 0;
}

static int check_unfinished(const struct stele_superblock *sb, const char **why)
{
	if (sb->generation != 0 || sb->parent != 0)
		return unclean(why, "superblock: unfinished with a generation");
	if (sb->catalog_offset || sb->catalog_size || sb->catalog_crc ||
	    sb->mirror_offset || sb->mirror_crc)
		return unclean(why, "superblock: unfinished with a catalog");
	if (sb->high_water != STELE_DATA_OFFSET)
		return unclean(why, "superblock: unfinished with data");
	if (!bytes_zero(sb->lost, sizeof(sb->lost)))
		return unclean(why, "superblock: unfinished with a second label");
	return 0;
}

static int check_mirror(const struct stele_superblock *sb, const char **why)
{
	static const uint64_t places[] = STELE_CATALOG_MIRRORS;

	if (sb->mirror_offset == 0)
		return sb->mirror_crc ?
			       unclean(why, "superblock: checksum of no catalog mirror") :
			       0;
	if (!(sb->feature_incompat & STELE_FEATURE_MIRROR))
		return unclean(why, "superblock: a catalog mirror without its feature");
	if (sb->mirror_offset != places[0] && sb->mirror_offset != places[1])
		return unclean(why, "superblock: offset of the catalog mirror out of range");
	if (sb->catalog_size > STELE_CATALOG_MIRROR_SIZE && sb->mirror_crc)
		return unclean(why, "superblock: catalog too large for a mirror");
	return 0;
}

static int check_ready(const struct stele_superblock *sb, const char **why)
{
	/* The last one is STELE_OWNER_ANY, and leaves no next. */
	if (sb->generation == 0 || sb->generation == UINT64_MAX)
		return unclean(why, "superblock: generation out of range");
	if (sb->parent >= sb->generation)
		return unclean(why, "superblock: made from a newer generation");
	if (!is_aligned(sb->catalog_size, STELE_BLOCK_SIZE) ||
	    sb->catalog_size == 0 || sb->catalog_size > STELE_CATALOG_SIZE_MAX)
		return unclean(why, "superblock: catalog size out of range");
	if (!is_aligned(sb->catalog_offset, STELE_BLOCK_SIZE) ||
	    sb->catalog_offset < STELE_DATA_OFFSET ||
	    !range_ok(sb->catalog_offset, sb->catalog_size, sb->high_water))
		return unclean(why, "superblock: catalog offset out of range");
	return check_mirror(sb, why);
}

static int check_fields(const struct stele_superblock *sb, const char **why)
{
	int ret;

	if (sb->state > STELE_STATE_READY)
		return unclean(why, "superblock: unknown state");
	if (!text_ok(sb->label, sizeof(sb->label)))
		return unclean(why, "superblock: label not zero-padded");
	ret = check_sizes(sb, why);
	if (ret < 0)
		return ret;
	ret = sb->state == STELE_STATE_READY ? check_ready(sb, why)
					     : check_unfinished(sb, why);
	if (ret < 0)
		return ret;
	if (sb->fence_mode > STELE_FENCE_RBD_LOCK)
		return unclean(why, "superblock: unknown fence mode");
	if (!text_ok(sb->lost, sizeof(sb->lost)))
		return unclean(why, "superblock: what is lost not zero-padded");
	return 0;
}

int stele_superblock_decode(const struct stele_disk_superblock *disk,
			    uint64_t offset, struct stele_superblock *out,
			    const char **why)
{
	int ret;

	ret = stele_block_check((const struct stele_disk_block *)disk,
				STELE_BLOCK_SUPERBLOCK, offset, STELE_OWNER_ANY,
				why);
	if (ret < 0)
		return ret;
	if (le32_get(disk->version) != STELE_FORMAT_VERSION)
		return refuse(why, -EOPNOTSUPP, "superblock: unknown version");
	superblock_read(disk, out);
	if (out->feature_incompat & ~STELE_INCOMPAT_SUPPORTED)
		return refuse(why, -EOPNOTSUPP,
			      "superblock: unknown incompat feature");
	ret = check_fields(out, why);
	if (ret < 0)
		return ret;
	if (!bytes_zero(disk->unused, sizeof(disk->unused)) ||
	    !bytes_zero(disk->reserved, sizeof(disk->reserved)))
		return unclean(why, "superblock: reserved bytes not zero");
	return 0;
}

bool stele_superblock_mirrored(const struct stele_superblock *sb,
			       struct stele_superblock *out)
{
	*out = *sb;
	out->catalog_offset = sb->mirror_offset;
	out->catalog_crc = sb->mirror_crc;
	return sb->mirror_offset && sb->catalog_size <= STELE_CATALOG_MIRROR_SIZE;
}

uint64_t stele_superblock_witness(uint64_t mirror_offset)
{
	return mirror_offset + STELE_CATALOG_MIRROR_SIZE;
}

bool stele_superblock_same(const struct stele_superblock *a,
			   const struct stele_superblock *b)
{
	struct stele_disk_superblock disk_a, disk_b;

	/* As they would be stored: no field can be forgotten. */
	stele_superblock_encode(a, 0, &disk_a);
	stele_superblock_encode(b, 0, &disk_b);
	return memcmp(&disk_a, &disk_b, sizeof(disk_a)) == 0;
}

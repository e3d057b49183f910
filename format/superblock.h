/* SPDX-License-Identifier: Apache-2.0 */
/*
 * superblock.h - where an image begins
 *
 * Two slots, each with a mirror far from it, at places that need no other
 * field to be found. A commit writes the slot that recovery did not select.
 * Catalogs have mirrors, too, at one of two places that nothing else uses; and
 * there is a witness of each generation: its superblock, written before the slot is. It stands
 * in for that generation until a copy does, and if both copies are lost.
 * Everything lies in the first 512 bytes. stele-format(5), "Superblock".
 */
#ifndef STELE_FORMAT_SUPERBLOCK_H
#define STELE_FORMAT_SUPERBLOCK_H

#include "format/block.h"
#include "format/features.h"

/* Copies 0, 1: slots 0, 1. Copies 2, 3: their mirrors. */
#define STELE_SUPERBLOCK_COPIES 4u
#define STELE_SUPERBLOCK_OFFSETS                                       \
	{                                                              \
		UINT64_C(0x1000), UINT64_C(0x2000), UINT64_C(0x100000), \
			UINT64_C(0x101000)                             \
	}
#define STELE_DATA_OFFSET UINT64_C(0x200000) /* first segment or catalog */
/*
 * Where the mirror of a catalog can be, and how large; behind that, whatever its size, is the
 * witness. Both places are between the superblocks' mirrors and the data. Generations that
 * follow each other use different ones.
 */
#define STELE_CATALOG_MIRRORS_OFFSET UINT64_C(0x102000)
#define STELE_CATALOG_MIRROR_SIZE    UINT64_C(0x7e000)
#define STELE_CATALOG_MIRRORS                                                \
	{                                                                    \
		STELE_CATALOG_MIRRORS_OFFSET,                                \
			STELE_CATALOG_MIRRORS_OFFSET +                       \
				STELE_CATALOG_MIRROR_SIZE + STELE_BLOCK_SIZE \
	}
/* Offsets and sizes on a target stay below this: sums of two never wrap. */
#define STELE_IMAGE_SIZE_MAX   (UINT64_C(1) << 62)
#define STELE_LABEL_SIZE       64u /* zero-padded, at most 63 bytes */
#define STELE_UUID_BYTES       16u
#define STELE_CATALOG_SIZE_MAX (UINT64_C(64) << 20)

enum stele_image_state {
	STELE_STATE_UNFINISHED = 0, /* a build began and did not commit */
	STELE_STATE_READY = 1,
};

enum stele_fence_mode {
	STELE_FENCE_LOCAL = 0, /* exclusive open on the writer's machine */
	STELE_FENCE_MMP = 1,
	STELE_FENCE_RESERVATION = 2,
	STELE_FENCE_RBD_LOCK = 3,
};

struct stele_disk_superblock {
/*000*/	uint8_t header[STELE_BLOCK_HEADER_SIZE]; /* owner = generation */
/*020*/	le32 version;
/*024*/	le32 state; /* enum stele_image_state */
/*028*/	le64 feature_compat;
/*030*/	le64 feature_ro_compat;
/*038*/	le64 feature_incompat;
/*040*/	uint8_t uuid[STELE_UUID_BYTES];
/*050*/	uint8_t label[STELE_LABEL_SIZE];
/*090*/	le64 image_size;     /* bytes of the target that it may use */
/*098*/	le64 high_water;     /* no byte at or after it is in use */
/*0a0*/	le64 catalog_offset; /* 0 while unfinished */
/*0a8*/	le64 catalog_size;   /* bytes, whole blocks */
/*0b0*/	le32 catalog_crc;    /* crc32c of those bytes */
/*0b4*/	le32 fence_mode;     /* enum stele_fence_mode */
/*0b8*/	le64 fence_epoch;
/*0c0*/	le64 create_time; /* seconds since 1970, two's complement */
/*0c8*/	le64 commit_time;
/*0d0*/	le64 mirror_offset; /* of the catalog, before the witness; 0: neither */
/*0d8*/	le32 mirror_crc;    /* crc32c of the catalog's bytes there; 0: it is too large */
/*0dc*/	uint8_t unused[4]; /* zero */
/*0e0*/	le64 parent; /* generation that this one was made from; 0: none */
/*0e8*/	uint8_t lost[STELE_LABEL_SIZE]; /* while unfinished, the label says that */
/*128*/	uint8_t reserved[STELE_BLOCK_SIZE - 0x128]; /* zero */
};
STELE_CHECK_SIZE(struct stele_disk_superblock, 4096);
STELE_CHECK_OFFSET(struct stele_disk_superblock, uuid, 0x40);
STELE_CHECK_OFFSET(struct stele_disk_superblock, label, 0x50);
STELE_CHECK_OFFSET(struct stele_disk_superblock, catalog_offset, 0xa0);
STELE_CHECK_OFFSET(struct stele_disk_superblock, mirror_offset, 0xd0);
STELE_CHECK_OFFSET(struct stele_disk_superblock, parent, 0xe0);
STELE_CHECK_OFFSET(struct stele_disk_superblock, lost, 0xe8);
STELE_CHECK_OFFSET(struct stele_disk_superblock, reserved, 0x128);

struct stele_superblock {
	uint64_t generation; /* 0 while unfinished, then 1, 2, ... */
	uint64_t parent; /* an older one, which this one was made from */
	uint32_t state;
	uint32_t fence_mode;
	uint64_t feature_compat, feature_ro_compat, feature_incompat;
	uint8_t uuid[STELE_UUID_BYTES];
	char label[STELE_LABEL_SIZE];
	uint64_t image_size;
	uint64_t high_water;
	uint64_t catalog_offset, catalog_size;
	uint32_t catalog_crc;
	uint32_t mirror_crc;
	uint64_t mirror_offset; /* one of STELE_CATALOG_MIRRORS, or 0: neither */
	uint64_t fence_epoch;
	int64_t create_time, commit_time;
	char lost[STELE_LABEL_SIZE]; /* what it replaced, in words, until it has a snapshot */
};

/* `offset`: of the copy that is written. */
void stele_superblock_encode(const struct stele_superblock *sb, uint64_t offset,
			     struct stele_disk_superblock *out);

/*
 * Decode the copy read at `offset`. Checks in this order: magic, crc, type,
 * offset, version, incompat features, then each field: state, label (zeros
 * after its end), image_size (whole blocks, over DATA_OFFSET, at most
 * IMAGE_SIZE_MAX), high_water (whole blocks, DATA_OFFSET to image_size),
 * catalog (unfinished: zeros, generation 0, nothing in use; ready: generation
 * neither 0 nor the last, and above its parent, whole
 * blocks in DATA_OFFSET to high_water, size in 1 to CATALOG_SIZE_MAX; its mirror with
 * the feature, at one of its places, without a checksum if it is larger than that; or zeros),
 * fence mode, lost (as label; unfinished: zeros), reserved zero.
 * Return: 0; -EMEDIUMTYPE; -EBADMSG; -EOPNOTSUPP (version, features);
 * -EUCLEAN.
 */
int stele_superblock_decode(const struct stele_disk_superblock *disk,
			    uint64_t offset, struct stele_superblock *out,
			    const char **why);

/*
 * As it would be if the catalog were where its mirror is: what decodes the mirror.
 * Return: false: it has none.
 */
bool stele_superblock_mirrored(const struct stele_superblock *sb,
			       struct stele_superblock *out);

/* Where the witness is in a place for mirrors. */
uint64_t stele_superblock_witness(uint64_t mirror_offset);

/* Do two copies say the same (everything but their place)? */
bool stele_superblock_same(const struct stele_superblock *a,
			   const struct stele_superblock *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erofs.h - what Stele writes of EROFS: superblock, inodes, directory entries
 *
 * A read-only filesystem of the Linux kernel, whose documentation ("filesystems/erofs")
 * and fs/erofs/erofs_fs.h specify it. Used: uncompressed inodes whose data are consecutive
 * blocks (flat plain), with block numbers of 32 bits. The inode with number n lies at byte
 * n * 32 of the device, since the area of inodes begins at block 0 here; that of the root
 * lies behind the superblock, so that one sector leads to everything.
 */
#ifndef STELE_FORMAT_EROFS_H
#define STELE_FORMAT_EROFS_H

#include "format/checked.h"
#include "format/le.h"

#define STELE_EROFS_OFFSET	 1024u /* of the superblock on the device */
#define STELE_EROFS_MAGIC	 0xe0f5e1e2u
#define STELE_EROFS_BITS_MIN	 9u  /* of a block: 512 bytes */
#define STELE_EROFS_BITS_MAX	 12u /* 4096 bytes */
#define STELE_EROFS_NAME_MAX	 255u
#define STELE_EROFS_BLOCK_MAX	 0xfffffffeu /* the next one means "none" */
#define STELE_EROFS_NID_SIZE	 32u
#define STELE_EROFS_ROOT_NID	 36u /* at byte 1152 */
#define STELE_EROFS_VOLUME_SIZE	 16u

struct stele_disk_erofs_super {
/*00*/	le32 magic;
/*04*/	le32 checksum; /* unused without its compat feature */
/*08*/	le32 feature_compat;
/*0c*/	uint8_t block_bits;
/*0d*/	uint8_t ext_slots;
/*0e*/	le16 root_nid;
/*10*/	le64 inode_count;
/*18*/	le64 time; /* of compact inodes: seconds since 1970 */
/*20*/	le32 time_ns;
/*24*/	le32 block_count;
/*28*/	le32 meta_block; /* where the area of inodes begins */
/*2c*/	le32 xattr_block;
/*30*/	uint8_t uuid[16];
/*40*/	uint8_t volume[STELE_EROFS_VOLUME_SIZE];
/*50*/	le32 feature_incompat;
/*54*/	le16 algorithms;
/*56*/	le16 device_count;
/*58*/	le16 device_slot;
/*5a*/	uint8_t reserved[38];
};
STELE_CHECK_SIZE(struct stele_disk_erofs_super, 128);
STELE_CHECK_OFFSET(struct stele_disk_erofs_super, inode_count, 0x10);
STELE_CHECK_OFFSET(struct stele_disk_erofs_super, uuid, 0x30);
STELE_CHECK_OFFSET(struct stele_disk_erofs_super, feature_incompat, 0x50);

/* Bit 0 of the format: extended; bits 1 to 3: where the data are, 0 is flat plain. */
struct stele_disk_erofs_compact {
/*00*/	le16 format;
/*02*/	le16 xattr_count;
/*04*/	le16 mode;
/*06*/	le16 link_count;
/*08*/	le32 size;
/*0c*/	le32 reserved0;
/*10*/	le32 block; /* number of the first one */
/*14*/	le32 ino;   /* for tools that want 32 bits */
/*18*/	le16 uid;
/*1a*/	le16 gid;
/*1c*/	le32 reserved1;
};
STELE_CHECK_SIZE(struct stele_disk_erofs_compact, 32);
STELE_CHECK_OFFSET(struct stele_disk_erofs_compact, block, 0x10);

struct stele_disk_erofs_extended {
/*00*/	le16 format;
/*02*/	le16 xattr_count;
/*04*/	le16 mode;
/*06*/	le16 reserved0;
/*08*/	le64 size;
/*10*/	le32 block;
/*14*/	le32 ino;
/*18*/	le32 uid;
/*1c*/	le32 gid;
/*20*/	le64 time; /* seconds since 1970 */
/*28*/	le32 time_ns;
/*2c*/	le32 link_count;
/*30*/	uint8_t reserved1[16];
};
STELE_CHECK_SIZE(struct stele_disk_erofs_extended, 64);
STELE_CHECK_OFFSET(struct stele_disk_erofs_extended, time, 0x20);
STELE_CHECK_OFFSET(struct stele_disk_erofs_extended, link_count, 0x2c);

/* A block of a directory: all its entries, then their names; a zero ends the last one. */
struct stele_disk_erofs_dirent {
/*00*/	le64 nid;
/*08*/	le16 name_offset; /* in the block; of the first entry: 12 for each one */
/*0a*/	uint8_t type;
/*0b*/	uint8_t reserved;
};
STELE_CHECK_SIZE(struct stele_disk_erofs_dirent, 12);

/*
 * What leads to a tree: the sector at 1024 of the device. It is written at once, and
 * nothing else in block 0 is ours.
 */
#define STELE_EROFS_FRONT_SIZE 512u
struct stele_disk_erofs_front {
/*000*/	struct stele_disk_erofs_super super;
/*080*/	struct stele_disk_erofs_extended root;
/*0c0*/	uint8_t reserved[320];
};
STELE_CHECK_SIZE(struct stele_disk_erofs_front, STELE_EROFS_FRONT_SIZE);
_Static_assert(STELE_EROFS_OFFSET + offsetof(struct stele_disk_erofs_front, root) ==
		       STELE_EROFS_ROOT_NID * STELE_EROFS_NID_SIZE,
	       "the root's inode is not where its number says");

struct stele_erofs_super {
	uint32_t block_bits;
	uint32_t block_count;
	uint64_t inode_count;
	int64_t time;
	uint8_t uuid[16];
	char volume[STELE_EROFS_VOLUME_SIZE + 1];
};

enum stele_erofs_type {
	STELE_EROFS_FILE = 1,
	STELE_EROFS_DIRECTORY = 2,
};

struct stele_erofs_inode {
	enum stele_erofs_type type;
	bool extended;
	uint32_t link_count;
	uint64_t size;
	uint32_t block;
	int64_t time; /* of an extended one */
};

struct stele_erofs_dirent {
	uint64_t nid;
	enum stele_erofs_type type;
	const char *name; /* not terminated */
	uint32_t name_size;
};

/* The root is an extended directory. */
void stele_erofs_front_encode(const struct stele_erofs_super *super,
			      const struct stele_erofs_inode *root,
			      struct stele_disk_erofs_front *out);
/* Is it one that this code wrote? Return: 0; -EMEDIUMTYPE (not EROFS); -EUCLEAN. */
int stele_erofs_front_decode(const struct stele_disk_erofs_front *disk,
			     struct stele_erofs_super *super,
			     struct stele_erofs_inode *root, const char **why);

/*
 * Was it once the front of the image with this UUID, whatever became of its other bytes, and of
 * a few of these? Nobody else's EROFS has most of that UUID.
 */
bool stele_erofs_front_is_of(const struct stele_disk_erofs_front *front,
			     const uint8_t uuid[16]);

/* Owned by root; files can be read by all, directories searched, too. */
void stele_erofs_inode_encode(const struct stele_erofs_inode *inode, uint64_t nid,
			      void *out);
/* `size`: bytes that are there, of at least a compact one. Return: 0; -EUCLEAN. */
int stele_erofs_inode_decode(const void *data, uint64_t size,
			     struct stele_erofs_inode *out, const char **why);

/* How much of a block an entry takes. */
static inline uint32_t stele_erofs_dirent_size(uint32_t name_size)
{
	return (uint32_t)sizeof(struct stele_disk_erofs_dirent) + name_size;
}
/*
 * A block of `count` entries, which fit and ascend, into zeroed bytes: set its next one.
 * `at`: bytes that the names before it have.
 */
void stele_erofs_dirent_put(uint8_t *block, uint32_t index, uint32_t count, uint32_t at,
			    const struct stele_erofs_dirent *entry);
/*
 * Of the `size` bytes of a directory that a block has. Return: how many there are; -EUCLEAN.
 * Then each can be had; -EUCLEAN (bounds, type, or a name that none can have).
 */
int stele_erofs_dirents_count(const uint8_t *block, uint32_t size, const char **why);
int stele_erofs_dirent_get(const uint8_t *block, uint32_t size, uint32_t index,
			   struct stele_erofs_dirent *out, const char **why);

/* Can a file or directory be named so? Not empty, . or .., too long, nor with a slash or zero. */
bool stele_erofs_name_ok(const char *name, size_t size);

#endif

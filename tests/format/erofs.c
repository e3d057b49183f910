/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erofs.c - what Stele writes of EROFS, byte by byte, and what it takes for its own
 */
#include <errno.h>
#include <string.h>

#include "format/erofs.h"
#include "tests/tap.h"

static const struct stele_erofs_super super = {
	.block_bits = 9,
	.block_count = 0x1234,
	.inode_count = 5,
	.time = 0x6553f100,
	.uuid = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb,
		 0xcc, 0xdd, 0xee, 0xff},
	.volume = "cats",
};
static const struct stele_erofs_inode root = {
	.type = STELE_EROFS_DIRECTORY,
	.extended = true,
	.link_count = 3,
	.size = 46,
	.block = 0x1107,
	.time = 7,
};

static void test_front(void)
{
	static const uint8_t golden[192] = {
		0xe2, 0xe1, 0xf5, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0,	/* magic, checksum, compat */
		0x09, 0, 0x24, 0x00, 0x05, 0, 0, 0, 0, 0, 0, 0, /* bits, root, inodes */
		0x00, 0xf1, 0x53, 0x65, 0, 0, 0, 0, 0, 0, 0, 0, /* time */
		0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,	/* blocks, area of inodes, xattrs */
		0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, /* uuid */
		0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
		'c', 'a', 't', 's',				/* volume */
		[0x80] = 0x01, 0, 0, 0, 0x6d, 0x41, 0, 0,	/* format, mode */
		0x2e, 0, 0, 0, 0, 0, 0, 0, 0x07, 0x11, 0, 0,	/* size, block */
		0x24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,		/* ino, owner */
		0x07, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,		/* time */
		0x03, 0, 0, 0,					/* links */
	};
	struct stele_disk_erofs_front disk;
	struct stele_erofs_super seen;
	struct stele_erofs_inode inode;

	stele_erofs_front_encode(&super, &root, &disk);
	is_blob(golden, &disk, sizeof(golden), "superblock and root are these bytes");
	is_int(0, stele_erofs_front_decode(&disk, &seen, &inode, NULL), "come back");
	is_uint(9, seen.block_bits, "block bits");
	is_uint(0x1234, seen.block_count, "blocks");
	is_uint(5, seen.inode_count, "inodes");
	is_string("cats", seen.volume, "volume");
	is_blob(super.uuid, seen.uuid, 16, "uuid");
	is_uint(46, inode.size, "size of the root");
	is_uint(0x1107, inode.block, "its block");
	is_uint(3, inode.link_count, "its links");
}

/* Another EROFS is none of ours: whatever bit of it differs. */
static void test_foreign(void)
{
	/* Of what says where and how large things are, any value may be ours. */
	static const struct {
		unsigned int from, to;
	} free[] = {
		{0x10, 0x20}, {0x24, 0x28}, {0x30, 0x50}, {0x88, 0x94}, {0xa0, 0xa8},
		{0xac, 0xb0},
	};
	struct stele_disk_erofs_front disk;
	struct stele_erofs_super seen;
	struct stele_erofs_inode inode;
	const char *why = "";
	unsigned int missed = 0;

	for (unsigned int i = 0; i < sizeof(disk); i++) {
		bool may = i == 0x0c; /* 9 to 12: below */

		for (unsigned int j = 0; j < sizeof(free) / sizeof(free[0]); j++)
			may |= i >= free[j].from && i < free[j].to;
		stele_erofs_front_encode(&super, &root, &disk);
		((uint8_t *)&disk)[i] ^= 0x10;
		missed += !may && !stele_erofs_front_decode(&disk, &seen, &inode, NULL);
	}
	is_uint(0, missed, "one that differs elsewhere is not ours");
	stele_erofs_front_encode(&super, &root, &disk);
	disk.super.magic = le32_put(0);
	is_int(-EMEDIUMTYPE, stele_erofs_front_decode(&disk, &seen, &inode, &why), "%s", why);
	stele_erofs_front_encode(&super, &root, &disk);
	disk.super.block_bits = 8;
	is_int(-EUCLEAN, stele_erofs_front_decode(&disk, &seen, &inode, &why), "%s", why);
	disk.super.block_bits = 13;
	is_int(-EUCLEAN, stele_erofs_front_decode(&disk, &seen, &inode, &why), "%s", why);
	stele_erofs_front_encode(&super, &root, &disk);
	disk.super.feature_incompat = le32_put(1);
	is_int(-EUCLEAN, stele_erofs_front_decode(&disk, &seen, &inode, &why), "%s", why);
}

static void test_inodes(void)
{
	static const uint8_t golden[32] = {
		0, 0, 0, 0, 0x24, 0x81, 0x02, 0, 0x0d, 0, 0, 0, 0, 0, 0, 0,
		0x08, 0x10, 0, 0, 0x00, 0x01, 0x01, 0,
	};
	const struct stele_erofs_inode file = {
		.type = STELE_EROFS_FILE, .link_count = 2, .size = 13, .block = 0x1008,
	};
	const struct stele_erofs_inode large = {
		.type = STELE_EROFS_FILE, .extended = true, .link_count = 70000,
		.size = UINT64_C(5) << 30, .block = 0xfffffffe, .time = -1,
	};
	struct stele_erofs_inode seen;
	const char *why = "";
	uint8_t disk[64];

	stele_erofs_inode_encode(&file, 0x10100, disk);
	is_blob(golden, disk, sizeof(golden), "a compact inode");
	is_int(0, stele_erofs_inode_decode(disk, 32, &seen, NULL), "comes back");
	ok(seen.type == STELE_EROFS_FILE && seen.size == 13 && seen.block == 0x1008 &&
		   seen.link_count == 2 && !seen.extended, "as it was");
	stele_erofs_inode_encode(&large, 0x10100, disk);
	is_int(0, stele_erofs_inode_decode(disk, 64, &seen, NULL), "an extended one, too");
	ok(seen.size == large.size && seen.block == large.block &&
		   seen.link_count == 70000 && seen.time == -1, "as it was");
	is_int(-EUCLEAN, stele_erofs_inode_decode(disk, 32, &seen, &why), "%s", why);
	for (unsigned int i = 0; i < 3; i++) {
		static const uint8_t at[] = {0, 2, 4}; /* format, xattrs, mode */

		stele_erofs_inode_encode(&file, 1, disk);
		disk[at[i]] ^= 2;
		is_int(-EUCLEAN, stele_erofs_inode_decode(disk, 32, &seen, &why), "%s", why);
	}
	stele_erofs_inode_encode(&file, 1, disk);
	disk[6] = 0;
	is_int(-EUCLEAN, stele_erofs_inode_decode(disk, 32, &seen, &why), "%s", why);
}

static void make_block(uint8_t block[512])
{
	static const struct stele_erofs_dirent entries[] = {
		{36, STELE_EROFS_DIRECTORY, ".", 1},
		{36, STELE_EROFS_DIRECTORY, "..", 2},
		{0x123456789a, STELE_EROFS_FILE, "cat.jpg", 7},
	};
	uint32_t at = 0;

	memset(block, 0, 512);
	for (uint32_t i = 0; i < 3; i++) {
		stele_erofs_dirent_put(block, i, 3, at, &entries[i]);
		at += entries[i].name_size;
	}
}

static void test_directory(void)
{
	static const uint8_t golden[46] = {
		0x24, 0, 0, 0, 0, 0, 0, 0, 36, 0, 2, 0,
		0x24, 0, 0, 0, 0, 0, 0, 0, 37, 0, 2, 0,
		0x9a, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 39, 0, 1, 0,
		'.', '.', '.', 'c', 'a', 't', '.', 'j', 'p', 'g',
	};
	struct stele_erofs_dirent seen;
	uint8_t block[512];

	make_block(block);
	is_blob(golden, block, sizeof(golden), "entries, then names");
	is_int(3, stele_erofs_dirents_count(block, 46, NULL), "three of them");
	is_int(0, stele_erofs_dirent_get(block, 46, 2, &seen, NULL), "the last one");
	ok(seen.nid == 0x123456789a && seen.type == STELE_EROFS_FILE &&
		   seen.name_size == 7 && !memcmp(seen.name, "cat.jpg", 7), "as it was");
	is_int(0, stele_erofs_dirent_get(block, 512, 2, &seen, NULL), "and in a full block");
	is_uint(7, seen.name_size, "where zeros end its name");
	is_int(-EUCLEAN, stele_erofs_dirent_get(block, 512, 3, &seen, NULL), "no fourth");
}

static void test_bad_directory(void)
{
	static const struct {
		uint8_t at, value;
		const char *what;
	} bad[] = {
		{8, 35, "no count of entries"}, {8, 0, "no entries"},
		{9, 4, "more than the block has"}, {20, 30, "a name among the entries"},
		{32, 60, "a name behind the end"}, {34, 3, "neither file nor directory"},
		{40, '/', "a slash in a name"}, {39, 0, "an empty name"},
	};
	struct stele_erofs_dirent seen;
	const char *why;
	uint8_t block[512];

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int ret = 0;

		why = "";
		make_block(block);
		block[bad[i].at] = bad[i].value;
		for (uint32_t j = 0; ret == 0 && j < 3; j++)
			ret = stele_erofs_dirent_get(block, 46, j, &seen, &why);
		is_int(-EUCLEAN, ret, "%s: %s", bad[i].what, why);
	}
	is_int(-EUCLEAN, stele_erofs_dirents_count(block, 11, NULL), "cut short");
}

static void test_names(void)
{
	char name[257];

	memset(name, 'x', sizeof(name));
	ok(stele_erofs_name_ok(name, 255), "255 bytes");
	ok(!stele_erofs_name_ok(name, 256), "not 256");
	ok(!stele_erofs_name_ok("", 0), "not empty");
	ok(!stele_erofs_name_ok(".", 1) && !stele_erofs_name_ok("..", 2), "not . nor ..");
	ok(stele_erofs_name_ok("...", 3) && stele_erofs_name_ok(".x", 2), "but others");
	ok(!stele_erofs_name_ok("a/b", 3) && !stele_erofs_name_ok("a\0b", 3),
	   "neither slash nor zero");
}

int main(void)
{
	plan_lazy();
	test_front();
	test_foreign();
	test_inodes();
	test_directory();
	test_bad_directory();
	test_names();
	return done();
}

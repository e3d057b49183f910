/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard-signatures.c - what carries something is refused, named, left alone
 *
 * Each thing that the tools of this machine can lay on a target, and some that
 * are written by hand: refused by name, unchanged byte for byte, and gone
 * after a wipe. libblkid's two functions are ours here, so that they can fail.
 */
#include "lib/device/guard.h"
#include "tests/device/loop.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <blkid/blkid.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define END (128 * KIB) /* what a wipe zeroes at either end */

/* %s is the target. */
static const struct {
	const char *name, *tool;
	uint64_t size;
	const char *make;
	const char *words;
	bool block; /* the tool wants a block device */
} things[] = {
	{"ext2", "mkfs.ext2", 8 * MIB, "mkfs.ext2 -q -F -L 'a label' %s",
	 "ext2 (filesystem), label 'a label', uuid '", false},
	{"ext3", "mkfs.ext3", 16 * MIB, "mkfs.ext3 -q -F %s",
	 "ext3 (filesystem), uuid '", false},
	{"ext4", "mkfs.ext4", 8 * MIB, "mkfs.ext4 -q -F %s",
	 "ext4 (filesystem)", true},
	{"xfs", "mkfs.xfs", 300 * MIB, "mkfs.xfs -q %s", "xfs (filesystem)",
	 false},
	{"btrfs", "mkfs.btrfs", 128 * MIB, "mkfs.btrfs -q %s",
	 "btrfs (filesystem)", true},
	{"vfat", "mkfs.vfat", 8 * MIB, "mkfs.vfat %s", "vfat (filesystem)",
	 false},
	{"exfat", "mkfs.exfat", 8 * MIB, "mkfs.exfat %s", "exfat (filesystem)",
	 false},
	{"ntfs", "mkfs.ntfs", 8 * MIB, "mkfs.ntfs -Q -q -F %s",
	 "ntfs (filesystem)", false},
	{"f2fs", "mkfs.f2fs", 64 * MIB, "mkfs.f2fs -q %s", "f2fs (filesystem)",
	 false},
	{"minix", "mkfs.minix", 8 * MIB, "mkfs.minix %s", "minix (filesystem)",
	 false},
	{"cramfs", "mkfs.cramfs", 0, "mkfs.cramfs tests/lib %s",
	 "cramfs (filesystem)", false},
	{"squashfs", "mksquashfs", 0, "mksquashfs tests/lib %s -noappend",
	 "squashfs (filesystem)", false},
	{"erofs", "mkfs.erofs", 0, "mkfs.erofs %s tests/lib",
	 "erofs (filesystem)", false},
	{"erofs that is squashfs, too", "mkfs.erofs", 0,
	 "mkfs.erofs %1$s tests/lib && mksquashfs tests/lib %1$s.2 -noappend && "
	 "dd if=%1$s.2 of=%1$s bs=96 count=1 conv=notrunc",
	 "erofs (filesystem)", false},
	{"swap", "mkswap", 8 * MIB, "mkswap %s", "swap (other)", false},
	{"LUKS1", "cryptsetup", 32 * MIB,
	 "printf pw | cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 %s -",
	 "crypto_LUKS (crypto)", false},
	{"LUKS2", "cryptsetup", 32 * MIB,
	 "printf pw | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 "
	 "--pbkdf-force-iterations 1000 %s -",
	 "crypto_LUKS (crypto)", false},
	{"LVM", "pvcreate", 32 * MIB, "pvcreate -y %s", "LVM2_member (raid)",
	 true},
	{"LVM of a bad checksum", "pvcreate", 32 * MIB,
	 "pvcreate -y %1$s && printf x | dd of=%1$s bs=1 seek=600 conv=notrunc",
	 "LVM2_member (raid)", true},
	{"MBR", "sfdisk", 8 * MIB, "echo , | sfdisk %s",
	 "dos (partition table)", false},
	{"GPT", "sfdisk", 8 * MIB, "echo 'label: gpt' | sfdisk %s",
	 "gpt (partition table)", true},
	{"GPT that lost its front", "sfdisk", 8 * MIB,
	 "echo 'label: gpt' | sfdisk %1$s && "
	 "dd if=/dev/zero of=%1$s bs=4k count=8 conv=notrunc",
	 "gpt (partition table)", false},
	{"MD of version 1.2, by hand", "printf", 8 * MIB,
	 "printf '\\374\\116\\053\\251\\001' | dd of=%1$s bs=1 seek=4096 conv=notrunc && "
	 "printf '\\010' | dd of=%1$s bs=1 seek=4240 conv=notrunc",
	 "linux_raid_member (raid)", false},
	{"MD of version 0.90, by hand", "printf", 8 * MIB,
	 "printf '\\374\\116\\053\\251\\000\\000\\000\\000\\132' | "
	 "dd of=%1$s bs=1 seek=8323072 conv=notrunc",
	 "linux_raid_member (raid)", false},
	{"UFS far from both ends, by hand", "printf", 8 * MIB,
	 "printf '\\031\\001\\124\\031' | dd of=%s bs=1 seek=263516 conv=notrunc",
	 "ufs (filesystem)", false},
};

static int (*real_probe)(blkid_probe probe);
static int (*real_wipe)(blkid_probe probe, int dryrun);
static int probe_fails_with; /* 0: it works */
static bool wipe_lies;

int blkid_do_probe(blkid_probe probe)
{
	return probe_fails_with ? probe_fails_with : real_probe(probe);
}

int blkid_do_wipe(blkid_probe probe, int dryrun)
{
	return wipe_lies ? 0 : real_wipe(probe, dryrun);
}

static char said[8192];

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	size_t used = strlen(said);

	(void)user, (void)level;
	snprintf(said + used, sizeof(said) - used, "%s\n", line);
}

static const struct stele_log keep = {.fn = keep_line};

static int signatures(const char *path)
{
	struct stele_device *dev;
	int err;

	said[0] = '\0';
	err = stele_device_open_file(path, STELE_DEVICE_EXCL, NULL, NULL, &dev);
	if (err)
		bail("cannot open '%s': %d", path, err);
	err = stele_guard_signatures(dev, NULL, &keep);
	stele_device_close(dev);
	return err;
}

static int wipe(const char *path)
{
	struct stele_device *dev;
	int err;

	said[0] = '\0';
	err = stele_device_open_file(path,
				     STELE_DEVICE_WRITE | STELE_DEVICE_EXCL,
				     NULL, NULL, &dev);
	if (err)
		bail("cannot open '%s': %d", path, err);
	err = stele_guard_wipe(dev, 0, 0, &keep);
	stele_device_close(dev);
	return err;
}

/* Are the bytes at offset zero, as the device itself has them? */
static bool zero_at(const char *path, uint64_t offset, size_t size)
{
	uint8_t *data = malloc(size);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool zero = fd >= 0 && data &&
		    pread(fd, data, size, (off_t)offset) == (ssize_t)size;

	for (size_t i = 0; zero && i < size; i++)
		zero = !data[i];
	close(fd);
	free(data);
	return zero;
}

static uint64_t size_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);

	close(fd);
	return size < 0 ? 0 : (uint64_t)size;
}

static void check_wiped(const char *path, const char *name)
{
	uint64_t size = size_of(path) & ~UINT64_C(511), end = END;

	if (end > size)
		end = size;
	is_int(0, wipe(path), "%s: wiped", name);
	ok(strstr(said, "carries"), "%s: says what was erased", name);
	ok(zero_at(path, 0, end) && zero_at(path, size - end, end),
	   "%s: both ends are zero", name);
	ok(!command("blkid -p %s", path), "%s: nothing is left to blkid", name);
	said[0] = '\0';
}

static void check_refused(const char *path, size_t i, const char *where)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s", things[i].name, where);
	if (!command("cp --sparse=always %s %s/copy", path, test_tmpdir()))
		bail("cannot copy '%s'", path);
	is_int(-EEXIST, signatures(path), "%s: refused", name);
	ok(strstr(said, things[i].words), "%s: says '%s'", name,
	   things[i].words);
	diag("%s", said);
	ok(command("cmp %s %s/copy", path, test_tmpdir()), "%s: unchanged",
	   name);
	check_wiped(path, name);
}

static void check_thing(size_t i)
{
	char path[PATH_MAX], node[LOOP_NODE_SIZE], make[2048];

	if (!command_exists(things[i].tool)) {
		skip_block(7, "needs %s", things[i].tool);
		return;
	}
	snprintf(path, sizeof(path), "%s", file_new("thing", things[i].size));
	if (things[i].block && !loop_usable()) {
		skip_block(7, "needs root and loop devices");
		return;
	}
	if (things[i].block && !loop_attach(path, 512, node))
		bail("no loop device");
	snprintf(make, sizeof(make), things[i].make,
		 things[i].block ? node : path);
	if (!command("%s", make))
		skip_block(7, "needs a %s that makes %s", things[i].tool,
			   things[i].name);
	else if (things[i].block)
		check_refused(node, i, " on a device");
	else
		check_refused(path, i, "");
	if (things[i].block)
		loop_detach(node);
}

/* ---- what is empty, and what is just not known ----------------------------- */

static void check_empty(void)
{
	char path[PATH_MAX], node[LOOP_NODE_SIZE];

	snprintf(path, sizeof(path), "%s", file_new("empty", 0));
	is_int(0, signatures(path), "a file without bytes: empty");
	snprintf(path, sizeof(path), "%s", file_new("hole", 8 * MIB));
	is_int(0, signatures(path), "a file that is all hole: empty");
	is_string("", said, "nothing to say of it");
	if (!command("printf x | dd of=%s bs=1 seek=5000000 conv=notrunc", path))
		bail("cannot write '%s'", path);
	is_int(-EEXIST, signatures(path), "a file with one byte: refused");
	ok(strstr(said, "not empty"), "says so");
	if (!loop_usable()) {
		skip_block(5, "needs root and loop devices");
		return;
	}
	if (!loop_attach(path, 4096, node))
		bail("no loop device");
	is_int(0, signatures(node), "a device with one byte: nothing known");
	is_string("", said, "nothing to say of it");
	is_int(0, wipe(node), "wiping it succeeds");
	ok(!zero_at(node, 5000000, 1), "and leaves the middle alone");
	ok(zero_at(node, 0, END), "but not the front");
	loop_detach(node);
}

/* Sizes where front and back overlap, or do not fill blocks. */
static void check_small(void)
{
	static const uint64_t sizes[] = {1 * KIB, 127 * KIB, 200 * KIB,
					 256 * KIB, 300 * KIB, 300 * KIB + 7};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t size = sizes[i], whole = size & ~UINT64_C(4095);
		uint64_t end = whole < END ? whole : END;
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s", file_new("small", 0));
		if (!command("head -c %ju /dev/zero | tr '\\0' x >%s",
			     (uintmax_t)size, path))
			bail("cannot write '%s'", path);
		is_int(0, wipe(path), "%ju bytes: wiped", (uintmax_t)size);
		ok(!end || (zero_at(path, 0, end) &&
			    zero_at(path, whole - end, end)),
		   "%ju bytes: both ends are zero", (uintmax_t)size);
		is_uint(size, size_of(path), "%ju bytes: as many afterwards",
			(uintmax_t)size);
		ok(whole < 2 * END + 4096 ||
			   !zero_at(path, END, whole - 2 * END),
		   "%ju bytes: nothing between", (uintmax_t)size);
	}
}

/* ---- when libblkid fails or lies --------------------------------------------- */

static void check_failures(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", file_new("failing", 8 * MIB));
	for (int rc = -1; rc >= -2; rc--) {
		probe_fails_with = rc;
		is_int(-EIO, signatures(path),
		       "a probe that says %d: refused", rc);
		ok(strstr(said, "libblkid cannot"), "and says so");
		is_int(-EIO, wipe(path), "and no wipe either");
	}
	probe_fails_with = -ENOMEM;
	is_int(-ENOMEM, signatures(path), "or an errno: refused");
	ok(strstr(said, "carries: Cannot allocate memory"), "and says which");
	probe_fails_with = 0;
	is_int(0, signatures(path), "it was for the probe alone");

	if (!command("printf '\\031\\001\\124\\031' | "
		     "dd of=%s bs=1 seek=263516 conv=notrunc", path))
		bail("cannot write '%s'", path);
	wipe_lies = true;
	is_int(-EEXIST, wipe(path), "a wipe that did nothing is no success");
	wipe_lies = false;
	is_int(0, wipe(path), "one that did is");
}

static void check_no_file(void)
{
	struct stele_device *dev;

	dev = test_memory(MIB, 512, 0);
	is_int(-EOPNOTSUPP, stele_guard_signatures(dev, NULL, NULL),
	       "memory cannot be probed");
	is_int(-EOPNOTSUPP, stele_guard_wipe(dev, 0, 0, NULL), "nor wiped");
	stele_device_close(dev);
}

int main(void)
{
	real_probe = dlsym(RTLD_NEXT, "blkid_do_probe");
	real_wipe = dlsym(RTLD_NEXT, "blkid_do_wipe");
	if (!real_probe || !real_wipe)
		bail("no libblkid");
	plan_lazy();
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
		check_thing(i);
	check_empty();
	check_small();
	check_failures();
	check_no_file();
	return done();
}

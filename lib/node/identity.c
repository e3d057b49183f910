/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - is this still the device or file that was mapped?
 *
 * Numbers of devices and of inodes are used again. What tells the old from the
 * new is the kernel's count of disks (diskseq) and a file's time of birth;
 * where one of them is not to be had, the rest must do.
 */
#include "lib/node/mapping.h"

#include "lib/device/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SECTOR_SIZE	512 /* of sysfs, whatever the device has */
#define LOOP_LEVELS_MAX 4u

static void identify_block(dev_t number, struct stele_identity *out)
{
	uint64_t sectors;

	out->rdev = number;
	if (!stele_stack_attribute(number, "size", &sectors))
		out->size = sectors * SECTOR_SIZE;
	/* A partition has that of its disk. */
	if (stele_stack_attribute(number, "diskseq", &out->sequence) &&
	    stele_stack_attribute(number, "../diskseq", &out->sequence))
		out->sequence = 0;
}

static int identify(int dir, const char *path, int flags,
		    struct stele_identity *out)
{
	struct statx stx;

	memset(out, 0, sizeof(*out));
	if (statx(dir, path, flags, STATX_BASIC_STATS | STATX_BTIME, &stx))
		return -errno;
	if (S_ISBLK(stx.stx_mode)) {
		identify_block(makedev(stx.stx_rdev_major, stx.stx_rdev_minor),
			       out);
		return 0;
	}
	if (!S_ISREG(stx.stx_mode))
		return -ENOTBLK;
	out->fsdev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	out->inode = stx.stx_ino;
	out->size = stx.stx_size;
	if (stx.stx_mask & STATX_BTIME)
		out->sequence = (uint64_t)stx.stx_btime.tv_sec * 1000000000u +
				stx.stx_btime.tv_nsec;
	return 0;
}

int stele_identity_of_path(const char *path, struct stele_identity *out)
{
	return identify(AT_FDCWD, path, 0, out);
}

static int identity_of_fd(int fd, struct stele_identity *out)
{
	return identify(fd, "", AT_EMPTY_PATH, out);
}

int stele_identity_of_device(struct stele_device *dev,
			     struct stele_identity *out)
{
	struct stele_storage_id id;
	int err = stele_device_identify(dev, &id), fd = stele_device_fd(dev);

	if (err && err != -EOPNOTSUPP)
		return err;
	if (err || fd >= 0) {
		err = identity_of_fd(fd, out);
	} else {
		memset(out, 0, sizeof(*out));
		err = stele_device_size(dev, &out->size);
	}
	out->storage = id;
	return err;
}

bool stele_storage_same_image(const struct stele_storage_id *a,
			      const struct stele_storage_id *b)
{
	return !strcmp(a->cluster, b->cluster) && a->pool == b->pool &&
	       !strcmp(a->image, b->image);
}

bool stele_storage_same(const struct stele_storage_id *a,
			const struct stele_storage_id *b)
{
	return stele_storage_same_image(a, b) && a->snap == b->snap;
}

bool stele_identity_same(const struct stele_identity *old,
			 const struct stele_identity *now)
{
	return stele_storage_same(&old->storage, &now->storage) &&
	       old->rdev == now->rdev && old->fsdev == now->fsdev &&
	       old->inode == now->inode &&
	       (old->size <= now->size || !now->size) &&
	       (old->sequence == now->sequence || !old->sequence ||
		!now->sequence);
}

/* Of a loop device the file or device at the bottom, as far as that can be told. */
static struct stele_identity bottom(struct stele_identity id)
{
	struct stat st;

	for (unsigned int i = 0; i < LOOP_LEVELS_MAX && id.rdev &&
				 stele_stack_backing(id.rdev, &st);
	     i++) {
		id = (struct stele_identity){.storage = id.storage};
		if (S_ISBLK(st.st_mode)) {
			id.rdev = st.st_rdev;
		} else {
			id.fsdev = st.st_dev;
			id.inode = st.st_ino;
		}
	}
	return id;
}

bool stele_mapping_is_on(const struct stele_mapping *mapping,
			 const struct stele_identity *target)
{
	const struct stele_identity *mapped = &mapping->identity;
	struct stele_identity old, now;

	if (*target->storage.cluster)
		return stele_storage_same_image(&mapped->storage,
						&target->storage);
	/* The number of a device that is gone may be another one's by now. */
	if (mapping->info.stale)
		return stele_identity_same(mapped, target);
	old = bottom(*mapped);
	now = bottom(*target);
	return stele_identity_same(&old, &now);
}

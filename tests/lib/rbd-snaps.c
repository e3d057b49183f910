/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd-snaps.c - RBD snapshots: made, protected, renamed and removed as the seam
 * says, while a reader goes on
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/snaps.h"
#include "tests/device/ceph.h"
#include "tests/tap.h"

#define SIZE (UINT64_C(8) << 20)

/* "v1+ v2 ": + says protected. */
static const char *list(struct stele_device *dev)
{
	static char seen[512];
	struct stele_rbd_snaps snaps;
	size_t used = 0;

	seen[0] = '\0';
	if (stele_device_snaps(dev)->list(dev, &snaps))
		return "?";
	for (size_t i = 0; i < snaps.count; i++)
		used += (size_t)snprintf(seen + used, sizeof(seen) - used, "%s%s ",
					 snaps.list[i].name,
					 snaps.list[i].is_protected ? "+" : "");
	stele_rbd_snaps_release(&snaps);
	return seen;
}

static struct stele_device *open_or_bail(const char *path, const char *snap,
					 unsigned int flags)
{
	struct stele_device *dev;
	int rc = stele_device_open(path, snap, flags, NULL, NULL, &dev);

	if (rc)
		bail("cannot open '%s': %s", path, strerror(-rc));
	return dev;
}

static uint8_t first_byte(struct stele_device *dev)
{
	static _Alignas(4096) uint8_t block[4096];
	int rc = stele_device_read(dev, block, 0, sizeof(block));

	return rc ? 255 : block[0];
}

static void put_byte(struct stele_device *dev, uint8_t value)
{
	_Alignas(4096) uint8_t block[4096] = {value};

	if (stele_device_write(dev, block, 0, sizeof(block)) ||
	    stele_device_flush(dev))
		bail("cannot write");
}

int main(void)
{
	struct stele_device *dev, *reader, *none;
	const struct stele_rbd_snap_ops *ops;
	const char *path;

	plan_lazy();
	requires_ceph();
	path = rbd_new(SIZE);
	dev = open_or_bail(path, NULL, STELE_DEVICE_WRITE | STELE_DEVICE_SOLE);
	ops = stele_device_snaps(dev);
	is_string("", list(dev), "none at first");
	put_byte(dev, 1);
	is_int(0, ops->make(dev, "v1"), "make");
	is_int(-EEXIST, ops->make(dev, "v1"), "make again");
	is_string("v1 ", list(dev), "it is there, not protected");
	is_int(-EPERM, stele_device_open(path, "v1", 0, NULL, NULL, &none),
	       "and is not read");
	is_int(0, ops->protect(dev, "v1", true), "protect");
	is_int(0, ops->protect(dev, "v1", true), "protect again");
	is_int(-ENOENT, ops->protect(dev, "v0", true), "protect what is not there");
	is_int(-EBUSY, ops->remove(dev, "v1"), "remove what is protected");
	put_byte(dev, 2);
	is_int(0, ops->make(dev, "v2"), "make another");
	is_string("v1+ v2 ", list(dev), "oldest first");

	reader = open_or_bail(path, "v1", 0);
	is_int(0, ops->rename(dev, "v1", "gone"), "rename one that is protected");
	is_int(-ENOENT, ops->rename(dev, "v1", "gone"), "what is not there");
	is_int(-EEXIST, ops->rename(dev, "v2", "gone"), "to what is there");
	put_byte(dev, 3);
	is_int(1, first_byte(reader), "a reader of the old name goes on");
	is_int(0, stele_device_check(reader), "undisturbed");
	is_int(-ENOENT, stele_device_open(path, "v1", 0, NULL, NULL, &none),
	       "new ones don't find it");
	is_int(0, ops->protect(dev, "gone", false), "unprotect");
	is_int(0, ops->protect(dev, "gone", false), "unprotect again");
	is_int(0, ops->remove(dev, "gone"), "remove");
	is_int(-ENOENT, ops->remove(dev, "gone"), "remove again");
	is_int(-ESTALE, stele_device_check(reader), "a reader can tell");
	stele_device_close(reader);
	is_string("v2 ", list(dev), "the other one stays");

	is_int(0, ops->protect(dev, "v2", true), "protect");
	if (!ceph_command("rbd", "clone %s@v2 rbd/clone.of.snaps",
			  rbd_spec(path)))
		bail("cannot clone");
	is_int(-EBUSY, ops->protect(dev, "v2", false),
	       "one that has clones stays protected");
	ceph_command("rbd", "rm rbd/clone.of.snaps");
	is_int(0, ops->protect(dev, "v2", false), "until they are gone");
	stele_device_close(dev);
	return done();
}

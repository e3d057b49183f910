/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.h - RBD snapshots that the kernel has attached as block devices
 *
 * rbd(8) attaches and detaches them, and who calls the library runs it: here a
 * device is found in sysfs, opened, and refused if it is not the RBD snapshot
 * that it should be. Names don't count: it is the same one if cluster, pool,
 * image and snapshot have the same ids.
 *
 * When an RBD snapshot is removed while krbd has it attached, reads go on
 * without an error and return what the image's head holds (seen with Linux
 * 6.12). So checksums are always verified, and one that fails is followed by a
 * question to the cluster.
 */
#ifndef STELE_NODE_KRBD_H
#define STELE_NODE_KRBD_H

#include "lib/node/mapping.h"

#define STELE_KRBD_SYSFS     "/sys/bus/rbd"
#define STELE_KRBD_NODE_SIZE 32

/*
 * The device that is this snapshot, as "/dev/rbd0". `sysfs` is STELE_KRBD_SYSFS but
 * in tests. Return: 1; 0 (none); -EOPNOTSUPP (no krbd in this kernel); errno.
 */
int stele_krbd_find(const char *sysfs, const struct stele_storage_id *id,
		    char node[STELE_KRBD_NODE_SIZE]);
/* The node of the device with this st_rdev. Return: 0; -ENOENT. */
int stele_krbd_node_of(uint64_t rdev, char node[STELE_KRBD_NODE_SIZE]);

/*
 * A device for reading: the block device `node`, which is `storage`. When in doubt about
 * what was read, stele_device_check() asks Ceph for snapshot `snapshot` of `target`.
 * Return: as stele_device_open_file().
 */
int stele_device_open_krbd(const char *node, const char *target,
			   const char *snapshot,
			   const struct stele_storage_id *storage,
			   const char *backend, const struct stele_log *log,
			   struct stele_device **out);

/* ---- map_krbd.c ------------------------------------------------------------ */

/* Of opts->via. Return: 0; -EINVAL (logged). */
int stele_map_krbd_check(const struct stele_map_opts *opts,
			 const struct stele_log *log);
/*
 * *dev is snapshot `snapshot` of mapping->target, open through librbd. Replace it by a
 * device of the kernel, which opts->attach() provides if there is none yet; then
 * mapping->attached is set. Unless opts->via insists, *dev stays when that fails.
 * Return: 0; -EOPNOTSUPP; -ESTALE (what was attached is another one); errno. *dev is
 * closed on an error.
 */
int stele_map_krbd_open(const struct stele_map_opts *opts,
			struct stele_mapping *mapping, const char *snapshot,
			const struct stele_log *log, struct stele_device **dev);
/*
 * Have opts->detach() detach the device of a mapping that is removed, or was never published
 * (then its name is empty), unless another mapping needs it. Return: 0; -EBUSY (the device
 * is open); errno. Logged.
 */
int stele_map_krbd_close(const struct stele_map_opts *opts,
			 const struct stele_mapping *mapping,
			 const struct stele_log *log);

#endif

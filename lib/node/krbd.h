/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.h - the kernel's RBD client: a protected shot as a read-only block device
 *
 * The kernel is told by one line written to sysfs, and says in sysfs what it
 * has. Nothing is known by name alone: a shot is the same one when cluster,
 * pool, image id and shot id agree. A library loads no module.
 *
 * What krbd does when a shot goes away under it (seen with Linux 6.12): reads
 * go on without error, and bring what the image's head has by now. So the
 * reader's checksums stay, and what fails them is asked of Ceph.
 *
 * `sysfs` is STELE_KRBD_SYSFS; tests have a directory of their own.
 */
#ifndef STELE_NODE_KRBD_H
#define STELE_NODE_KRBD_H

#include "lib/node/mapping.h"

#define STELE_KRBD_SYSFS     "/sys/bus/rbd"
#define STELE_KRBD_NODE_SIZE 32
/* What sysfs takes in one write: a page, with the terminator. */
#define STELE_KRBD_LINE_MAX 4095u

/* One shot of one image. */
struct stele_krbd_shot {
	const char *fsid; /* of the cluster, as text */
	const char *pool, *ns, *image, *shot; /* ns: "" is the pool's own */
	const char *image_id;
	uint64_t shot_id;
};

/* How to get there. */
struct stele_krbd_access {
	const char *monitors; /* "192.0.2.1:3300,192.0.2.2:3300" */
	const char *user;     /* without "client." */
	const char *key;      /* base64; NULL: a cluster without cephx */
	const char *mode;     /* ms_mode of messenger v2; NULL: these are v1 */
};

/*
 * The line for the kernel, malloc'ed; `auth` is "secret=...", "key=..." or
 * NULL. What the line has no way to say (blanks in a name) is -EOPNOTSUPP,
 * as is a line that is too long.
 */
int stele_krbd_compose(const struct stele_krbd_access *access,
		       const struct stele_krbd_shot *shot, const char *auth,
		       char **line);

/*
 * Which of the kernel's devices is this shot? Return: 1 (*number is set); 0
 * none; -EOPNOTSUPP (no krbd in this kernel); errno.
 */
int stele_krbd_find(const char *sysfs, const struct stele_krbd_shot *shot,
		    uint32_t *number);

/*
 * Attach a shot, whether or not it is already. Everything is logged.
 * Return: 0 (*number is set); -EOPNOTSUPP (no krbd, not this cluster or image);
 * -EACCES; -ESTALE (it was replaced meanwhile); errno of the kernel.
 */
int stele_krbd_attach(const char *sysfs, const struct stele_krbd_access *access,
		      const struct stele_krbd_shot *shot,
		      const struct stele_log *log, uint32_t *number);
/* Return: 0, also when it is gone already; -EBUSY (open; logged); errno. */
int stele_krbd_detach(const char *sysfs, uint32_t number,
		      const struct stele_log *log);

/* "/dev/rbd0". Its number if `node` is one of these, else -EINVAL. */
void stele_krbd_node(uint32_t number, char node[STELE_KRBD_NODE_SIZE]);
int stele_krbd_number(const char *node, uint32_t *number);
/* The node of the device with this st_rdev. Return: 0; -ENOENT. */
int stele_krbd_node_of(uint64_t rdev, char node[STELE_KRBD_NODE_SIZE]);

/* ---- krbd_device.c ----------------------------------------------------------- */

/*
 * A device for reading: the block device `node`, which is `storage`. Who doubts
 * what it reads (stele_device_check()) asks Ceph for snapshot `shot` of `target`.
 * Return: as stele_device_open_file().
 */
int stele_device_open_krbd(const char *node, const char *target,
			   const char *shot,
			   const struct stele_storage_id *storage,
			   const char *backend, const struct stele_log *log,
			   struct stele_device **out);

#endif

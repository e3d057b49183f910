/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - what another client must know to get at the shot of a device
 *
 * The kernel's RBD client takes addresses and a key, no configuration. Here
 * they are asked of the cluster and of librados, for a device that is open: so
 * they are those that work.
 */
#ifndef STELE_DEVICE_RBD_ACCESS_H
#define STELE_DEVICE_RBD_ACCESS_H

#include "lib/device/device.h"

#define STELE_RBD_FSID_SIZE 37

struct stele_rbd_access {
	char fsid[STELE_RBD_FSID_SIZE];
	char *pool, *ns, *image, *shot; /* ns: "" is the pool's own */
	char *image_id;
	uint64_t shot_id;
	char *user;
	char *key;	/* base64; NULL: there is none */
	char *monitors; /* "192.0.2.1:3300,192.0.2.2:3300" */
	const char *mode; /* of messenger v2, for the kernel; NULL: these are v1 */
};

/*
 * Of an RBD device that is open at a shot. Logged. Only with HAVE_LIBRBD.
 * Return: 0; -EOPNOTSUPP (another device); -ENOMEM; errno.
 */
int stele_rbd_access_get(struct stele_device *dev,
			 struct stele_rbd_access *out);
void stele_rbd_access_release(struct stele_rbd_access *access);

#endif

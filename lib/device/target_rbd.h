/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_rbd.h - what a user calls an RBD image: rbd:POOL[/NAMESPACE]/IMAGE[?OPTIONS]
 *
 * OPTIONS: "conf=FILE", "user=ID", "timeout=SECONDS", "connections=N", with '&' between
 * them. In a value any byte may be written as %XX; these must: '@', '&', '%'.
 * So one '@' at most stands in a target, and it divides: the snapshot follows
 * the image, or the options. Text alone: no Ceph is asked here.
 */
#ifndef STELE_DEVICE_TARGET_RBD_H
#define STELE_DEVICE_TARGET_RBD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/log.h"

#define STELE_RBD_PREFIX	  "rbd:"
#define STELE_RBD_TARGET_MAX	  2000u /* bytes of a whole target */
#define STELE_RBD_TIMEOUT_MAX	  86400u
#define STELE_RBD_CONNECTIONS_MAX 16u

struct stele_rbd_name {
	char *pool, *ns, *image; /* ns: NULL when it is the pool's own */
	char *conf, *user;	 /* NULL: not said; the same for 0 below */
	uint32_t timeout;	 /* seconds */
	uint32_t connections;
};

/*
 * Cut a whole target in two: *path without snapshot, *snapshot what stands
 * behind the '@' (NULL: there is none). Both are malloc'ed.
 * Return: 0; -EINVAL (two of them, or too long; logged); -ENOMEM.
 */
int stele_rbd_divide(const char *text, const struct stele_log *log, char **path,
		     char **snapshot);
/*
 * Take a path (without '@') apart. Return: 0; -EINVAL (logged); -ENOMEM. On an
 * error *out is empty.
 */
int stele_rbd_name_parse(const char *path, const struct stele_log *log,
			 struct stele_rbd_name *out);
/* The one way to write it, malloc'ed; NULL: no memory. */
char *stele_rbd_name_format(const struct stele_rbd_name *name);
void stele_rbd_name_release(struct stele_rbd_name *name);

#endif

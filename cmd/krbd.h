/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.h - attach RBD snapshots to the kernel, and detach them, by rbd(8)
 *
 * For stele_map_opts: Ceph's own tool finds monitors and keys, and hands them
 * to the kernel.
 */
#ifndef STELE_CMD_KRBD_H
#define STELE_CMD_KRBD_H

#include "stele.h"

int krbd_attach(void *user, const struct stele_map_rbd *rbd,
		char why[STELE_MAP_REASON_SIZE]);
int krbd_detach(void *user, const char *device,
		char why[STELE_MAP_REASON_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_krbd.h - whether the kernel reads an RBD snapshot that gets mapped
 *
 * krbd devices are shared: what the kernel has attached already, by us or by
 * anybody, is used again. Detached is what mappings attached, with the last of
 * them.
 */
#ifndef STELE_NODE_MAP_KRBD_H
#define STELE_NODE_MAP_KRBD_H

#include "lib/node/mapping.h"

enum stele_via {
	STELE_VIA_AUTO,	  /* krbd, and where that does not work librbd */
	STELE_VIA_KRBD,
	STELE_VIA_LIBRBD,
};

/* NULL, "auto", "krbd", "librbd". Return: 0; -EINVAL. */
int stele_via_parse(const char *text, enum stele_via *out);

/*
 * *dev is open at the shot of snapshot `snapshot`, through librbd, and can be
 * opened as `target`. Put a device over the kernel's in its place; *attached:
 * for mappings alone. With AUTO it stays as it is when the kernel cannot, and
 * the log says why.
 * Return: 0; -EOPNOTSUPP, -EACCES and others of stele_krbd_attach(); *dev is
 * closed then.
 */
int stele_map_krbd_open(enum stele_via via, const char *target,
			const char *snapshot, const char *backend,
			const struct stele_log *log, struct stele_device **dev,
			bool *attached);

/*
 * Detach the device of a mapping that goes (or never was published: with an
 * empty name), unless another one needs it. Return: 0; -EBUSY (it is open;
 * logged); errno.
 */
int stele_map_krbd_close(const struct stele_mapping *mapping,
			 const struct stele_log *log);

#endif

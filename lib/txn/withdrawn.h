/* SPDX-License-Identifier: Apache-2.0 */
/*
 * withdrawn.h - shots of snapshots that are no more
 *
 * Who reads a snapshot through its shot cannot be seen. So when the snapshot
 * goes, its shot may get another name, by which nobody opens it and which says
 * until when it is to stay: "stele-withdrawn-UNIXTIME-NAME". Those who have it
 * open read on. It stays protected until it is removed.
 *
 * No snapshot gets such a name. Of one that has it all the same, from before that
 * rule, the shot is its own as long as the catalog has it.
 */
#ifndef STELE_TXN_WITHDRAWN_H
#define STELE_TXN_WITHDRAWN_H

#include "format/catalog.h"
#include "lib/device/device.h"

#define STELE_WITHDRAWN_PREFIX	  STELE_NAME_RESERVED
#define STELE_WITHDRAWN_NAME_SIZE 128u /* with terminator */

/*
 * Is this the name of a withdrawn one? Its time, and in `name` (may be NULL)
 * what the snapshot was called: points into `shot`.
 */
bool stele_withdrawn_parse(const char *shot, int64_t *until, const char **name);

/*
 * From snapshot `name` to a withdrawn shot. No such shot is a success: it was
 * made half, or is withdrawn already. Return: 0; errno of the storage (logged).
 */
int stele_withdrawn_make(struct stele_device *dev, const struct stele_log *log,
			 const char *name, int64_t until);
/* Unprotect and remove any shot. Likewise; -EBUSY: the storage has a use for it. */
int stele_withdrawn_remove(struct stele_device *dev,
			   const struct stele_log *log, const char *shot);

#endif

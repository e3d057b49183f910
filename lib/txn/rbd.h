/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd.h - the RBD snapshots that belong to an image's snapshots
 *
 * In Ceph each snapshot of the catalog is read through a protected RBD snapshot of
 * its name. Those of names that are not in the catalog are not ours, and not touched.
 *
 * Who reads a snapshot through its RBD snapshot cannot be seen. So when the snapshot
 * goes, its RBD snapshot may be tombstoned: it gets another name, by which nobody opens it
 * and which says until when it is to stay: "stele-tombstone-UNIXTIME-NAME". Those who have
 * it open read on. It stays protected until it is removed.
 *
 * No snapshot gets such a name. Of one that has it all the same, from before that
 * rule, the RBD snapshot is its own as long as the catalog has it.
 *
 * On other storage all functions do nothing.
 */
#ifndef STELE_TXN_RBD_H
#define STELE_TXN_RBD_H

#include "lib/txn/txn.h"

/*
 * Make and protect what the catalog has and the storage lacks. Goes on after an error
 * (logged), and returns the first one.
 */
int stele_rbd_complete(struct stele_txn *txn);
/*
 * An RBD snapshot that was there before its snapshot cannot hold it. `name`: only that
 * one; NULL: all that are not committed yet. Return: 0; -EEXIST (logged); errno.
 */
int stele_rbd_check_names(struct stele_txn *txn, const char *name);

/*
 * What becomes of those of snapshots that the next generation does not have, or not by
 * that name: removed if txn->revoke, else tombstoned for txn->grace seconds from `time`
 * on. Return: 0; errno (logged).
 */
int stele_rbd_drop(struct stele_txn *txn, int64_t time);

/*
 * Is this the name of a tombstoned one? Its time, and in `name` (may be NULL)
 * what the snapshot was called: points into `text`.
 */
bool stele_tombstone_parse(const char *text, int64_t *until, const char **name);
/*
 * Unprotect and remove any of them. Return: 0; errno of the storage (logged); -EBUSY: the
 * storage has a use for it.
 */
int stele_rbd_remove(struct stele_device *dev, const struct stele_log *log,
		     const char *name);

#endif

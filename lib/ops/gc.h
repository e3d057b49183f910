/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - the space of what no snapshot uses, in a transaction
 *
 * In two steps, with the commit of what else is changed at the beginning of the second
 * one: what is freed can be written to after two more commits, and only then may
 * anything of it be discarded.
 */
#ifndef STELE_OPS_GC_H
#define STELE_OPS_GC_H

#include "lib/txn/txn.h"

/*
 * Drop the segments that are due, by txn->time, grace and revoke, and report what else is
 * unused; gather tombstones that are due. Return: 0; -ENOMEM; errno of the storage.
 */
int stele_gc_stage(struct stele_txn *txn, stele_gc_fn fn, void *user,
		   struct stele_gc_report *report);
/*
 * Before the commit: may it be freed? No mount of the image as EROFS may have it. Return: 0;
 * -EBUSY (logged); errno.
 */
int stele_gc_check(const struct stele_txn *txn);
/*
 * Commit, and make the space good for the next writer; remove tombstones; discard, if
 * txn->discard. `report` may be NULL.
 */
int stele_gc_finish(struct stele_txn *txn, struct stele_gc_report *report);

#endif

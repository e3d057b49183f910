/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - the tree of files of the next generation
 *
 * Its parts are extents of the catalog, like segments, see lib/posix/tree.h. Those of what the
 * next generation still has stay where they are; what it has anew gets its own, and so does the
 * root, if anything that it shows has changed. They are written before the commit. What is not
 * needed any more stays until gc, for whoever has it mounted, and is never taken up again.
 */
#ifndef STELE_TXN_TREE_H
#define STELE_TXN_TREE_H

#include "lib/txn/txn.h"

/*
 * Let txn->parts be those of what the next generation has, and write those that are not there.
 * Return: 0; -EOPNOTSUPP (a granule below 512; logged); errors of stele_txn_allocate_again() and
 * stele_posix_part_write(); -EOVERFLOW (too many; logged).
 */
int stele_txn_prepare_tree(struct stele_txn *txn);
/* Forget what was prepared and not committed: txn->parts are those of this generation again. */
void stele_txn_undo_tree(struct stele_txn *txn);

#endif

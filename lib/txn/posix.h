/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix.h - the image as an EROFS, kept current by each commit
 *
 * The tree of files is made of extents of the catalog, see tree.h, that are written before the
 * commit; what they replace stays until gc, for whoever has it mounted.
 * Block 0 leads to it, by a front, see front.h, which is written after the commit. So it
 * always shows the tree of the selected generation or, cut short in between, that of the one
 * before, which the other slot still leads to; the next writer puts it right before it
 * writes anything else.
 */
#ifndef STELE_TXN_POSIX_H
#define STELE_TXN_POSIX_H

#include "lib/txn/txn.h"

/*
 * Shall it be one from the next commit on? A tree that is damaged is then written anew.
 * Return: 0; -ENOMEM.
 */
int stele_txn_set_posix(struct stele_txn *txn, bool on);
/*
 * Commit a new image; where it shall be one, in a second commit: the size of the tree is not
 * known before, and a target that has no room for it keeps the image. Return: 0; errors of
 * stele_txn_publish() (logged, if of the second).
 */
int stele_txn_publish_new(struct stele_txn *txn, int64_t time);
/*
 * Let block 0 show what the selected generation has. Before a commit, a damaged tree is but
 * warned of: the commit brings another one. Return: 0; errno (logged).
 */
int stele_txn_show_tree(struct stele_txn *txn);
/* False: that would write it. What cannot be read, or is damaged, is for others to say. */
bool stele_txn_is_shown(const struct stele_image *image);
/*
 * Of an older image, before a new one is written over it and all superblocks say so.
 * Return: 0; errno.
 */
int stele_txn_hide_tree(struct stele_device *dev);

#endif

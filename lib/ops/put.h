/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put.h - samples that were put go into the snapshot that is put together
 *
 * What a call of a transaction sees is what the calls before it did: those that look
 * at samples have the puts written first.
 */
#ifndef STELE_OPS_PUT_H
#define STELE_OPS_PUT_H

#include "lib/txn/txn.h"

/*
 * Have txn->work: from the newest snapshot, or where there is none from nothing. Return: 0;
 * -EINVAL (it is torn; logged); errors of stele_addition_begin().
 */
int stele_txn_start(struct stele_txn *txn);
/* `ret` of what changes txn->work, which may have failed half-way. Return: the same. */
int stele_txn_changed(struct stele_txn *txn, int ret);
/*
 * Write what was put, as an append does. After an error it is still there. Return: 0;
 * -EEXIST (a key twice, or in the base; logged); errors of stele_append_on().
 */
int stele_put_flush(struct stele_txn *txn);

#endif

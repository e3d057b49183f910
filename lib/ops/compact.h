/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.h - the live samples of a snapshot, laid out anew, in a transaction
 */
#ifndef STELE_OPS_COMPACT_H
#define STELE_OPS_COMPACT_H

#include "lib/segment/builder.h"
#include "lib/txn/txn.h"

/*
 * What the transaction puts together is then one new segment with the samples of `name`
 * (NULL: the newest). Part of the builder's memory goes to reading. A sample that is damaged
 * fails it (-EBADMSG, -EUCLEAN; logged). Return: 0; errors of stele_txn_base(),
 * stele_append_prepare(), stele_append_write().
 */
int stele_compact_on(struct stele_txn *txn, struct stele_builder *builder,
		     const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix.c - an image becomes an EROFS, too, or is none any more
 */
#include "lib/ops/change.h"

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/txn/posix.h"

int stele_txn_posix(struct stele_txn *txn, bool on)
{
	return STELE_TXN_CALL(txn, stele_txn_set_posix(txn, on),
			      "cannot change what is mounted");
}

static int posix(const char *target, bool on, const struct stele_txn_opts *opts)
{
	struct stele_txn txn;
	int ret = stele_change_begin(&txn, target, STELE_CHANGE_OF_IMAGE, opts,
				     STELE_CHANGE_ADDS, 0);

	if (ret == 0)
		ret = stele_txn_posix(&txn, on);
	return stele_change_end(&txn, ret);
}

int stele_posix(const char *target, bool on, const struct stele_txn_opts *opts)
{
	return STELE_CALL(posix(target, on, opts), "cannot change '%s'", target);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.h - a verb that changes an image: options, transaction, commit
 */
#ifndef STELE_OPS_CHANGE_H
#define STELE_OPS_CHANGE_H

#include <errno.h>

#include "lib/base/error.h"
#include "lib/txn/txn.h"

/* As STELE_CALL(); a transaction belongs to the process that opened it. */
#define STELE_TXN_CALL(txn, expr, ...)                                         \
	STELE_CALL(stele_txn_is_forked(txn) ? -EOWNERDEAD : (expr), __VA_ARGS__)

enum stele_change_kind {
	STELE_CHANGE_ADDS,  /* $SOURCE_DATE_EPOCH counts */
	STELE_CHANGE_FREES, /* what it counts from goes by the clock */
	STELE_CHANGE_LISTS, /* the same; without grace and force a dry run only reads */
	STELE_CHANGE_GOES,  /* and is never before now: grace periods begin */
};

/* What the target has to be; a mapped name is any of them. */
enum stele_change_of {
	STELE_CHANGE_OF_ANY,
	STELE_CHANGE_OF_SNAPSHOT, /* it names one */
	STELE_CHANGE_OF_IMAGE,	  /* it names none, which would not be looked at */
};

/*
 * Check the options (flags: `flags` and DRY_RUN), fill the time in, and open the target.
 * End it in any case.
 * Return: 0; -EINVAL (logged, where it is the user's fault); -E2BIG; errors of
 * stele_txn_begin().
 */
int stele_change_begin(struct stele_txn *txn, const char *target,
		       enum stele_change_of of,
		       const struct stele_txn_opts *opts,
		       enum stele_change_kind kind, uint32_t flags);
/* Are there snapshots left? Return: 0; -EEXIST (without force; logged). */
int stele_change_check(const struct stele_txn *txn);
/* `ret`: what became of the change. 0: commit it, if anything changed. Release. */
int stele_change_end(struct stele_txn *txn, int ret);

#endif

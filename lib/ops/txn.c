/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn.c - stele_txn_open(), preview, commit, close; what lies between has a file of its own
 */
#include "lib/ops/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/ops/gc.h"

static int txn_open(const char *target, const struct stele_txn_opts *opts,
		    struct stele_txn **out)
{
	struct stele_txn *txn = malloc(sizeof(*txn));
	int ret;

	if (!txn)
		return -ENOMEM;
	ret = stele_change_begin(txn, target, false, opts, STELE_CHANGE_FREES,
				 STELE_FORCE | STELE_TXN_DISCARD);
	if (ret < 0) {
		stele_txn_release(txn);
		free(txn);
		return ret;
	}
	*out = txn;
	return 0;
}

int stele_txn_open(const char *target, const struct stele_txn_opts *opts,
		   struct stele_txn **out)
{
	return STELE_CALL(txn_open(target, opts, out),
			  "cannot change '%s'", target);
}

static int txn_free(struct stele_txn *txn, stele_gc_fn fn, void *user,
		    struct stele_gc_report *report)
{
	struct stele_gc_report made = {0};
	int ret = stele_output_check(report, finished_size, &txn->log);

	if (ret == 0)
		ret = stele_gc_stage(txn, fn, user, &made);
	stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_txn_free(struct stele_txn *txn, stele_gc_fn fn, void *user,
		   struct stele_gc_report *report)
{
	return STELE_CALL(txn_free(txn, fn, user, report),
			  "cannot free space");
}

static int txn_commit(struct stele_txn *txn)
{
	int ret;

	if (txn->state == STELE_TXN_FAILED)
		return -EINVAL;
	ret = stele_change_check(txn);
	if (ret == 0 && (txn->state == STELE_TXN_DIRTY ||
			 txn->image->sb.state != STELE_STATE_READY))
		ret = stele_txn_publish(txn, txn->time);
	return ret ? ret : stele_gc_finish(txn, NULL);
}

int stele_txn_commit(struct stele_txn *txn)
{
	return STELE_CALL(txn_commit(txn),
			  "cannot commit");
}

void stele_txn_close(struct stele_txn *txn)
{
	if (!txn)
		return;
	stele_txn_release(txn);
	free(txn);
}

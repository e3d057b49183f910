/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.c - stele_txn_import(): a snapshot of another image, as one change among others
 *
 * What waits for the next snapshot of the transaction goes on waiting. After a failure
 * nothing refers to the segments that came already: they are dropped.
 */
#include "lib/ops/change.h"
#include "lib/ops/copy.h"

#include <errno.h>
#include <time.h>

#include "lib/base/options.h"
#include "lib/segment/builder.h"
#include "lib/read/dataset.h"
#include "lib/txn/addition.h"

/* Return: 0; errors of stele_txn_drop_segment(). */
static int drop_unused(struct stele_txn *txn, const struct stele_snapshot *from)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < from->segment_count; i++) {
		const uint64_t id = from->segments[i].descriptor.id;

		if (stele_txn_segment(txn, id) && !stele_txn_is_committed(txn, id) &&
		    !stele_txn_in_use(txn, id))
			ret = stele_txn_drop_segment(txn, id);
	}
	return ret;
}

static int import_from(struct stele_txn *txn, struct stele_dataset *ds, const char *name,
		       struct stele_copy_report *report)
{
	enum stele_txn_state state;
	struct stele_addition *waiting;
	int ret = stele_txn_check_name(name, &txn->log);

	if (ret == 0)
		ret = stele_snapshot_check_names(&ds->image, &ds->snapshot);
	if (ret == 0)
		ret = stele_txn_overwrite(txn);
	if (ret < 0)
		return ret;
	state = txn->state;
	waiting = stele_addition_take(txn);
	ret = stele_copy_on(&(struct stele_copier){
		.image = &ds->image,
		.snapshot = &ds->snapshot,
		.txn = txn,
		.name = name,
		.jobs = stele_copy_jobs(),
		.staged = true,
		.progress = txn->progress,
		.progress_user = txn->progress_user,
		.report = report,
	});
	txn->work = waiting;
	if (ret < 0)
		txn->state = drop_unused(txn, &ds->snapshot) < 0 ? STELE_TXN_FAILED : state;
	return ret;
}

static int txn_import(struct stele_txn *txn, const char *source, const char *name,
		      struct stele_copy_report *report)
{
	struct stele_copy_report made = {0};
	struct stele_dataset *ds = NULL;
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!source || txn->state == STELE_TXN_FAILED)
		return -EINVAL;
	ret = stele_output_check(report, seconds, &txn->log);
	if (ret == 0)
		ret = stele_dataset_open(source,
					 &STELE_OPTS(stele_open_opts, .log = txn->log.fn,
						     .log_user = txn->log.user), &ds);
	if (ret == 0)
		ret = import_from(txn, ds, name ? name : ds->snapshot.info.name, &made);
	stele_dataset_close(ds);
	made.seconds = stele_seconds_since(&begin);
	stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_txn_import(struct stele_txn *txn, const char *source, const char *name,
		     struct stele_copy_report *report)
{
	return STELE_TXN_CALL(txn, txn_import(txn, source, name, report),
			      "cannot import '%s'", source);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put.c - stele_txn_schema(), stele_txn_put(), stele_txn_flush(): a program hands samples over
 *
 * They are spooled, and are a source like any other when all are there. Half of the
 * memory is the spool's; the other half, and what the spool does not take, is for
 * laying them out.
 */
#include "lib/ops/put.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/options.h"
#include "lib/ops/append.h"
#include "lib/ops/change.h"
#include "lib/segment/layout.h"
#include "lib/source/spool.h"

static uint32_t append_flags(uint32_t put)
{
	return STELE_BUILD_ALLOW_EMPTY | (put & STELE_FORCE) |
	       (put & STELE_PUT_REPLACE ? STELE_APPEND_UPDATE : 0) |
	       (put & STELE_PUT_DELETE_MISSING ? STELE_APPEND_DELETE_MISSING : 0);
}

/* How what is put will be written, and may wait; `directory` is the caller's. */
static int take_options(const struct stele_txn *txn,
			const struct stele_put_opts *given,
			struct stele_build_opts *out, const char **directory, bool *keeps)
{
	struct stele_put_opts opts = {0};
	int ret = given ? stele_options_copy(given, &opts, sizeof(opts),
					     &txn->log) :
			  0;

	if (!ret)
		ret = stele_options_flags(opts.flags,
					  STELE_PUT_REPLACE | STELE_PUT_KEEP |
						  STELE_PUT_DELETE_MISSING | STELE_FORCE,
					  &txn->log);
	if (!ret && opts.reserved) {
		stele_log_error(&txn->log, "reserved bytes of options are not zero");
		ret = -EINVAL;
	}
	*directory = opts.directory;
	*keeps = opts.flags & STELE_PUT_KEEP;
	*out = (struct stele_build_opts){
		.size = sizeof(*out),
		.log = txn->log.fn,
		.log_user = txn->log.user,
		.progress = txn->progress,
		.progress_user = txn->progress_user,
		.memory_size = opts.memory_size ? opts.memory_size :
						  STELE_MEMORY_DEFAULT,
		.time = txn->time,
		.flags = append_flags(opts.flags),
		.granule = opts.granule,
		.order = opts.order,
		.jobs = opts.jobs,
		.boundary = opts.boundary,
	};
	return ret;
}

/* So that what is wrong is told before the first put. */
static int check_options(const struct stele_txn *txn, const struct stele_build_opts *opts)
{
	struct stele_build_report report;
	struct stele_builder builder;
	int ret = stele_builder_init(&builder, opts, STELE_ADD_FLAGS, &report);

	if (!ret) {
		stele_append_fit(&builder, txn);
		ret = stele_layout_check_granule(&builder);
	}
	stele_builder_release(&builder);
	return ret;
}

static int txn_schema(struct stele_txn *txn, const struct stele_schema *given,
		      const struct stele_put_opts *given_opts)
{
	struct stele_schema schema = {0};
	struct stele_build_opts opts;
	struct stele_spool *spool;
	struct stele_base base;
	const char *directory;
	bool keeps;
	int ret = take_options(txn, given_opts, &opts, &directory, &keeps);

	if (!ret)
		ret = check_options(txn, &opts);
	if (!ret && txn->spool && txn->spool->count) {
		stele_log_error(&txn->log, "samples of another schema are in no snapshot yet");
		ret = -EINVAL;
	}
	if (!ret)
		ret = given ? stele_options_copy(given, &schema, sizeof(schema),
						 &txn->log) :
			      -EINVAL;
	if (!ret)
		ret = stele_txn_start(txn);
	if (!ret)
		ret = stele_addition_load(txn->work);
	if (ret < 0)
		return ret;
	base = (struct stele_base){txn->work->txn->image, &txn->work->snapshot};
	ret = stele_spool_new(&schema, &base, opts.memory_size / 2, directory, &txn->log, &spool);
	if (ret < 0)
		return ret;
	spool->source.keeps = keeps;
	stele_spool_free(txn->spool);
	txn->spool = spool;
	txn->put_opts = opts;
	return 0;
}

int stele_txn_schema(struct stele_txn *txn, const struct stele_schema *schema,
		     const struct stele_put_opts *opts)
{
	return STELE_TXN_CALL(txn, txn_schema(txn, schema, opts),
			  "cannot begin to put samples");
}

static int txn_put(struct stele_txn *txn, const char *key, size_t key_size,
		   const struct stele_txn_value *values, uint32_t count)
{
	if (txn->state == STELE_TXN_FAILED)
		return -EINVAL;
	if (txn->spool)
		return stele_spool_put(txn->spool, key, key_size, values, count);
	stele_log_error(&txn->log, "no schema was given");
	return -EINVAL;
}

int stele_txn_put(struct stele_txn *txn, const char *key, size_t key_size,
		  const struct stele_txn_value *values, uint32_t count)
{
	return STELE_TXN_CALL(txn, txn_put(txn, key, key_size, values, count),
			  "cannot put a sample");
}

/* ---- into the snapshot -------------------------------------------------- */

static void tell(const struct stele_txn *txn)
{
	const struct stele_spool *spool = txn->spool;

	if (spool->fd < 0)
		stele_log_info(&txn->log, "%" PRIu64 " samples were kept in memory",
			       spool->count);
	else
		stele_log_info(&txn->log,
			       "%" PRIu64 " samples were kept in a temporary file "
			       "of %" PRIu64 " bytes in '%s'",
			       spool->count, spool->size, spool->directory);
}

static uint64_t memory_left(const struct stele_txn *txn)
{
	const struct stele_spool *spool = txn->spool;
	const uint64_t left = txn->put_opts.memory_size -
			      (spool->fd < 0 ? spool->size : 0);

	return left < STELE_MEMORY_MIN ? STELE_MEMORY_MIN : left;
}

static int write_puts(struct stele_txn *txn, struct stele_build_report *report)
{
	struct stele_build_opts opts = txn->put_opts;
	struct stele_builder builder;
	int ret;

	opts.memory_size = memory_left(txn);
	ret = stele_builder_init(&builder, &opts, STELE_ADD_FLAGS, report);
	builder.temp_directory = txn->spool->directory;
	if (!ret)
		ret = stele_append_on(txn, &builder, &txn->spool->source);
	stele_builder_release(&builder);
	return ret;
}

/* A new image gets its fields even if nothing was put. */
static int flush(struct stele_txn *txn, struct stele_build_report *report)
{
	int ret;

	if (!txn->spool)
		return 0;
	ret = stele_txn_start(txn);
	if (ret < 0 || (!txn->spool->count && txn->work->snapshot.segment_count))
		return ret;
	ret = write_puts(txn, report);
	if (ret < 0)
		return ret;
	tell(txn);
	stele_spool_empty(txn->spool);
	return 0;
}

int stele_put_flush(struct stele_txn *txn)
{
	struct stele_build_report unwanted;

	return flush(txn, &unwanted);
}

/* By all that it was told, not by what is written now. */
static void describe(const struct stele_addition *work, struct stele_build_report *report)
{
	const struct stele_catalog_snapshot *base = &work->snapshot.info;

	snprintf(report->base, sizeof(report->base), "%s", base->name);
	report->sample_count = work->snapshot.sample_count;
	report->unchanged = report->sample_count - report->added - report->updated;
	report->created = stele_addition_changed(work);
}

static int txn_flush(struct stele_txn *txn, struct stele_build_report *report)
{
	struct stele_build_report made = {0};
	int ret = stele_output_check(report, backend, &txn->log);

	if (!ret)
		ret = flush(txn, &made);
	if (!ret)
		ret = stele_txn_start(txn);
	if (!ret) {
		describe(txn->work, &made);
		memcpy(made.uuid, txn->image->sb.uuid, STELE_UUID_SIZE);
		snprintf(made.backend, sizeof(made.backend), "%s",
			 stele_device_backend(txn->image->dev));
	}
	stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_txn_flush(struct stele_txn *txn, struct stele_build_report *report)
{
	return STELE_TXN_CALL(txn, stele_txn_changed(txn, txn_flush(txn, report)),
			      "cannot write what was put");
}

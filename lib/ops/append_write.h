/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append_write.h - a source becomes a snapshot on top of another one
 *
 * In two steps: to prepare finds out what has changed, and writes nothing;
 * to write puts the new segment and lists of what is deleted where nothing
 * leads to yet, and the snapshot into the edit. The commit is the caller's.
 */
#ifndef STELE_OPS_APPEND_WRITE_H
#define STELE_OPS_APPEND_WRITE_H

#include "lib/ops/compare.h"
#include "lib/segment/base.h"
#include "lib/segment/plan_write.h"
#include "lib/txn/edit.h"

struct stele_append {
	/* The caller's. */
	struct stele_builder *builder;
	const struct stele_source *source;
	struct stele_edit *edit;
	struct stele_append_report *report;

	struct stele_base base;
	struct stele_plan plan;
	struct stele_comparison comparison;
	struct stele_written written;
};

/*
 * `name` is for the new snapshot, builder->opts.base names the old one. Fills
 * the report. Release in any case, before the edit.
 * Return: 0; -EEXIST (the name), -ENOENT (the base), both logged; errors of
 * stele_snapshot_load(), stele_plan_scan(), stele_compare(), stele_plan_layout().
 */
int stele_append_prepare(struct stele_append *append,
			 struct stele_builder *builder,
			 const struct stele_source *source, struct stele_edit *edit,
			 const char *name, struct stele_append_report *report);
/*
 * Return: 0; errors of stele_plan_write(), stele_edit_write_deleted() and
 * stele_edit_add_snapshot().
 */
int stele_append_write(struct stele_append *append, const char *name);
/* Idempotent on a zeroed struct. */
void stele_append_release(struct stele_append *append);

#endif

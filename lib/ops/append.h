/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.h - what a source has more than a snapshot, or than nothing
 *
 * In two steps: to prepare finds out what has changed, and writes nothing; to write
 * puts what is new into a segment where nothing leads to yet, and what is gone onto
 * deleted lists. A build is an append to nothing, whose target is formatted in between.
 */
#ifndef STELE_OPS_APPEND_H
#define STELE_OPS_APPEND_H

#include "lib/ops/compare.h"
#include "lib/image/base.h"
#include "lib/segment/plan_write.h"
#include "lib/source/source.h"
#include "lib/txn/addition.h"

/* Where samples come from: a directory, or what a program has. */
struct stele_origin {
	const char *path; /* NULL: ops */
	const struct stele_source_ops *ops;
	void *user;
};

/* `opts`, `target`: of a directory. Return: 0; errors of stele_source_from() and
 * stele_source_open_beside(). */
int stele_origin_open(const struct stele_origin *origin, const char *target,
		      const struct stele_build_opts *opts,
		      const struct stele_log *log,
		      struct stele_source *out);

struct stele_append {
	/* The caller's. */
	struct stele_builder *builder;
	const struct stele_source *source;

	uint64_t source_count; /* samples of the source, once it is prepared */
	struct stele_base base;
	struct stele_plan plan;
	struct stele_comparison comparison;
	struct stele_written written;
};

/*
 * `onto`: NULL of a build. Fills the builder's report. Release in any case, before `onto`.
 * Return: 0; errors of stele_plan_scan(), stele_compare(), stele_plan_layout().
 */
int stele_append_prepare(struct stele_append *append,
			 struct stele_builder *builder,
			 const struct stele_source *source,
			 const struct stele_addition *onto);
/*
 * `addition`: what it was prepared for, or an empty one. A dry one gets the space, and
 * nothing is written. Return: 0; errors of stele_plan_write(), stele_addition_delete().
 */
int stele_append_write(struct stele_append *append,
		       struct stele_addition *addition);
/* Idempotent on a zeroed struct. */
void stele_append_release(struct stele_append *append);
/* Are there any of the source, `count`, or need there be none? Return: 0; -ENOENT (logged). */
int stele_append_check_any(const struct stele_append *append, uint64_t count);

/* From options of an append; *base is that of theirs. Return: as stele_builder_init(). */
int stele_append_init(struct stele_builder *builder,
		      const struct stele_append_opts *opts, const char **base,
		      struct stele_build_report *report);
/*
 * What the target wants of a segment: boundaries, and blocks no smaller than those of the
 * tree of files that is there, unless the caller chose a granule.
 */
void stele_append_fit(struct stele_builder *builder, const struct stele_txn *txn);
/*
 * Both, onto what the transaction puts together: without one, the newest snapshot.
 * Return: as above; -ENOENT (there is none; logged).
 */
int stele_append_on(struct stele_txn *txn, struct stele_builder *builder,
		    const struct stele_source *source);

#endif

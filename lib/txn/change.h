/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.h - snapshots come, get other names, and go, on an open writer
 *
 * Each edits and commits. Where the storage keeps shots, see withdrawn.h for
 * what becomes of one that has readers who cannot be seen.
 */
#ifndef STELE_TXN_CHANGE_H
#define STELE_TXN_CHANGE_H

#include "lib/txn/writer.h"

/* Options of a change, checked, the time filled in. */
struct stele_change {
	struct stele_change_opts opts;
	struct stele_log log;
};
/*
 * `flags`: those that this change knows. Return: 0; -EINVAL (logged, where it
 * is the user's fault); -E2BIG.
 */
int stele_change_init(struct stele_change *change,
		      const struct stele_change_opts *opts, uint32_t flags);

/*
 * Open for writing what `target` names, with a snapshot. Close the writer in
 * any case. Return: 0; -EINVAL (no snapshot; logged); errors of
 * stele_writer_open().
 */
int stele_change_open(struct stele_change *change, const char *target,
		      struct stele_writer *writer);

/* As the functions of stele.h that are called so. */
int stele_change_create(struct stele_writer *writer,
			const struct stele_change *change, const char *name,
			const char *base, const struct stele_key_ref *deleted,
			size_t deleted_count, struct stele_snapshot_info *out);
int stele_change_rename(struct stele_writer *writer,
			const struct stele_change *change, const char *from,
			const char *to);
int stele_change_delete(struct stele_writer *writer,
			const struct stele_change *change, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - report what a build or an append did, as text or JSON
 */
#ifndef STELE_CMD_SUMMARY_H
#define STELE_CMD_SUMMARY_H

#include "stele.h"

#define SUMMARY_REASONS	   16 /* as report.skipped */
#define SUMMARY_KEYS_MAX   10 /* named per reason */

/* The first skipped entries of each reason. Zeroed at first. */
struct summary {
	struct {
		char *keys[SUMMARY_KEYS_MAX];
		size_t sizes[SUMMARY_KEYS_MAX];
		unsigned int count; /* of keys */
	} skipped[SUMMARY_REASONS];
};

/* A stele_build_skip_fn; `user` is the summary. */
void summary_skip(void *user, enum stele_skip_reason reason, const char *key,
		  size_t key_size, int error);
void summary_release(struct summary *summary);

/*
 * `report` without a base: of a build. target NULL: none. A
 * dry run has no digest and no times.
 */
/* What was skipped, as messages: for when nothing else is left. */
void summary_explain(const struct summary *summary,
		     const struct stele_build_report *report);
void summary_print(const struct summary *summary,
		   const struct stele_build_report *report,
		   const char *target, bool dry_run);
void summary_json(const struct summary *summary,
		  const struct stele_build_report *report, const char *target,
		  bool dry_run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_job.h - what build, append and compact do around their one call
 *
 * A signal ends it through the progress callback; the library then says what
 * lies on the target.
 */
#ifndef STELE_CMD_BUILD_JOB_H
#define STELE_CMD_BUILD_JOB_H

#include "build_options.h"
#include "summary.h"

/* All from `log` on is zeroed at first. */
struct build_job {
	struct build_options *options;
	const char *source, *target; /* one of them may be NULL */
	struct cmd_log log;
	struct summary summary;
	struct stele_append_report report; /* build, compact: only .build */
};

/* Have the library tell messages, progress and what it leaves out. */
void build_job_begin(struct build_job *job);
/* Say how it ended, die of a signal. Return: as cmd_finish(). */
int build_job_end(struct build_job *job, int error);

#endif

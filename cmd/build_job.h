/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_job.h - what build, append and compact share around the library call
 *
 * A signal cancels it through the progress callback; the library then reports what
 * is left on the target.
 */
#ifndef STELE_CMD_BUILD_JOB_H
#define STELE_CMD_BUILD_JOB_H

#include "build_options.h"
#include "summary.h"

/* Everything from `log` on starts zeroed. */
struct build_job {
	struct build_options *options;
	const char *source, *target; /* one of them may be NULL */
	struct from *from; /* owned; NULL: `source` is a directory */
	struct cmd_log log;
	struct summary summary;
	struct stele_build_report report;
};

/*
 * Take the sources, which is all of it for a directory. Return: -1: go on; else the
 * command is over, with this status.
 */
int build_job_sources(struct build_job *job, char *const *sources, int count);
/* Set the callbacks for messages, progress and skipped files. */
void build_job_begin(struct build_job *job);
/* Report the result, die of a signal. Return: as cmd_finish(). */
int build_job_end(struct build_job *job, int error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_build.c - stele build: a directory or other source to an image
 */
#include <stdlib.h>
#include <string.h>

#include "build_job.h"
#include "cmd.h"
#include "from/source.h"

/* "build -f s-*.tar": the last of them would be lost, for a TARGET that was forgotten. */
static bool refuse_source(const struct build_job *job, const char *source)
{
	const bool forced = job->from && job->target && job->options->opts.flags & STELE_FORCE;
	char *path = forced ? cmd_path_of(job->target) : NULL;
	const char *format = path ? from_guess(path) : NULL, *same = NULL;

	if (format)
		same = from_guess(source);
	if (same && strcmp(same, format) != 0)
		same = NULL;
	if (same) {
		cmd_message("'%s' is not overwritten: it looks like what is to be built (%s)", path,
			    format);
		cmd_hint("TARGET comes last, and may be missing here; if it is that file, remove "
			 "it first");
	}
	free(path);
	return same;
}

static int run(struct build_job *job)
{
	const struct stele_build_opts *opts = &job->options->opts;

	build_job_begin(job);
	return build_job_end(
		job, job->from ? stele_build_from(from_ops(job->from), job->from,
						  job->target, opts, &job->report) :
				 stele_build(job->source, job->target, opts,
					     &job->report));
}

int cmd_build(const struct cmd *cmd, int argc, char **argv)
{
	static struct build_options options = {.who = BUILD_OPTIONS_BUILD};
	struct build_job job = {.options = &options};
	bool dry_run;
	int status;

	build_options_parse(cmd, argc, argv, &options);
	dry_run = options.opts.flags & STELE_DRY_RUN;
	argc -= optind;
	argv += optind;
	if (argc < (dry_run ? 1 : 2))
		return cmd_misuse(cmd, "build needs a SOURCE and a TARGET");
	if (argc > 1)
		job.target = argv[--argc];
	if (job.target && cmd_refuse_target(cmd, job.target))
		return CMD_USAGE;
	status = build_job_sources(&job, argv, argc);
	if (status < 0 && refuse_source(&job, argv[0])) {
		from_close(job.from);
		return CMD_USAGE;
	}
	return status >= 0 ? status : run(&job);
}

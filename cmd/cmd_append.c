/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_append.c - stele append: what is new in a source, onto an image
 */
#include "build_job.h"
#include "from/source.h"

static int run(struct build_job *job)
{
	struct stele_append_opts opts;

	build_job_begin(job);
	build_options_copy(&opts, job->options, backend);
	opts.base = job->options->base;
	opts.file_size = job->options->opts.file_size;
	return build_job_end(
		job, job->from ? stele_append_from(from_ops(job->from), job->from,
						   job->target, &opts, &job->report) :
				 stele_append(job->source, job->target, &opts,
					      &job->report));
}

int cmd_append(const struct cmd *cmd, int argc, char **argv)
{
	static struct build_options options = {.who = BUILD_OPTIONS_APPEND};
	struct build_job job = {.options = &options};
	int status;

	build_options_parse(cmd, argc, argv, &options);
	argc -= optind;
	argv += optind;
	if (argc < 2)
		return cmd_misuse(cmd, "append needs a SOURCE and a TARGET@NEW");
	if (options.opts.flags & STELE_APPEND_QUICK &&
	    !(options.opts.flags & STELE_APPEND_UPDATE))
		return cmd_misuse(cmd, "--quick goes with --update");
	if (options.opts.flags & STELE_FORCE &&
	    !(options.opts.flags & STELE_APPEND_DELETE_MISSING) && !options.opts.label_from)
		return cmd_misuse(cmd, "--force goes with --delete-missing or --label-from");
	job.target = argv[--argc];
	status = build_job_sources(&job, argv, argc);
	return status >= 0 ? status : run(&job);
}

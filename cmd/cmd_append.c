/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_append.c - stele append: what is new in a directory, onto an image
 */
#include "build_job.h"

static int run(const char *source, const char *target,
	       struct build_options *options)
{
	struct build_job job = {.options = options,
				.source = source,
				.target = target};

	const struct stele_build_opts *o = &options->opts;

	build_job_begin(&job);
	return build_job_end(
		&job,
		stele_append(source, target,
			     &STELE_OPTS(stele_append_opts, .log = o->log,
					 .log_user = o->log_user,
					 .progress = o->progress,
					 .memory_size = o->memory_size,
					 .flags = o->flags, .granule = o->granule,
					 .order = o->order, .jobs = o->jobs,
					 .boundary = o->boundary,
					 .label_from = o->label_from, .skip = o->skip,
					 .skip_user = o->skip_user,
					 .backend = o->backend, .note = o->note,
					 .base = options->base, .time = o->time,
					 .file_size = o->file_size),
			     &job.report));
}

int cmd_append(const struct cmd *cmd, int argc, char **argv)
{
	struct build_options options = {.who = BUILD_OPTIONS_APPEND};
	int status = build_options_parse(cmd, argc, argv, &options);

	if (status >= 0)
		return status;
	argc -= optind;
	argv += optind;
	if (argc != 2)
		return cmd_misuse(cmd, "append needs a SOURCE and a TARGET@NEW");
	if (options.opts.flags & STELE_APPEND_QUICK &&
	    !(options.opts.flags & STELE_APPEND_UPDATE))
		return cmd_misuse(cmd, "--quick goes with --update");
	if (options.opts.flags & STELE_FORCE &&
	    !(options.opts.flags & STELE_APPEND_DELETE_MISSING))
		return cmd_misuse(cmd, "--force goes with --delete-missing");
	return run(argv[0], argv[1], &options);
}

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

	struct stele_append_opts opts;

	build_job_begin(&job);
	build_options_copy(&opts, options, backend);
	opts.base = options->base;
	opts.file_size = options->opts.file_size;
	return build_job_end(&job, stele_append(source, target, &opts, &job.report));
}

int cmd_append(const struct cmd *cmd, int argc, char **argv)
{
	struct build_options options = {.who = BUILD_OPTIONS_APPEND};

	build_options_parse(cmd, argc, argv, &options);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_build.c - stele build: a directory to an image
 */
#include "build_job.h"

static int run(const char *source, const char *target,
	       struct build_options *options)
{
	struct build_job job = {.options = options,
				.source = source,
				.target = target};

	build_job_begin(&job);
	return build_job_end(&job, stele_build(source, target, &options->opts,
					       &job.report));
}

int cmd_build(const struct cmd *cmd, int argc, char **argv)
{
	struct build_options options = {.who = BUILD_OPTIONS_BUILD};
	bool dry_run;

	build_options_parse(cmd, argc, argv, &options);
	dry_run = options.opts.flags & STELE_DRY_RUN;
	argc -= optind;
	argv += optind;
	if (argc > 2 || argc < (dry_run ? 1 : 2))
		return cmd_misuse(cmd, "build needs a SOURCE and a TARGET");
	return run(argv[0], argc > 1 ? argv[1] : NULL, &options);
}

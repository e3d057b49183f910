/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_compact.c - stele compact: a snapshot laid out anew as one segment
 */
#include "build_job.h"

static int run(const char *target, const char *name,
	       struct build_options *options)
{
	struct build_job job = {
		.options = options, .target = target};
	struct stele_compact_opts opts;

	build_job_begin(&job);
	build_options_copy(&opts, options, reserved);
	return build_job_end(&job, stele_compact(target, name, &opts, &job.report));
}

int cmd_compact(const struct cmd *cmd, int argc, char **argv)
{
	static struct build_options options = {.who = BUILD_OPTIONS_COMPACT};

	build_options_parse(cmd, argc, argv, &options);
	argc -= optind;
	argv += optind;
	if (argc != 2)
		return cmd_misuse(cmd, "compact needs a TARGET and a NEW name");
	return run(argv[0], argv[1], &options);
}

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

	const struct stele_build_opts *o = &options->opts;

	build_job_begin(&job);
	return build_job_end(
		&job,
		stele_compact(target, name,
			      &STELE_OPTS(stele_compact_opts, .log = o->log,
					  .log_user = o->log_user,
					  .progress = o->progress,
					  .memory_size = o->memory_size,
					  .flags = o->flags, .granule = o->granule,
					  .order = o->order, .jobs = o->jobs,
					  .boundary = o->boundary,
					  .backend = o->backend, .note = o->note,
					  .time = o->time),
			      &job.report));
}

int cmd_compact(const struct cmd *cmd, int argc, char **argv)
{
	struct build_options options = {.who = BUILD_OPTIONS_COMPACT};
	int status = build_options_parse(cmd, argc, argv, &options);

	if (status >= 0)
		return status;
	argc -= optind;
	argv += optind;
	if (argc != 2)
		return cmd_misuse(cmd, "compact needs a TARGET and a NEW name");
	return run(argv[0], argv[1], &options);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_build.c - stele build: a directory to an image
 *
 * A signal ends the build through its progress callback; the library then
 * says what lies on the target, and what to do.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "build_options.h"
#include "progress.h"
#include "stop.h"
#include "summary.h"

/* The library has said what lies on the target now. */
static void explain(int error, const char *source, const char *target,
		    const struct cmd_log *log)
{
	if (error == -ECANCELED && stop_requested())
		cmd_message("%s: stopped", strsignal(stop_requested()));
	else if (!target)
		cmd_log_error(log, error, "cannot plan '%s'", source);
	else
		cmd_log_error(log, error, "cannot build '%s'", target);
}

static int run(const char *source, const char *target, struct build_options *options)
{
	struct stele_build_report report = {0};
	struct cmd_log log = {.target = target ? target : source,
			      .source = source,
			      .quiet = options->quiet};
	struct summary summary = {0};
	bool dry_run = options->opts.flags & STELE_BUILD_DRY_RUN;
	int error;

	build_options_listen(options, &log, &summary);
	stop_catch();
	progress_start(!options->quiet && !options->json);
	error = stele_build(source, target, &options->opts, &report);
	progress_end();
	if (error)
		explain(error, source, target, &log);
	else if (options->json)
		summary_print_json(&summary, &report, target, dry_run);
	else if (!options->quiet)
		summary_print(&summary, &report, target, dry_run);
	summary_release(&summary);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	return cmd_finish(error ? CMD_FAILED : CMD_OK);
}

int cmd_build(const struct cmd *cmd, int argc, char **argv)
{
	struct build_options options = {.who = BUILD_OPTIONS_BUILD};
	int status = build_options_parse(cmd, argc, argv, &options);
	bool dry_run = options.opts.flags & STELE_BUILD_DRY_RUN;

	if (status >= 0)
		return status;
	argc -= optind;
	argv += optind;
	if (argc > 2 || argc < (dry_run ? 1 : 2))
		return cmd_misuse(cmd, "build needs a SOURCE and a TARGET");
	return run(argv[0], argc > 1 ? argv[1] : NULL, &options);
}

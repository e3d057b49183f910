/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_compact.c - stele compact: a snapshot laid out anew as one segment
 */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "build_options.h"
#include "progress.h"
#include "stop.h"
#include "summary.h"

static void explain(int error, const char *target, const struct cmd_log *log)
{
	if (error == -ECANCELED && stop_requested())
		cmd_message("%s: stopped; the image is as it was",
			    strsignal(stop_requested()));
	else
		cmd_log_error(log, error, "cannot compact '%s'", target);
}

static int run(const char *target, const char *name,
	       struct build_options *options)
{
	struct stele_build_report report = {0};
	struct cmd_log log = {.target = target, .quiet = options->quiet};
	struct summary summary = {0};
	bool dry_run = options->opts.flags & STELE_BUILD_DRY_RUN;
	int error;

	build_options_listen(options, &log, &summary);
	stop_catch();
	progress_start(!options->quiet && !options->json);
	error = stele_compact(target, name, &options->opts, &report);
	progress_end();
	if (error)
		explain(error, target, &log);
	else if (options->json)
		summary_print_json(&summary, &report, target, dry_run);
	else if (!options->quiet)
		summary_print(&summary, &report, target, dry_run);
	summary_release(&summary);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_append.c - stele append: what is new in a directory, onto an image
 */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "build_options.h"
#include "progress.h"
#include "stop.h"
#include "summary.h"

/* The library has said what stands against it, if anything does. */
static void explain(int error, const char *target, const struct cmd_log *log)
{
	if (error == -ECANCELED && stop_requested())
		cmd_message("%s: stopped; the image is as it was",
			    strsignal(stop_requested()));
	else if (!log->said || error != -EEXIST) /* a name that is taken */
		cmd_log_error(log, error, "cannot append to '%s'", target);
}

static int run(const char *source, const char *target,
	       struct build_options *options)
{
	struct stele_append_report report = {0};
	struct cmd_log log = {.target = target,
			      .source = source,
			      .quiet = options->quiet};
	struct summary summary = {0};
	bool dry_run = options->opts.flags & STELE_BUILD_DRY_RUN;
	int error;

	build_options_listen(options, &log, &summary);
	stop_catch();
	progress_start(!options->quiet && !options->json);
	error = stele_append(source, target, &options->opts, &report);
	progress_end();
	if (error)
		explain(error, target, &log);
	else if (options->json)
		summary_append_json(&summary, &report, target, dry_run);
	else if (!options->quiet)
		summary_append(&summary, &report, target, dry_run);
	summary_release(&summary);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
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
	if (options.opts.flags & STELE_BUILD_QUICK &&
	    !(options.opts.flags & STELE_BUILD_UPDATE))
		return cmd_misuse(cmd, "--quick goes with --update");
	return run(argv[0], argv[1], &options);
}

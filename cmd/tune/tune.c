/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - stele tune: measure a device
 *
 * What the library notes besides is printed after the tables, warnings at
 * once. A signal ends it after the next cell.
 */
#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output.h"
#include "parse.h"
#include "plot.h"
#include "progress.h"
#include "stop.h"
#include "tune.h"

struct options {
	const char *backend, *svg;
	bool json, quick;
};

struct listener {
	struct cmd_log log;
	struct tune_report *report;
	bool json; /* warnings stand in the object, too */
	char doing[96]; /* of the progress line */
};

static void take_line(void *user, enum stele_log_level level, const char *line)
{
	struct listener *listener = user;

	cmd_log_line(&listener->log, level, line);
	if (level == STELE_LOG_INFO || (level == STELE_LOG_WARNING &&
					listener->json))
		tune_report_note(listener->report, line);
}

static int take_point(void *user, const struct stele_tune_point *point,
		      double done)
{
	struct listener *listener = user;

	if (point->size)
		snprintf(listener->doing, sizeof(listener->doing),
			 "%.0f %%: reads of %u KiB, %u at a time", 100 * done,
			 point->size >> 10, point->depth);
	else
		snprintf(listener->doing, sizeof(listener->doing),
			 "%.0f %%: reads of the snapshot's sizes, %u at a time",
			 100 * done, point->depth);
	progress_update(listener->doing, &(struct stele_progress){0});
	return stop_requested();
}

/* A signal, or what could not be measured, and what helps. */
static void print_error(int error, const char *target)
{
	if (error == -ECANCELED && stop_requested())
		cmd_message("%s: stopped", strsignal(stop_requested()));
	else
		cmd_log_error(error, target);
}

static int measure(const struct options *options, struct listener *listener)
{
	struct tune_report *report = listener->report;
	int error;

	snprintf(listener->doing, sizeof(listener->doing), "opening");
	stop_catch();
	progress_start(!options->json);
	progress_update(listener->doing, &(struct stele_progress){0});
	error = stele_tune(report->target,
			   &STELE_OPTS(stele_tune_opts, .log = take_line,
				       .log_user = listener,
				       .backend = options->backend,
				       .point = take_point,
				       .point_user = listener,
				       .flags = options->quick ? STELE_TUNE_QUICK : 0),
			   &report->tuning);
	progress_end();
	if (error)
		print_error(error, report->target);
	gethostname(report->host, sizeof(report->host) - 1);
	report->time = time(NULL);
	return error;
}

static void print(const struct tune_report *report, const struct options *options)
{
	if (options->json) {
		tune_print_json(report);
		return;
	}
	tune_plot_text(report);
	tune_print_cells(report);
	tune_print_knee(report);
}

static int run(const char *target, const struct options *options)
{
	struct tune_report report = {
		.target = target, .tuning.size = sizeof(report.tuning)};
	struct listener listener = {.log = {.target = target},
				    .report = &report,
				    .json = options->json};
	int error, drawn = 0;

	/* Better than after a minute. */
	if (options->svg && output_check(options->svg, PLOT_MARK))
		return cmd_finish(CMD_FAILED);
	error = measure(options, &listener);
	if (!error)
		print(&report, options);
	if (!error && options->svg)
		drawn = tune_plot_svg(&report, options->svg);
	tune_report_release(&report);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	error = error ? error : drawn;
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

/* Return: -1 (go on at optind); the status to end with. */
static void parse(const struct cmd *cmd, int argc, char **argv,
		  struct options *options)
{
	static const struct option longopts[] = {
		{"backend", required_argument, NULL, 'b'},
		{"json", no_argument, NULL, 'J'},
		{"quick", no_argument, NULL, 'q'},
		{"svg", required_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *wanted = NULL;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "h", longopts)) != -1) {
		switch (c) {
		case 'b': wanted = parse_backend(optarg, &options->backend); break;
		case 'J': options->json = true; break;
		case 'q': options->quick = true; break;
		case 'v': wanted = parse_text(optarg, 1, PATH_MAX, &options->svg); break;
		}
		cmd_option_value(cmd, longopts, c, wanted);
	}
}

int cmd_tune(const struct cmd *cmd, int argc, char **argv)
{
	struct options options = {0};

	parse(cmd, argc, argv, &options);
	if (argc - optind != 1)
		return cmd_misuse(cmd, "tune needs one TARGET");
	return run(argv[optind], &options);
}

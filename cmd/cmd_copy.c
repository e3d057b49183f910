/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_copy.c - stele copy: a snapshot to another target
 *
 * Interrupted by whatever, the same command goes on where it was: that is what
 * a signal is answered with.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "parse.h"
#include "progress.h"
#include "stop.h"
#include "text.h"

enum { OPTION_LABEL = 256, OPTION_OBJECT, OPTION_SIZE, OPTION_TIME, OPTION_UUID,
       OPTION_BACKEND };

static const struct option longopts[] = {
	{"backend", required_argument, NULL, OPTION_BACKEND},
	{"dry-run", no_argument, NULL, 'n'},
	{"force", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{"jobs", required_argument, NULL, 'j'},
	{"json", no_argument, NULL, 'J'},
	{"label", required_argument, NULL, OPTION_LABEL},
	{"object-size", required_argument, NULL, OPTION_OBJECT},
	{"quiet", no_argument, NULL, 'q'},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"time", required_argument, NULL, OPTION_TIME},
	{"uuid", required_argument, NULL, OPTION_UUID},
	{0},
};

struct job {
	struct stele_copy_opts opts;
	uint8_t uuid[STELE_UUID_SIZE];
	bool json, quiet;
	bool was_file; /* the target, before */
};

static void print_json(const struct stele_copy_report *report, bool dry_run)
{
	json_t *object = json_make();

	json_set_text(object, "snapshot", report->snapshot);
	json_set_hex(object, "digest", report->digest, sizeof(report->digest));
	json_set(object, "dry_run", json_boolean(dry_run));
	json_set_number(object, "samples", report->sample_count);
	json_set_number(object, "segments", report->segment_count);
	json_set_number(object, "segments_sent", report->segments_sent);
	json_set_number(object, "size", report->total_size);
	json_set_number(object, "sent_size", report->sent_size);
	json_set_number(object, "resumed_size", report->resumed_size);
	json_set_number(object, "segments_unread", report->unread_count);
	json_set_number(object, "unread_size", report->unread_size);
	json_set_seconds(object, "seconds", report->seconds);
	json_line(object);
}

/* What was there may be damaged: nobody should give up the source for it yet. */
static void print_unread(const struct stele_copy_report *report, const char *target)
{
	char *path = cmd_path_of(target);
	char a[TEXT_SIZE], b[TEXT_SIZE];

	if (report->unread_count && path)
		printf("  not read  %s, %s, that snapshots there have: 'stele verify %s@%s' "
		       "reads all\n", text_counted(a, report->unread_count, "segment"),
		       text_size(b, report->unread_size), path, report->snapshot);
	free(path);
}

static void print_text(const struct stele_copy_report *report, const char *target, bool dry_run)
{
	const bool nothing = !report->segments_sent && !report->resumed_size;
	const bool there = nothing && !report->created;
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], hex[TEXT_HEX_SIZE];

	printf("%s snapshot '%s', %s, %s '%s'\n",
	       there   ? "there is" :
	       dry_run ? nothing ? "would add" : "would copy" :
	       nothing ? "added" : "copied", report->snapshot,
	       text_counted(a, report->sample_count, "sample"), there ? "on" : "to", target);
	if (nothing)
		printf("  %-9s nothing: all %s is there\n", dry_run ? "to send" : "sent",
		       there ? "of it" : "that it has");
	else
		printf("  %-9s %u of %s, %s of %s\n", dry_run ? "to send" : "sent",
		       report->segments_sent,
		       text_counted(a, report->segment_count, "segment"),
		       text_size(b, report->sent_size), text_size(c, report->total_size));
	if (report->resumed_size)
		printf("  resumed   %s already there\n",
		       text_size(a, report->resumed_size));
	print_unread(report, target);
	printf("  digest    sha256:%s\n",
	       text_hex(hex, report->digest, sizeof(report->digest)));
	if (dry_run)
		puts("dry run: nothing was written");
	else
		printf("  time      %.1f s\n", report->seconds);
}

/* A regular file is overwritten by one beside it, see stele-copy(1). */
static bool is_file(const char *target)
{
	char *path = cmd_path_of(target);
	struct stat st;
	const bool file = path && !stat(path, &st) && S_ISREG(st.st_mode);

	free(path);
	return file;
}

/* Before the first byte is sent a target has an image that holds nothing, in its full size. */
static bool is_empty_image(const char *target)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *image = NULL;
	char *path = cmd_path_of(target);
	const bool empty = path && !stele_image_open(path, NULL, &image) &&
			   !stele_image_info(image, &info) && !info.snapshot_count &&
			   !info.deleted_count;

	stele_image_close(image);
	free(path);
	return empty;
}

/*
 * What was copied is kept, be it only an image that holds nothing yet; but running it again
 * gets past no damage. A file that was overwritten is as it was, and so is one beside it
 * that got nothing: that is gone.
 */
static void explain_kept(const struct job *job, const char *target, int error, uint64_t kept)
{
	const bool damaged = error == -EBADMSG || error == -EUCLEAN;
	const bool force = job->opts.flags & STELE_FORCE;
	const bool beside = force && job->was_file;
	char size[TEXT_SIZE] = "";

	if (beside && (damaged || !kept))
		return;
	cmd_message("%s'%s' keeps %s%s%s%s%s",
		    beside ? "a new file beside " : "", target,
		    kept ? "the " : "an empty image",
		    kept ? text_size(size, kept) : "", kept ? " copied so far" : "",
		    damaged ? "" : "; run the same command to resume",
		    force && !beside && !damaged ? ", without --force" : "");
}

static void explain(const struct cmd_log *log, const char *source, int error,
		    const struct job *job,
		    const struct stele_copy_report *report)
{
	const uint64_t kept = report->sent_size + report->resumed_size;
	const bool stopped = error == -ECANCELED && stop_requested();

	if (stopped)
		cmd_message("%s: stopped", strsignal(stop_requested()));
	else
		cmd_log_error(error, strstr(stele_errmsg(), source) ?
					     source : log->target);
	if (job->opts.flags & STELE_DRY_RUN || strstr(stele_errmsg(), "was removed") ||
	    strstr(stele_errmsg(), "was cut off") ||
	    strstr(stele_errmsg(), "the file was moved"))
		return;
	/* After an error that may be another writer's. */
	if (kept || (stopped && is_empty_image(log->target)))
		explain_kept(job, log->target, error, kept);
}

static int run(const char *source, const char *target, struct job *job)
{
	struct cmd_log log = {.target = target, .quiet = job->quiet};
	struct stele_copy_report report = {.size = sizeof(report)};
	const bool dry_run = job->opts.flags & STELE_DRY_RUN;
	int error;

	job->opts.log = cmd_log_line;
	job->opts.log_user = &log;
	job->opts.progress = progress_show;
	stop_catch();
	progress_start(!job->quiet && !job->json);
	job->was_file = is_file(target);
	error = stele_copy(source, target, &job->opts, &report);
	progress_end();
	if (error)
		explain(&log, source, error, job, &report);
	else if (job->json)
		print_json(&report, dry_run);
	else if (!job->quiet)
		print_text(&report, target, dry_run);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

/* Options with a value. Return: NULL; what it wants to be. */
static const char *set_value(struct job *job, int option, const char *text)
{
	struct stele_copy_opts *opts = &job->opts;

	switch (option) {
	case OPTION_BACKEND:
		return parse_backend(text, &opts->backend);
	case 'j':
		return parse_count(text, PARSE_JOBS_MAX, &opts->jobs);
	case OPTION_LABEL:
		return parse_label(text, &opts->label);
	case OPTION_OBJECT:
		return parse_power(text, PARSE_OBJECT_MAX, &opts->object_size);
	case OPTION_SIZE:
		return cmd_parse_target_size(text, &opts->file_size);
	case OPTION_TIME:
		return parse_time(text, &opts->time);
	default: /* OPTION_UUID */
		opts->uuid = job->uuid;
		return parse_uuid(text, job->uuid);
	}
}

int cmd_copy(const struct cmd *cmd, int argc, char **argv)
{
	struct job job = {.opts = {.size = sizeof(job.opts)}};
	int c;

	while ((c = cmd_option(cmd, argc, argv, "fj:nqh", longopts)) != -1) {
		switch (c) {
		case 'f':
			job.opts.flags |= STELE_FORCE;
			break;
		case 'J':
			job.json = true;
			break;
		case 'n':
			job.opts.flags |= STELE_DRY_RUN;
			break;
		case 'q':
			job.quiet = true;
			break;
		default:
			cmd_option_value(cmd, longopts, c, set_value(&job, c, optarg));
		}
	}
	if (argc - optind != 2)
		return cmd_misuse(cmd, "copy needs a SOURCE and a TARGET");
	if (cmd_refuse_target(cmd, argv[optind + 1]))
		return CMD_USAGE;
	return run(argv[optind], argv[optind + 1], &job);
}

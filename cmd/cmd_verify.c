/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_verify.c - stele verify: every checksum, digest and invariant
 *
 * Damage is what the command reports, so it goes to stdout, a line for each;
 * what keeps it from looking goes to stderr.
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "parse.h"
#include "progress.h"
#include "remedy.h"
#include "stop.h"
#include "text.h"

#define DETAIL_SIZE 256u

static const struct option longopts[] = {
	{"jobs", required_argument, NULL, 'j'},
	{"json", no_argument, NULL, 'J'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct job {
	bool json, quiet;
	uint32_t jobs;
	int error; /* of the damage, or 0 of the empty image, that was reported last, and: */
	char detail[DETAIL_SIZE];
};

static void damage_json(const struct stele_damage *damage)
{
	json_t *object = json_make();

	json_set_text(object, damage->error ? "damaged" : "note", damage->what);
	if (damage->error)
		json_set_text(object, "error", stele_strerror(damage->error));
	json_set_number(object, "offset", damage->offset);
	json_set_number(object, "size", damage->item_size);
	if (damage->has_id)
		json_set_number(object, "id", damage->id);
	if (damage->snapshot)
		json_set_text(object, "snapshot", damage->snapshot);
	if (damage->key)
		json_set_key(object, "key", damage->key, damage->key_size);
	if (damage->detail)
		json_set_text(object, "detail", damage->detail);
	json_line(object);
}

static void damage_line(const struct stele_damage *damage)
{
	char *key = NULL;

	printf(damage->error ? "damaged %s" : "note: %s", damage->what);
	if (damage->key)
		key = text_escape(damage->key, damage->key_size);
	if (key)
		printf(" '%s'", key);
	if (damage->has_id)
		printf(" #%" PRIu64, damage->id);
	if (damage->snapshot)
		printf(" of '%s'", damage->snapshot);
	printf(" at %" PRIu64 "+%" PRIu64 ": ", damage->offset, damage->item_size);
	if (damage->error)
		printf("%s (", stele_strerror(damage->error));
	if (damage->detail)
		fputs(damage->detail, stdout);
	if (damage->error)
		putchar(')');
	putchar('\n');
	free(key);
}

static void show_damage(void *user, const struct stele_damage *damage)
{
	struct job *job = user;

	progress_hide();
	flockfile(stdout);
	if (damage->error ||
	    (!job->error && damage->detail && strstr(damage->detail, "empty image"))) {
		job->error = damage->error;
		snprintf(job->detail, sizeof(job->detail), "%s",
			 damage->detail ? damage->detail : "");
	}
	if (job->json)
		damage_json(damage);
	else
		damage_line(damage);
	funlockfile(stdout);
}

static void summarize(const struct job *job,
		      const struct stele_verify_report *report)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];
	json_t *object;

	if (job->json) {
		object = json_make();
		json_set_number(object, "damage_count", report->damaged);
		json_set_number(object, "note_count", report->notes);
		json_set_number(object, "snapshots", report->snapshots);
		json_set_number(object, "segments", report->segments);
		json_set_number(object, "samples", report->samples);
		json_set_number(object, "blocks", report->blocks);
		json_set_number(object, "bytes", report->bytes);
		json_line(object);
	} else if (!job->quiet) {
		printf("%s, %s checked: ",
		       text_counted(a, report->samples, "sample"),
		       text_size(b, report->bytes));
		if (report->damaged)
			printf("%s damaged\n", text_count(a, report->damaged));
		else
			puts("sound");
		if (!report->damaged && !report->snapshots)
			remedy_print("verify", 0, job->detail, NULL);
	}
}

static int run(const char *target, struct job *job)
{
	struct stele_verify_report report = {.size = sizeof(report)};
	struct cmd_log log = {.target = target, .quiet = job->quiet};
	struct stele_verify_opts opts = STELE_OPTS(
		stele_verify_opts, .log = cmd_log_line, .log_user = &log,
		.damage = show_damage, .damage_user = job,
		.progress = progress_show, .jobs = job->jobs);
	int result;

	stop_catch();
	progress_start(!job->quiet);
	result = stele_verify(target, &opts, &report);
	progress_end();
	if (result == -ECANCELED && stop_requested()) {
		cmd_message("%s: stopped", strsignal(stop_requested()));
		stop_raise();
	}
	if (result < 0) {
		cmd_log_error(result, target);
		return cmd_finish(cmd_status_of(result));
	}
	summarize(job, &report);
	if (result && !job->quiet)
		remedy_print("verify", job->error, job->detail, target);
	return cmd_finish(result ? CMD_DAMAGED : CMD_OK);
}

int cmd_verify(const struct cmd *cmd, int argc, char **argv)
{
	struct job job = {0};
	int c;

	while ((c = cmd_option(cmd, argc, argv, "j:qh", longopts)) != -1) {
		switch (c) {
		case 'j':
			cmd_option_value(cmd, longopts, c,
					 parse_count(optarg, PARSE_JOBS_MAX, &job.jobs));
			break;
		case 'J':
			job.json = true;
			break;
		case 'q':
			job.quiet = true;
			break;
		}
	}
	if (argc - optind != 1)
		return cmd_misuse(cmd, "verify needs one TARGET");
	return run(argv[optind], &job);
}

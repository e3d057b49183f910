/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_diff.c - stele diff: what two snapshots have different
 *
 * One line for each key that differs, as diff and git have it: the sign, a
 * space, the key, which is escaped as by ls.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "stop.h"
#include "text.h"

static const struct option longopts[] = {
	{"exit-code", no_argument, NULL, 'e'},
	{"json", no_argument, NULL, 'J'},
	{"null", no_argument, NULL, '0'},
	{"stat", no_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct comparison {
	bool json, null, escape, stat, exit_code;
	const char *a, *b;
};

static const struct {
	char sign;
	const char *word;
} kinds[] = {
	[STELE_DIFF_ADDED] = {'+', "added"},
	[STELE_DIFF_REMOVED] = {'-', "removed"},
	[STELE_DIFF_CHANGED] = {'~', "changed"},
};

static void print_json(const struct stele_diff_entry *d)
{
	json_t *object = json_make();

	json_set_text(object, "change", kinds[d->kind].word);
	if (d->kind != STELE_DIFF_ADDED) {
		json_set_number(object, "a_id", d->a_id);
		json_set_number(object, "a_size", d->a_size);
	}
	if (d->kind != STELE_DIFF_REMOVED) {
		json_set_number(object, "b_id", d->b_id);
		json_set_number(object, "b_size", d->b_size);
	}
	json_set_key(object, "key", d->key, d->key_size);
	json_line(object);
}

static int print_line(void *user, const struct stele_diff_entry *d)
{
	const struct comparison *comparison = user;
	char *escaped = NULL;

	if (stop_requested() || ferror(stdout))
		return -ECANCELED;
	if (comparison->stat)
		return 0;
	if (comparison->json) {
		print_json(d);
		return 0;
	}
	if (comparison->escape)
		escaped = text_escape(d->key, d->key_size);
	printf("%c ", kinds[d->kind].sign);
	if (escaped)
		fputs(escaped, stdout);
	else
		fwrite(d->key, 1, d->key_size, stdout);
	putchar(comparison->null ? '\0' : '\n');
	free(escaped);
	return 0;
}

static void print_stat(const struct comparison *comparison,
		       const struct stele_diff_report *report)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];
	json_t *object;

	if (!comparison->json) {
		printf("%s added, %s removed, %s changed, %s the same",
		       text_count(a, report->added),
		       text_count(b, report->removed),
		       text_count(c, report->changed),
		       text_count(d, report->same));
		if (report->fields)
			printf("; %s different", text_counted(a, report->fields, "field"));
		putchar('\n');
		return;
	}
	object = json_make();
	json_set_number(object, "added", report->added);
	json_set_number(object, "removed", report->removed);
	json_set_number(object, "changed", report->changed);
	json_set_number(object, "same", report->same);
	json_set_number(object, "fields", report->fields);
	json_line(object);
}

static int run(struct comparison *comparison)
{
	struct cmd_log log = {.target = comparison->a};
	struct stele_diff_report report = {.size = sizeof(report)};
	int error;

	stop_catch();
	error = stele_diff(comparison->a, comparison->b, print_line, comparison,
			   &STELE_OPTS(stele_open_opts, .log = cmd_log_line,
				       .log_user = &log),
			   &report);
	if (stop_requested()) {
		fflush(stdout);
		stop_raise();
	}
	if (error && !ferror(stdout)) {
		cmd_log_error(error, strstr(stele_errmsg(), comparison->b) ?
					     comparison->b : comparison->a);
		return cmd_finish(cmd_status_of(error));
	}
	if (comparison->stat)
		print_stat(comparison, &report);
	return cmd_finish(comparison->exit_code &&
					  (report.added || report.removed ||
					   report.changed || report.fields) ?
				  CMD_FAILED :
				  CMD_OK);
}

int cmd_diff(const struct cmd *cmd, int argc, char **argv)
{
	struct comparison comparison = {0};
	int c;

	while ((c = cmd_option(cmd, argc, argv, "0h", longopts)) != -1) {
		switch (c) {
		case 'e':
			comparison.exit_code = true;
			break;
		case 'J':
			comparison.json = true;
			break;
		case '0':
			comparison.null = true;
			break;
		case 's':
			comparison.stat = true;
			break;
		}
	}
	if (argc - optind != 2)
		return cmd_misuse(cmd, "diff needs two TARGETs");
	if (comparison.null && (comparison.json || comparison.stat))
		return cmd_misuse(cmd, "--null goes with no other format");
	comparison.escape = !comparison.null && isatty(STDOUT_FILENO);
	comparison.a = argv[optind];
	comparison.b = argv[optind + 1];
	return run(&comparison);
}

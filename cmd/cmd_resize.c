/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_resize.c - stele resize: an image follows its target
 */
#include "cmd.h"

#include <ctype.h>
#include <stdio.h>

#include "json.h"
#include "parse.h"
#include "text.h"

static const struct option longopts[] = {
	{"dry-run", no_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'J'},
	{"size", required_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void print(const struct stele_resize_report *report, bool json,
		  bool dry_run)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];
	json_t *object;

	if (json) {
		object = json_make();
		json_set_number(object, "old_size", report->old_size);
		json_set_number(object, "new_size", report->new_size);
		json_set(object, "dry_run", json_boolean(dry_run));
		json_line(object);
	} else if (report->old_size == report->new_size) {
		printf("%s, unchanged\n", text_size(a, report->new_size));
	} else {
		printf("%s, was %s\n", text_size(a, report->new_size),
		       text_size(b, report->old_size));
	}
	if (dry_run && !json)
		puts("dry run: nothing was written");
}

static int run(const char *target, uint64_t size, bool json, bool dry_run)
{
	struct cmd_log log = {.target = target};
	struct stele_resize_report report = {.size = sizeof(report)};
	int error = stele_resize(target, size,
				 &STELE_OPTS(stele_txn_opts,
					     .log = cmd_log_line,
					     .log_user = &log,
					     .flags = dry_run ? STELE_DRY_RUN
							      : 0),
				 &report);

	if (!error)
		print(&report, json, dry_run);
	else
		cmd_log_error(error, target);
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

int cmd_resize(const struct cmd *cmd, int argc, char **argv)
{
	uint64_t size = 0;
	bool json = false, dry_run = false;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "nh", longopts)) != -1) {
		switch (c) {
		case 'J':
			json = true;
			break;
		case 'n':
			dry_run = true;
			break;
		case 's':
			cmd_option_value(cmd, longopts, c,
					 cmd_parse_target_size(optarg, &size));
			break;
		}
	}
	if (argc - optind == 2 && isdigit((unsigned char)argv[optind + 1][0]))
		return cmd_misuse(cmd, "resize needs one TARGET; --size=%s is a size",
				  argv[optind + 1]);
	if (argc - optind != 1)
		return cmd_misuse(cmd, "resize needs one TARGET");
	if (cmd_check_whole(cmd->name, argv[optind]) >= 0)
		return CMD_USAGE;
	return run(argv[optind], size, json, dry_run);
}

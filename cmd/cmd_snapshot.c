/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_snapshot.c - stele snapshot: what versions an image holds
 */
#include "cmd.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "show.h"

static const struct option longopts[] = {
	{"json", no_argument, NULL, 'J'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int list(const char *target, bool json)
{
	struct stele_image *image;
	struct stele_snapshot_info info;
	struct cmd_log log = {.target = target};
	int error;

	error = stele_image_open(target,
				 &STELE_OPTS(stele_open_opts,
					     .log = cmd_log_line,
					     .log_user = &log),
				 &image);
	if (error) {
		cmd_open_error(&log, error, "open");
		return cmd_finish(cmd_status_of(error));
	}
	if (!json)
		show_snapshot_head("");
	for (uint32_t i = 0; stele_image_snapshot(image, i, &info) == 0; i++) {
		if (json)
			json_line(show_snapshot_json(&info));
		else
			show_snapshot("", &info);
	}
	stele_image_close(image);
	return cmd_finish(CMD_OK);
}

int cmd_snapshot(const struct cmd *cmd, int argc, char **argv)
{
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		switch (c) {
		case 'J':
			json = true;
			break;
		case 'h':
			return cmd_help(cmd);
		default:
			return cmd_misuse(cmd, NULL);
		}
	}
	if (argc - optind < 1 || strcmp(argv[optind], "list") != 0)
		return cmd_misuse(cmd, "snapshot needs a verb: list");
	if (argc - optind != 2)
		return cmd_misuse(cmd, "snapshot list needs one TARGET");
	return list(argv[optind + 1], json);
}

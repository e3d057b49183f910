/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_snapshot.c - stele snapshot: what versions an image holds
 */
#include "cmd.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "show.h"

static int list(const char *target, bool json)
{
	struct stele_image *image;
	struct stele_snapshot_info info;
	struct cmd_log log = {.target = target};
	int error;

	error = cmd_open_image(&log, &image);
	if (error)
		return cmd_finish(cmd_status_of(error));
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
	int status = cmd_getopt(cmd, argc, argv, &json);

	if (status >= 0)
		return status;
	if (argc - optind < 1 || strcmp(argv[optind], "list") != 0)
		return cmd_misuse(cmd, "snapshot needs a verb: list");
	if (argc - optind != 2)
		return cmd_misuse(cmd, "snapshot list needs one TARGET");
	return list(argv[optind + 1], json);
}

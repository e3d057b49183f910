/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_map.c - stele map: publish a snapshot under a name on this machine
 */
#include "cmd.h"

#include <stdio.h>

#include "json.h"
#include "mapping.h"

static const struct option longopts[] = {
	{"json", no_argument, NULL, 'J'},
	{"read-only", no_argument, NULL, 'r'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int run(const char *target, const char *name, uint32_t flags, bool json)
{
	struct stele_mapping_info info = {0};
	struct cmd_log log = {.target = target};
	int error;

	error = stele_map(target, name,
			  &STELE_OPTS(stele_map_opts, .log = cmd_log_line,
				      .log_user = &log, .flags = flags),
			  &info);
	if (error) {
		cmd_open_error(&log, error, "map");
		return cmd_finish(cmd_status_of(error));
	}
	if (json)
		json_line(mapping_json(&info));
	else
		puts(info.name);
	return cmd_finish(CMD_OK);
}

int cmd_map(const struct cmd *cmd, int argc, char **argv)
{
	uint32_t flags = 0;
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		switch (c) {
		case 'J':
			json = true;
			break;
		case 'r':
			flags |= STELE_MAP_READ_ONLY;
			break;
		case 'h':
			return cmd_help(cmd);
		default:
			return cmd_misuse(cmd, NULL);
		}
	}
	if (argc - optind < 1 || argc - optind > 2)
		return cmd_misuse(cmd, "map needs a TARGET and at most one NAME");
	return run(argv[optind], argv[optind + 1], flags, json);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_maps.c - stele maps: what is mapped on this machine
 */
#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mapping.h"
#include "text.h"

static void print_json(void *user, const struct stele_mapping_info *info)
{
	(void)user;
	json_line(mapping_json(info));
}

static void print_row(void *user, const struct stele_mapping_info *info)
{
	char *target = text_escape(info->target, strlen(info->target));
	char count[TEXT_SIZE], since[TEXT_SIZE];

	(void)user;
	printf("%-16s %14s  %-23s  %-6s  %s@%s%s%s%s\n", info->name,
	       text_count(count, info->sample_count),
	       text_time(since, info->time), info->via, target ? target : "?",
	       info->snapshot, info->pinned ? " (pinned)" : "",
	       info->read_only ? " (read-only)" : "",
	       info->stale ? " (stale: another device, or none)" : "");
	free(target);
}

int cmd_maps(const struct cmd *cmd, int argc, char **argv)
{
	struct cmd_log log = {0};
	const struct stele_map_opts opts = {
		.size = sizeof(opts), .log = cmd_log_line, .log_user = &log};
	bool json = false;
	int count, status;

	cmd_getopt(cmd, argc, argv, &json);
	if (optind != argc)
		return cmd_misuse(cmd, "maps takes no argument");
	if (!json)
		printf("%-16s %14s  %-23s  %-6s  %s\n", "NAME", "SAMPLES",
		       "SINCE", "VIA", "TARGET");
	count = stele_map_list(json ? print_json : print_row, NULL, &opts);
	if (count < 0)
		cmd_error(count, "cannot list mappings");
	/* Which says the last of the errors. */
	status = cmd_finish(count < 0 ? CMD_FAILED : log.errors ? CMD_DAMAGED : CMD_OK);
	if (log.errors)
		cmd_hint("'stele unmap NAME' removes a mapping that is damaged");
	return status;
}

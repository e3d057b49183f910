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

static const struct option longopts[] = {
	{"json", no_argument, NULL, 'J'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

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
	printf("%-16s %14s  %-23s  %s@%s%s%s\n", info->name,
	       text_count(count, info->sample_count),
	       text_time(since, info->time), target ? target : "?",
	       info->snapshot, info->read_only ? " (read-only)" : "",
	       info->stale ? " (stale: another device, or none)" : "");
	free(target);
}

int cmd_maps(const struct cmd *cmd, int argc, char **argv)
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
	if (optind != argc)
		return cmd_misuse(cmd, "maps takes no argument");
	if (!json)
		printf("%-16s %14s  %-23s  %s\n", "NAME", "SAMPLES", "SINCE",
		       "TARGET");
	c = stele_maps(json ? print_json : print_row, NULL);
	if (c < 0)
		cmd_error(c, "cannot list mappings");
	return cmd_finish(c < 0 ? CMD_FAILED : CMD_OK);
}

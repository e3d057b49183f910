/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_map.c - stele map: publish a snapshot under a name on this machine
 */
#include "cmd.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "krbd.h"
#include "mapping.h"
#include "parse.h"

static const struct option longopts[] = {
	{"json", no_argument, NULL, 'J'},
	{"read-only", no_argument, NULL, 'r'},
	{"via", required_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct arguments {
	const char *target, *name, *via;
	uint32_t flags;
	bool json;
};

/* What was chosen: of a device or file there is no choice. */
static void print(const struct stele_mapping_info *info, bool json)
{
	if (json) {
		json_line(mapping_json(info));
		return;
	}
	puts(info->name);
	if (!strcmp(info->via, "krbd") || !strcmp(info->via, "librbd"))
		cmd_message("'%s' is read via %s", info->name, info->via);
}

static int run(const struct arguments *args)
{
	struct stele_mapping_info info = {.size = sizeof(info)};
	struct cmd_log log = {.target = args->target};
	int error;

	error = stele_map(args->target, args->name,
			  &STELE_OPTS(stele_map_opts, .log = cmd_log_line,
				      .log_user = &log, .via = args->via,
				      .attach = krbd_attach,
				      .detach = krbd_detach,
				      .flags = args->flags),
			  &info);
	if (error) {
		cmd_log_error(error, args->target);
		return cmd_finish(cmd_status_of(error));
	}
	print(&info, args->json);
	return cmd_finish(CMD_OK);
}

static const char *const ways[] = {"auto", "krbd", "librbd", NULL};

int cmd_map(const struct cmd *cmd, int argc, char **argv)
{
	struct arguments args = {0};
	uint32_t way;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "h", longopts)) != -1) {
		switch (c) {
		case 'J':
			args.json = true;
			break;
		case 'r':
			args.flags |= STELE_MAP_READ_ONLY;
			break;
		case 'v':
			cmd_option_value(cmd, longopts, c,
					 parse_word(optarg, ways, &way));
			args.via = ways[way];
			break;
		}
	}
	if (argc - optind < 1 || argc - optind > 2)
		return cmd_misuse(cmd, "map needs a TARGET and at most one NAME");
	args.target = argv[optind];
	args.name = argv[optind + 1];
	return run(&args);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_posix.c - stele posix: an image that the kernel can mount, or not
 */
#include "cmd.h"

#include <stdio.h>
#include <string.h>

static const struct option longopts[] = {
	{"dry-run", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int run(const char *target, bool on, bool dry_run)
{
	struct cmd_log log = {.target = target};
	int error = stele_posix(target, on,
				&STELE_OPTS(stele_txn_opts, .log = cmd_log_line,
					    .log_user = &log,
					    .flags = dry_run ? STELE_DRY_RUN : 0));

	if (error)
		cmd_log_error(error, target);
	else if (dry_run)
		printf("would make '%s' %s\ndry run: nothing was written\n", target,
		       on ? "an EROFS, too, if it is none yet" : "no EROFS any more");
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

int cmd_posix(const struct cmd *cmd, int argc, char **argv)
{
	bool dry_run = false, on;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "nh", longopts)) != -1)
		dry_run |= c == 'n';
	if (argc - optind != 2)
		return cmd_misuse(cmd, "posix needs on or off, and a TARGET");
	on = !strcmp(argv[optind], "on");
	if (!on && strcmp(argv[optind], "off"))
		return cmd_misuse(cmd, "posix needs on or off, and a TARGET");
	if (cmd_check_whole(cmd->name, argv[optind + 1]) >= 0)
		return CMD_USAGE;
	return run(argv[optind + 1], on, dry_run);
}

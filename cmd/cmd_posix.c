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

/* What cannot be opened is none; why, the change itself says. */
static bool is_erofs(const char *target)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *image;

	if (stele_image_open(target, NULL, &image))
		return false;
	stele_image_info(image, &info);
	stele_image_close(image);
	return info.tree_size;
}

static int run(const char *target, bool on, bool dry_run)
{
	struct cmd_log log = {.target = target};
	const bool same = is_erofs(target) == on;
	int error = stele_posix(target, on,
				&STELE_OPTS(stele_txn_opts, .log = cmd_log_line,
					    .log_user = &log,
					    .flags = dry_run ? STELE_DRY_RUN : 0));

	if (error)
		cmd_log_error(error, target);
	else if (same)
		printf("'%s' was %s\n", target, on ? "an EROFS already" : "no EROFS");
	else if (dry_run)
		printf("would make '%s' %s\n", target, on ? "an EROFS, too" : "no EROFS any more");
	if (!error && dry_run)
		puts("dry run: nothing was written");
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

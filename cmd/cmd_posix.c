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

/* Does block 0 show another tree than the image has, as after an interrupted writer? */
static bool shows_other(const char *target)
{
	struct stele_repair_report report = {.size = sizeof(report)};

	return !stele_repair(target, &STELE_OPTS(stele_repair_opts, .flags = STELE_DRY_RUN),
			     &report) &&
	       report.wrong_front;
}

static void tell(const char *target, bool on, bool was, bool other, bool dry_run)
{
	if (was == on && other)
		printf("'%s' was %s; block 0 %s rewritten, to show that\n", target,
		       on ? "an EROFS already" : "no EROFS", dry_run ? "would be" : "is");
	else if (was == on)
		printf("'%s' was %s\n", target, on ? "an EROFS already" : "no EROFS");
	else if (dry_run)
		printf("would make '%s' %s\n", target, on ? "an EROFS, too" : "no EROFS any more");
	if (dry_run)
		puts("dry run: nothing was written");
}

static int run(const char *target, bool on, bool dry_run)
{
	struct cmd_log log = {.target = target};
	const bool was = is_erofs(target), other = was == on && shows_other(target);
	int error = stele_posix(target, on,
				&STELE_OPTS(stele_txn_opts, .log = cmd_log_line,
					    .log_user = &log,
					    .flags = dry_run ? STELE_DRY_RUN : 0));

	if (error)
		cmd_log_error(error, target);
	else
		tell(target, on, was, other, dry_run);
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

static bool is_switch(const char *word)
{
	return !strcmp(word, "on") || !strcmp(word, "off");
}

int cmd_posix(const struct cmd *cmd, int argc, char **argv)
{
	bool dry_run = false, on;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "nh", longopts)) != -1)
		dry_run |= c == 'n';
	if (argc - optind == 2 && !is_switch(argv[optind]) && is_switch(argv[optind + 1]))
		return cmd_misuse(cmd, "posix needs %s first, and then the TARGET",
				  argv[optind + 1]);
	if (argc - optind != 2 || !is_switch(argv[optind]))
		return cmd_misuse(cmd, "posix needs on or off, and a TARGET");
	on = !strcmp(argv[optind], "on");
	if (cmd_check_whole(cmd->name, argv[optind + 1]) >= 0)
		return CMD_USAGE;
	return run(argv[optind + 1], on, dry_run);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - targets that do not open, and why, in terms of what the user typed
 *
 * -ENOENT may mean the file or the snapshot, -EINVAL that one of several has to
 * be named: the image itself, if it opens, tells which, and what there is.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAMES_SIZE 1024

bool cmd_names_snapshot(const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *at = strrchr(slash ? slash : target, '@');

	/* Of RBD there is but one, and options with slashes may follow. */
	if (strncmp(target, "rbd:", 4) == 0)
		at = strchr(target, '@');
	return at && at > target && at[1] && at[1] != '?';
}

/* "v1, v2, ..." or "none". Return: false when there is no image. */
static bool list_snapshots(const char *target, char names[NAMES_SIZE])
{
	struct stele_snapshot_info info;
	struct stele_image *image;
	size_t size = 0;

	if (stele_image_open(target, NULL, &image) < 0)
		return false;
	for (uint32_t i = 0; stele_image_snapshot(image, i, &info) == 0; i++) {
		if (size + strlen(info.name) + 8 > NAMES_SIZE) {
			size += (size_t)sprintf(names + size, ", ...");
			break;
		}
		size += (size_t)sprintf(names + size, "%s%s", size ? ", " : "",
					info.name);
	}
	stele_image_close(image);
	if (!size)
		strcpy(names, "none");
	return true;
}

void cmd_open_error(const struct cmd_log *log, int error, const char *verb)
{
	char names[NAMES_SIZE];
	bool known = error == -ENOENT || error == -EINVAL;

	if (cmd_log_enough(log, error))
		return;
	if (known && list_snapshots(log->target, names))
		cmd_message("cannot %s '%s': %s (there are: %s)", verb,
			    log->target,
			    error == -ENOENT ? "no such snapshot"
					     : "it holds several snapshots",
			    names);
	else if (error == -ENOENT)
		cmd_message("cannot %s '%s': no such file, device or mapping",
			    verb, log->target);
	else
		cmd_error(error, "cannot %s '%s'", verb, log->target);
}

void cmd_change_error(const struct cmd_log *log, int error, const char *verb)
{
	if (error == -ENOENT)
		cmd_open_error(log, error, verb);
	else
		cmd_log_error(log, error, "cannot %s '%s'", verb, log->target);
}

int cmd_open_dataset(struct cmd_log *log, uint32_t verify,
		     struct stele_dataset **out)
{
	int error = stele_dataset_open(log->target,
				       &STELE_OPTS(stele_open_opts,
						   .log = cmd_log_line,
						   .log_user = log,
						   .verify = verify),
				       out);

	if (error)
		cmd_open_error(log, error, "open");
	return error;
}

int cmd_open_image(struct cmd_log *log, struct stele_image **out)
{
	int error = stele_image_open(log->target,
				     &STELE_OPTS(stele_open_opts,
						 .log = cmd_log_line,
						 .log_user = log),
				     out);

	if (error)
		cmd_open_error(log, error, "open");
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the target of a command, opened to be read
 */
#include "cmd.h"

#include <string.h>

bool cmd_names_snapshot(const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *at = strrchr(slash ? slash : target, '@');

	/* Of RBD there is but one, and options with slashes may follow. */
	if (strncmp(target, "rbd:", 4) == 0)
		at = strchr(target, '@');
	return at && at > target && at[1] && at[1] != '?';
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
		cmd_log_error();
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
		cmd_log_error();
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_unmap.c - stele unmap: withdraw what map published
 */
#include "cmd.h"

#include <errno.h>

#include "krbd.h"

int cmd_unmap(const struct cmd *cmd, int argc, char **argv)
{
	int error, status = CMD_OK;

	cmd_getopt(cmd, argc, argv, NULL);
	if (optind == argc)
		return cmd_misuse(cmd, "unmap needs a NAME");
	for (int i = optind; i < argc; i++) {
		struct cmd_log log = {.target = argv[i]};

		error = stele_unmap(argv[i],
				    &STELE_OPTS(stele_map_opts,
						.log = cmd_log_line,
						.log_user = &log,
						.detach = krbd_detach));
		if (!error)
			continue;
		status = cmd_status_of(error);
		cmd_log_error(error, argv[i]);
	}
	return cmd_finish(status);
}

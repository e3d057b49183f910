/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_options.h - the command line of stele build
 */
#ifndef STELE_CMD_BUILD_OPTIONS_H
#define STELE_CMD_BUILD_OPTIONS_H

#include "cmd.h"

struct build_options {
	struct stele_build_opts opts;
	uint8_t uuid[STELE_UUID_SIZE]; /* opts.uuid points here */
	bool json, quiet;
};

/*
 * Zeroed options from a command line; what is left begins at optind.
 * Return: -1: go on; else the command is over, with this status.
 */
int build_options_parse(const struct cmd *cmd, int argc, char **argv,
			struct build_options *options);

#endif

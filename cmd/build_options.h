/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_options.h - the command lines of stele build, append and compact
 */
#ifndef STELE_CMD_BUILD_OPTIONS_H
#define STELE_CMD_BUILD_OPTIONS_H

#include "cmd.h"

enum build_options_who {
	BUILD_OPTIONS_BUILD = 1 << 0,
	BUILD_OPTIONS_APPEND = 1 << 1,
	BUILD_OPTIONS_COMPACT = 1 << 2,
};

struct build_options {
	enum build_options_who who; /* whose options are known */
	struct stele_build_opts opts;
	uint8_t uuid[STELE_UUID_SIZE]; /* opts.uuid points here */
	const char *base; /* of an append */
	bool json, quiet;
};

/*
 * Options, zeroed except for `who`, from a command line; the arguments begin at
 * optind.
 * Return: -1: go on; else the command is over, with this status.
 */
int build_options_parse(const struct cmd *cmd, int argc, char **argv,
			struct build_options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_options.h - the command lines of stele build, append and compact
 */
#ifndef STELE_CMD_BUILD_OPTIONS_H
#define STELE_CMD_BUILD_OPTIONS_H

#include <string.h>

#include "cmd.h"
#include "from/source.h"

enum build_options_who {
	BUILD_OPTIONS_BUILD = 1 << 0,
	BUILD_OPTIONS_APPEND = 1 << 1,
	BUILD_OPTIONS_COMPACT = 1 << 2,
};

#define BUILD_EXCLUDE_MAX 256 /* patterns */

/* Of more than 256 KiB, which may be all that a stack has: see ulimit -s. */
struct build_options {
	enum build_options_who who; /* whose options are known */
	struct stele_build_opts opts;
	uint8_t uuid[STELE_UUID_SIZE]; /* opts.uuid points here */
	const char *base; /* of an append */
	const char *exclude[BUILD_EXCLUDE_MAX + 1]; /* opts.exclude points here */
	unsigned int exclude_count;
	struct from_opts from;
	bool json, quiet;
};

/*
 * Options, zeroed except for `who`, from a command line; as cmd_option(). The arguments
 * begin at optind.
 */
void build_options_parse(const struct cmd *cmd, int argc, char **argv,
			 struct build_options *options);

/*
 * The options of an append or compaction: stele_write.h says that they begin as those of a
 * build do, up to `end`. The rest is zeroed but for what all three have.
 */
#define build_options_copy(to, options, end)                                  \
	do {                                                                  \
		memset(to, 0, sizeof(*(to)));                                 \
		memcpy(to, &(options)->opts, offsetof(__typeof__(*(to)), end)); \
		(to)->size = sizeof(*(to));                                   \
		(to)->backend = (options)->opts.backend;                      \
		(to)->note = (options)->opts.note;                            \
		(to)->time = (options)->opts.time;                            \
	} while (0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_options.c - the command line of stele build
 */
#include "build_options.h"

#include <string.h>

#include "parse.h"

#define JOBS_MAX 1024 /* of the library, too */

static const struct option longopts[] = {
	{"backend", required_argument, NULL, 'b'},
	{"boundary", required_argument, NULL, 'B'},
	{"dry-run", no_argument, NULL, 'n'},
	{"force", no_argument, NULL, 'f'},
	{"granule", required_argument, NULL, 'g'},
	{"help", no_argument, NULL, 'h'},
	{"jobs", required_argument, NULL, 'j'},
	{"json", no_argument, NULL, 'J'},
	{"label", required_argument, NULL, 'l'},
	{"labels", no_argument, NULL, 'L'},
	{"memory", required_argument, NULL, 'm'},
	{"no-labels", no_argument, NULL, 'N'},
	{"order", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"size", required_argument, NULL, 's'},
	{"skip-changed", no_argument, NULL, 'c'},
	{"time", required_argument, NULL, 't'},
	{"uuid", required_argument, NULL, 'u'},
	{0},
};

static const char *name_of(int option)
{
	const struct option *o = longopts;

	while (o->name && o->val != option)
		o++;
	return o->name;
}

static bool set_order(struct build_options *options, const char *text)
{
	options->opts.order = strcmp(text, "source") == 0 ? STELE_ORDER_SOURCE
						      : STELE_ORDER_SIZE;
	return strcmp(text, "size") == 0 || strcmp(text, "source") == 0;
}

static bool set_number(uint32_t *to, const char *text, uint64_t max)
{
	uint64_t value;

	if (!parse_number(text, max, &value) || !value)
		return false;
	*to = (uint32_t)value;
	return true;
}

static bool set_granule(uint32_t *granule, const char *text)
{
	return set_number(granule, text, 4096) &&
	       (*granule == 16 || *granule == 64 || *granule == 512 ||
		*granule == 4096);
}

/* The library wants 1 for none, and a power of two of at least 4096. */
static bool set_boundary(uint32_t *boundary, const char *text)
{
	uint64_t size;

	*boundary = 1;
	if (strcmp(text, "none") == 0)
		return true;
	if (!parse_size(text, &size) || size < 4096 || size > UINT32_MAX)
		return false;
	*boundary = (uint32_t)size;
	return !(size & (size - 1));
}

/* Options with a value. Return: false when it makes no sense. */
static bool set_value(struct build_options *options, int option, const char *text)
{
	switch (option) {
	case 'b':
		options->opts.backend = text;
		return true;
	case 'B':
		return set_boundary(&options->opts.boundary, text);
	case 'g':
		return set_granule(&options->opts.granule, text);
	case 'j':
		return set_number(&options->opts.jobs, text, JOBS_MAX);
	case 'l':
		options->opts.label = text;
		return strlen(text) <= STELE_NAME_SIZE_MAX;
	case 'm':
		return parse_size(text, &options->opts.memory_size) &&
		       options->opts.memory_size;
	case 'o':
		return set_order(options, text);
	case 's':
		return parse_size(text, &options->opts.file_size) &&
		       options->opts.file_size;
	case 't': /* 0 would mean now */
		return parse_time(text, &options->opts.time) && options->opts.time;
	case 'u':
		options->opts.uuid = options->uuid;
		return parse_uuid(text, options->uuid);
	default:
		return false;
	}
}

/* Options without one. Return: false for any other. */
static bool set_flag(struct build_options *options, int option)
{
	static const struct {
		char option;
		uint32_t flag;
	} flags[] = {
		{'c', STELE_BUILD_SKIP_CHANGED}, {'f', STELE_BUILD_FORCE},
		{'L', STELE_BUILD_LABELS},	 {'N', STELE_BUILD_NO_LABELS},
		{'n', STELE_BUILD_DRY_RUN},
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (option == flags[i].option) {
			options->opts.flags |= flags[i].flag;
			return true;
		}
	}
	options->quiet |= option == 'q';
	options->json |= option == 'J';
	return option == 'q' || option == 'J';
}

int build_options_parse(const struct cmd *cmd, int argc, char **argv,
			struct build_options *options)
{
	int c;

	options->opts.size = sizeof(options->opts);
	while ((c = getopt_long(argc, argv, "fhj:nq", longopts, NULL)) != -1) {
		if (c == 'h')
			return cmd_help(cmd);
		if (c == '?')
			return cmd_misuse(cmd, NULL);
		if (!set_flag(options, c) && !set_value(options, c, optarg))
			return cmd_misuse(cmd, "bad value '%s' for --%s",
					  optarg, name_of(c));
	}
	return -1;
}

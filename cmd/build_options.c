/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_options.c - the command lines of stele build, append and compact
 */
#include "build_options.h"

#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define MEMORY_MIN (1 << 20) /* of the library, too */

#define B BUILD_OPTIONS_BUILD
#define A BUILD_OPTIONS_APPEND
#define C BUILD_OPTIONS_COMPACT

static const struct {
	struct option option;
	unsigned int who;
} table[] = {
	{{"allow-empty", no_argument, NULL, 'E'}, A | B},
	{{"always", no_argument, NULL, 'a'}, A},
	{{"arrays", required_argument, NULL, 'A'}, A | B},
	{{"backend", required_argument, NULL, 'b'}, A | B | C},
	{{"base", required_argument, NULL, 'O'}, A},
	{{"boundary", required_argument, NULL, 'B'}, A | B | C},
	{{"database", required_argument, NULL, 'd'}, A | B},
	{{"datum", no_argument, NULL, 'M'}, A | B},
	{{"delete-missing", no_argument, NULL, 'D'}, A},
	{{"dry-run", no_argument, NULL, 'n'}, A | B | C},
	{{"example", no_argument, NULL, 'x'}, A | B},
	{{"exclude", required_argument, NULL, 'X'}, A | B},
	{{"follow", no_argument, NULL, 'F'}, A | B},
	{{"force", no_argument, NULL, 'f'}, A | B},
	{{"from", required_argument, NULL, 'r'}, A | B},
	{{"granule", required_argument, NULL, 'g'}, A | B | C},
	{{"help", no_argument, NULL, 'h'}, A | B | C},
	{{"jobs", required_argument, NULL, 'j'}, A | B | C},
	{{"json", no_argument, NULL, 'J'}, A | B | C},
	{{"key", required_argument, NULL, 'k'}, A | B},
	{{"label", required_argument, NULL, 'l'}, A | B}, /* which append refuses */
	{{"label-from", required_argument, NULL, 'L'}, A | B},
	{{"memory", required_argument, NULL, 'm'}, A | B | C},
	{{"note", required_argument, NULL, 'T'}, A | B | C},
	{{"object-size", required_argument, NULL, 'S'}, B},
	{{"on-error", required_argument, NULL, 'e'}, A | B},
	{{"order", required_argument, NULL, 'o'}, A | B | C},
	{{"payload", required_argument, NULL, 'P'}, A | B},
	{{"posix", no_argument, NULL, 'p'}, B},
	{{"quick", no_argument, NULL, 'Q'}, A},
	{{"quiet", no_argument, NULL, 'q'}, A | B | C},
	{{"size", required_argument, NULL, 's'}, A | B},
	{{"time", required_argument, NULL, 't'}, A | B | C},
	{{"type", required_argument, NULL, 'y'}, A | B},
	{{"update", no_argument, NULL, 'U'}, A},
	{{"uuid", required_argument, NULL, 'u'}, B},
};
#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))

#undef A
#undef B
#undef C

static void select_options(enum build_options_who who,
			   struct option longopts[TABLE_COUNT + 1])
{
	size_t count = 0;

	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (table[i].who & who)
			longopts[count++] = table[i].option;
	memset(&longopts[count], 0, sizeof(longopts[count]));
}

static const char *set_order(uint32_t *order, const char *text)
{
	static const char *const orders[] = {
		[STELE_ORDER_SIZE] = "size", [STELE_ORDER_SOURCE] = "source",
		NULL,
	};

	return parse_word(text, orders, order);
}

static const char *set_granule(uint32_t *granule, const char *text)
{
	static const char *const granules[] = {"16", "64", "512", "4096", NULL};
	const char *reason = parse_word(text, granules, granule);

	return reason ? reason : parse_count(text, 4096, granule);
}

/* The library wants 1 for none. */
static const char *set_boundary(uint32_t *boundary, const char *text)
{
	*boundary = 1;
	return parse_or(text, "none", parse_power(text, UINT32_MAX, boundary));
}

static const char *set_label_from(uint32_t *from, const char *text)
{
	if (!strcmp(text, "auto"))
		*from = STELE_LABEL_FROM_AUTO;
	else if (!strcmp(text, "none"))
		*from = STELE_LABEL_FROM_NONE;
	else if (!strcmp(text, "parent"))
		*from = STELE_LABEL_FROM_PARENT;
	else if (parse_count(text, STELE_LABEL_FROM_LEVEL_MAX, from) || !*from)
		return "auto, none, parent, or a level from 1 to 255";
	return NULL;
}

static const char *set_on_error(struct build_options *options, const char *text)
{
	static const char *const words[] = {"fail", "skip", NULL};
	uint32_t word;
	const char *reason = parse_word(text, words, &word);

	options->from.skip = !reason && word == 1;
	return reason;
}

static const char *add_exclude(struct build_options *options, const char *text)
{
	if (!text[strspn(text, "/")])
		return "a pattern, such as '*.txt' or 'cache/'";
	if (options->exclude_count == BUILD_EXCLUDE_MAX)
		return "at most 256 of these";
	options->exclude[options->exclude_count++] = text;
	options->opts.exclude = options->exclude;
	return NULL;
}

/* Options with a value. Return: NULL; what it wants to be. */
static const char *set_value(struct build_options *options, int option,
			     const char *text)
{
	struct stele_build_opts *opts = &options->opts;

	switch (option) {
	case 'b':
		return parse_backend(text, &opts->backend);
	case 'B':
		return set_boundary(&opts->boundary, text);
	case 'X':
		return add_exclude(options, text);
	case 'g':
		return set_granule(&opts->granule, text);
	case 'j':
		return parse_count(text, PARSE_JOBS_MAX, &opts->jobs);
	case 'L':
		return set_label_from(&opts->label_from, text);
	case 'l':
		return parse_label(text, &opts->label);
	case 'm':
		return parse_size(text, MEMORY_MIN, PARSE_SIZE_MAX,
				  &opts->memory_size);
	case 'O':
		return parse_text(text, 1, STELE_NAME_SIZE_MAX,
				  &options->base);
	case 'o':
		return set_order(&opts->order, text);
	case 'S':
		return parse_power(text, PARSE_OBJECT_MAX, &opts->object_size);
	case 'A':
		return parse_text(text, 1, STELE_KEY_SIZE_MAX, &options->from.arrays);
	case 'd':
		return parse_text(text, 1, STELE_KEY_SIZE_MAX, &options->from.database);
	case 'e':
		return set_on_error(options, text);
	case 'k':
		return parse_text(text, 1, STELE_NAME_SIZE_MAX, &options->from.key);
	case 'P':
		return parse_text(text, 1, STELE_NAME_SIZE_MAX, &options->from.payload);
	case 'y':
		return from_parse_type(text, &options->from);
	case 'r':
		return from_parse(text, &options->from.format);
	case 's':
		return cmd_parse_target_size(text, &opts->file_size);
	case 'T':
		opts->note = text;
		return NULL;
	case 't':
		return parse_time(text, &opts->time);
	default: /* 'u' */
		opts->uuid = options->uuid;
		return parse_uuid(text, options->uuid);
	}
}

/* Options without one. Return: false for any other. */
static bool set_flag(struct build_options *options, int option)
{
	static const struct {
		char option;
		uint32_t flag;
	} flags[] = {
		{'f', STELE_FORCE},
		{'n', STELE_DRY_RUN},	 {'U', STELE_APPEND_UPDATE},
		{'Q', STELE_APPEND_QUICK},
		{'D', STELE_APPEND_DELETE_MISSING},
		{'E', STELE_BUILD_ALLOW_EMPTY}, {'a', STELE_APPEND_ALWAYS},
		{'F', STELE_BUILD_FOLLOW}, {'p', STELE_BUILD_POSIX},
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (option == flags[i].option) {
			options->opts.flags |= flags[i].flag;
			return true;
		}
	}
	options->quiet |= option == 'q';
	options->json |= option == 'J';
	options->from.example |= option == 'x';
	options->from.datum |= option == 'M';
	return option == 'q' || option == 'J' || option == 'x' || option == 'M';
}

void build_options_parse(const struct cmd *cmd, int argc, char **argv,
			 struct build_options *options)
{
	const char *letters =
		options->who == BUILD_OPTIONS_COMPACT ? "hj:nq" : "fhj:nq";
	struct option longopts[TABLE_COUNT + 1];
	int c;

	select_options(options->who, longopts);
	options->opts.size = sizeof(options->opts);
	while ((c = cmd_option(cmd, argc, argv, letters, longopts)) != -1) {
		if (c == 'l' && options->who == BUILD_OPTIONS_APPEND)
			exit(cmd_misuse(cmd, "--label is build's, and names the image; "
					     "--label-from says where samples get labels from"));
		if (!set_flag(options, c))
			cmd_option_value(cmd, longopts, c,
					 set_value(options, c, optarg));
	}
}

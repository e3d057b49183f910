/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - variables that the library reads, checked before a command begins
 *
 * What makes no sense there is wrong usage like an option's value, whatever the
 * command would have used. An empty variable is as good as none.
 */
#include "cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parse.h"

static const char *check_backend(const char *text)
{
	const char *backend;

	return parse_backend(text, &backend);
}

static const char *check_timeout(const char *text)
{
	uint32_t seconds;

	return parse_count(text, PARSE_TIMEOUT_MAX, &seconds);
}

static const char *check_time(const char *text)
{
	uint64_t seconds;

	return parse_number(text, 0, PARSE_TIME_MAX, &seconds);
}

/* One that is not there may be made; why one cannot be used is told then. */
static const char *check_directory(const char *text)
{
	struct stat st;
	const bool found = stat(text, &st) == 0;

	return (found && !S_ISDIR(st.st_mode)) || (!found && errno == ENOTDIR) ?
		       "a directory" :
		       NULL;
}

static const struct {
	const char *name;
	const char *(*check)(const char *text);
} variables[] = {
	{"SOURCE_DATE_EPOCH", check_time},
	{"STELE_BACKEND", check_backend},
	{"STELE_RUN_DIR", check_directory},
	{"STELE_TIMEOUT", check_timeout},
};

static bool wants_help(char **words)
{
	for (; *words && strcmp(*words, "--") != 0; words++)
		if (!strcmp(*words, "--help") || !strcmp(*words, "-h"))
			return true;
	return false;
}

int cmd_check_environment(const struct cmd *cmd, char **words)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i].name);
		const char *wanted = value && *value ?
					     variables[i].check(value) : NULL;

		if (wanted && !wants_help(words))
			return cmd_misuse(cmd, "invalid value '%s' for $%s: must be %s",
					  value, variables[i].name, wanted);
	}
	return -1;
}

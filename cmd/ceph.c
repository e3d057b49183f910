/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph.c - options of all commands: how to reach a Ceph cluster, and --progress
 *
 * The former become environment variables, which the library reads: so they hold for
 * every target of the command that says nothing itself.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "progress.h"

static const struct {
	const char *option, *variable;
} settings[] = {
	{"--ceph-conf", "CEPH_CONF"},
	{"--ceph-user", "STELE_CEPH_USER"},
	{"--timeout", "STELE_TIMEOUT"},
};

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

/* The variable that this word sets; *value: what stands behind '=', or NULL. */
static const char *find_variable(const char *word, const char **value)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		size_t size = strlen(settings[i].option);

		if (strncmp(word, settings[i].option, size) != 0)
			continue;
		*value = word[size] == '=' ? word + size + 1 : NULL;
		if (*value || !word[size])
			return settings[i].variable;
	}
	return NULL;
}

static bool set_variable(const char *option, const char *variable,
			 const char *value)
{
	const int name_size = (int)strcspn(option, "=");
	const char *wanted = NULL;
	uint32_t seconds;

	if (!value || !*value) {
		cmd_message("%.*s needs a value", name_size, option);
		return false;
	}
	if (strcmp(variable, "STELE_TIMEOUT") == 0)
		wanted = parse_count(value, PARSE_TIMEOUT_MAX, &seconds);
	if (wanted) {
		cmd_message("invalid value '%s' for %.*s: must be %s", value, name_size,
			    option, wanted);
		return false;
	}
	return setenv(variable, value, 1) == 0;
}

bool cmd_take_ceph(int *argc, char **argv)
{
	int kept = 1, i = 1;

	while (i < *argc && strcmp(argv[i], "--") != 0) {
		const char *option = argv[i++], *value;
		const char *variable = find_variable(option, &value);

		if (!strcmp(option, "--progress")) {
			progress_force();
			continue;
		}
		if (!variable) {
			argv[kept++] = (char *)option;
			continue;
		}
		if (!value && i < *argc)
			value = argv[i++];
		if (!set_variable(option, variable, value))
			return false;
	}
	while (i < *argc)
		argv[kept++] = argv[i++];
	argv[kept] = NULL;
	*argc = kept;
	return true;
}

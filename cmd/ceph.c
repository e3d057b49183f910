/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph.c - options of all commands: how to reach a Ceph cluster
 *
 * They become environment variables, which the library reads: so they hold for
 * every target of the command that says nothing itself.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

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

static bool is_seconds(const char *text)
{
	return *text && strlen(text) <= 5 &&
	       text[strspn(text, "0123456789")] == '\0' && atoi(text) >= 1 &&
	       atoi(text) <= 86400;
}

static bool set_variable(const char *option, const char *variable,
			 const char *value)
{
	if (!value || !*value) {
		cmd_message("%s wants a value", option);
		return false;
	}
	if (strcmp(variable, "STELE_TIMEOUT") == 0 && !is_seconds(value)) {
		cmd_message("bad timeout '%s': 1 to 86400 seconds", value);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph_text.c - see ceph_text.h
 *
 * Both texts are of somebody else: what is not understood is passed over, and
 * what is then missing is an error.
 */
#include "lib/device/rbd/ceph_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

/* ---- monitors -------------------------------------------------------------- */

/* Its messenger's address in a line like
 * "0: [v2:192.0.2.1:3300/0,v1:192.0.2.1:6789/0] mon.a"; NULL: it has none. */
static const char *find_address(const char *line, const char *end,
				const char *messenger, size_t *size)
{
	for (const char *at = line; at + 3 < end; at++) {
		const char *slash;

		/* An address in brackets has no blank or comma before it. */
		if (strncmp(at, messenger, 3) || at == line ||
		    !strchr(" [,", at[-1]))
			continue;
		slash = memchr(at, '/', (size_t)(end - at));
		if (!slash)
			return NULL;
		*size = (size_t)(slash - at) - 3;
		return at + 3;
	}
	return NULL;
}

static bool is_monitor(const char *line, const char *end)
{
	size_t digits = strspn(line, "0123456789");

	return digits && line + digits + 1 < end && line[digits] == ':' &&
	       line[digits + 1] == ' ';
}

/* The addresses of all monitors, if each has one. 0; -EUCLEAN; -ENOMEM. */
static int collect(const char *dump, const char *messenger, char **out)
{
	char *text = malloc(strlen(dump) + 1); /* more than they need */
	const char *line, *end;
	size_t used = 0, length;
	int missing = 0;

	if (!text)
		return -ENOMEM;
	for (line = dump; *line; line = *end ? end + 1 : end) {
		const char *address;

		end = line + strcspn(line, "\n");
		if (!is_monitor(line, end))
			continue;
		address = find_address(line, end, messenger, &length);
		missing += !address;
		if (!address)
			continue;
		if (used)
			text[used++] = ',';
		memcpy(text + used, address, length);
		used += length;
	}
	text[used] = '\0';
	if (!used || missing) {
		free(text);
		return -EUCLEAN;
	}
	*out = text;
	return 0;
}

int stele_ceph_monitors(const char *dump, size_t size, bool secure,
		       char **monitors, const char **mode)
{
	char *text = strndup(dump, size);
	int err;

	*monitors = NULL;
	*mode = NULL;
	if (!text)
		return -ENOMEM;
	err = secure ? -EUCLEAN : collect(text, "v1:", monitors);
	if (err == -EUCLEAN) {
		err = collect(text, "v2:", monitors);
		if (!err)
			*mode = secure ? "secure" : "prefer-crc";
	}
	free(text);
	return err;
}

/* ---- keyrings -------------------------------------------------------------- */

/* "key = AQ..." Return: 1; 0: it is something else; -ENOMEM. */
static int take_key(const char *line, size_t size, char **key)
{
	const char *value = line + 3 + strspn(line + 3, BLANKS);

	if (size < 4 || strncmp(line, "key", 3) || *value != '=')
		return 0;
	value += 1 + strspn(value + 1, BLANKS);
	size = strcspn(value, BLANKS "\n");
	free(*key);
	*key = strndup(value, size);
	return *key ? 1 : -ENOMEM;
}

int stele_ceph_keyring_find(const char *text, const char *user, char **key)
{
	bool ours = false;
	int rc = 0;

	*key = NULL;
	while (rc >= 0 && *text) {
		const char *line = text + strspn(text, BLANKS);
		size_t size = strcspn(line, "\n"), length = strlen(user);

		if (*line == '[')
			ours = !strncmp(line, "[client.", 8) &&
			       !strncmp(line + 8, user, length) &&
			       line[8 + length] == ']';
		else if (ours)
			rc = take_key(line, size, key);
		text = line + size;
		text += *text == '\n';
	}
	if (rc < 0)
		return rc;
	return *key && **key ? 0 : -ENOENT;
}

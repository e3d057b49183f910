/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_rbd.c - takes the spelling of an RBD image apart; see target_rbd.h
 */
#include "lib/device/target_rbd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/target.h"

#define PREFIX_SIZE (sizeof(STELE_RBD_PREFIX) - 1)
#define USAGE	    "rbd:POOL[/NAMESPACE]/IMAGE[?OPTIONS]"

bool stele_path_is_rbd(const char *text)
{
	return !strncmp(text, STELE_RBD_PREFIX, PREFIX_SIZE);
}

/* ---- path and snapshot ----------------------------------------------------- */

/* The text without [from, to). */
static char *cut_out(const char *text, const char *from, const char *to)
{
	size_t head = (size_t)(from - text), tail = strlen(to) + 1;
	char *out = malloc(head + tail);

	if (out) {
		memcpy(out, text, head);
		memcpy(out + head, to, tail);
	}
	return out;
}

int stele_rbd_divide(const char *text, const struct stele_log *log, char **path,
		     char **snapshot)
{
	const char *at = strchr(text, '@'), *end;

	*path = *snapshot = NULL;
	if (strlen(text) > STELE_RBD_TARGET_MAX) {
		stele_log_error(log, "target '%.40s...' is longer than %u bytes",
				text, STELE_RBD_TARGET_MAX);
		return -EINVAL;
	}
	if (!at) {
		*path = strdup(text);
		return *path ? 0 : -ENOMEM;
	}
	if (strchr(at + 1, '@')) {
		stele_log_error(log,
				"two '@' in target '%s' (in an option '@' is "
				"written %%40)",
				text);
		return -EINVAL;
	}
	/* Behind the options it goes to the end, whatever it holds. */
	end = strchr(text, '?');
	end = end && end > at ? end : at + strlen(at);
	*path = cut_out(text, at, end);
	*snapshot = strndup(at + 1, (size_t)(end - at - 1));
	if (*path && *snapshot)
		return 0;
	free(*path);
	free(*snapshot);
	*path = *snapshot = NULL;
	return -ENOMEM;
}

/* ---- options --------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* In place; false when a %XX is broken or gives a control character. */
static bool decode(char *value)
{
	char *to = value;

	for (const char *from = value; *from; from++, to++) {
		*to = *from;
		if (*from == '%') {
			int high = hex_digit(from[1]);
			int low = high < 0 ? -1 : hex_digit(from[2]);

			if (low < 0)
				return false;
			*to = (char)(high << 4 | low);
			from += 2;
		}
		if (is_control(*to))
			return false;
	}
	*to = '\0';
	return true;
}

static bool parse_number(const char *text, uint32_t max, uint32_t *out)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value;

	if (!digits || digits > 9 || text[digits])
		return false;
	value = strtoul(text, NULL, 10);
	*out = (uint32_t)value;
	return value >= 1 && value <= max;
}

static bool set_text(char **place, const char *value)
{
	if (*place)
		return false;
	*place = strdup(value);
	return *place;
}

static bool set_number(uint32_t *place, const char *value, uint32_t max)
{
	return !*place && parse_number(value, max, place);
}

/* One "key=value"; what is said twice is wrong as well. */
static bool set_option(char *option, struct stele_rbd_name *out)
{
	char *value = strchr(option, '=');

	if (!value)
		return false;
	*value++ = '\0';
	if (!decode(value) || !*value)
		return false;
	if (!strcmp(option, "conf"))
		return set_text(&out->conf, value);
	if (!strcmp(option, "user"))
		return set_text(&out->user, value);
	if (!strcmp(option, "timeout"))
		return set_number(&out->timeout, value, STELE_RBD_TIMEOUT_MAX);
	if (!strcmp(option, "connections"))
		return set_number(&out->connections, value,
				  STELE_RBD_CONNECTIONS_MAX);
	return false;
}

static int parse_options(const char *path, char *options,
			 const struct stele_log *log, struct stele_rbd_name *out)
{
	char *next, shown[64];

	for (; options; options = next) {
		next = strchr(options, '&');
		if (next)
			*next++ = '\0';
		snprintf(shown, sizeof(shown), "%s", options);
		if (set_option(options, out))
			continue;
		stele_log_error(log,
				"bad option '%s' in target '%s': conf=FILE, "
				"user=ID, timeout=1..%u, connections=1..%u, each "
				"once, with '&' between them",
				shown, path, STELE_RBD_TIMEOUT_MAX,
				STELE_RBD_CONNECTIONS_MAX);
		return -EINVAL;
	}
	return 0;
}

/* ---- names ----------------------------------------------------------------- */

/* `rest` becomes what follows the next slash, or NULL. */
static char *next_part(char **rest)
{
	char *part = *rest, *slash = part ? strchr(part, '/') : NULL;

	if (slash)
		*slash = '\0';
	*rest = slash ? slash + 1 : NULL;
	return part;
}

static bool part_ok(const char *part)
{
	for (const char *p = part; *p; p++)
		if (is_control(*p) || *p == '@')
			return false;
	return *part;
}

static int parse_place(const char *path, char *place,
		       const struct stele_log *log, struct stele_rbd_name *out)
{
	char *parts[3];
	int count = 0;

	while (place && count < 3)
		parts[count++] = next_part(&place);
	for (int i = 0; i < count; i++)
		if (!part_ok(parts[i]))
			count = 0;
	if (count < 2 || place) {
		stele_log_error(log,
				"bad target '%s': it is not " USAGE
				" (a file of that name is written './%s')",
				path, path);
		return -EINVAL;
	}
	out->pool = strdup(parts[0]);
	out->ns = count == 3 ? strdup(parts[1]) : NULL;
	out->image = strdup(parts[count - 1]);
	return out->pool && out->image && (count == 2 || out->ns) ? 0 : -ENOMEM;
}

int stele_rbd_name_parse(const char *path, const struct stele_log *log,
			 struct stele_rbd_name *out)
{
	char *place, *options;
	int err;

	memset(out, 0, sizeof(*out));
	place = strdup(path + PREFIX_SIZE);
	if (!place)
		return -ENOMEM;
	options = strchr(place, '?');
	if (options)
		*options++ = '\0';
	err = parse_place(path, place, log, out);
	if (!err)
		err = parse_options(path, options, log, out);
	free(place);
	if (err)
		stele_rbd_name_release(out);
	return err;
}

void stele_rbd_name_release(struct stele_rbd_name *name)
{
	free(name->pool);
	free(name->ns);
	free(name->image);
	free(name->conf);
	free(name->user);
	memset(name, 0, sizeof(*name));
}

/* ---- writing it ------------------------------------------------------------ */

/* What would end the value, or be taken for a snapshot, as %XX. */
static char *put_option(char *to, char *sep, const char *key, const char *value)
{
	static const char digits[] = "0123456789ABCDEF";

	*to++ = *sep;
	*sep = '&';
	to = stpcpy(stpcpy(to, key), "=");
	for (; *value; value++) {
		if (!strchr("@&%", *value)) {
			*to++ = *value;
			continue;
		}
		*to++ = '%';
		*to++ = digits[(unsigned char)*value >> 4];
		*to++ = digits[(unsigned char)*value & 15];
	}
	*to = '\0';
	return to;
}

static char *put_number(char *to, char *sep, const char *key, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return put_option(to, sep, key, text);
}

static size_t length(const char *text)
{
	return text ? strlen(text) : 0;
}

char *stele_rbd_name_format(const struct stele_rbd_name *name)
{
	/* Names, options with each byte as %XX, keys and numbers. */
	size_t size = length(name->pool) + length(name->ns) +
		      length(name->image) +
		      3 * (length(name->conf) + length(name->user)) + 100;
	char *text = malloc(size), *to = text, sep = '?';

	if (!text)
		return NULL;
	to = stpcpy(stpcpy(to, STELE_RBD_PREFIX), name->pool);
	if (name->ns)
		to = stpcpy(stpcpy(to, "/"), name->ns);
	to = stpcpy(stpcpy(to, "/"), name->image);
	if (name->conf)
		to = put_option(to, &sep, "conf", name->conf);
	if (name->user)
		to = put_option(to, &sep, "user", name->user);
	if (name->timeout)
		to = put_number(to, &sep, "timeout", name->timeout);
	if (name->connections)
		put_number(to, &sep, "connections", name->connections);
	return text;
}

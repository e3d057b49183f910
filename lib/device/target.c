/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - takes the spelling of a target apart; see target.h
 *
 * Only text is looked at here: whether a path exists, and whether a word is a
 * mapping, is asked by those who open it.
 */
#include "lib/device/target.h"

#include "format/catalog.h"
#include "lib/device/target_rbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_PREFIX "sha256:"
#define CUT_SIZE      60 /* of a name that is too long, for messages */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Exactly STELE_DIGEST_SIZE bytes in hexadecimal, and nothing behind them. */
static bool parse_digest(const char *text, uint8_t *digest)
{
	if (strlen(text) != 2 * STELE_DIGEST_SIZE)
		return false;
	for (size_t i = 0; i < STELE_DIGEST_SIZE; i++) {
		int high = hex_value(text[2 * i]);
		int low = hex_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		digest[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* `name`: what follows the dividing '@', perhaps nothing. */
static int parse_snapshot(const char *text, const char *name,
			  const struct stele_log *log, struct stele_target *out)
{
	if (!*name) {
		stele_log_error(log, "empty snapshot name in target '%s'", text);
		return -EINVAL;
	}
	if (!strncmp(name, DIGEST_PREFIX, strlen(DIGEST_PREFIX))) {
		out->pinned = parse_digest(name + strlen(DIGEST_PREFIX),
					   out->digest);
		if (out->pinned)
			return 0;
		stele_log_error(log, "bad digest in target '%s': not %d hexadecimal digits",
				text, 2 * STELE_DIGEST_SIZE);
		return -EINVAL;
	}
	if (!stele_name_ok(name, strlen(name))) {
		const bool cut = strlen(name) > STELE_NAME_SIZE_MAX;
		const int shown = cut ? CUT_SIZE : STELE_NAME_SIZE_MAX;

		stele_log_error(log,
				"bad snapshot name '%.*s%s' in target '%.*s%s': must be "
				STELE_NAME_RULE "%s", shown, name, cut ? "..." : "",
				(int)(name - text) + shown, text, cut ? "..." : "",
				stele_path_is_rbd(text) ? "" :
						     " (a path that holds an '@' "
						     "is written with one more "
						     "behind it)");
		return -EINVAL;
	}
	out->snapshot = strdup(name);
	return out->snapshot ? 0 : -ENOMEM;
}

/* Canonical: options in one order, written in one way. */
static int parse_rbd(const char *text, const struct stele_log *log,
		     struct stele_target *out)
{
	struct stele_rbd_name name;
	char *path, *snapshot;
	int err = stele_rbd_divide(text, log, &path, &snapshot);

	if (!err)
		err = stele_rbd_name_parse(path, log, &name);
	if (!err) {
		out->path = stele_rbd_name_format(&name);
		err = out->path ? 0 : -ENOMEM;
		stele_rbd_name_release(&name);
	}
	if (!err && snapshot)
		err = parse_snapshot(text, snapshot, log, out);
	free(path);
	free(snapshot);
#ifndef HAVE_LIBRBD
	if (!err) {
		stele_log_error(log,
				"cannot open '%s': built without librbd "
				"(a file of that name is written './%s')",
				text, text);
		err = -EOPNOTSUPP;
	}
#endif
	return err;
}

static int parse_path(const char *text, const struct stele_log *log,
		      struct stele_target *out)
{
	const char *at = strrchr(text, '@'), *slash = strrchr(text, '/');
	int err = 0;

	if (at && slash && at < slash)
		at = NULL;
	if (at == text) {
		stele_log_error(log, "no path in target '%s'", text);
		return -EINVAL;
	}
	/* "a@b@" is the path "a@b"; of "a@" a name was forgotten. */
	if (at && (at[1] || !memchr(slash ? slash : text, '@',
				    (size_t)(at - (slash ? slash : text)))))
		err = parse_snapshot(text, at + 1, log, out);
	if (!err) {
		out->path = at ? strndup(text, (size_t)(at - text)) :
				 strdup(text);
		if (!out->path)
			err = -ENOMEM;
	}
	return err;
}

int stele_target_parse(const char *text, const struct stele_log *log,
		       struct stele_target *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	if (!text || !*text) {
		stele_log_error(log, "empty target");
		return -EINVAL;
	}
	err = stele_path_is_rbd(text) ? parse_rbd(text, log, out) :
				   parse_path(text, log, out);
	if (err)
		stele_target_release(out);
	return err;
}

const uint8_t *stele_target_digest(const struct stele_target *target)
{
	return target->pinned || target->mapped ? target->digest : NULL;
}

int stele_target_gone(const struct stele_target *target,
		      const struct stele_log *log)
{
	stele_log_error(log, "the snapshot that was mapped is no longer on '%s'",
			target->path);
	return -ESTALE;
}

void stele_target_release(struct stele_target *target)
{
	free(target->path);
	free(target->snapshot);
	memset(target, 0, sizeof(*target));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the target of a command, opened to be read
 */
#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "remedy.h"
#include "snapshots.h"
#include "text.h"

bool cmd_is_rbd(const char *target)
{
	return !strncmp(target, "rbd:", 4);
}

const char *cmd_snapshot_of(const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *at = strrchr(slash ? slash : target, '@');

	/* Of RBD there is but one, and options with slashes may follow. */
	if (cmd_is_rbd(target))
		at = strchr(target, '@');
	return at && at > target && at[1] && at[1] != '?' ? at + 1 : NULL;
}

char *cmd_path_of(const char *target)
{
	const char *name = cmd_snapshot_of(target);
	size_t size = name ? (size_t)(name - 1 - target) : strlen(target);

	if (!name && size && target[size - 1] == '@') /* "a@b@" is the file "a@b" */
		size--;
	return strndup(target, size);
}

bool cmd_names_snapshot(const char *target)
{
	return cmd_snapshot_of(target);
}

int cmd_check_whole(const char *name, const char *target)
{
	if (!cmd_snapshot_of(target))
		return -1;
	cmd_message("'%s' names a snapshot: stele %s works on a whole image", target,
		    name);
	remedy_path(target);
	return CMD_USAGE;
}

int cmd_open_dataset(struct cmd_log *log, uint32_t verify,
		     struct stele_dataset **out)
{
	int error = stele_dataset_open(log->target,
				       &STELE_OPTS(stele_open_opts,
						   .log = cmd_log_line,
						   .log_user = log,
						   .verify = verify),
				       out);

	if (error)
		cmd_log_error(error, log->target);
	return error;
}

int cmd_open_image(struct cmd_log *log, struct stele_image **out)
{
	int error = stele_image_open(log->target,
				     &STELE_OPTS(stele_open_opts,
						 .log = cmd_log_line,
						 .log_user = log),
				     out);

	if (error)
		cmd_log_error(error, log->target);
	return error;
}

#define DIGEST_PREFIX "sha256:"
#define DIGEST_DIGITS_MIN 4u

struct choice {
	struct snapshots snapshots;
	const char *digits;
	char found[TEXT_HEX_SIZE];
	unsigned int count;
};

/* Two snapshots may have the same digest: then either will do. */
static void choose(struct choice *choice)
{
	for (uint32_t i = 0; i < choice->snapshots.count; i++) {
		const struct stele_snapshot_info *info = &choice->snapshots.infos[i];
		char hex[TEXT_HEX_SIZE] = "";

		text_hex(hex, info->digest, sizeof(info->digest));
		if (strncasecmp(hex, choice->digits, strlen(choice->digits)) != 0 ||
		    strcmp(hex, choice->found) == 0)
			continue;
		memcpy(choice->found, hex, sizeof(hex));
		choice->count++;
	}
}

static void list_candidates(const struct choice *choice)
{
	for (uint32_t i = 0; i < choice->snapshots.count; i++) {
		const struct stele_snapshot_info *info = &choice->snapshots.infos[i];
		char hex[TEXT_HEX_SIZE] = "";

		text_hex(hex, info->digest, sizeof(info->digest));
		if (strncasecmp(hex, choice->digits, strlen(choice->digits)) == 0)
			cmd_hint("%s%.16s is '%s'", DIGEST_PREFIX, hex, info->name);
	}
}

/* Return: the word with the whole digest, malloc'ed; NULL (said, if it is an image). */
static char *complete(const char *word, size_t path_size, const char *rest,
		      struct choice *choice, bool *bad)
{
	char *path = NULL, *whole = NULL;
	struct stele_image *image = NULL;

	if (asprintf(&path, "%.*s%s", (int)path_size, word, rest) < 0)
		return NULL;
	if (stele_image_open(path, NULL, &image))
		goto out; /* who opens the target says why */
	if (snapshots_load(&choice->snapshots, image) == 0)
		choose(choice);
	*bad = choice->count != 1;
	if (*bad)
		cmd_message("'%s': %s snapshot of '%s' has a digest that begins "
			    "so", word, choice->count ? "more than one" : "no", path);
	if (choice->count > 1)
		list_candidates(choice);
	else if (*bad)
		cmd_hint("'stele snapshot list %s' shows the digests", path);
	else if (!*bad && asprintf(&whole, "%.*s@" DIGEST_PREFIX "%s%s",
				   (int)path_size, word, choice->found, rest) < 0)
		whole = NULL;
	snapshots_release(&choice->snapshots);
	stele_image_close(image);
out:
	free(path);
	return whole;
}

int cmd_complete_digests(char **words)
{
	bool bad = false;
	int status = -1;

	for (; *words && !bad; words++) {
		const char *name = cmd_snapshot_of(*words);
		struct choice choice = {0};
		char *digits, *whole;
		size_t size;

		if (!name || strncmp(name, DIGEST_PREFIX, strlen(DIGEST_PREFIX)))
			continue;
		name += strlen(DIGEST_PREFIX);
		size = strspn(name, "0123456789abcdefABCDEF");
		if (size < DIGEST_DIGITS_MIN && !name[size]) {
			cmd_message("'%s': an abbreviated digest has at least %u "
				    "hexadecimal digits", *words, DIGEST_DIGITS_MIN);
			return CMD_USAGE;
		}
		if (size < DIGEST_DIGITS_MIN || size >= 2 * STELE_DIGEST_SIZE ||
		    (name[size] && name[size] != '?'))
			continue;
		digits = strndup(name, size);
		choice.digits = digits;
		whole = !digits ? NULL :
			complete(*words, (size_t)(name - *words) -
						 strlen("@" DIGEST_PREFIX),
				 name + size, &choice, &bad);
		free(digits);
		if (whole)
			*words = whole; /* to the end of the process */
		if (bad)
			status = choice.count ? CMD_USAGE : CMD_FAILED;
	}
	return status;
}

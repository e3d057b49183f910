/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.c - what the words of a command line may go on with
 *
 * Options are those of a command's help text, which a test holds against its page. Targets are
 * opened to list their snapshots and keys; one that cannot be opened has none.
 */
#include "complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "from/source.h"
#include "snapshots.h"
#include "to/format.h"

#define FROM_OPTION "--from="
#define TO_OPTION   "--to="
#define OPTION_MAX  64u /* bytes of a name */
#define KEYS_MAX    200u /* that are shown; more are not chosen from by eye */

static void offer(const char *prefix, const char *word, size_t size, const char *end)
{
	if (size >= strlen(prefix) && !strncmp(word, prefix, strlen(prefix)))
		printf("%.*s%s\n", (int)size, word, end);
}

static void offer_all(const char *prefix, const char *const *words)
{
	for (; *words; words++)
		offer(prefix, *words, strlen(*words), "");
}

/* Each "--name" or "--name=VALUE" that begins a line, or follows "-x, ". */
static void offer_options(const char *prefix, const char *usage)
{
	static const char *const common[] = {"--ceph-conf=", "--ceph-user=",
					     "--timeout=", "--progress", NULL};

	for (const char *line = usage; line; line = strchr(line, '\n')) {
		const char *option;
		size_t size;

		line += *line == '\n';
		option = line + strspn(line, " ");
		if (option == line)
			continue;
		if (option[0] == '-' && option[1] != '-' && option[2] == ',')
			option += 4;
		size = strspn(option, "abcdefghijklmnopqrstuvwxyz-");
		if (size > 2 && !strncmp(option, "--", 2))
			offer(prefix, option, size, option[size] == '=' ? "=" : "");
	}
	offer_all(prefix, common);
}

static void offer_mapping(void *user, const struct stele_mapping_info *info)
{
	offer(user, info->name, strlen(info->name), "");
}

/* PATH@SNAPSHOT once there is an '@', or of those deleted, else mapped names and files. */
static void offer_targets(const char *word, bool deleted)
{
	const char *slash = strrchr(word, '/');
	const char *at = strrchr(slash ? slash : word, '@');
	struct stele_image *image = NULL;
	struct snapshots snapshots = {0};
	char *path;

	if (!at || at == word) {
		stele_map_list(offer_mapping, (void *)word, NULL);
		puts(":files");
		return;
	}
	path = strndup(word, (size_t)(at - word));
	if (path && !stele_image_open(path, NULL, &image)) {
		if (!snapshots_load(&snapshots, image)) {
			const struct stele_snapshot_info *info =
				snapshots.infos + (deleted ? snapshots.count : 0);
			uint32_t count = deleted ? snapshots.deleted_count : snapshots.count;

			for (; count--; info++)
				if (!strncmp(info->name, at + 1, strlen(at + 1)))
					printf("%s@%s\n", path, info->name);
		}
		snapshots_release(&snapshots);
		stele_image_close(image);
	}
	free(path);
}

/* One level: up to the next slash after what is there. */
static void offer_keys(const char *target, const char *word)
{
	struct stele_cursor_entry entry = {.size = 0};
	struct stele_cursor *cursor;
	struct stele_dataset *ds;
	char last[STELE_KEY_SIZE_MAX] = "";
	size_t last_size = 0, shown = 0;

	if (stele_dataset_open(target, NULL, &ds))
		return;
	if (!stele_cursor_open(ds, word, strlen(word), &cursor)) {
		while (shown < KEYS_MAX && stele_cursor_next(cursor, &entry) > 0) {
			const char *slash = memchr(entry.key + strlen(word), '/',
						   entry.key_size - strlen(word));
			size_t size = slash ? (size_t)(slash + 1 - entry.key) :
					      entry.key_size;

			if (memchr(entry.key, '\n', entry.key_size) ||
			    (size == last_size && !memcmp(entry.key, last, size)))
				continue;
			memcpy(last, entry.key, size);
			last_size = size;
			offer("", entry.key, size, "");
			shown++;
		}
		stele_cursor_close(cursor);
	}
	stele_dataset_close(ds);
}

/* The value of an option, which is the word behind it, or what follows its '='. */
struct value {
	const char *option; /* with "=" */
	const char *prefix;
	bool joined;
};

static void offer_value(const char *word, void *user)
{
	const struct value *value = user;

	if (!strncmp(word, value->prefix, strlen(value->prefix)))
		printf("%s%s\n", value->joined ? value->option : "", word);
}

/* Options that take one of a few words. False: not this one. */
static bool offer_words(const char *command, struct value *value)
{
	static const struct {
		const char *command, *option; /* NULL: all that have it and come behind */
		const char *words[5];
	} known[] = {
		{NULL, "--backend=", {"threads", "uring"}},
		{NULL, "--granule=", {"16", "64", "512", "4096"}},
		{NULL, "--label-from=", {"auto", "none", "parent"}},
		{NULL, "--on-error=", {"fail", "skip"}},
		{"bench", "--order=", {"random", "windowed", "sequential"}},
		{NULL, "--order=", {"size", "source"}},
		{NULL, "--verify=", {"crc", "digest", "none"}},
		{"map", "--via=", {"auto", "krbd", "librbd"}},
		{"mount", "--via=", {"auto", "erofs", "fuse"}},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(value->option, known[i].option) != 0 ||
		    (known[i].command && strcmp(command, known[i].command) != 0))
			continue;
		for (const char *const *w = known[i].words; *w; w++)
			offer_value(*w, value);
		return true;
	}
	return false;
}

/* Of an option that may have a value behind it. */
static void offer_values(const char *command, const char *option, const char *word, bool joined)
{
	char name[OPTION_MAX];
	struct value value = {name, word, joined};

	snprintf(name, sizeof(name), "%.*s=", (int)strcspn(option, "="), option);
	if (!strcmp(name, FROM_OPTION))
		from_each(offer_value, &value);
	else if (!strcmp(name, TO_OPTION))
		for (const char *const *w = to_words; *w; w++)
			offer_value(*w, &value);
	else if (!offer_words(command, &value))
		puts(":files");
}

/* Is the next word its value? */
static bool wants_value(const struct cmd *cmd, const char *word)
{
	const size_t size = strlen(word);

	if (strncmp(word, "--", 2) != 0 || strchr(word, '='))
		return false;
	for (const char *at = cmd->usage; (at = strstr(at, word)); at += size)
		if (at[size] == '=')
			return true;
	return false;
}

/* `number`: which argument it is, from 0; the first one that is a key, or never. */
static unsigned int first_key(const char *name)
{
	if (!strcmp(name, "ls") || !strcmp(name, "cat"))
		return 1;
	return !strcmp(name, "extract") ? 2 : (unsigned int)-1;
}

static void offer_arguments(const struct cmd *cmd, char **words, unsigned int number,
			    const char *target)
{
	static const char *const verbs[] = {"create", "list", "rename", "delete", "undelete", NULL};
	static const char *const states[] = {"on", "off", NULL};
	const char *word = *words;

	if (!strcmp(cmd->name, "snapshot") && number == 0)
		offer_all(word, verbs);
	else if (!strcmp(cmd->name, "posix") && number == 0)
		offer_all(word, states);
	else if (!strcmp(cmd->name, "unmap"))
		stele_map_list(offer_mapping, (void *)word, NULL);
	else if (target && number >= first_key(cmd->name))
		offer_keys(target, word);
	else if (!strcmp(cmd->name, "query") && number == 1)
		offer(word, "SELECT", strlen("SELECT"), "");
	else if (!strcmp(cmd->name, "umount") ||
		 ((!strcmp(cmd->name, "extract") || !strcmp(cmd->name, "mount")) && number == 1))
		puts(":files");
	else
		offer_targets(word, !strcmp(cmd->name, "snapshot") &&
					    !strcmp(target, "undelete"));
}

static void offer_commands(const struct cmd *commands, size_t count, const char *word)
{
	static const char *const others[] = {"help", "--help", "--version", NULL};

	for (size_t i = 0; i < count; i++)
		offer(word, commands[i].name, strlen(commands[i].name), "");
	offer_all(word, others);
}

int complete_words(const struct cmd *commands, size_t count, char **words)
{
	const struct cmd *cmd = NULL;
	const char *target = NULL;
	unsigned int number = 0;
	char **at = words;

	for (size_t i = 0; *words && i < count; i++)
		if (!strcmp(commands[i].name, *words))
			cmd = &commands[i];
	if (*words && words[1] && !strcmp(*words, "help"))
		offer(words[1], "damage", strlen("damage"), "");
	if (!*words || !words[1] || !strcmp(*words, "help")) {
		offer_commands(commands, count, *words ? words[words[1] != NULL] : "");
		return cmd_finish(CMD_OK);
	}
	for (at++; cmd && at[1]; at++) {
		if (**at == '-' || wants_value(cmd, at[-1]))
			continue;
		target = target ? target : *at;
		number++;
	}
	if (cmd && wants_value(cmd, at[-1]))
		offer_values(cmd->name, at[-1], *at, false);
	else if (cmd && **at == '-' && strchr(*at, '='))
		offer_values(cmd->name, *at, strchr(*at, '=') + 1, true);
	else if (cmd && **at == '-')
		offer_options(*at, cmd->usage);
	else if (cmd)
		offer_arguments(cmd, at, number, target);
	return cmd_finish(CMD_OK);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_ls.c - stele ls: keys, from sections alone, and fields
 *
 * A key may hold any byte. On a terminal it is escaped; into a file or pipe it
 * goes as it is, as the keys of most datasets are plain; --null leaves no doubt.
 * Scalars have sections of their own; for --fields samples are read.
 */
#include "cmd.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "columns.h"
#include "fields.h"
#include "json.h"
#include "parse.h"
#include "remedy.h"
#include "text.h"

#define WILD_CHARACTERS "*?["

static const struct option longopts[] = {
	{"fields", no_argument, NULL, 'F'},
	{"json", no_argument, NULL, 'J'},
	{"limit", required_argument, NULL, 'n'},
	{"long", no_argument, NULL, 'l'},
	{"null", no_argument, NULL, '0'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct listing {
	bool json, wide, null, escape, fields;
	struct columns columns; /* with json or wide */
	uint64_t limit; /* 0: none */
	bool complained; /* of the sample that it ended at */
};

/* `sample`: NULL unless all fields are wanted. */
static void print_json(const struct listing *listing,
		       const struct stele_cursor_entry *entry,
		       const uint64_t *values,
		       const struct stele_sample *sample)
{
	json_t *object = json_make();

	json_set_number(object, "id", entry->id);
	json_set_number(object, "size", entry->size);
	json_set_key(object, "key", entry->key, entry->key_size);
	columns_json(&listing->columns, values, object);
	if (sample)
		json_set(object, "fields", fields_json(sample));
	json_line(object);
}

static void print_entry(const struct listing *listing,
			const struct stele_cursor_entry *entry,
			const uint64_t *values,
			const struct stele_sample *sample)
{
	char *escaped = NULL;

	if (listing->wide) {
		printf("%10" PRIu64 " %12" PRIu64 "  ", entry->id, entry->size);
		if (!sample)
			columns_print(&listing->columns, values);
	}
	if (listing->escape)
		escaped = text_escape(entry->key, entry->key_size);
	if (escaped)
		fputs(escaped, stdout);
	else
		fwrite(entry->key, 1, entry->key_size, stdout);
	if (sample)
		fields_print(sample);
	putchar(listing->null ? '\0' : '\n');
	free(escaped);
}

/* Its key is at hand. */
static void complain(struct listing *listing, const struct stele_cursor_entry *entry, int error)
{
	char *key = text_escape(entry->key, entry->key_size);

	cmd_error(error, "cannot read sample #%" PRIu64 " '%s'", entry->id, key ? key : "?");
	listing->complained = true;
	free(key);
}

/* Return: 0; negative errno of the sample */
static int print(struct stele_dataset *ds, struct listing *listing,
		 const struct stele_cursor_entry *entry)
{
	struct stele_sample sample = {0};
	const struct stele_sample *shown = listing->fields ? &sample : NULL;
	uint64_t values[STELE_FIELDS_MAX];
	int error = columns_get(&listing->columns, entry->id, values);

	if (!error && shown) {
		error = stele_dataset_read(ds, entry->id, &sample);
		if (error)
			complain(listing, entry, error);
	}
	if (!error && listing->json)
		print_json(listing, entry, values, shown);
	else if (!error)
		print_entry(listing, entry, values, shown);
	stele_sample_release(&sample);
	return error;
}

/* More than a prefix, in which a backslash takes the meaning from what follows it? */
static bool is_pattern(const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' && text[1])
			text++;
		else if (strchr(WILD_CHARACTERS, *text))
			return true;
	}
	return false;
}

/* Without the backslashes that take a meaning away. Return: its size. */
static size_t read_prefix(const char *text, char *prefix)
{
	size_t size = 0;

	for (; *text; text++) {
		if (*text == '\\' && text[1])
			text++;
		prefix[size++] = *text;
	}
	return size;
}

/* A '*' and a '?' match a slash, too: keys are names, not paths. */
static bool matches(const char *pattern, const struct stele_cursor_entry *entry)
{
	char key[STELE_KEY_SIZE_MAX + 1];

	if (!is_pattern(pattern))
		return true;
	memcpy(key, entry->key, entry->key_size);
	key[entry->key_size] = '\0';
	return fnmatch(pattern, key, 0) == 0;
}

static void say_none(const char *target, const char *prefix)
{
	char *text = text_escape(prefix, strlen(prefix));

	cmd_message(is_pattern(prefix) ? "no key matches '%s'" : "no key begins with '%s'",
		    text ? text : prefix);
	free(text);
	remedy_snapshot(target, prefix);
}

/* Return: 1 at least one was listed; 0; negative errno. */
static int list(struct stele_dataset *ds, const char *prefix,
		struct listing *listing)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	const uint64_t limit = listing->limit ? listing->limit : UINT64_MAX;
	uint64_t left = limit;
	char begin[STELE_KEY_SIZE_MAX + 1];
	size_t size;
	int got, error = 0;

	/* What a pattern begins with narrows the search. */
	if (is_pattern(prefix))
		size = (size_t)snprintf(begin, sizeof(begin), "%.*s",
					(int)strcspn(prefix, WILD_CHARACTERS "\\"), prefix);
	else
		size = read_prefix(prefix, begin);
	got = stele_cursor_open(ds, begin, size, &cursor);
	if (got < 0)
		return got;
	while (!error && left && (got = stele_cursor_next(cursor, &entry)) > 0 &&
	       !ferror(stdout)) {
		if (!matches(prefix, &entry))
			continue;
		error = print(ds, listing, &entry);
		left--;
	}
	stele_cursor_close(cursor);
	error = got < 0 ? got : error;
	return error ? error : left < limit;
}

static int run(const char *target, const char *prefix,
	       struct listing *listing)
{
	struct cmd_log log = {.target = target};
	struct stele_dataset *ds;
	int error;

	error = cmd_open_dataset(&log, STELE_VERIFY_DEFAULT, &ds);
	if (error)
		return cmd_finish(cmd_status_of(error));
	if (listing->json || listing->wide)
		error = columns_open(&listing->columns, ds);
	if (!error)
		error = list(ds, prefix, listing);
	columns_release(&listing->columns);
	if (!error && *prefix)
		say_none(target, prefix);
	if (error < 0 && !listing->complained)
		cmd_error(error, "cannot list '%s'", target);
	if (error < 0 && cmd_status_of(error) == CMD_DAMAGED)
		remedy_print("ls", error, "", NULL);
	stele_dataset_close(ds);
	return cmd_finish(error < 0 ? cmd_status_of(error) : CMD_OK);
}

int cmd_ls(const struct cmd *cmd, int argc, char **argv)
{
	struct listing listing = {0};
	int c;

	while ((c = cmd_option(cmd, argc, argv, "Fl0h", longopts)) != -1) {
		switch (c) {
		case 'F':
			listing.fields = true;
			break;
		case 'J':
			listing.json = true;
			break;
		case 'n':
			cmd_option_value(cmd, longopts, c,
					 parse_number(optarg, 1, UINT64_MAX, &listing.limit));
			break;
		case 'l':
			listing.wide = true;
			break;
		case '0':
			listing.null = true;
			break;
		}
	}
	if (argc - optind < 1 || argc - optind > 2)
		return cmd_misuse(cmd, "ls needs a TARGET and at most one PREFIX or PATTERN");
	if (argc - optind > 1 && strlen(argv[optind + 1]) > STELE_KEY_SIZE_MAX)
		return cmd_misuse(cmd, "a PREFIX has at most %d bytes",
				  STELE_KEY_SIZE_MAX);
	if (listing.json && (listing.null || listing.wide))
		return cmd_misuse(cmd, "--json goes with neither --null nor --long");
	listing.escape = !listing.null && isatty(STDOUT_FILENO);
	return run(argv[optind], argc - optind > 1 ? argv[optind + 1] : "",
		   &listing);
}

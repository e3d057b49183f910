/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_cat.c - stele cat: the bytes of samples, to stdout
 *
 * A sample that fails is named and the others still come. Of one with a bad
 * checksum not a byte is written, unless it is so large that it comes in
 * pieces.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "key.h"
#include "parse.h"
#include "remedy.h"
#include "text.h"

#define STOPPED 1 /* stdout takes no more: cmd_finish() says so */

#define RANGE_SIZE (1u << 20) /* bytes that are read at a time, unchecked */

enum { OPTION_VERIFY = 256, OPTION_OFFSET, OPTION_SIZE };

static const struct option longopts[] = {
	{"field", required_argument, NULL, 'F'},
	{"keys", no_argument, NULL, 'k'},
	{"offset", required_argument, NULL, OPTION_OFFSET},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"verify", required_argument, NULL, OPTION_VERIFY},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* A part of each sample; size 0: to its end. */
struct range {
	uint64_t offset, size;
	bool unchecked;
};

/* What of it is still to come. */
struct putting {
	uint64_t skip, left;
};

static int put(void *user, const void *data, size_t size)
{
	struct putting *putting = user;
	const size_t skip = putting->skip < size ? (size_t)putting->skip : size;
	size_t count = size - skip;

	if (count > putting->left)
		count = (size_t)putting->left;
	putting->skip -= skip;
	putting->left -= count;
	return fwrite((const char *)data + skip, 1, count, stdout) == count ? 0 : STOPPED;
}

/* Without a checksum only what is wanted is read. */
static int copy_unchecked(struct stele_dataset *ds, uint64_t id,
			  struct putting *putting)
{
	char *buffer = malloc(RANGE_SIZE);
	uint64_t at = putting->skip, got = RANGE_SIZE;
	int error = buffer ? 0 : -ENOMEM;

	putting->skip = 0;
	while (!error && putting->left && got == RANGE_SIZE) {
		error = stele_dataset_read_range(ds, id, at, RANGE_SIZE, buffer,
						 &got);
		at += got;
		if (!error)
			error = put(putting, buffer, (size_t)got);
	}
	free(buffer);
	return error;
}

static int copy_range(struct stele_dataset *ds, uint64_t id,
		      const struct range *range)
{
	struct putting putting = {
		.skip = range->offset,
		.left = range->size ? range->size : UINT64_MAX};

	return range->unchecked && (range->offset || range->size) ?
		       copy_unchecked(ds, id, &putting) :
		       stele_dataset_stream(ds, id, put, &putting);
}

/* A field is read with its sample, and written when that was right. */
static int copy_field(struct stele_dataset *ds, uint64_t id, uint32_t index)
{
	struct stele_sample sample;
	int error = stele_dataset_read(ds, id, &sample);

	if (!error)
		error = field_write(&sample, index);
	stele_sample_release(&sample);
	return error;
}

/* Is there a key "TEXT/..."? */
static bool is_directory(struct stele_dataset *ds, const char *text)
{
	const size_t size = strlen(text);
	char prefix[STELE_KEY_SIZE_MAX + 2];
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	bool found;

	if (!size || size >= STELE_KEY_SIZE_MAX)
		return false;
	snprintf(prefix, sizeof(prefix), "%s%s", text, text[size - 1] == '/' ? "" : "/");
	if (stele_cursor_open(ds, prefix, strlen(prefix), &cursor))
		return false;
	found = stele_cursor_next(cursor, &entry) > 0;
	stele_cursor_close(cursor);
	return found;
}

/* Return: whether it is known what may have been meant. */
static bool explain(struct stele_dataset *ds, const char *text, const char *name, bool keys_only)
{
	const char *number = text + (text[0] == '#');
	uint64_t id;

	if (!keys_only && text[0] == '#' && !stele_dataset_lookup(ds, text, strlen(text), &id))
		cmd_hint("'%s' is a key, too: --keys finds that sample", name);
	else if (is_directory(ds, text))
		cmd_hint("keys begin with it: 'stele ls TARGET %s' lists them", name);
	else if (number == text && !parse_number(number, 0, UINT64_MAX, &id) &&
		 id < stele_dataset_count(ds))
		cmd_hint("for the sample with that id write '#%s'", name);
	else
		return false;
	return true;
}

/*
 * `field`: index; -1: the whole sample. Return: 0; negative errno (said); sets *unknown, unless
 * it was said what may have been meant.
 */
static int copy(struct stele_dataset *ds, const char *text, bool keys_only,
		int field, const struct range *range, bool *unknown)
{
	char *name = NULL;
	uint64_t id;
	int error;

	error = key_resolve(ds, text, keys_only, &id);
	if (error == -EINVAL) /* no key can be that */
		error = -ENOENT;
	if (error) {
		name = text_escape(text, strlen(text));
		cmd_message("cannot find '%s': %s", name ? name : text,
			    error == -ENOENT   ? "no such key"
			    : error == -ERANGE ? "no such id"
					       : stele_strerror(error));
		if (error == -ENOENT || error == -ERANGE)
			*unknown |= !explain(ds, text, name ? name : text, keys_only) &&
				    error != -ERANGE;
	} else {
		error = field < 0 ? copy_range(ds, id, range) :
				    copy_field(ds, id, (uint32_t)field);
		if (error < 0) {
			name = key_name(ds, id);
			cmd_error(error, "cannot read %s", name ? name : text);
		}
	}
	free(name);
	return error < 0 ? error : 0;
}

static int run(const char *target, char **names, bool keys_only,
	       const char *field, const struct range *range, uint32_t verify)
{
	struct cmd_log log = {.target = target};
	struct stele_dataset *ds;
	int error, index, status = CMD_OK;
	const char *missing = NULL;
	bool unknown, written = false;

	error = cmd_open_dataset(&log, verify, &ds);
	if (error)
		return cmd_finish(cmd_status_of(error));
	index = field ? field_find(ds, field, false) : -1;
	if (field && index < 0)
		status = CMD_USAGE;
	for (; *names && !ferror(stdout) && (index >= 0 || !field); names++) {
		unknown = false;
		error = copy(ds, *names, keys_only, index, range, &unknown);
		missing = unknown ? *names : missing;
		if (error && status != CMD_DAMAGED)
			status = cmd_status_of(error);
		written |= !error;
	}
	if (written && !field && fields_warn_joined(ds, "sample"))
		cmd_hint("--field=NAME writes one");
	if (missing && !remedy_snapshot(target, missing))
		remedy_print("cat", -ENOENT, "no such key", NULL);
	if (status == CMD_DAMAGED)
		remedy_print("cat", -EBADMSG, "", NULL);
	stele_dataset_close(ds);
	return cmd_finish(status);
}

static const char *set_range(struct range *range, int option, const char *text)
{
	return option == OPTION_OFFSET ?
		       parse_size(text, 0, PARSE_SIZE_MAX, &range->offset) :
		       parse_size(text, 1, PARSE_SIZE_MAX, &range->size);
}

int cmd_cat(const struct cmd *cmd, int argc, char **argv)
{
	uint32_t verify = STELE_VERIFY_DEFAULT;
	struct range range = {0};
	bool keys_only = false;
	const char *field = NULL;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "F:kh", longopts)) != -1) {
		switch (c) {
		case 'F':
			field = optarg;
			break;
		case 'k':
			keys_only = true;
			break;
		case OPTION_OFFSET:
		case OPTION_SIZE:
		case OPTION_VERIFY:
			cmd_option_value(cmd, longopts, c,
					 c == OPTION_VERIFY ?
						 parse_verify(optarg, &verify) :
						 set_range(&range, c, optarg));
			break;
		}
	}
	if (argc - optind < 2)
		return cmd_misuse(cmd, "cat needs a TARGET and a KEY or #ID");
	if (field && (range.offset || range.size))
		return cmd_misuse(cmd, "--field goes with neither --offset nor --size");
	range.unchecked = verify == STELE_VERIFY_NONE;
	return run(argv[optind], argv + optind + 1, keys_only, field, &range,
		   verify);
}

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
#include "text.h"

#define STOPPED 1 /* stdout takes no more: cmd_finish() says so */

enum { OPTION_VERIFY = 256 };

static const struct option longopts[] = {
	{"field", required_argument, NULL, 'F'},
	{"keys", no_argument, NULL, 'k'},
	{"verify", required_argument, NULL, OPTION_VERIFY},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int put(void *user, const void *data, size_t size)
{
	(void)user;
	return fwrite(data, 1, size, stdout) == size ? 0 : STOPPED;
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

/* `field`: index; -1: the whole sample. Return: 0; negative errno (said). */
static int copy(struct stele_dataset *ds, const char *text, bool keys_only,
		int field)
{
	char *name = NULL;
	uint64_t id;
	int error;

	error = key_resolve(ds, text, keys_only, &id);
	if (error) {
		name = text_escape(text, strlen(text));
		cmd_message("cannot find '%s': %s", name ? name : text,
			    error == -ENOENT || error == -EINVAL ? "no such key"
			    : error == -ERANGE ? "no such id"
					       : stele_strerror(error));
	} else {
		error = field < 0 ? stele_dataset_stream(ds, id, put, NULL) :
				    copy_field(ds, id, (uint32_t)field);
		if (error < 0) {
			name = key_name(ds, id);
			cmd_error(error, "cannot read %s", name ? name : text);
		}
	}
	free(name);
	return error < 0 ? error : 0;
}

/* Return: 0; negative errno (said). */
static int find_field(const struct stele_dataset *ds, const char *name,
		      int *index)
{
	char *text;

	*index = -1;
	if (!name)
		return 0;
	*index = stele_dataset_field_index(ds, name);
	if (*index >= 0)
		return 0;
	text = text_escape(name, strlen(name));
	cmd_message("no field '%s'", text ? text : name);
	free(text);
	return *index;
}

static int run(const char *target, char **names, bool keys_only,
	       const char *field, uint32_t verify)
{
	struct cmd_log log = {.target = target};
	struct stele_dataset *ds;
	int error, index, status = CMD_OK;

	error = cmd_open_dataset(&log, verify, &ds);
	if (error)
		return cmd_finish(cmd_status_of(error));
	if (find_field(ds, field, &index))
		status = CMD_FAILED;
	for (; *names && !ferror(stdout) && (index >= 0 || !field); names++) {
		error = copy(ds, *names, keys_only, index);
		if (error && status != CMD_DAMAGED)
			status = cmd_status_of(error);
	}
	stele_dataset_close(ds);
	return cmd_finish(status);
}

int cmd_cat(const struct cmd *cmd, int argc, char **argv)
{
	uint32_t verify = STELE_VERIFY_DEFAULT;
	bool keys_only = false;
	const char *wanted, *field = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "F:kh", longopts, NULL)) != -1) {
		switch (c) {
		case 'F':
			field = optarg;
			break;
		case 'k':
			keys_only = true;
			break;
		case OPTION_VERIFY:
			wanted = parse_verify(optarg, &verify);
			if (wanted)
				return cmd_misuse_value(cmd, longopts, c,
							wanted);
			break;
		case 'h':
			return cmd_help(cmd);
		default:
			return cmd_misuse(cmd, NULL);
		}
	}
	if (argc - optind < 2)
		return cmd_misuse(cmd, "cat needs a TARGET and a KEY or #ID");
	return run(argv[optind], argv + optind + 1, keys_only, field, verify);
}

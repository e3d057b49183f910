/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_du.c - stele du: the space of each snapshot, alone and shared
 *
 * By segments, as gc frees them: what a snapshot holds alone is unused after it is deleted.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "layout.h"
#include "snapshots.h"
#include "text.h"

static void print_json(const struct snapshots *snapshots, const uint64_t *alone,
		       const uint64_t *shared, uint64_t unused)
{
	json_t *object;

	for (uint32_t i = 0; i < snapshots->count; i++) {
		object = json_make();
		json_set_text(object, "name", snapshots->infos[i].name);
		json_set_number(object, "alone_size", alone[i]);
		json_set_number(object, "shared_size", shared[i]);
		json_line(object);
	}
	object = json_make();
	json_set_number(object, "unused_size", unused);
	json_set_number(object, "deleted_snapshots", snapshots->deleted_count);
	json_line(object);
}

static void print_table(const struct snapshots *snapshots, const uint64_t *alone,
			const uint64_t *shared, uint64_t unused)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];

	layout_begin();
	printf("%12s  %12s  %s\n", "ALONE", "SHARED", "NAME");
	for (uint32_t i = 0; i < snapshots->count; i++)
		printf("%12s  %12s  %s\n", text_size(a, alone[i]),
		       text_size(b, shared[i]), snapshots->infos[i].name);
	if (unused)
		printf("%12s  unused, gc would free it\n", text_size(a, unused));
	layout_end();
}

static int run(const char *target, bool json)
{
	struct cmd_log log = {.target = target};
	struct stele_image_info info = {.size = sizeof(info)};
	struct snapshots snapshots = {0};
	struct stele_image *image;
	uint64_t *sizes = NULL;
	int error = cmd_open_image(&log, &image);

	if (error)
		return cmd_finish(cmd_status_of(error));
	error = snapshots_load(&snapshots, image);
	if (!error)
		error = stele_image_info(image, &info);
	if (!error)
		sizes = calloc(2 * (size_t)snapshots.count + 1, sizeof(*sizes));
	if (!error && !sizes)
		error = -ENOMEM;
	if (!error)
		error = stele_image_usage(image, sizes, sizes + snapshots.count,
					  snapshots.count);
	if (error)
		cmd_error(error, "cannot tell the usage of '%s'", target);
	else
		(json ? print_json : print_table)(&snapshots, sizes,
						  sizes + snapshots.count,
						  info.unused_size);
	free(sizes);
	snapshots_release(&snapshots);
	stele_image_close(image);
	return cmd_finish(error ? CMD_FAILED : CMD_OK);
}

int cmd_du(const struct cmd *cmd, int argc, char **argv)
{
	bool json = false;

	cmd_getopt(cmd, argc, argv, &json);
	if (argc - optind != 1)
		return cmd_misuse(cmd, "du needs one TARGET");
	if (cmd_check_whole(cmd->name, argv[optind]) >= 0)
		return CMD_USAGE;
	return run(argv[optind], json);
}

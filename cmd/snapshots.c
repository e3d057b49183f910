/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots.c - the snapshots of an image, wherever a command prints them
 */
#include "snapshots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "text.h"

int snapshots_load(struct snapshots *snapshots, const struct stele_image *image)
{
	struct stele_image_info info = {.size = sizeof(info)};
	int error = 0;

	*snapshots = (struct snapshots){.image = image};
	stele_image_info(image, &info);
	snapshots->infos = calloc((size_t)info.snapshot_count + 1,
				  sizeof(*snapshots->infos));
	if (!snapshots->infos)
		return -ENOMEM;
	while (!error && snapshots->count < info.snapshot_count) {
		snapshots->infos[snapshots->count].size = sizeof(*snapshots->infos);
		error = stele_image_snapshot(
			image, snapshots->count,
			&snapshots->infos[snapshots->count]);
		snapshots->count += !error;
	}
	return error;
}

void snapshots_release(struct snapshots *snapshots)
{
	free(snapshots->infos);
	memset(snapshots, 0, sizeof(*snapshots));
}

/* NULL: it has none, or that one is gone. */
static const char *parent_name(const struct snapshots *snapshots,
			       const struct stele_snapshot_info *info)
{
	for (uint32_t i = 0; info->parent && i < snapshots->count; i++)
		if (snapshots->infos[i].id == info->parent)
			return snapshots->infos[i].name;
	return NULL;
}

/* malloced; NULL: none, or no memory. */
static char *load_note(const struct snapshots *snapshots, uint32_t index)
{
	size_t size = snapshots->infos[index].note_size;
	char *note = size ? malloc(size) : NULL;

	if (size && !note)
		cmd_lost();
	if (note && stele_image_note(snapshots->image, index, note, size) < 0) {
		free(note);
		note = NULL;
	}
	return note;
}

static void print_row(const struct snapshots *snapshots, uint32_t index,
		      const char *indent)
{
	const struct stele_snapshot_info *info = &snapshots->infos[index];
	const char *parent = parent_name(snapshots, info);
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];
	char digest[TEXT_HEX_SIZE] = "";
	char *note = load_note(snapshots, index);
	char *escaped = note ? text_escape(note, info->note_size) : NULL;

	text_hex(digest, info->digest, sizeof(info->digest));
	printf("%s%-16s %14s %12s %5u  %-23s  %.12s  %s%s%s\n", indent,
	       info->name, text_count(a, info->sample_count),
	       text_size(b, info->payload_size), info->segment_count,
	       text_time(c, info->time), digest,
	       parent ? parent : (info->parent ? "?" : "-"),
	       escaped ? "  " : "", escaped ? escaped : "");
	free(escaped);
	free(note);
}

void snapshots_print(const struct snapshots *snapshots, const char *indent)
{
	printf("%s%-16s %14s %12s %5s  %-23s  %-12s  %s\n", indent, "NAME",
	       "SAMPLES", "SIZE", "SEGS", "TIME", "DIGEST", "PARENT  NOTE");
	for (uint32_t i = 0; i < snapshots->count; i++)
		print_row(snapshots, i, indent);
}

json_t *snapshots_info_json(const struct stele_snapshot_info *info)
{
	json_t *object = json_make();

	json_set_text(object, "name", info->name);
	json_set_number(object, "id", info->id);
	if (info->parent)
		json_set_number(object, "parent", info->parent);
	json_set_time(object, "time", info->time);
	json_set_hex(object, "digest", info->digest, sizeof(info->digest));
	json_set_number(object, "samples", info->sample_count);
	json_set_number(object, "payload_size", info->payload_size);
	json_set_number(object, "segments", info->segment_count);
	return object;
}

json_t *snapshots_json(const struct snapshots *snapshots, uint32_t index)
{
	const struct stele_snapshot_info *info = &snapshots->infos[index];
	const char *parent = parent_name(snapshots, info);
	json_t *object = snapshots_info_json(info);
	char *note = load_note(snapshots, index);

	if (parent)
		json_set_text(object, "parent_name", parent);
	if (note)
		json_set_key(object, "note", note, info->note_size);
	free(note);
	return object;
}

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
#include "layout.h"
#include "text.h"

int snapshots_load(struct snapshots *snapshots, const struct stele_image *image)
{
	struct stele_image_info info = {.size = sizeof(info)};
	int error = 0;

	*snapshots = (struct snapshots){.image = image};
	stele_image_info(image, &info);
	snapshots->infos = calloc((size_t)info.snapshot_count + info.deleted_count + 1,
				  sizeof(*snapshots->infos));
	if (!snapshots->infos)
		return -ENOMEM;
	for (uint32_t i = 0; !error && i < info.snapshot_count + info.deleted_count; i++) {
		snapshots->infos[i].size = sizeof(*snapshots->infos);
		error = stele_image_snapshot(image, i, &snapshots->infos[i]);
	}
	if (!error) {
		snapshots->count = info.snapshot_count;
		snapshots->deleted_count = info.deleted_count;
	}
	return error;
}

void snapshots_release(struct snapshots *snapshots)
{
	free(snapshots->infos);
	memset(snapshots, 0, sizeof(*snapshots));
}

const char *snapshots_parent(const struct snapshots *snapshots,
			     const struct stele_snapshot_info *info)
{
	for (uint32_t i = 0; info->parent && i < snapshots->count; i++)
		if (snapshots->infos[i].id == info->parent)
			return snapshots->infos[i].name;
	return NULL;
}

char *snapshots_note(const struct snapshots *snapshots, uint32_t index)
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

/* What is printed of one; texts of people are escaped. */
struct row {
	char samples[TEXT_SIZE], size[TEXT_SIZE], time[TEXT_SIZE];
	char digest[TEXT_HEX_SIZE];
	const char *name, *parent;
	char *note; /* NULL: none */
	uint32_t segments;
	bool deleted; /* then the time is of that */
};

/* The indices of a table. */
struct range {
	uint32_t first, end;
};

static struct range range_of(const struct snapshots *snapshots, bool deleted)
{
	const uint32_t count = snapshots->count;

	return deleted ? (struct range){count, count + snapshots->deleted_count} :
			 (struct range){0, count};
}

static void fill_row(const struct snapshots *snapshots, uint32_t index,
		     struct row *row)
{
	const struct stele_snapshot_info *info = &snapshots->infos[index];
	const char *parent = snapshots_parent(snapshots, info);
	char *note = snapshots_note(snapshots, index);

	*row = (struct row){.name = info->name,
			    .segments = info->segment_count,
			    .deleted = info->deleted_time};
	row->parent = parent ? parent : info->parent ? "?" : "-";
	text_count(row->samples, info->sample_count);
	text_size(row->size, info->payload_size);
	text_time(row->time, info->deleted_time ? info->deleted_time : info->time);
	text_hex(row->digest, info->digest, sizeof(info->digest));
	row->note = note ? text_escape(note, info->note_size) : NULL;
	free(note);
}

static void widen(int *width, const char *text)
{
	if ((int)strlen(text) > *width)
		*width = (int)strlen(text);
}

struct widths {
	int name, samples, size, time, parent;
};

static void measure(const struct snapshots *snapshots, struct range range,
		    struct widths *w)
{
	struct row row;

	*w = (struct widths){.name = 4, .samples = 7, .size = 4, .time = 7, .parent = 6};
	for (uint32_t i = range.first; i < range.end; i++) {
		fill_row(snapshots, i, &row);
		widen(&w->name, row.name);
		widen(&w->samples, row.samples);
		widen(&w->size, row.size);
		widen(&w->time, row.time);
		widen(&w->parent, row.parent);
		free(row.note);
	}
}

#define FIXED_WIDTH (2 + 2 + 2 + 4 + 2 + 2 + 12 + 2) /* segments, digest, gaps */
#define MINUTE_WIDTH 16 /* of a time without seconds */

static void print_row(const struct row *row, const struct widths *w, const char *indent,
		      size_t columns)
{
	const int width = (int)strlen(indent) + FIXED_WIDTH + w->name + w->samples +
			  w->size + w->time;
	const size_t note = row->note ? strlen(row->note) + 2 : 0;

	printf("%s%-*s  %*s  %*s  %4u  %-*.*s  %.12s  ", indent, w->name, row->name,
	       w->samples, row->samples, w->size, row->size, row->segments, w->time,
	       w->time, row->time, row->digest);
	if (!row->note)
		printf("%s\n", row->parent);
	else if ((size_t)(width + w->parent) + note <= columns)
		printf("%-*s  %s\n", w->parent, row->parent, row->note);
	else
		printf("%s\n%s    %s\n", row->parent, indent, row->note);
}

/* Where the table is too wide. */
static void print_block(const struct row *row, const char *indent)
{
	printf("%s%s\n", indent, row->name);
	printf("%s  %s sample%s, %s\n", indent, row->samples,
	       strcmp(row->samples, "1") ? "s" : "", row->size);
	printf("%s  %s%s\n", indent, row->deleted ? "deleted " : "", row->time);
	printf("%s  %.12s", indent, row->digest);
	if (strcmp(row->parent, "-"))
		printf(", from %s", row->parent);
	putchar('\n');
	if (row->note)
		printf("%s  %s\n", indent, row->note);
}

void snapshots_print(const struct snapshots *snapshots, bool deleted, const char *indent)
{
	const struct range range = range_of(snapshots, deleted);
	const size_t columns = layout_columns();
	struct widths w;
	struct row row;
	size_t width;

	measure(snapshots, range, &w);
	width = strlen(indent) + FIXED_WIDTH +
		(size_t)(w.name + w.samples + w.size + w.parent);
	if (width + (size_t)w.time > columns)
		w.time = MINUTE_WIDTH;
	width += (size_t)w.time;
	if (width <= columns)
		printf("%s%-*s  %*s  %*s  %4s  %-*s  %-12s  %s\n", indent, w.name, "NAME",
		       w.samples, "SAMPLES", w.size, "SIZE", "SEGS", w.time,
		       deleted ? "DELETED" : "TIME", "DIGEST",
		       width + strlen("  NOTE") <= columns ? "PARENT  NOTE" : "PARENT");
	for (uint32_t i = range.first; i < range.end; i++) {
		fill_row(snapshots, i, &row);
		if (width <= columns)
			print_row(&row, &w, indent, columns);
		else
			print_block(&row, indent);
		free(row.note);
	}
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
	if (info->deleted_time)
		json_set_time(object, "deleted_time", info->deleted_time);
	return object;
}

json_t *snapshots_json(const struct snapshots *snapshots, uint32_t index)
{
	const struct stele_snapshot_info *info = &snapshots->infos[index];
	const char *parent = snapshots_parent(snapshots, info);
	json_t *object = snapshots_info_json(info);
	char *note = snapshots_note(snapshots, index);

	if (parent)
		json_set_text(object, "parent_name", parent);
	if (note)
		json_set_key(object, "note", note, info->note_size);
	free(note);
	return object;
}

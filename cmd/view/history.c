/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c - the snapshots of an image: what each holds alone, and shares
 */
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "view/map.h"

#define SNAPSHOTS_MAX 100u /* that are drawn: the newest ones */

static void show(struct view *view, uint32_t index, uint64_t alone, uint64_t shared)
{
	const struct stele_snapshot_info *info = &view->snapshots.infos[index];
	char a[TEXT_SIZE], b[TEXT_SIZE];
	char *note = snapshots_note(&view->snapshots, index);

	fprintf(view->to, "<div class=snapshot>\n<div class=line><h3>%s%s</h3><span>",
		info->name,
		index == view->shown ? "<span class=mark>shown here</span>" : "");
	fprintf(view->to, "%s alone, %s shared</span></div>\n", text_size(a, alone),
		text_size(b, shared));
	map_snapshot(view, index);
	fprintf(view->to, "<p class=note>%s, %s", text_time(a, info->time),
		text_counted(b, info->sample_count, "sample"));
	if (snapshots_parent(&view->snapshots, info))
		fprintf(view->to, ", from %s", snapshots_parent(&view->snapshots, info));
	if (note) {
		fputs(": ", view->to);
		page_bytes(view->to, note, info->note_size);
	}
	fputs("</p>\n</div>\n", view->to);
	free(note);
}

static void show_all(struct view *view, const uint64_t *alone, const uint64_t *shared)
{
	const uint32_t count = view->snapshots.count;
	char a[TEXT_SIZE];

	for (uint32_t i = count; i > 0 && count - i < SNAPSHOTS_MAX; i--)
		show(view, i - 1, alone[i - 1], shared[i - 1]);
	map_ticks(view->to, view->span);
	if (count > SNAPSHOTS_MAX)
		fprintf(view->to, "<p class=note>and %s older</p>\n",
			text_count(a, count - SNAPSHOTS_MAX));
	if (view->snapshots.deleted_count)
		fprintf(view->to, "<p class=note>%s deleted, and can be undeleted until gc.</p>\n",
			text_counted(a, view->snapshots.deleted_count, "snapshot"));
}

void view_history(struct view *view)
{
	const uint32_t count = view->snapshots.count;
	uint64_t *sizes = calloc(2 * (size_t)count + 1, sizeof(*sizes));
	int error = sizes ? stele_image_usage(view->image, sizes, sizes + count, count) : 0;

	page_section(view->to, "Snapshots",
		     "The newest first, each with its segments at the scale of the layout. "
		     PAGE_SWATCH("own") "No other snapshot has them: gc can free them once it is "
		     "deleted. " PAGE_SWATCH("other") "Shared with others.");
	if (error)
		view_failed(view, error);
	else if (sizes)
		show_all(view, sizes, sizes + count);
	fputs("</section>\n", view->to);
	free(sizes);
}

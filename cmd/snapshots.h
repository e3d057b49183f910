/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots.h - how commands print the snapshots of an image
 */
#ifndef STELE_CMD_SNAPSHOTS_H
#define STELE_CMD_SNAPSHOTS_H

#include <jansson.h>

#include "stele.h"

struct snapshots {
	const struct stele_image *image; /* the caller's, open */
	struct stele_snapshot_info *infos; /* owned; oldest first; then the deleted ones */
	uint32_t count, deleted_count;
};

/* Return: 0; -ENOMEM. Release in any case. */
int snapshots_load(struct snapshots *snapshots,
		   const struct stele_image *image);
void snapshots_release(struct snapshots *snapshots);
/* Its name. NULL: it has none, or that one is gone. */
const char *snapshots_parent(const struct snapshots *snapshots,
			     const struct stele_snapshot_info *info);
/* info->note_size bytes, malloc'ed; NULL: none, or no memory. */
char *snapshots_note(const struct snapshots *snapshots, uint32_t index);

/* A table, with each row prefixed by `indent`, of those that are there or were deleted. */
void snapshots_print(const struct snapshots *snapshots, bool deleted, const char *indent);
/* From the info; for one of the list, with the parent's name and the note. */
json_t *snapshots_info_json(const struct stele_snapshot_info *info);
json_t *snapshots_json(const struct snapshots *snapshots, uint32_t index);

#endif

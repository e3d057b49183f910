/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots.h - the snapshots of an image, wherever a command prints them
 */
#ifndef STELE_CMD_SNAPSHOTS_H
#define STELE_CMD_SNAPSHOTS_H

#include <jansson.h>

#include "stele.h"

struct snapshots {
	const struct stele_image *image; /* the caller's, open */
	struct stele_snapshot_info *infos; /* owned; oldest first */
	uint32_t count;
};

/* Return: 0; -ENOMEM. Release in any case. */
int snapshots_load(struct snapshots *snapshots,
		   const struct stele_image *image);
void snapshots_release(struct snapshots *snapshots);

/* A table, each row behind `indent`. */
void snapshots_print(const struct snapshots *snapshots, const char *indent);
/* What the info says; and with parent's name and note, of one of the list. */
json_t *snapshots_info_json(const struct stele_snapshot_info *info);
json_t *snapshots_json(const struct snapshots *snapshots, uint32_t index);

#endif

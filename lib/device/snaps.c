/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snaps.c - see snaps.h
 */
#include "lib/device/snaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct stele_rbd_snap_ops *stele_device_snaps(const struct stele_device *dev)
{
	return dev->ops->snaps;
}

void stele_rbd_snaps_release(struct stele_rbd_snaps *snaps)
{
	for (size_t i = 0; i < snaps->count; i++)
		free(snaps->list[i].name);
	free(snaps->list);
	memset(snaps, 0, sizeof(*snaps));
}

struct stele_rbd_snap *stele_rbd_snaps_find(const struct stele_rbd_snaps *snaps,
					    const char *name)
{
	for (size_t i = 0; i < snaps->count; i++)
		if (!strcmp(snaps->list[i].name, name))
			return &snaps->list[i];
	return NULL;
}

struct stele_rbd_snap *stele_rbd_snaps_find_id(const struct stele_rbd_snaps *snaps,
					       uint64_t id)
{
	for (size_t i = 0; i < snaps->count; i++)
		if (snaps->list[i].id == id)
			return &snaps->list[i];
	return NULL;
}

int stele_rbd_snaps_add(struct stele_rbd_snaps *snaps, const char *name,
			uint64_t id, bool is_protected)
{
	struct stele_rbd_snap *list;

	if (stele_rbd_snaps_find(snaps, name))
		return -EEXIST;
	list = reallocarray(snaps->list, snaps->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	snaps->list = list;
	if (!id)
		id = snaps->last_id + 1;
	list[snaps->count] = (struct stele_rbd_snap){
		.name = strdup(name),
		.id = id,
		.is_protected = is_protected,
	};
	if (!list[snaps->count].name)
		return -ENOMEM;
	if (id > snaps->last_id)
		snaps->last_id = id;
	snaps->count++;
	return 0;
}

int stele_rbd_snaps_copy(struct stele_rbd_snaps *to, const struct stele_rbd_snaps *from)
{
	int ret = 0;

	memset(to, 0, sizeof(*to));
	for (size_t i = 0; i < from->count && ret == 0; i++)
		ret = stele_rbd_snaps_add(to, from->list[i].name, from->list[i].id,
					  from->list[i].is_protected);
	if (ret < 0)
		stele_rbd_snaps_release(to);
	return ret;
}

int stele_rbd_snaps_protect(struct stele_rbd_snaps *snaps, const char *name,
			    bool wanted)
{
	struct stele_rbd_snap *snap = stele_rbd_snaps_find(snaps, name);

	if (!snap)
		return -ENOENT;
	if (snap->is_protected == wanted)
		return wanted ? -EBUSY : -EINVAL;
	snap->is_protected = wanted;
	return 0;
}

int stele_rbd_snaps_rename(struct stele_rbd_snaps *snaps, const char *from,
			   const char *to)
{
	struct stele_rbd_snap *snap = stele_rbd_snaps_find(snaps, from);
	char *name;

	if (!snap || stele_rbd_snaps_find(snaps, to))
		return snap ? -EEXIST : -ENOENT;
	name = strdup(to);
	if (!name)
		return -ENOMEM;
	free(snap->name);
	snap->name = name;
	return 0;
}

int stele_rbd_snaps_remove(struct stele_rbd_snaps *snaps, const char *name)
{
	struct stele_rbd_snap *snap = stele_rbd_snaps_find(snaps, name);

	if (!snap || snap->is_protected)
		return snap ? -EBUSY : -ENOENT;
	free(snap->name);
	snaps->count--;
	memmove(snap, snap + 1,
		(size_t)(&snaps->list[snaps->count] - snap) * sizeof(*snap));
	return 0;
}

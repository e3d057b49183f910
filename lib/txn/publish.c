/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.c - see publish.h
 */
#include "lib/txn/publish.h"

#include <errno.h>
#include <string.h>

struct search {
	const char *name;
	bool found, is_protected;
};

static int compare(void *user, const struct stele_shot *shot)
{
	struct search *search = user;

	if (strcmp(shot->name, search->name))
		return 0;
	search->found = true;
	search->is_protected = shot->is_protected;
	return 1;
}

static int find(struct stele_device *dev, struct search *search)
{
	int ret = stele_device_shots(dev)->each(dev, compare, search);

	return ret < 0 ? ret : 0;
}

int stele_shots_publish(struct stele_device *dev, const char *name)
{
	const struct stele_shot_ops *ops = stele_device_shots(dev);
	struct search search = {.name = name};
	int ret;

	if (!ops)
		return 0;
	ret = find(dev, &search);
	if (!ret && !search.found)
		ret = ops->make(dev, name);
	if (!ret && !search.is_protected)
		ret = ops->protect(dev, name, true);
	return ret;
}

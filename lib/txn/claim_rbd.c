/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_rbd.c - an RBD image that a build may overwrite; see claim.h
 *
 * What is written over an image with RBD snapshots does not harm them: they are
 * the storage's. Yet those by which snapshots of an older image of ours were read
 * are of no use any more, and would stand where new ones shall be made, so
 * they go with it. A shot is ours when the image in it says so itself.
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/rehearsal.h"
#include "lib/image/snapshot.h"
#include "lib/txn/rbd.h"

int stele_claim_open_rbd(struct stele_claim *claim,
			 const struct stele_claim_opts *opts)
{
	uint32_t object = opts->object_size ? opts->object_size :
					      STELE_OBJECT_SIZE_DEFAULT;
	uint64_t size = opts->file_size;
	int ret;

	if (!size)
		size = round_up(opts->needed, object);
	ret = stele_device_create(claim->path, claim->dry ? 0 : size, object,
				  &claim->log);
	if (ret < 0 && ret != -EEXIST)
		return ret;
	claim->created = !ret;
	claim->size = size;
	if (claim->dry && claim->created)
		return stele_rehearsal_create(claim->path, size, object,
					      &claim->log, &claim->dev);
	ret = stele_device_open(claim->path, NULL,
				STELE_DEVICE_WRITE | STELE_DEVICE_EXCL, NULL,
				&claim->log, &claim->dev);
	return ret ? ret : stele_device_size(claim->dev, &claim->size);
}

/* ---- whose shots are there? ------------------------------------------------ */

struct shots {
	struct stele_claim *claim;
	const char *snapshot;
	char **names; /* owned */
	uint32_t count;
};

static int collect(void *user, const struct stele_shot *shot)
{
	struct shots *shots = user;
	char **names = realloc(shots->names,
			       (shots->count + 1) * sizeof(*names));

	if (!names)
		return -ENOMEM;
	shots->names = names;
	names[shots->count] = strdup(shot->name);
	if (!names[shots->count])
		return -ENOMEM;
	shots->count++;
	return 0;
}

/* By the shot's name, or by what a withdrawn one was called. */
static bool has_snapshot(const struct stele_image *image, const char *shot)
{
	const char *name;
	int64_t until;
	uint32_t index;

	return !stele_snapshot_find(image, shot, NULL, &index) ||
	       (stele_tombstone_parse(shot, &until, &name) &&
		!stele_snapshot_find(image, name, NULL, &index));
}

/* Takes the device. */
static bool image_has(struct stele_device *dev, const char *shot)
{
	struct stele_image image;
	bool has;

	if (stele_image_load(dev, NULL, &image)) {
		stele_device_close(dev);
		return false;
	}
	has = has_snapshot(&image, shot);
	stele_image_release(&image);
	return has;
}

/*
 * By what the shot itself holds; one that is half made, so that it can't be
 * opened, by what the head holds.
 */
static bool is_ours(struct stele_claim *claim, const char *shot)
{
	struct stele_device *dev;
	int ret;

	ret = stele_device_open(claim->path, shot, 0, NULL, NULL, &dev);
	if (ret == -EPERM)
		ret = stele_device_open(claim->path, NULL, 0, NULL, NULL, &dev);
	return ret ? false : image_has(dev, shot);
}

static int judge(struct shots *shots, char *name)
{
	struct stele_claim *claim = shots->claim;

	if (!claim->force) {
		stele_log_error(&claim->log,
				"'%s' has an RBD snapshot '%s' ('rbd snap ls')",
				claim->path, name);
		return -EEXIST;
	}
	if (is_ours(claim, name)) {
		claim->old_shots[claim->old_shot_count++] = strdup(name);
		return claim->old_shots[claim->old_shot_count - 1] ? 0 : -ENOMEM;
	}
	if (shots->snapshot && !strcmp(name, shots->snapshot)) {
		stele_log_error(&claim->log,
				"'%s' has an RBD snapshot '%s' that no image of "
				"ours made; take another name for the snapshot",
				claim->path, name);
		return -EEXIST;
	}
	return 0;
}

int stele_claim_check_shots(struct stele_claim *claim, const char *snapshot)
{
	const struct stele_shot_ops *ops = stele_device_shots(claim->dev);
	struct shots shots = {.claim = claim, .snapshot = snapshot};
	int ret = ops->each(claim->dev, collect, &shots);

	if (!ret && shots.count) {
		claim->old_shots = calloc(shots.count, sizeof(char *));
		if (!claim->old_shots)
			ret = -ENOMEM;
	}
	for (uint32_t i = 0; i < shots.count; i++) {
		if (!ret || (ret == -EEXIST && !claim->force))
			ret = judge(&shots, shots.names[i]);
		free(shots.names[i]);
	}
	free(shots.names);
	return ret;
}

void stele_claim_release_shots(struct stele_claim *claim)
{
	for (uint32_t i = 0; i < claim->old_shot_count; i++)
		free(claim->old_shots[i]);
	free(claim->old_shots);
	claim->old_shots = NULL;
	claim->old_shot_count = 0;
}

/* ---- overwrite ------------------------------------------------------------- */

/* Each may refuse to lose its protection; then those before it get it back. */
int stele_claim_remove_shots(struct stele_claim *claim)
{
	const struct stele_shot_ops *ops;
	uint32_t open = 0;
	int ret = 0;

	if (!claim->old_shot_count)
		return 0;
	ops = stele_device_shots(claim->dev);
	while (!ret && open < claim->old_shot_count) {
		ret = ops->protect(claim->dev, claim->old_shots[open], false);
		open += !ret;
	}
	for (uint32_t i = 0; i < open; i++) {
		if (ret)
			ops->protect(claim->dev, claim->old_shots[i], true);
		else
			ret = ops->remove(claim->dev, claim->old_shots[i]);
	}
	return ret;
}

int stele_claim_empty_rbd(struct stele_claim *claim, uint64_t size)
{
	int ret = 0;

	if (!claim->created && claim->size)
		ret = stele_device_resize(claim->dev, 0);
	if (!ret && (!claim->created || size != claim->size))
		ret = stele_device_resize(claim->dev, size);
	return ret;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.c - see volumes.h
 */
#include "mount/fuse/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "mount/fuse/log.h"

#define OPEN_OPTS &STELE_OPTS(stele_open_opts, .log = log_line)

/* TARGET@NAME that means the same from another directory. */
static char *with_name(const char *target, const char *name)
{
	const bool rbd = cmd_is_rbd(target);
	const char *rest = rbd ? strchr(target, '?') : NULL;
	size_t size = rest ? (size_t)(rest - target) : strlen(target);
	char *whole = NULL, *here = NULL;

	if (size && target[size - 1] == '@')
		size--;
	if (!rbd && target[0] != '/')
		here = getcwd(NULL, 0);
	if (asprintf(&whole, "%s%s%.*s@%s%s", here ? here : "", here ? "/" : "", (int)size,
		     target, name, rest ? rest : "") < 0)
		whole = NULL;
	free(here);
	return whole;
}

static int list_all(struct volumes *volumes, const char *target, struct stele_image *image,
		    uint32_t count)
{
	volumes->list = calloc(count + UINT64_C(1), sizeof(*volumes->list));
	if (!volumes->list)
		return -ENOMEM;
	for (; volumes->count < count; volumes->count++) {
		struct stele_snapshot_info info = {.size = sizeof(info)};
		struct volume *volume = &volumes->list[volumes->count];
		int error = stele_image_snapshot(image, volumes->count, &info);

		if (error)
			return error;
		memcpy(volume->name, info.name, sizeof(volume->name));
		memcpy(volume->digest, info.digest, sizeof(volume->digest));
		volume->time = info.time;
		volume->sample_count = info.sample_count;
		volume->payload_size = info.payload_size;
		volume->target = with_name(target, info.name);
		if (!volume->target)
			return -ENOMEM;
	}
	return 0;
}

static int open_single(struct volumes *volumes, const char *target)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct volume *volume = volumes->list = calloc(1, sizeof(*volume));
	int error;

	if (!volume)
		return -ENOMEM;
	error = stele_dataset_open(target, OPEN_OPTS, &volume->ds);
	if (error)
		return error;
	volumes->count = 1;
	stele_dataset_info(volume->ds, &info);
	memcpy(volume->name, info.snapshot, sizeof(volume->name));
	memcpy(volume->digest, info.digest, sizeof(volume->digest));
	volume->time = info.time;
	volume->sample_count = info.sample_count;
	volume->payload_size = info.payload_size;
	samples_init(&volume->samples, volume->ds, volume->name);
	return 0;
}

int volumes_open(struct volumes *volumes, const char *target, bool single)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *image;
	int error = stele_image_open(target, OPEN_OPTS, &image);

	*volumes = (struct volumes){.single = single};
	pthread_mutex_init(&volumes->lock, NULL);
	if (error)
		return error;
	stele_image_info(image, &info);
	volumes->create_time = info.create_time;
	error = single ? open_single(volumes, target) :
			 list_all(volumes, target, image, info.snapshot_count);
	stele_image_close(image);
	return error;
}

void volumes_close(struct volumes *volumes)
{
	for (uint32_t i = 0; i < volumes->count; i++) {
		struct volume *volume = &volumes->list[i];

		if (volume->ds)
			samples_release(&volume->samples);
		stele_dataset_close(volume->ds);
		free(volume->target);
	}
	free(volumes->list);
	pthread_mutex_destroy(&volumes->lock);
}

static int open_volume(struct volume *volume)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	int error = stele_dataset_open(volume->target, OPEN_OPTS, &ds);

	if (error == -ENOENT)
		error = -ESTALE; /* deleted since */
	if (error)
		return error;
	stele_dataset_info(ds, &info);
	if (memcmp(info.digest, volume->digest, sizeof(info.digest)) != 0) {
		log_error("'%s' is another snapshot than when it was mounted", volume->target);
		stele_dataset_close(ds);
		return -ESTALE;
	}
	samples_init(&volume->samples, ds, volume->name);
	volume->ds = ds;
	return 0;
}

int volumes_use(struct volumes *volumes, uint32_t index, struct volume **out)
{
	int error = 0;

	if (index >= volumes->count)
		return -ESTALE;
	*out = &volumes->list[index];
	pthread_mutex_lock(&volumes->lock);
	if (!(*out)->ds)
		error = open_volume(*out);
	pthread_mutex_unlock(&volumes->lock);
	return error;
}

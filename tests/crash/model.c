/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - see model.h
 */
#include "tests/crash/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/read/dataset.h"
#include "tests/tap.h"

/* ---- contents -------------------------------------------------------------- */

void model_key(unsigned int key, char text[MODEL_KEY_SIZE])
{
	snprintf(text, MODEL_KEY_SIZE, "%c/%04u", 'a' + key % 5, key);
}

uint64_t model_size(unsigned int key, uint8_t version)
{
	return key * UINT64_C(7919) % 2500 + version % 4 * 100;
}

void model_source(const struct model_world *world, const bool *chosen,
		  struct fake *fake)
{
	fake_init(fake);
	for (unsigned int key = 0; key < MODEL_KEYS; key++) {
		char text[MODEL_KEY_SIZE];
		struct fake_file *file;

		if (!chosen[key] || !world->version[key])
			continue;
		model_key(key, text);
		file = fake_add(fake, text,
				model_size(key, world->version[key]));
		file->version = world->version[key];
		file->changed = world->changed[key];
	}
}

void model_turn(struct model_world *world, uint64_t *random, int64_t now)
{
	for (uint64_t i = model_random(random) % 12; i > 0; i--) {
		uint64_t key = model_random(random) % MODEL_KEYS;
		bool gone = model_random(random) % 4 == 0;

		world->version[key] =
			gone ? 0 : (uint8_t)(1 + model_random(random) % 200);
		world->changed[key] = now;
	}
}

void model_choose(uint64_t *random, bool chosen[MODEL_KEYS])
{
	bool all = model_random(random) % 2;

	for (unsigned int key = 0; key < MODEL_KEYS; key++)
		chosen[key] = all || model_random(random) % 3 == 0;
}

/* ---- snapshots ------------------------------------------------------------- */

struct model_snapshot *model_find(struct model_image *image, const char *name)
{
	for (unsigned int i = 0; i < image->count; i++)
		if (!strcmp(image->snapshots[i].name, name))
			return &image->snapshots[i];
	return NULL;
}

struct model_snapshot *model_add(struct model_image *image,
				 const struct model_snapshot *base,
				 const char *name, int64_t time)
{
	struct model_snapshot *snapshot = &image->snapshots[image->count++];

	if (image->count > MODEL_SNAPSHOTS_MAX)
		bail("too many snapshots");
	if (base)
		*snapshot = *base;
	else
		memset(snapshot, 0, sizeof(*snapshot));
	snprintf(snapshot->name, sizeof(snapshot->name), "%s", name);
	snapshot->time = time;
	snapshot->id = ++image->ids;
	snapshot->is_new = true;
	return snapshot;
}

/* From one list to the other, by id. */
static void move_to(struct model_snapshot *from, unsigned int *from_count, unsigned int index,
		    struct model_snapshot *to, unsigned int *to_count)
{
	const struct model_snapshot moved = from[index];
	unsigned int at = (*to_count)++;

	for (--*from_count; index < *from_count; index++)
		from[index] = from[index + 1];
	for (; at > 0 && to[at - 1].id > moved.id; at--)
		to[at] = to[at - 1];
	to[at] = moved;
}

void model_remove(struct model_image *image, const char *name, int64_t time)
{
	struct model_snapshot *snapshot = model_find(image, name), lost[1];
	unsigned int none = 0;

	if (image->deleted_count == MODEL_DELETED_MAX)
		bail("too many deleted snapshots");
	snapshot->deleted_time = time;
	move_to(image->snapshots, &image->count, (unsigned int)(snapshot - image->snapshots),
		snapshot->is_new ? lost : image->deleted,
		snapshot->is_new ? &none : &image->deleted_count);
}

void model_undelete(struct model_image *image, unsigned int index, const char *name)
{
	struct model_snapshot *snapshot = &image->deleted[index];

	memcpy(snapshot->name, name, strlen(name) + 1);
	snapshot->deleted_time = 0;
	move_to(image->deleted, &image->deleted_count, index, image->snapshots,
		&image->count);
}

void model_commit(struct model_image *image)
{
	for (unsigned int i = 0; i < image->count; i++)
		image->snapshots[i].is_new = false;
}

static uint8_t appended(const struct model_snapshot *base, unsigned int key,
			const struct model_world *world, uint32_t flags)
{
	const uint8_t old = base->version[key], new = world->version[key];

	if (!old)
		return new;
	if (!(flags & STELE_APPEND_UPDATE))
		return old;
	if (flags & STELE_APPEND_QUICK &&
	    world->changed[key] < base->source_time &&
	    model_size(key, old) == model_size(key, new))
		return old;
	return new;
}

void model_append(struct model_snapshot *snapshot,
		  const struct model_world *world, const bool *chosen,
		  uint32_t flags)
{
	bool differs = false, synced = flags & STELE_APPEND_UPDATE;

	for (unsigned int key = 0; key < MODEL_KEYS; key++) {
		uint8_t old = snapshot->version[key], now = old;

		if (chosen[key] && world->version[key])
			now = appended(snapshot, key, world, flags);
		else if (flags & STELE_APPEND_DELETE_MISSING)
			now = 0;
		else
			synced &= !old;
		differs |= now != old;
		snapshot->version[key] = now;
	}
	snapshot->has_digest &= !differs;
	if (synced)
		snapshot->source_time = snapshot->time;
}

static bool quiet;

/* ---- comparing ------------------------------------------------------------- */

static bool wrong(const char *snapshot, const char *what, uint64_t at)
{
	if (!quiet)
		diag("snapshot '%s': %s (%llu)", snapshot, what,
	     (unsigned long long)at);
	return false;
}

/* Which key is this? MODEL_KEYS: none. */
static unsigned int key_of(const char *key, size_t size)
{
	char text[MODEL_KEY_SIZE];
	unsigned int number;

	if (size != 6)
		return MODEL_KEYS;
	memcpy(text, key, size);
	text[size] = '\0';
	number = (unsigned int)atoi(text + 2);
	if (number < MODEL_KEYS)
		model_key(number, text);
	return number < MODEL_KEYS && !memcmp(text, key, size) ? number :
								 MODEL_KEYS;
}

static bool is_content(const struct stele_sample *sample, unsigned int key,
		       uint8_t version)
{
	const uint8_t *data = sample->data;

	if (sample->size != model_size(key, version))
		return false;
	for (uint64_t i = 0; i < sample->size; i++)
		if (data[i] != (uint8_t)(fake_byte(sample->key,
						   sample->key_size, i) ^
					 version))
			return false;
	return true;
}

static bool check_ids(const struct model_snapshot *model,
		      struct stele_dataset *ds)
{
	bool seen[MODEL_KEYS] = {false};
	uint64_t count = 0;

	for (unsigned int key = 0; key < MODEL_KEYS; key++)
		count += model->version[key] != 0;
	if (count != stele_dataset_count(ds))
		return wrong(model->name, "count of samples",
			     stele_dataset_count(ds));
	for (uint64_t id = 0; id < count; id++) {
		struct stele_sample sample;
		unsigned int key;
		uint64_t found;
		bool good;

		if (stele_dataset_read(ds, id, &sample) < 0)
			return wrong(model->name, "cannot read sample", id);
		key = key_of(sample.key, sample.key_size);
		good = key < MODEL_KEYS && !seen[key] && model->version[key] &&
		       is_content(&sample, key, model->version[key]) &&
		       !stele_dataset_lookup(ds, sample.key, sample.key_size,
					   &found) &&
		       found == id;
		if (good)
			seen[key] = true;
		stele_sample_release(&sample);
		if (!good)
			return wrong(model->name, "another sample", id);
	}
	return true;
}

static bool check_cursor(const struct model_snapshot *model,
			 struct stele_dataset *ds)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	char last[MODEL_KEY_SIZE] = "";
	uint64_t count = 0;

	if (stele_cursor_open(ds, NULL, 0, &cursor) < 0)
		return wrong(model->name, "no cursor", 0);
	while (stele_cursor_next(cursor, &entry) == 1) {
		unsigned int key = key_of(entry.key, entry.key_size);

		if (key >= MODEL_KEYS || !model->version[key] ||
		    entry.size != model_size(key, model->version[key]) ||
		    memcmp(last, entry.key, entry.key_size) >= 0)
			break;
		memcpy(last, entry.key, entry.key_size);
		count++;
	}
	stele_cursor_close(cursor);
	return count == stele_dataset_count(ds) ||
	       wrong(model->name, "cursor ends early", count);
}

static bool check_digest(struct model_snapshot *model,
			 const struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	stele_dataset_info(ds, &info);
	if (!model->has_digest)
		memcpy(model->digest, info.digest, sizeof(model->digest));
	model->has_digest = true;
	return !memcmp(model->digest, info.digest, sizeof(model->digest)) ||
	       wrong(model->name, "another digest", 0);
}

static bool check_snapshot(struct model_snapshot *model,
			   struct stele_device *dev)
{
	struct stele_target target = {.snapshot = model->name};
	struct stele_dataset *ds;
	bool good;

	if (stele_dataset_create(model_device(dev, 0), &target, NULL, &ds) < 0)
		return wrong(model->name, "does not open", 0);
	good = check_ids(model, ds) && check_cursor(model, ds) &&
	       check_digest(model, ds);
	stele_dataset_close(ds);
	return good;
}

static bool check_deleted(const struct model_image *model,
			  const struct stele_catalog *catalog)
{
	if (catalog->counts.deleted != model->deleted_count)
		return wrong("", "count of deleted snapshots", catalog->counts.deleted);
	for (unsigned int i = 0; i < model->deleted_count; i++) {
		struct stele_catalog_snapshot snapshot;

		stele_catalog_snapshot(catalog, model->count + i, &snapshot);
		if (strcmp(snapshot.name, model->deleted[i].name) != 0 ||
		    snapshot.deleted_time != model->deleted[i].deleted_time ||
		    memcmp(snapshot.digest, model->deleted[i].digest,
			   model->deleted[i].has_digest ? sizeof(snapshot.digest) : 0) != 0)
			return wrong(model->deleted[i].name,
				     "another deleted snapshot, or time", i);
	}
	return true;
}

/* The same names in the same order, and times. */
static bool check_list(const struct model_image *model,
		       const struct stele_image *image)
{
	if (image->catalog.counts.snapshots != model->count)
		return wrong("", "count of snapshots",
			     image->catalog.counts.snapshots);
	for (unsigned int i = 0; i < model->count; i++) {
		struct stele_catalog_snapshot snapshot;

		stele_catalog_snapshot(&image->catalog, i, &snapshot);
		if (strcmp(snapshot.name, model->snapshots[i].name) != 0 ||
		    snapshot.time != model->snapshots[i].time)
			return wrong(model->snapshots[i].name,
				     "another name or time", i);
	}
	return check_deleted(model, &image->catalog);
}

bool model_check_quietly(struct model_image *model, struct stele_device *dev,
			 const char *only)
{
	bool good;

	quiet = true;
	good = model_check(model, dev, only);
	quiet = false;
	return good;
}

bool model_check(struct model_image *model, struct stele_device *dev,
		 const char *only)
{
	struct stele_device *device = model_device(dev, 0);
	struct stele_image image;
	bool good;

	if (stele_image_load(device, NULL, &image) < 0) {
		stele_device_close(device);
		return wrong("", "the image does not open", 0);
	}
	good = check_list(model, &image);
	stele_image_release(&image);
	for (unsigned int i = 0; i < model->count && good; i++)
		if (!only || !strcmp(only, model->snapshots[i].name))
			good = check_snapshot(&model->snapshots[i], dev);
	return good;
}

/* ---- a device that outlives its closing ------------------------------------- */

struct over {
	struct stele_device base;
	struct stele_device *inner;
	uint64_t size;
};

static ssize_t over_transfer(struct stele_device *dev, enum stele_op op,
			     void *data, uint64_t offset, size_t size)
{
	struct stele_device *inner = ((struct over *)dev)->inner;

	return inner->ops->transfer(inner, op, data, offset, size);
}

static int over_size(struct stele_device *dev, uint64_t *size)
{
	struct over *over = (struct over *)dev;

	*size = over->size;
	return over->size ? 0 : stele_device_size(over->inner, size);
}

static int over_queue(struct stele_device *dev, unsigned int depth, void *arena,
		      size_t arena_size, struct stele_queue **queue)
{
	struct stele_device *inner = ((struct over *)dev)->inner;

	return inner->ops->queue_open(inner, depth, arena, arena_size, queue);
}

static void over_close(struct stele_device *dev)
{
	free(dev);
}

static const struct stele_device_ops over_ops = {
	.name = "over",
	.transfer = over_transfer,
	.size = over_size,
	.queue_open = over_queue,
	.close = over_close,
};

struct stele_device *model_device(struct stele_device *inner, uint64_t size)
{
	struct over *over = calloc(1, sizeof(*over));

	if (!over)
		bail("no memory");
	over->base = *inner;
	over->base.ops = &over_ops;
	over->inner = inner;
	over->size = size;
	return &over->base;
}

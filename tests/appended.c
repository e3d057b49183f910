/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appended.c - build, append, and compare with a model
 */
#include "tests/appended.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ops/append_write.h"
#include "lib/ops/build_write.h"
#include "lib/verify/verify.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

static struct stele_device *inner; /* in memory, below `dev` */
struct stele_device *appended_dev;
static uint64_t device_size;
struct stele_append_report appended_report;

void appended_device(uint64_t size)
{
	device_size = size << 20;
	if (stele_device_open_memory(device_size, 4096, &inner) < 0 ||
	    stele_device_open_fault(inner, NULL, 0, &appended_dev) < 0)
		bail("no device");
}

struct stele_build_opts appended_options(uint32_t flags)
{
	return (struct stele_build_opts){.size = sizeof(struct stele_build_opts),
					 .flags = flags,
					 .jobs = 3,
					 .memory_size = 1 << 20,
					 .time = APPENDED_NOW};
}

void appended_base(struct fake *fake)
{
	struct stele_build_opts opts = appended_options(0);
	struct stele_build_report built;

	if (stele_build_on(appended_dev, &fake->source, "v1", &opts, &built) < 0)
		bail("cannot build");
}

/* As stele_append() does it, on our device. */
int appended(struct fake *fake, const char *name,
		  const struct stele_build_opts *opts)
{
	struct stele_builder builder;
	struct stele_append a = {0};
	struct stele_edit edit = {0};
	struct stele_image image = {0};
	int ret;

	memset(&appended_report, 0, sizeof(appended_report));
	ret = stele_builder_init(&builder, opts, &appended_report.build);
	if (!ret)
		ret = stele_builder_for_append(&builder);
	if (!ret)
		ret = stele_image_load(appended_dev, &builder.log, &image);
	if (!ret)
		ret = stele_edit_begin(&image, &edit);
	if (!ret)
		ret = stele_append_prepare(&a, &builder, &fake->source, &edit,
					   name, &appended_report);
	if (!ret)
		ret = stele_append_write(&a, name);
	if (!ret)
		ret = stele_edit_commit(&edit, APPENDED_NOW);
	stele_append_release(&a);
	stele_edit_release(&edit);
	image.dev = NULL;
	stele_image_release(&image);
	stele_builder_release(&builder);
	return ret;
}

/* ---- what a snapshot holds ------------------------------------------------------ */

struct stele_dataset *appended_open(const char *name)
{
	const struct stele_target target = {.snapshot = (char *)name};
	struct stele_device *copy;
	struct stele_dataset *ds;

	copy = test_memory(device_size, 4096, 0);
	memcpy(stele_device_memory(copy), stele_device_memory(inner),
	       device_size);
	return stele_dataset_create(copy, &target, NULL, &ds) ? NULL : ds;
}

static const struct fake_file *file_of(const struct fake *fake, const char *key,
				       size_t size)
{
	for (size_t i = 0; i < fake->count; i++)
		if (strlen(fake->files[i].key) == size &&
		    !memcmp(fake->files[i].key, key, size))
			return &fake->files[i];
	return NULL;
}

static bool label_ok(const struct stele_dataset *ds,
		     const struct stele_sample *sample)
{
	const char *slash = memchr(sample->key, '/', sample->key_size), *name;
	int64_t label;

	if (stele_dataset_field_index(ds, "label") < 0)
		return true;
	if (stele_sample_i64(sample, 1, &label))
		return false;
	if (!slash)
		return label == -1;
	return stele_dataset_class_name(ds, 1, label, &name) == 0 &&
	       strlen(name) == (size_t)(slash - sample->key) &&
	       !memcmp(name, sample->key, strlen(name));
}

static bool sample_ok(struct stele_dataset *ds, const struct fake *model,
		      uint64_t id)
{
	const struct fake_file *file;
	struct stele_sample sample;
	bool good;

	if (stele_dataset_read(ds, id, &sample) < 0)
		return false;
	file = file_of(model, sample.key, sample.key_size);
	good = file && file->size == sample.size && label_ok(ds, &sample);
	for (uint64_t i = 0; good && i < sample.size; i += 1 + i / 64)
		good = ((const uint8_t *)sample.data)[i] ==
		       (fake_byte(file->key, strlen(file->key), i) ^
			file->version);
	stele_sample_release(&sample);
	return good;
}

void appended_holds(const char *name, const struct fake *model, const char *what)
{
	struct stele_dataset *ds = appended_open(name);
	uint64_t wrong = 0, found = 0, id;

	if (!ok(ds != NULL, "%s: %s opens", what, name))
		return;
	is_uint(model->count, stele_dataset_count(ds), "%s: %s: so many", what,
		name);
	for (uint64_t i = 0; i < stele_dataset_count(ds); i++)
		wrong += !sample_ok(ds, model, i);
	for (size_t i = 0; i < model->count; i++)
		found += stele_dataset_find(ds, model->files[i].key,
					    strlen(model->files[i].key),
					    &id) == 0;
	is_uint(0, wrong, "%s: %s: each is one of the model's", what, name);
	is_uint(model->count, found, "%s: %s: each of these is found", what,
		name);
	stele_dataset_close(ds);
}

void appended_sound(const char *what)
{
	struct stele_verify_report verified = {0};
	const struct stele_verify_opts opts = {.jobs = 1};
	struct stele_image image;
	int ret = stele_image_load(appended_dev, NULL, &image);

	if (!ret)
		ret = stele_verify_image(&image, -1, &opts, &verified);
	is_int(0, ret, "%s: the image is sound", what);
	image.dev = NULL;
	stele_image_release(&image);
}

void appended_digest(const char *name, uint8_t digest[32])
{
	struct stele_dataset *ds = appended_open(name);

	memset(digest, 0, 32);
	if (ds)
		memcpy(digest, ds->snapshot.digest, 32);
	stele_dataset_close(ds);
}

uint32_t appended_segments(const char *name)
{
	struct stele_dataset *ds = appended_open(name);
	uint32_t count = ds ? ds->snapshot.segment_count : 0;

	stele_dataset_close(ds);
	return count;
}

void appended_counts(uint64_t added, uint64_t updated, uint64_t deleted,
		   uint64_t unchanged, const char *what)
{
	is_uint(added, appended_report.added, "%s: added", what);
	is_uint(updated, appended_report.updated, "%s: updated", what);
	is_uint(deleted, appended_report.deleted, "%s: deleted", what);
	is_uint(unchanged, appended_report.unchanged, "%s: unchanged", what);
	is_uint(added + updated + unchanged, appended_report.sample_count,
		"%s: and the sum of them", what);
}

void appended_copy(struct fake *to, const struct fake *from)
{
	fake_init(to);
	for (size_t i = 0; i < from->count; i++) {
		struct fake_file *file = fake_add(to, from->files[i].key,
						  from->files[i].size);
		char *key = file->key;

		*file = from->files[i];
		file->key = key;
	}
}

void appended_remove(struct fake *fake, size_t index)
{
	free(fake->files[index].key);
	fake->files[index] = fake->files[--fake->count];
}

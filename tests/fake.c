/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake.c - a source in memory that can lie
 */
#include "tests/fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define OPEN_MAX 4096

/* What is open: by handle. */
static struct {
	struct fake *fake;
	const struct fake_file *file;
	uint64_t at;
} open_files[OPEN_MAX];

static uint64_t seed_of(const char *key, size_t key_size)
{
	uint64_t seed = 1469598103934665603u;

	for (size_t i = 0; i < key_size; i++)
		seed = (seed ^ (unsigned char)key[i]) * 1099511628211u;
	return seed;
}

static uint8_t byte_of(uint64_t seed, uint64_t at)
{
	uint64_t x = seed + at / 8 * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	return (uint8_t)(x >> at % 8 * 8);
}

uint8_t fake_byte(const char *key, size_t key_size, uint64_t at)
{
	return byte_of(seed_of(key, key_size), at);
}

static int fake_scan(struct stele_source *source,
		     const struct stele_source_sink *sink)
{
	struct fake *fake = (struct fake *)source;
	int ret = fake->scan_error;

	for (size_t i = 0; i < fake->count && !ret; i++) {
		const struct fake_file *file =
			&fake->files[fake->backwards ? fake->count - 1 - i : i];
		const struct stele_source_entry entry = {
			.key = file->key, .key_size = strlen(file->key),
			.size = file->size, .changed = file->changed};

		ret = sink->entry(sink->user, &entry);
		if (!ret && i % 256 == 0 && sink->tick(sink->user))
			ret = -ECANCELED;
	}
	return ret;
}

static int fake_open(struct stele_source *source,
		     const struct stele_source_entry *entry,
		     struct stele_source_file *out)
{
	struct fake *fake = (struct fake *)source;
	const struct fake_file *file = NULL;
	int handle;

	__atomic_add_fetch(&fake->opened_total, 1, __ATOMIC_RELAXED);
	if (fake->on_open)
		fake->on_open(fake->on_open_user);
	for (size_t i = 0; i < fake->count && !file; i++)
		if (strlen(fake->files[i].key) == entry->key_size &&
		    !memcmp(fake->files[i].key, entry->key, entry->key_size))
			file = &fake->files[i];
	if (!file)
		return -ENOENT;
	if (file->open_error)
		return file->open_error;
	for (handle = 0; handle < OPEN_MAX; handle++) {
		struct fake *none = NULL;

		if (__atomic_compare_exchange_n(&open_files[handle].fake, &none,
						fake, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			break;
	}
	if (handle == OPEN_MAX)
		return -EMFILE;
	open_files[handle].file = file;
	open_files[handle].at = 0;
	__atomic_add_fetch(&fake->opened, 1, __ATOMIC_RELAXED);
	out->source = source;
	out->handle = handle;
	return 0;
}

static ssize_t fake_read(struct stele_source_file *out, void *data, size_t size)
{
	const struct fake *fake = (const struct fake *)out->source;
	const struct fake_file *file = open_files[out->handle].file;
	uint64_t at = open_files[out->handle].at;
	uint64_t end = file->size_now;
	uint64_t seed = seed_of(file->key, strlen(file->key));
	uint8_t *bytes = data;

	if (file->read_error && at >= file->read_good)
		return file->read_error;
	if (file->read_error && end > file->read_good)
		end = file->read_good;
	if (size > end - at)
		size = end - at;
	if (size > 100000) /* a read may be short */
		size = 100000;
	if (fake->on_read) {
		size_t most = fake->on_read(fake->on_read_user, at);

		size = size < most ? size : most;
	}
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_of(seed, at + i) ^ file->version;
	open_files[out->handle].at += size;
	return (ssize_t)size;
}

static void fake_close(struct stele_source_file *out)
{
	if (!out->source)
		return;
	__atomic_sub_fetch(&((struct fake *)out->source)->opened, 1,
			   __ATOMIC_RELAXED);
	__atomic_store_n(&open_files[out->handle].fake, NULL, __ATOMIC_RELEASE);
	out->source = NULL;
}

static void fake_release_source(struct stele_source *source)
{
	(void)source;
}

static const struct stele_source_ops fake_ops = {
	.scan = fake_scan,
	.open = fake_open,
	.read = fake_read,
	.close = fake_close,
	.release = fake_release_source,
};

void fake_init(struct fake *fake)
{
	memset(fake, 0, sizeof(*fake));
	fake->source.ops = &fake_ops;
}

void fake_release(struct fake *fake)
{
	for (size_t i = 0; i < fake->count; i++)
		free(fake->files[i].key);
	free(fake->files);
	fake_init(fake);
}

struct fake_file *fake_add(struct fake *fake, const char *key, uint64_t size)
{
	struct fake_file *file;

	/* Room for the next power of two: full when the count is one. */
	if (!(fake->count & (fake->count - 1)))
		fake->files = realloc(fake->files, (fake->count * 2 + 1) *
						   sizeof(*fake->files));
	if (!fake->files)
		sysbail("no memory");
	file = &fake->files[fake->count++];
	*file = (struct fake_file){.size = size, .size_now = size};
	file->key = strdup(key);
	if (!file->key)
		sysbail("no memory");
	return file;
}

void fake_add_many(struct fake *fake, const char *name, unsigned int count,
		   uint64_t size_max)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t spread = i * UINT64_C(2654435761) >> 3;
		char key[256];

		snprintf(key, sizeof(key), "%s/%06u", name, i);
		fake_add(fake, key, spread % (size_max + 1));
	}
}

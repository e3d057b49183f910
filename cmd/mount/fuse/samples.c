/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.c - see samples.h
 */
#include "mount/fuse/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"
#include "mount/fuse/ahead.h"
#include "mount/fuse/cache.h"
#include "mount/fuse/log.h"

#define LARGE_SIZE (UINT64_C(64) << 20) /* from here on by a temporary file */

void samples_init(struct samples *s, struct stele_dataset *ds, const char *name)
{
	s->ds = ds;
	s->name = name;
	s->reported = UINT64_MAX;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
}

void samples_release(struct samples *s)
{
	ahead_stop(s);
	for (unsigned int i = 0; i < SAMPLES_BUCKETS; i++)
		while (s->buckets[i])
			cache_drop(s, s->buckets[i]);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
}

/* ---- one sample ---------------------------------------------------------------------- */

/*
 * The file is there, whatever its temporary file lacks: ENOENT or EACCES would be said of
 * the wrong one. Return: 0; -ENOSPC, -EIO (logged).
 */
static int check_spool(int error)
{
	if (!error)
		return 0;
	log_error("cannot write a temporary file in '%s': %s; TMPDIR chooses another directory",
		  store_directory(), strerror(-error));
	return error == -ENOSPC || error == -EDQUOT ? -ENOSPC : -EIO;
}

static int put_piece(void *user, const void *data, size_t size)
{
	return check_spool(store_append(user, data, size));
}

/* All of it is verified before a byte is served. */
static int spool(struct samples *s, struct sample_entry *entry)
{
	int error = stele_dataset_stream(s->ds, entry->id, put_piece, &entry->spool);

	if (!error)
		error = check_spool(store_flush(&entry->spool));
	entry->sample.size = entry->spool.size;
	return error <= 0 ? error : -EIO;
}

static int load(struct samples *s, struct sample_entry *entry)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	int error = stele_dataset_locate(s->ds, entry->id, &extent);

	if (error)
		return error;
	if (extent.slot_size > LARGE_SIZE)
		return spool(s, entry);
	entry->cost = extent.slot_size;
	return stele_dataset_read(s->ds, entry->id, &entry->sample);
}

/* Once, however often the kernel tries. */
static void report(struct samples *s, uint64_t id, int error)
{
	char *name;

	if (__atomic_exchange_n(&s->reported, id, __ATOMIC_RELAXED) == id)
		return;
	name = key_name(s->ds, id);
	log_error("snapshot '%s': cannot read %s: %s", s->name, name ? name : "a sample",
		  stele_strerror(error));
	free(name);
}

/* It is nobody's yet. With the lock held. */
static int fill(struct samples *s, struct sample_entry *entry)
{
	int error;

	pthread_mutex_unlock(&s->lock);
	error = load(s, entry);
	if (error)
		report(s, entry->id, error);
	pthread_mutex_lock(&s->lock);
	if (!error) {
		cache_ready(s, entry);
		return 0;
	}
	cache_drop(s, entry);
	pthread_cond_broadcast(&s->changed);
	return error;
}

int samples_get(struct samples *s, uint64_t id, pid_t pid, struct sample_entry **out)
{
	struct sample_entry *entry;
	bool hit = true;
	int error = 0;

	pthread_mutex_lock(&s->lock);
	while ((entry = cache_find(s, id)) && !entry->ready)
		pthread_cond_wait(&s->changed, &s->lock);
	if (!entry) {
		hit = false;
		entry = cache_add(s, id);
		error = entry ? fill(s, entry) : -ENOMEM;
	}
	if (!error) {
		entry->users++;
		cache_touch(s, entry);
		if (entry->spool.fd < 0)
			ahead_note(s, pid, &entry->sample, hit);
		pthread_cond_broadcast(&s->changed);
		*out = entry;
	}
	pthread_mutex_unlock(&s->lock);
	return error;
}

void samples_put(struct samples *s, struct sample_entry *entry)
{
	pthread_mutex_lock(&s->lock);
	entry->users--;
	pthread_mutex_unlock(&s->lock);
}

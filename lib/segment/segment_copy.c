/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_copy.c - many threads, unit by unit; then both descriptors
 */
#include "lib/segment/segment_copy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/workers.h"
#include "lib/segment/copy_worker.h"

/* All under the lock except what is set before the workers start. */
struct gang {
	struct stele_segment_copy *copy;
	struct stele_edges edges;
	struct stele_copy_units units;
	struct stele_copy_worker *workers;
	unsigned int worker_count;
	uint64_t first_missing; /* unit that is not whole there; UINT64_MAX */
	int error;		/* the first one: all stop */
	atomic_bool stop;	/* there is one */
	atomic_bool failed;	/* that was said */
	pthread_mutex_t lock;
	pthread_cond_t done; /* a unit */
};

/* Under the lock. */
static void stop(struct gang *gang, int error)
{
	if (!gang->error)
		gang->error = error;
	atomic_store(&gang->stop, true);
}

/* ---- units ----------------------------------------------------------------- */

static uint64_t oldest(const struct gang *gang)
{
	uint64_t index = gang->units.index;

	for (unsigned int i = 0; i < gang->worker_count; i++)
		if (gang->workers[i].unit < index)
			index = gang->workers[i].unit;
	return index;
}

/* `look`: may it be there already? False: none is left, or all stop. */
static bool take_unit(struct gang *gang, struct stele_copy_worker *w,
		      struct stele_copy_unit *unit, bool *look)
{
	bool taken = false;

	pthread_mutex_lock(&gang->lock);
	while (!gang->error &&
	       gang->units.index - oldest(gang) >= STELE_COPY_WINDOW)
		pthread_cond_wait(&gang->done, &gang->lock);
	if (!gang->error)
		taken = stele_copy_units_next(&gang->units, unit);
	if (taken)
		w->unit = unit->index;
	*look = gang->first_missing == UINT64_MAX ||
		unit->index <= gang->first_missing + STELE_COPY_WINDOW;
	pthread_mutex_unlock(&gang->lock);
	return taken;
}

/* `ret`: 1 it was there; 0 it was sent; negative errno. */
static void unit_done(struct gang *gang, struct stele_copy_worker *w,
		      const struct stele_copy_unit *unit, int ret)
{
	pthread_mutex_lock(&gang->lock);
	w->unit = UINT64_MAX;
	atomic_store(&w->passed, 0);
	if (ret > 0)
		gang->copy->resumed_size += unit->size;
	else if (ret == 0)
		gang->copy->sent_size += unit->size;
	else
		stop(gang, ret);
	if (ret >= 0)
		gang->copy->sample_count += unit->count;
	pthread_cond_broadcast(&gang->done);
	pthread_mutex_unlock(&gang->lock);
}

static void unit_missing(struct gang *gang, const struct stele_copy_worker *w, uint64_t index)
{
	pthread_mutex_lock(&gang->lock);
	if (index < gang->first_missing) {
		gang->first_missing = index;
		gang->copy->damaged = w->damaged;
	}
	pthread_mutex_unlock(&gang->lock);
}

/* Has it any of the samples that are looked at? */
static bool is_wanted(const struct stele_deleted *only, const struct stele_copy_unit *unit)
{
	uint64_t before, after;

	stele_deleted_has(only, unit->first, &before);
	stele_deleted_has(only, unit->first + unit->count, &after);
	return unit->count && after > before;
}

static int find(struct stele_copy_worker *w, const struct stele_copy_unit *unit)
{
	if (w->copy->only && !is_wanted(w->copy->only, unit))
		return 1;
	switch (unit->kind) {
	case STELE_COPY_ZEROS:
		return stele_copy_find_zeros(w, unit);
	case STELE_COPY_SECTION:
		return stele_copy_find_blocks(w, unit);
	default:
		return stele_copy_find_slots(w, unit);
	}
}

static int send(struct stele_copy_worker *w, const struct stele_copy_unit *unit)
{
	switch (unit->kind) {
	case STELE_COPY_ZEROS:
		return stele_copy_send_zeros(w, unit);
	case STELE_COPY_SECTION:
		return stele_copy_send_blocks(w, unit);
	default:
		return stele_copy_send_slots(w, unit);
	}
}

/* ---- threads --------------------------------------------------------------- */

static int work(void *user, unsigned int index)
{
	struct gang *gang = user;
	struct stele_copy_worker *w = &gang->workers[index];
	struct stele_copy_unit unit;
	bool look;
	int ret = stele_copy_worker_init(w);

	if (ret < 0) {
		pthread_mutex_lock(&gang->lock);
		stop(gang, ret);
		pthread_mutex_unlock(&gang->lock);
	}
	while (ret >= 0 && take_unit(gang, w, &unit, &look)) {
		ret = look ? find(w, &unit) : 0;
		if (look && ret == 0)
			unit_missing(gang, w, unit.index);
		if (ret == 0)
			ret = gang->copy->only_look ? -ENODATA : send(w, &unit);
		unit_done(gang, w, &unit, ret);
	}
	stele_copy_worker_release(w);
	return ret < 0 ? ret : 0;
}

static void tick(void *user)
{
	struct gang *gang = user;
	struct stele_segment_copy *copy = gang->copy;
	uint64_t bytes, samples;

	pthread_mutex_lock(&gang->lock);
	bytes = copy->sent_size + copy->resumed_size;
	samples = copy->sample_count;
	for (unsigned int i = 0; i < gang->worker_count; i++)
		bytes += atomic_load(&gang->workers[i].passed);
	pthread_mutex_unlock(&gang->lock);
	if (!copy->progress || !copy->progress(copy->progress_user, bytes, samples))
		return;
	pthread_mutex_lock(&gang->lock);
	stop(gang, -ECANCELED);
	pthread_cond_broadcast(&gang->done);
	pthread_mutex_unlock(&gang->lock);
}

static int run(struct gang *gang)
{
	struct stele_segment_copy *copy = gang->copy;
	int ret;

	gang->workers = calloc(copy->jobs, sizeof(*gang->workers));
	if (!gang->workers)
		return -ENOMEM;
	gang->worker_count = copy->jobs;
	for (unsigned int i = 0; i < copy->jobs; i++)
		gang->workers[i] = (struct stele_copy_worker){
			.copy = copy,
			.edges = &gang->edges,
			.failed = &gang->failed,
			.stop = &gang->stop,
			.from = {.dev = copy->image->dev, .is_source = true,
				 .base = copy->segment->descriptor.offset},
			.to = {.dev = copy->to, .base = copy->to_offset},
			.unit = UINT64_MAX,
		};
	ret = stele_workers_run("stele-copy", copy->jobs, work, tick,
				gang);
	free(gang->workers);
	return gang->error ? gang->error : ret;
}

/* ---- descriptors ----------------------------------------------------------- */

/* One copy, `at` from the segment's start. `scratch`: as large. */
static int put_descriptor(struct stele_segment_copy *copy,
			  struct stele_disk_block *blocks, void *scratch,
			  uint64_t at)
{
	const struct stele_descriptor *d = &copy->segment->descriptor;
	const uint64_t size = d->block_count * STELE_BLOCK_SIZE;
	int ret;

	stele_descriptor_seal(blocks, d, copy->to_offset + at);
	ret = stele_device_read(copy->to, scratch, copy->to_offset + at, size);
	if (ret == 0 && memcmp(scratch, blocks, size) == 0) {
		copy->resumed_size += size;
		return 0;
	}
	if (copy->only_look) /* also where it cannot be read: nothing is written */
		return ret == 0 || ret == -EIO ? -ENODATA : ret;
	ret = stele_device_write(copy->to, blocks, copy->to_offset + at, size);
	if (ret < 0 && ret != -ESTALE) /* logged */
		stele_log_error(&copy->image->log,
				"cannot write a descriptor to the target: %s",
				stele_device_strerror(copy->to, ret));
	else
		copy->sent_size += size;
	return ret;
}

static int put_descriptors(struct stele_segment_copy *copy)
{
	const struct stele_descriptor *d = &copy->segment->descriptor;
	const uint64_t size = d->block_count * STELE_BLOCK_SIZE;
	const le64 offset = le64_put(copy->to_offset);
	struct stele_disk_block *blocks = stele_device_alloc(copy->to, size);
	void *scratch = stele_device_alloc(copy->to, size);
	int ret = -ENOMEM;

	if (blocks && scratch) {
		memcpy(blocks, d->blocks, size);
		stele_stream_put(blocks, d->block_count,
				 offsetof(struct stele_disk_descriptor, offset),
				 &offset, sizeof(offset));
		ret = put_descriptor(copy, blocks, scratch, 0);
		if (ret == 0)
			ret = put_descriptor(copy, blocks, scratch,
					     d->size - size);
	}
	free(scratch);
	free(blocks);
	return ret;
}

int stele_segment_copy(struct stele_segment_copy *copy)
{
	struct gang gang = {
		.copy = copy,
		.units = {.segment = copy->segment},
		.first_missing = UINT64_MAX,
	};
	int ret = stele_edges_init(&gang.edges, copy->to, copy->jobs);

	copy->sent_size = copy->resumed_size = copy->sample_count = 0;
	copy->damaged = UINT64_MAX;
	if (ret < 0)
		return ret;
	pthread_mutex_init(&gang.lock, NULL);
	pthread_cond_init(&gang.done, NULL);
	ret = run(&gang);
	pthread_cond_destroy(&gang.done);
	pthread_mutex_destroy(&gang.lock);
	stele_edges_release(&gang.edges);
	return ret < 0 || copy->only ? ret : put_descriptors(copy);
}

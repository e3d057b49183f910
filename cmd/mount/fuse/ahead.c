/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - see ahead.h
 *
 * Keys that come in order a few times are no chance: tar, cp and loaders that do not
 * shuffle read so. Ids of one directory lie all over the device, so what comes next is only
 * known from the keys, and worth reading many at once.
 */
#include "mount/fuse/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "mount/fuse/cache.h"

#define RISING_MIN   4u
#define BATCH	     32u
#define SAMPLE_MAX   (AHEAD_SIZE / 4) /* larger ones pay by themselves */
#define PAGE	     4096u

/* ---- who reads in order ------------------------------------------------------------ */

static struct sample_stream *find_stream(struct samples *s, pid_t pid)
{
	struct sample_stream *oldest = NULL;

	for (unsigned int i = 0; i < SAMPLES_STREAMS; i++) {
		struct sample_stream *stream = &s->streams[i];

		if (stream->pid == pid && stream->used)
			return stream;
		if (!oldest || stream->used < oldest->used)
			oldest = stream;
	}
	oldest->pid = pid;
	oldest->rising = oldest->key_size = 0;
	oldest->active = false;
	return oldest;
}

static int compare(const struct sample_stream *stream, const struct stele_sample *sample)
{
	const uint32_t least = stream->key_size < sample->key_size ? stream->key_size :
								     sample->key_size;
	const int order = memcmp(stream->key, sample->key, least);

	return order ? order : (int)stream->key_size - (int)sample->key_size;
}

/* Nobody will ask for what is there any more. */
static void forget(struct samples *s)
{
	for (struct sample_entry *entry = s->newest; entry; entry = entry->older)
		entry->ahead = false;
	s->ahead_cost = 0;
}

static void *read_ahead(void *user);

void ahead_note(struct samples *s, pid_t pid, const struct stele_sample *sample, bool hit)
{
	struct sample_stream *stream = find_stream(s, pid);
	int order;

	if (sample->key_size > sizeof(stream->key))
		return;
	stream->used = ++s->accesses;
	order = compare(stream, sample);
	if (!order)
		return;
	stream->rising = order < 0 ? stream->rising + 1 : 0;
	stream->key_size = sample->key_size;
	memcpy(stream->key, sample->key, sample->key_size);
	/* Order was lost, or what was read ahead was not what came next. */
	if (!hit || !stream->rising) {
		if (stream->active)
			forget(s);
		stream->restart = stream->rising >= RISING_MIN;
		stream->active = stream->restart;
	}
	if (!stream->active)
		return;
	if (!s->started)
		s->started = !pthread_create(&s->thread, NULL, read_ahead, s);
	pthread_cond_broadcast(&s->changed);
}

/* ---- the thread -------------------------------------------------------------------- */

struct reading {
	struct samples *samples;
	struct stele_reader *reader;
	uint64_t in_flight_cost;
	unsigned int turn;
};

static bool has_room(const struct reading *r)
{
	return r->samples->ahead_cost + r->in_flight_cost < AHEAD_SIZE;
}

/* The next stream in turn that goes on; NULL: none. With the lock held. */
static struct sample_stream *next_stream(struct reading *r)
{
	for (unsigned int i = 0; i < SAMPLES_STREAMS; i++) {
		struct sample_stream *stream =
			&r->samples->streams[++r->turn % SAMPLES_STREAMS];

		if (stream->active)
			return stream;
	}
	return NULL;
}

/* If it has to: the cursor goes on behind where the process is. */
static int restart(struct reading *r, struct sample_stream *stream)
{
	struct samples *s = r->samples;
	char key[STELE_KEY_SIZE_MAX];
	bool wanted;
	uint32_t size;
	int ret;

	pthread_mutex_lock(&s->lock);
	wanted = stream->restart;
	size = stream->key_size;
	memcpy(key, stream->key, size);
	stream->restart = false;
	pthread_mutex_unlock(&s->lock);
	if (!wanted)
		return 0;
	stele_cursor_close(stream->cursor);
	stream->cursor = NULL;
	ret = stele_cursor_open(s->ds, NULL, 0, &stream->cursor);
	return ret < 0 ? ret : stele_cursor_seek(stream->cursor, key, size);
}

/* Begin to read one, unless it is there or too large. Return: as submit. */
static int submit(struct reading *r, uint64_t id)
{
	struct samples *s = r->samples;
	const uint64_t size = stele_reader_buffer_size(r->reader, id);
	struct stele_destination to = {.id = id};
	struct sample_entry *entry;
	int ret = 1;

	if (!size || size > SAMPLE_MAX)
		return 1;
	pthread_mutex_lock(&s->lock);
	entry = cache_find(s, id) ? NULL : cache_add(s, id);
	pthread_mutex_unlock(&s->lock);
	if (!entry)
		return 1;
	entry->cost = (size + PAGE - 1) / PAGE * PAGE;
	entry->memory = aligned_alloc(PAGE, entry->cost);
	to.tag = (uint64_t)(uintptr_t)entry;
	to.memory = entry->memory;
	to.memory_size = entry->cost;
	ret = entry->memory ? stele_reader_submit_into(r->reader, &to, 1) : -1;
	if (ret == 1) {
		r->in_flight_cost += entry->cost;
		return 1;
	}
	pthread_mutex_lock(&s->lock);
	cache_drop(s, entry);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/* At least `min` that are in flight. */
static int collect(struct reading *r, unsigned int min)
{
	struct samples *s = r->samples;
	struct stele_sample got[BATCH];
	int count = stele_reader_collect(r->reader, got, BATCH, min);

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < count; i++) {
		struct sample_entry *entry = (void *)(uintptr_t)got[i].tag;

		r->in_flight_cost -= entry->cost;
		/* Who asks for a bad one reads it again, and says so. */
		if (got[i].status) {
			cache_drop(s, entry);
			pthread_cond_broadcast(&s->changed);
			stele_reader_release(r->reader, &got[i]);
			continue;
		}
		entry->sample = got[i];
		entry->sample.reader = NULL; /* the memory is not its */
		entry->sample.buffer = NULL;
		entry->ahead = true;
		cache_ready(s, entry);
		stele_reader_release(r->reader, &got[i]);
	}
	pthread_mutex_unlock(&s->lock);
	return count;
}

/* The next sample of a stream. */
static void go_on(struct reading *r, struct sample_stream *stream)
{
	struct stele_cursor_entry entry;
	int ret = restart(r, stream);

	if (ret == 0 && stream->cursor)
		ret = stele_cursor_next(stream->cursor, &entry);
	if (ret <= 0) {
		pthread_mutex_lock(&r->samples->lock);
		stream->active = stream->restart;
		pthread_mutex_unlock(&r->samples->lock);
		return;
	}
	while ((ret = submit(r, entry.id)) == 0)
		if (collect(r, 1) < 0)
			break;
}

/* Until something is to be done. Return: a stream to go on with; NULL: collect, or stop. */
static struct sample_stream *await(struct reading *r)
{
	struct samples *s = r->samples;
	struct sample_stream *stream = NULL;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !(has_room(r) && (stream = next_stream(r))) && !r->in_flight_cost)
		pthread_cond_wait(&s->changed, &s->lock);
	if (s->stop)
		stream = NULL;
	pthread_mutex_unlock(&s->lock);
	return stream;
}

/* Those that a broken reader leaves: who waits for one reads it alone. */
static void drop_pending(struct samples *s)
{
	struct sample_entry *entry, *next;

	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < SAMPLES_BUCKETS; i++)
		for (entry = s->buckets[i]; entry; entry = next) {
			next = entry->next;
			if (entry->memory && !entry->ready)
				cache_drop(s, entry);
		}
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void *read_ahead(void *user)
{
	struct samples *s = user;
	struct reading r = {.samples = s};
	bool broken = stele_reader_open(s->ds, NULL, &r.reader) < 0;

	while (!broken && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		struct sample_stream *stream = await(&r);

		if (stream)
			go_on(&r, stream);
		if (r.in_flight_cost)
			broken = collect(&r, stream ? 0 : 1) < 0;
	}
	while (!broken && stele_reader_in_flight(r.reader))
		broken = collect(&r, 1) < 0;
	stele_reader_close(r.reader); /* nothing is written into their memory any more */
	drop_pending(s);
	for (unsigned int i = 0; i < SAMPLES_STREAMS; i++)
		stele_cursor_close(s->streams[i].cursor);
	return NULL;
}

void ahead_stop(struct samples *s)
{
	pthread_mutex_lock(&s->lock);
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
}

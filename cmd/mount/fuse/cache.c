/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - see cache.h
 */
#include "mount/fuse/cache.h"

#include <stdlib.h>

static struct sample_entry **bucket(const struct samples *s, uint64_t id)
{
	return (struct sample_entry **)&s->buckets[id % SAMPLES_BUCKETS];
}

struct sample_entry *cache_find(const struct samples *s, uint64_t id)
{
	struct sample_entry *entry = *bucket(s, id);

	while (entry && entry->id != id)
		entry = entry->next;
	return entry;
}

struct sample_entry *cache_add(struct samples *s, uint64_t id)
{
	struct sample_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->id = id;
	entry->spool.fd = -1;
	entry->next = *bucket(s, id);
	*bucket(s, id) = entry;
	return entry;
}

static void link_newest(struct samples *s, struct sample_entry *entry)
{
	entry->older = s->newest;
	entry->newer = NULL;
	if (s->newest)
		s->newest->newer = entry;
	s->newest = entry;
	if (!s->oldest)
		s->oldest = entry;
}

static void unlink_used(struct samples *s, struct sample_entry *entry)
{
	if (entry->newer)
		entry->newer->older = entry->older;
	else
		s->newest = entry->older;
	if (entry->older)
		entry->older->newer = entry->newer;
	else
		s->oldest = entry->newer;
}

void cache_touch(struct samples *s, struct sample_entry *entry)
{
	unlink_used(s, entry);
	link_newest(s, entry);
	if (entry->ahead)
		s->ahead_cost -= entry->cost;
	entry->ahead = false;
}

/* What was used longest ago, and by nobody now. */
static void make_room(struct samples *s)
{
	struct sample_entry *entry = s->oldest, *newer;

	for (; entry && (s->cost > CACHE_SIZE || s->spools > SPOOLS_MAX); entry = newer) {
		newer = entry->newer;
		if (!entry->users && (entry->spool.fd >= 0 || s->cost > CACHE_SIZE))
			cache_drop(s, entry);
	}
}

void cache_ready(struct samples *s, struct sample_entry *entry)
{
	entry->ready = true;
	link_newest(s, entry);
	s->cost += entry->cost;
	if (entry->ahead)
		s->ahead_cost += entry->cost;
	s->spools += entry->spool.fd >= 0;
	entry->users++; /* it is not the one to go */
	make_room(s);
	entry->users--;
	pthread_cond_broadcast(&s->changed);
}

void cache_drop(struct samples *s, struct sample_entry *entry)
{
	struct sample_entry **at = bucket(s, entry->id);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	if (entry->ready) {
		unlink_used(s, entry);
		s->cost -= entry->cost;
		if (entry->ahead)
			s->ahead_cost -= entry->cost;
		s->spools -= entry->spool.fd >= 0;
	}
	store_release(&entry->spool);
	if (entry->memory)
		free(entry->memory);
	else
		stele_sample_release(&entry->sample);
	free(entry);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_keys.c - the keys section against the results of the scan of records
 *
 * Every pass walks all pages and examines its own range of numbers; errors
 * in a page itself are reported in the first pass.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/filter.h"
#include "format/keys.h"
#include "lib/verify/check.h"

#define PAGES_PER_READ 64u

struct walk {
	struct stele_segment_check *sc;
	struct stele_check_window window;
	struct stele_keys_cursor cursor;
	uint64_t page;
	uint64_t total; /* keys seen */
	bool have_last; /* `last` is of the page right before */
	char last[STELE_RECORD_KEY_MAX];
	uint32_t last_size;
	uint8_t filter[STELE_FILTER_SIZE_MAX]; /* of the keys seen */
};

static void report(struct walk *w, const char *why)
{
	w->sc->keys_damaged = true;
	if (w->sc->first == 0)
		stele_check_report(w->sc->check, -EUCLEAN, "keys",
				   stele_check_window_offset(&w->window,
							     w->page),
				   STELE_BLOCK_SIZE, "%s", why);
}

/* A damaged record that a key leads to: name it. */
static int name_bad(struct walk *w)
{
	const struct stele_key *key = &w->cursor.key;
	struct stele_check_bad *bad = w->sc->bad;
	size_t low = 0, high = w->sc->bad_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bad[middle].number < key->number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == w->sc->bad_count || bad[low].number != key->number ||
	    bad[low].key)
		return 0;
	bad[low].key = malloc(key->key_size);
	if (!bad[low].key)
		return -ENOMEM;
	memcpy(bad[low].key, key->key, key->key_size);
	bad[low].key_size = key->key_size;
	return 0;
}

/* Return: 0; -ENOMEM. */
static int check_entry(struct walk *w)
{
	const struct stele_key *key = &w->cursor.key;
	struct stele_segment_check *sc = w->sc;
	struct stele_check_entry *entry;
	uint64_t state;

	if (key->number < sc->first || key->number - sc->first >= sc->count)
		return 0;
	entry = &sc->entries[key->number - sc->first];
	state = entry->size_and_flags;
	entry->size_and_flags |= STELE_ENTRY_NAMED;
	if (state & STELE_ENTRY_NAMED) {
		sc->keys_damaged = true;
		stele_check_report(sc->check, -EUCLEAN, "keys",
				   stele_check_window_offset(&w->window,
							     w->page),
				   STELE_BLOCK_SIZE,
				   "two keys lead to number %" PRIu64,
				   key->number);
		return 0;
	}
	if (state & STELE_ENTRY_DAMAGED)
		return name_bad(w);
	if (state & STELE_ENTRY_VOID)
		return 0;
	if (entry->key_hash == stele_check_key_hash(key->key, key->key_size) &&
	    (state & STELE_ENTRY_SIZE_MASK) == key->size)
		return 0;
	sc->keys_damaged = true;
	stele_check_report(sc->check, -EUCLEAN, "keys",
			   stele_check_window_offset(&w->window, w->page),
			   STELE_BLOCK_SIZE,
			   "key or size (%" PRIu64 ") of number %" PRIu64
			   " does not match its record (%" PRIu64 ")",
			   key->size, key->number,
			   state & STELE_ENTRY_SIZE_MASK);
	return 0;
}

static const char *check_key(const struct walk *w, bool first)
{
	const struct stele_key *key = &w->cursor.key;

	if (key->number >= w->sc->segment.descriptor.sample_count)
		return "number out of range";
	if (memchr(key->key, '\0', key->key_size))
		return "NUL byte in a key";
	if (first && w->have_last &&
	    stele_key_compare(w->last, w->last_size, key->key,
			      key->key_size) >= 0)
		return "first key does not follow the previous page";
	return NULL;
}

static void add_to_filter(struct walk *w)
{
	const struct stele_key *key = &w->cursor.key;
	const uint32_t size = w->sc->segment.descriptor.filter_size;

	if (size)
		stele_filter_add(w->filter, size,
				 stele_filter_hash(key->key, key->key_size));
}

/* A key that it lacks would not be found. */
static void check_filter(const struct walk *w)
{
	const struct stele_segment *segment = &w->sc->segment;

	if (w->sc->keys_damaged || w->sc->first != 0 || !segment->filter ||
	    !memcmp(w->filter, segment->filter, segment->descriptor.filter_size))
		return;
	stele_check_report(w->sc->check, -EUCLEAN, "filter of keys",
			   w->sc->where->offset, w->sc->where->descriptor_size,
			   "does not match the keys");
}

/* Return: 0, also for a damaged page; -ENOMEM. */
static int walk_page(struct walk *w)
{
	const struct stele_disk_block *block =
		stele_check_window_get(&w->window, w->page);
	const char *why = NULL;
	bool first = true;
	int ret = -EUCLEAN;

	if (block)
		ret = stele_keys_open(&w->cursor, block, &why);
	while (ret >= 0) {
		ret = stele_keys_next(&w->cursor, &why);
		if (ret <= 0)
			break;
		why = check_key(w, first);
		ret = why ? -EUCLEAN : check_entry(w);
		if (ret == -ENOMEM)
			return ret;
		first = false;
		w->total++;
		add_to_filter(w);
	}
	w->sc->keys_damaged |= ret < 0;
	if (ret < 0 && block)
		report(w, why);
	w->have_last = ret == 0;
	if (w->have_last) {
		w->last_size = w->cursor.key.key_size;
		memcpy(w->last, w->cursor.key.key, w->last_size);
	}
	return 0;
}

/* Is there a key for each number of this pass? */
static void check_missing(struct stele_segment_check *sc)
{
	for (uint64_t i = 0; i < sc->count; i++) {
		struct stele_damage damage = {
			.error = -EUCLEAN, .what = "keys",
			.detail = "no key leads to this sample",
		};

		if (sc->entries[i].size_and_flags & STELE_ENTRY_NAMED)
			continue;
		stele_check_sample(sc, sc->first + i, &damage);
	}
}

static void check_total(struct walk *w)
{
	const uint64_t want = w->sc->segment.descriptor.sample_count;

	if (w->sc->keys_damaged || w->sc->first != 0)
		return;
	if (w->total != w->window.section.count || w->total != want)
		stele_check_report(w->sc->check, -EUCLEAN, "keys",
				   stele_check_window_offset(&w->window, 0),
				   w->window.section.size,
				   "%" PRIu64 " keys, expected %" PRIu64,
				   w->total, want);
}

int stele_verify_keys(struct stele_segment_check *sc)
{
	struct walk *w;
	int ret;

	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->sc = sc;
	ret = stele_check_window_open(sc, STELE_BLOCK_KEYS, STELE_NO_FIELD,
				      PAGES_PER_READ, &w->window);
	if (ret < 0)
		goto out;
	while (ret == 0 &&
	       w->page < w->window.section.size / STELE_BLOCK_SIZE) {
		ret = walk_page(w);
		w->page++;
	}
	check_total(w);
	if (ret == 0)
		check_filter(w);
	if (ret == 0 && !sc->keys_damaged)
		check_missing(sc);
out:
	stele_check_window_release(&w->window);
	free(w);
	return ret == -ENOENT ? 0 : ret;
}

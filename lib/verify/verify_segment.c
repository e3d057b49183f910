/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_segment.c - one segment: both descriptors, sections, gaps, records
 *
 * Records and keys meet in an array of 16 bytes per number. It has at
 * most PASS_SAMPLES entries (256 MiB): a larger segment is checked
 * in several passes, each of which walks all keys again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"
#include "lib/verify/check.h"

#define PASS_SAMPLES	   (UINT64_C(1) << 24) /* whole words of deleted lists */
#define BAD_MAX		   65536u
#define DESCRIPTOR_BLOCKS  64u /* read at a time */

/* ---- descriptors ----------------------------------------------------------- */

/* One block of one copy. */
static void check_descriptor_block(struct stele_check *check,
				   struct stele_disk_block *block,
				   uint64_t offset, uint64_t id, bool *sound)
{
	const char *why = "cannot be read";
	int ret;

	ret = stele_check_read(check, block, offset, STELE_BLOCK_SIZE);
	if (ret == 0)
		ret = stele_block_check(block, STELE_BLOCK_DESCRIPTOR, offset,
					id, &why);
	if (ret == 0)
		return;
	*sound = false;
	stele_check_report(check, ret, "descriptor", offset, STELE_BLOCK_SIZE,
			   "%s", why);
}

static int check_descriptors(struct stele_check *check,
			     const struct stele_catalog_segment *where)
{
	const uint64_t size = where->descriptor_size;
	const uint64_t last = where->offset + where->size - size;
	struct stele_disk_block *blocks;

	blocks = stele_device_alloc(check->image->dev, 2 * STELE_BLOCK_SIZE);
	if (!blocks)
		return -ENOMEM;
	for (uint64_t at = 0; at < size; at += STELE_BLOCK_SIZE) {
		bool sound = true;

		check_descriptor_block(check, &blocks[0], where->offset + at,
				       where->id, &sound);
		check_descriptor_block(check, &blocks[1], last + at, where->id,
				       &sound);
		if (sound && memcmp(blocks[0].payload, blocks[1].payload,
				    STELE_BLOCK_PAYLOAD) != 0)
			stele_check_report(check, -EUCLEAN, "descriptor",
					   last + at, STELE_BLOCK_SIZE,
					   "differs from its first copy");
	}
	free(blocks);
	return stele_check_progress(check, 2 * size,
				    2 * size / STELE_BLOCK_SIZE, 0);
}

/* *sound: snapshots may be made of it. */
static int load(struct stele_segment_check *sc, bool *sound)
{
	struct stele_check *check = sc->check;
	const struct stele_catalog_segment *where = sc->where;
	const uint64_t damaged = check->report->damaged;
	int ret;

	ret = check_descriptors(check, where);
	if (ret < 0)
		return ret;
	ret = stele_segment_load_bare(check->image, where, &sc->segment);
	if (ret == -ENOMEM)
		return ret;
	if (ret < 0) {
		check->segments_broken = true;
		if (check->report->damaged == damaged)
			stele_check_report(check, ret, "descriptor",
					   where->offset,
					   where->descriptor_size,
					   "impossible contents");
		return -ENODATA;
	}
	ret = stele_segment_load_schema(check->image, &sc->segment);
	*sound = ret == 0;
	if (ret == -ENOMEM)
		return ret;
	if (ret < 0) {
		check->segments_broken = true;
		stele_check_report(check, ret, "schema", where->offset,
				   where->descriptor_size,
				   ret == -EBADMSG ?
					   "digest of fields and names differs" :
					   "class names cannot be read");
	}
	return 0;
}

/* ---- what snapshots say about it --------------------------------------------- */

/* Load one more list, and take it into `voids`, a copy of the first. */
static int add_deleted(struct stele_segment_check *sc,
		       struct stele_check_list *list, bool first)
{
	struct stele_deleted all = {0}, both = {0};
	int ret = stele_check_list_load(sc->check, list);

	list->counted = true;
	if (ret < 0) { /* reported with its snapshot */
		sc->void_any = true;
		return ret == -ENOMEM ? ret : 0;
	}
	ret = stele_check_list_all(list, &all);
	if (ret == 0)
		ret = stele_deleted_combine(first ? &all : &sc->voids, &all,
					    STELE_DELETED_AND, &both);
	stele_deleted_release(&all);
	if (ret < 0)
		return ret;
	stele_deleted_release(&sc->voids);
	sc->voids = both;
	return 0;
}

/* All snapshots that refer to the segment. */
static int look_at_snapshots(struct stele_segment_check *sc)
{
	const struct stele_check *check = sc->check;
	const uint32_t first = check->first_ref[sc->index];
	const uint32_t end = check->first_ref[sc->index + 1];
	bool none = false;
	int ret = 0;

	for (uint32_t i = first; i < end && ret == 0; i++) {
		const struct stele_check_ref *ref = &check->refs[i];

		none |= !ref->list;
		if (ref->list && !ref->list->counted)
			ret = add_deleted(sc, ref->list, i == first);
	}
	if (none)
		stele_deleted_release(&sc->voids);
	sc->void_any |= first == end;
	return ret;
}

/* ---- gaps ---------------------------------------------------------------------- */

/* All except those between slots, which the scan of the records covers. */
static int check_gaps(struct stele_segment_check *sc)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;
	const uint64_t own = sc->where->descriptor_size;
	uint64_t end = d->slots_offset + d->slots_size;
	struct stele_section section;
	int ret;

	ret = stele_check_zero(sc->check, d->offset + own,
			       d->slots_offset - own);
	for (uint32_t i = 0; i < d->section_count && ret == 0; i++) {
		stele_descriptor_section(d, i, &section);
		ret = stele_check_zero(sc->check, d->offset + end,
				       section.offset - end);
		end = section.offset + section.size;
	}
	if (ret == 0)
		ret = stele_check_zero(sc->check, d->offset + end,
				       d->size - own - end);
	return ret;
}

/* ---- damaged records ------------------------------------------------------------ */

/* All lists are loaded, or cannot be. */
static bool find_id(const struct stele_segment_check *sc,
		    const struct stele_check_ref *ref, uint64_t number,
		    uint64_t *id)
{
	uint64_t below, deleted = 0;

	if ((sc->snapshot >= 0 && ref->snapshot != sc->snapshot) ||
	    (ref->list && (!ref->list->tried || ref->list->error)))
		return false;
	for (const struct stele_check_list *l = ref->list; l; l = l->first) {
		if (stele_deleted_has(&l->deleted, number, &below))
			return false;
		deleted += below;
	}
	*id = ref->first_id + number - deleted;
	return true;
}

void stele_check_sample(const struct stele_segment_check *sc, uint64_t number,
			struct stele_damage *damage)
{
	const struct stele_check *check = sc->check;
	const uint32_t first = check->first_ref[sc->index];
	struct stele_catalog_snapshot info;
	uint32_t i = check->first_ref[sc->index + 1];

	stele_segment_slot(&sc->segment, number, &damage->offset,
			   &damage->item_size);
	while (i-- > first && !damage->has_id) {
		damage->has_id = find_id(sc, &check->refs[i], number, &damage->id);
		if (!damage->has_id)
			continue;
		stele_catalog_snapshot(&check->image->catalog,
				       check->refs[i].snapshot, &info);
		damage->snapshot = info.name;
	}
	stele_check_damage(sc->check, damage);
}

static void report_bad(struct stele_segment_check *sc,
		       const struct stele_check_bad *bad)
{
	struct stele_damage damage = {
		.error = bad->error, .what = "record", .key = bad->key,
		.key_size = bad->key_size, .detail = bad->detail,
	};

	stele_check_sample(sc, bad->number, &damage);
}

void stele_check_bad(struct stele_segment_check *sc, uint64_t number, int error,
		     const char *format, ...)
{
	struct stele_check_bad bad = {.number = number, .error = error};
	bool kept;
	va_list args;

	va_start(args, format);
	vsnprintf(bad.detail, sizeof(bad.detail), format, args);
	va_end(args);
	pthread_mutex_lock(&sc->check->lock);
	kept = sc->bad_count < BAD_MAX;
	if (kept)
		sc->bad[sc->bad_count++] = bad;
	pthread_mutex_unlock(&sc->check->lock);
	if (!kept)
		report_bad(sc, &bad);
}

static int by_number(const void *a, const void *b)
{
	const struct stele_check_bad *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static void report_all_bad(struct stele_segment_check *sc)
{
	for (size_t i = 0; i < sc->bad_count; i++) {
		report_bad(sc, &sc->bad[i]);
		free(sc->bad[i].key);
	}
	sc->bad_count = 0;
}

/* ---- records and keys ------------------------------------------------------------ */

/* Payload that a list deletes, among the samples of this pass. */
static void sum_list(const struct stele_segment_check *sc,
		     struct stele_check_list *list)
{
	const struct stele_deleted *d = &list->deleted;
	const uint64_t end = sc->first + sc->count;

	for (; list->next < d->word_count; list->next++) {
		const uint64_t first = d->words[list->next].index *
				       STELE_DELETED_PER_WORD;
		uint64_t bits = d->words[list->next].bits;

		if (first >= end)
			return;
		for (; bits; bits &= bits - 1)
			list->payload_size +=
				sc->entries[first - sc->first +
					    (uint64_t)__builtin_ctzll(bits)]
					.size_and_flags &
				STELE_ENTRY_SIZE_MASK;
	}
}

/* Payload that each list deletes, among the samples of this pass. */
static void sum_lists(struct stele_segment_check *sc)
{
	const struct stele_check *check = sc->check;

	for (uint32_t i = check->first_ref[sc->index];
	     i < check->first_ref[sc->index + 1]; i++) {
		struct stele_check_list *list = check->refs[i].list;

		for (; list; list = list->first)
			sum_list(sc, list);
	}
}

static int check_pass(struct stele_segment_check *sc)
{
	int ret;

	ret = stele_verify_records(sc);
	if (ret == 0)
		sum_lists(sc);
	if (ret == 0) {
		qsort(sc->bad, sc->bad_count, sizeof(*sc->bad), by_number);
		ret = stele_verify_keys(sc);
	}
	report_all_bad(sc);
	return ret;
}

static void check_sums(struct stele_segment_check *sc)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;

	if (sc->records_damaged)
		return;
	if (sc->payload_size != d->payload_size)
		stele_check_report(sc->check, -EUCLEAN, "descriptor", d->offset,
				   sc->where->descriptor_size,
				   "payload of %" PRIu64
				   " bytes, expected %" PRIu64,
				   sc->payload_size, d->payload_size);
	if (sc->records_size != d->records_size)
		stele_check_report(sc->check, -EUCLEAN, "descriptor", d->offset,
				   sc->where->descriptor_size,
				   "records of %" PRIu64
				   " bytes, expected %" PRIu64,
				   sc->records_size, d->records_size);
}

static int check_samples(struct stele_segment_check *sc)
{
	const uint64_t total = sc->segment.descriptor.sample_count;
	const uint64_t most = total < PASS_SAMPLES ? total : PASS_SAMPLES;
	int ret = 0;

	if (total == 0)
		return 0;
	sc->entries = malloc(most * sizeof(*sc->entries));
	sc->bad = malloc((most < BAD_MAX ? most : BAD_MAX) * sizeof(*sc->bad));
	if (!sc->entries || !sc->bad)
		return -ENOMEM;
	for (; sc->first < total && ret == 0; sc->first += sc->count) {
		uint64_t left = total - sc->first;

		sc->count = left < PASS_SAMPLES ? left : PASS_SAMPLES;
		memset(sc->entries, 0, sc->count * sizeof(*sc->entries));
		ret = check_pass(sc);
	}
	if (ret == 0)
		check_sums(sc);
	return ret;
}

/* What snapshots are made of. */
static void hand_over(struct stele_segment_check *sc,
		      struct stele_check_segment *to)
{
	to->segment = sc->segment;
	to->has_sizes = to->sound && !sc->records_damaged;
}

/* The snapshot to name with what is damaged in a segment: `asked`, else the newest. */
static const char *find_snapshot(const struct stele_check *check, uint32_t index,
				 int64_t asked, struct stele_catalog_snapshot *out)
{
	const uint32_t end = check->first_ref[index + 1];

	if (asked < 0 && end == check->first_ref[index])
		return NULL;
	stele_catalog_snapshot(&check->image->catalog,
			       asked < 0 ? check->refs[end - 1].snapshot : (uint32_t)asked, out);
	return out->name;
}

int stele_verify_segment(struct stele_check *check, uint32_t index,
			 int64_t snapshot)
{
	struct stele_catalog_snapshot info;
	struct stele_catalog_segment where;
	struct stele_segment_check sc = {.check = check, .where = &where,
					 .index = index, .snapshot = snapshot};
	int ret;

	stele_catalog_segment(&check->image->catalog, index, &where);
	check->report->segments++;
	check->within = find_snapshot(check, index, snapshot, &info);
	ret = load(&sc, &check->segments[index].sound);
	if (ret == 0)
		ret = look_at_snapshots(&sc);
	if (ret == 0)
		ret = stele_verify_sections(&sc);
	if (ret == 0)
		ret = check_gaps(&sc);
	if (ret == 0)
		ret = check_samples(&sc);
	check->within = NULL;
	stele_deleted_release(&sc.voids);
	free(sc.entries);
	free(sc.bad);
	hand_over(&sc, &check->segments[index]);
	return ret == -ENODATA ? 0 : ret;
}

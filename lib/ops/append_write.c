/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append_write.c - what is new becomes a segment, what is gone goes on lists
 *
 * Lists of segments from which nothing more went are referred to again. A
 * segment that has no live sample any more is left out, so that gc may have
 * it; but the last one, whose fields are all that is known then.
 */
#include "lib/ops/append_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/deleted.h"
#include "lib/image/section.h"
#include "lib/segment/sort.h"

/* ---- prepare ------------------------------------------------------------------ */

static int find_base(struct stele_append *append, const char *name,
		     uint32_t *index)
{
	const struct stele_log *log = &append->builder->log;
	const char *wanted = append->builder->opts.base;
	struct stele_edit *edit = append->edit;
	const struct stele_edit_snapshot *base;

	if (stele_edit_snapshot(edit, name)) {
		stele_log_error(log, "there is a snapshot '%s' already", name);
		return -EEXIST;
	}
	base = stele_edit_snapshot(edit, wanted);
	if (!base) {
		if (wanted)
			stele_log_error(log, "no snapshot '%s' to append to",
					wanted);
		else
			stele_log_error(log, "no snapshot to append to");
		return -ENOENT;
	}
	return stele_snapshot_find(edit->image, base->name, NULL, index);
}

/* A file that changed before this time is what the base has. */
static int64_t settled_since(const struct stele_append *append,
			     int64_t source_time)
{
	if (!(append->builder->opts.flags & STELE_BUILD_QUICK))
		return INT64_MIN;
	if (source_time && source_time <= time(NULL))
		return source_time;
	stele_log_warning(&append->builder->log,
			  "since when the source is as in '%s' is not known: "
			  "every file is read",
			  append->base.snapshot.info.name);
	return INT64_MIN;
}

/*
 * Does the new snapshot have all of the source as it is now? Not if changes were
 * not asked for, or if samples of the base were not in this source: they may
 * be in another one, and have changed there.
 */
static bool is_synced(const struct stele_append *append)
{
	const struct stele_comparison *c = &append->comparison;
	const uint64_t *skipped = append->report->build.skipped;

	return append->builder->opts.flags & STELE_BUILD_UPDATE &&
	       !skipped[STELE_SKIP_UNREADABLE] &&
	       !skipped[STELE_SKIP_VANISHED] && !skipped[STELE_SKIP_CHANGED] &&
	       c->unchanged + c->updated + c->deleted ==
		       append->base.snapshot.sample_count;
}

static void fill_report(struct stele_append *append)
{
	const struct stele_comparison *c = &append->comparison;
	const struct stele_snapshot *base = &append->base.snapshot;
	struct stele_append_report *report = append->report;

	report->added = c->added;
	report->updated = c->updated;
	report->deleted = c->deleted;
	report->unchanged = base->sample_count - c->updated - c->deleted;
	report->sample_count = base->sample_count - c->deleted + c->added;
}

int stele_append_prepare(struct stele_append *append,
			 struct stele_builder *builder,
			 const struct stele_source *source, struct stele_edit *edit,
			 const char *name, struct stele_append_report *report)
{
	uint32_t index;
	int ret;

	*append = (struct stele_append){
		.builder = builder,
		.source = source,
		.edit = edit,
		.report = report,
	};
	stele_plan_init(&append->plan, builder);
	ret = find_base(append, name, &index);
	append->base.image = edit->image;
	if (!ret)
		ret = stele_snapshot_load(edit->image, index,
					  &append->base.snapshot);
	if (ret < 0)
		return ret;
	memcpy(report->base, append->base.snapshot.info.name,
	       sizeof(report->base) - 1);
	append->plan.table.since = settled_since(
		append, append->base.snapshot.info.source_time);
	ret = stele_plan_scan(&append->plan, builder, source,
			      &append->base.snapshot);
	if (!ret)
		ret = stele_compare(&append->comparison, builder, &append->plan,
				    source, &append->base);
	if (ret < 0)
		return ret;
	fill_report(append);
	stele_table_filter(&append->plan.table);
	if (!append->plan.table.count)
		return 0;
	return stele_plan_layout(&append->plan, builder);
}

void stele_append_release(struct stele_append *append)
{
	stele_written_release(&append->written);
	stele_comparison_release(&append->comparison);
	stele_plan_release(&append->plan);
	stele_snapshot_release(&append->base.snapshot);
	memset(append, 0, sizeof(*append));
}

/* ---- what went away meanwhile ---------------------------------------------------- */

static int compare_numbers(const void *a, const void *b, void *user)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	(void)user;
	return (x > y) - (x < y);
}

static int sort_drops(struct stele_append *append)
{
	int ret = 0;

	for (uint32_t i = 0; i < append->comparison.segment_count && !ret;
	     i++) {
		struct stele_drops *drops = &append->comparison.drops[i];

		ret = stele_sort(&drops->numbers, drops->count,
				 sizeof(uint64_t), compare_numbers, NULL, NULL);
	}
	return ret;
}

/* Take a sample off a sorted list. False: it is not there. */
static bool take_back(struct stele_drops *drops, uint64_t number, uint64_t size)
{
	uint64_t *list = drops->numbers.data, at;

	at = stele_deleted_below(list, drops->count, number);
	if (at == drops->count || list[at] != number)
		return false;
	drops->count--;
	drops->payload_size -= size;
	memmove(list + at, list + at + 1, (drops->count - at) * sizeof(*list));
	return true;
}

/* The sample of a key that was to be replaced stays, for want of a newer one. */
static int revive(struct stele_append *append,
		  const struct stele_source_entry *entry)
{
	const struct stele_snapshot *base = &append->base.snapshot;

	for (uint32_t i = 0; i < base->segment_count; i++) {
		uint64_t number, size;
		int ret = stele_segment_find_key(append->base.image,
						 &base->segments[i], entry->key,
						 entry->key_size, &number,
						 &size);

		if (ret < 0 && ret != -ENOENT)
			return ret;
		if (!ret && take_back(&append->comparison.drops[i], number, size))
			break;
	}
	return 0;
}

static int settle_voids(struct stele_append *append)
{
	const struct stele_void *voids = append->written.voids.data;
	struct stele_append_report *report = append->report;
	int ret = 0;

	for (uint64_t i = 0; i < append->written.void_count && !ret; i++) {
		struct stele_plan_sample sample;

		stele_plan_sample(&append->plan, voids[i].number, &sample);
		if (stele_table_marked(&append->plan.table, sample.ordinal,
				       STELE_MARK_REPLACES)) {
			ret = revive(append, &sample.entry);
			report->updated--;
			report->unchanged++;
		} else {
			report->added--;
			report->sample_count--;
		}
	}
	return ret;
}

/* ---- the new snapshot ---------------------------------------------------------- */

/* What is put together. Segments are views, but for the lists in `lists`. */
struct making {
	struct stele_append *append;
	struct stele_edit_snapshot edit;
	struct stele_snapshot snapshot;
	uint64_t **lists; /* owned, by reference */
};

static int making_init(struct making *making, struct stele_append *append)
{
	const size_t most = (size_t)append->base.snapshot.segment_count + 1;

	*making = (struct making){.append = append};
	making->edit.refs = calloc(most, sizeof(*making->edit.refs));
	making->snapshot.segments =
		calloc(most, sizeof(*making->snapshot.segments));
	making->lists = calloc(most, sizeof(*making->lists));
	return making->edit.refs && making->snapshot.segments &&
			       making->lists ?
		       0 :
		       -ENOMEM;
}

static void making_release(struct making *making)
{
	for (uint32_t i = 0; making->lists && i < making->edit.ref_count; i++)
		free(making->lists[i]);
	free(making->lists);
	free(making->edit.refs);
	free(making->snapshot.segments);
}

static void add_ref(struct making *making, const struct stele_segment *segment,
		    const struct stele_edit_ref *ref)
{
	const uint32_t at = making->edit.ref_count++;

	making->edit.refs[at] = *ref;
	making->snapshot.segments[at] = *segment;
	making->snapshot.segment_count = making->edit.ref_count;
	making->snapshot.sample_count += segment->live_count;
}

/* The last one leaves out these numbers, too: strictly ascending, not empty. */
static int add_list(struct making *making, uint64_t *list, uint64_t count)
{
	const uint32_t at = making->edit.ref_count - 1;
	struct stele_segment *segment = &making->snapshot.segments[at];

	making->snapshot.sample_count -= count - segment->deleted_count;
	segment->live_count -= count - segment->deleted_count;
	segment->deleted = list;
	segment->deleted_count = count;
	segment->deleted_digest = NULL;
	making->lists[at] = list;
	return stele_edit_write_deleted(making->append->edit,
					&making->edit.refs[at], list, count);
}

static int add_old_segment(struct making *making, uint32_t index,
			   const struct stele_edit_ref *ref)
{
	const struct stele_segment *segment =
		&making->append->base.snapshot.segments[index];
	const struct stele_drops *drops =
		&making->append->comparison.drops[index];
	uint64_t *list;

	add_ref(making, segment, ref);
	if (!drops->count)
		return 0;
	list = stele_deleted_merge(segment->deleted, segment->deleted_count,
				   drops->numbers.data, drops->count);
	if (!list)
		return -ENOMEM;
	return add_list(making, list, segment->deleted_count + drops->count);
}

static bool has_live(const struct stele_append *append, uint32_t index)
{
	return append->base.snapshot.segments[index].live_count >
	       append->comparison.drops[index].count;
}

static int add_old_segments(struct making *making, bool others_follow)
{
	struct stele_append *append = making->append;
	const uint32_t count = append->base.snapshot.segment_count;
	/* Catalog and edit have the same references in the same order. */
	const struct stele_edit_ref *refs =
		stele_edit_snapshot(append->edit,
				    append->base.snapshot.info.name)->refs;
	int ret = 0;

	for (uint32_t i = 0; i < count && !ret; i++) {
		const struct stele_drops *drops = &append->comparison.drops[i];
		bool last = i + 1 == count && !making->edit.ref_count &&
			    !others_follow;

		/* One that lived no more in the base is none of our changes. */
		if (has_live(append, i) || !drops->count || last)
			ret = add_old_segment(making, i, &refs[i]);
	}
	return ret;
}

static int add_new_segment(struct making *making)
{
	const struct stele_append *append = making->append;
	const struct stele_written *written = &append->written;
	const struct stele_segment segment = {
		.descriptor = append->plan.descriptor,
		.live_count = append->plan.descriptor.sample_count,
	};
	const struct stele_edit_ref ref = {.segment_id = segment.descriptor.id};
	uint64_t *list;

	add_ref(making, &segment, &ref);
	if (!written->void_count)
		return 0;
	list = malloc(written->void_count * sizeof(*list));
	if (!list)
		return -ENOMEM;
	stele_written_voids(written, list);
	return add_list(making, list, written->void_count);
}

/* What the base has, less what is dropped, and what is new. */
static int sum_payloads(const struct stele_append *append, uint64_t *sum)
{
	const struct stele_comparison *c = &append->comparison;
	uint64_t dropped = 0;
	int ret;

	for (uint32_t i = 0; i < c->segment_count; i++)
		dropped += c->drops[i].payload_size;
	ret = stele_snapshot_payload_without(append->base.image,
					     &append->base.snapshot, dropped,
					     sum);
	if (ret == 0)
		*sum += append->plan.descriptor.payload_size;
	return ret;
}

static int add_snapshot(struct making *making, const char *name)
{
	struct stele_append *append = making->append;
	const struct stele_build_opts *opts = &append->builder->opts;
	struct stele_edit_snapshot *edit = &making->edit;
	int ret = stele_snapshot_compute_digest(&making->snapshot);

	if (ret == 0)
		ret = sum_payloads(append, &edit->payload_size);
	if (ret < 0)
		return ret;
	strncpy(edit->name, name, sizeof(edit->name) - 1);
	edit->parent = append->base.snapshot.info.id;
	edit->time = opts->time;
	edit->source_time = is_synced(append) ?
				    stele_builder_source_time(append->builder) :
				    append->base.snapshot.info.source_time;
	edit->sample_count = making->snapshot.sample_count;
	edit->note = (char *)opts->note; /* is copied */
	edit->note_size = opts->note ? (uint32_t)strlen(opts->note) : 0;
	memcpy(edit->digest, making->snapshot.digest, sizeof(edit->digest));
	memcpy(append->report->build.digest, edit->digest,
	       sizeof(edit->digest));
	return stele_edit_add_snapshot(append->edit, edit);
}

static int make_snapshot(struct stele_append *append, const char *name)
{
	const bool any = append->plan.descriptor.sample_count >
			 append->written.void_count;
	struct making making;
	int ret = making_init(&making, append);

	if (!ret)
		ret = add_old_segments(&making, any);
	if (!ret && any)
		ret = add_new_segment(&making);
	else if (!ret && append->plan.descriptor.sample_count)
		ret = stele_edit_drop_segment(append->edit,
					      append->plan.descriptor.id);
	if (!ret)
		ret = add_snapshot(&making, name);
	making_release(&making);
	return ret;
}

int stele_append_write(struct stele_append *append, const char *name)
{
	int ret = 0;

	if (append->plan.table.count) {
		ret = stele_written_init(&append->written, &append->plan);
		if (!ret)
			ret = stele_plan_write(append->builder, &append->plan,
					       append->source, append->edit,
					       &append->written);
	}
	if (!ret)
		ret = stele_builder_phase(append->builder, STELE_PHASE_COMMIT,
					  0, 0);
	if (!ret)
		ret = sort_drops(append);
	if (!ret)
		ret = settle_voids(append);
	return ret ? ret : make_snapshot(append, name);
}

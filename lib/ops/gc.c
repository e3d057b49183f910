/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.c - the space of what no snapshot uses
 *
 * Freeing is forgetting: the catalog drops the segments, and lists their space
 * as free. After one commit the other superblock slot still leads to the old
 * catalog, so nothing may be written there yet; a second one, which changes
 * nothing, makes the space good for the next append, and for a discard. That one
 * is made whenever an older slot leads to more than the newest: who was killed
 * between the two leaves it to the next.
 *
 * Space is discarded only where neither slot leads to, and only when both commits
 * are durable; and like what is written, it is said before: see intent.h.
 */
#include "lib/ops/gc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/image/snapshot.h"
#include "lib/node/open.h"
#include "lib/txn/intent.h"
#include "lib/txn/withdrawn.h"

/* Of what is discarded at once: so many parts of an image at least. */
#define PIECES	       16u
#define PIECE_SIZE_MIN (UINT64_C(1) << 20)
#define PIECE_SIZE_MAX (UINT64_C(1) << 30)

struct collection {
	struct stele_image *image;
	struct stele_writer *writer; /* NULL: a dry run */
	const struct stele_change *change;
	int64_t now;
	stele_gc_fn fn;
	void *user;
	struct stele_gc_report *report;
	char **shots; /* owned: withdrawn ones whose time has come */
	size_t shot_count;
	uint64_t *due; /* owned: ids of segments */
	uint32_t due_count;
};

/* Unused since then: may it go? */
static bool is_due(const struct collection *c, int64_t since)
{
	const struct stele_change_opts *opts = &c->change->opts;

	if (opts->flags & STELE_CHANGE_FORCE)
		return true;
	return opts->grace && c->now >= since &&
	       (uint64_t)c->now - (uint64_t)since >= opts->grace;
}

static void report_item(struct collection *c, const struct stele_gc_item *item)
{
	c->report->unused_count++;
	c->report->unused_size += item->size;
	if (item->due) {
		c->report->freed_count++;
		c->report->freed_size += item->size;
	}
	if (c->fn)
		c->fn(c->user, item);
}

/* ---- segments ------------------------------------------------------------------- */

/* Which ones does a snapshot refer to? By index, malloced. */
static bool *find_used(const struct stele_image *image)
{
	const struct stele_catalog *catalog = &image->catalog;
	bool *used = calloc((size_t)catalog->counts.segments + 1, 1);

	for (uint32_t i = 0; used && i < catalog->counts.refs; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(catalog, i, &ref);
		used[ref.segment] = true;
	}
	return used;
}

static int look_at_segments(struct collection *c)
{
	const struct stele_catalog *catalog = &c->image->catalog;
	bool *used = find_used(c->image);

	c->due = calloc((size_t)catalog->counts.segments + 1, sizeof(*c->due));
	if (!used || !c->due) {
		free(used);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		struct stele_catalog_segment segment;
		struct stele_gc_item item;

		if (used[i])
			continue;
		stele_catalog_segment(catalog, i, &segment);
		item = (struct stele_gc_item){
			.segment_id = segment.id,
			.offset = segment.offset,
			.size = segment.size,
			.sample_count = segment.sample_count,
			.unused_since = segment.unused_since,
			.due = is_due(c, segment.unused_since),
		};
		if (item.due)
			c->due[c->due_count++] = segment.id;
		report_item(c, &item);
	}
	free(used);
	return 0;
}

static int commit(struct collection *c)
{
	return stele_writer_commit(c->writer, c->change->opts.time);
}

/* Two commits go over all four superblock copies. */
static int free_kept(struct collection *c)
{
	uint64_t kept;
	int ret;

	for (unsigned int i = 0; i < 2; i++) {
		ret = stele_image_kept_size(c->image, &kept);
		if (ret < 0 || !kept)
			return ret;
		if (i == 0 && !c->due_count)
			c->report->finished_size = kept;
		ret = commit(c);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int free_segments(struct collection *c)
{
	int ret = 0;

	for (uint32_t i = 0; i < c->due_count && ret == 0; i++)
		ret = stele_edit_drop_segment(&c->writer->edit, c->due[i]);
	if (ret == 0 && c->due_count)
		ret = commit(c);
	return ret == 0 ? free_kept(c) : ret;
}

/* ---- withdrawn shots --------------------------------------------------------------- */

static int look_at_shot(void *user, const struct stele_shot *shot)
{
	struct collection *c = user;
	struct stele_gc_item item = {0};
	char **larger;
	int64_t until;
	uint32_t index;

	if (!stele_withdrawn_parse(shot->name, &until, NULL))
		return 0;
	/* Whatever it is called: the catalog says what it is. */
	if (stele_snapshot_find(c->image, shot->name, NULL, &index) == 0)
		return 0;
	item.name = shot->name;
	item.unused_since = until;
	item.due = (c->change->opts.flags & STELE_CHANGE_FORCE) ||
		   c->now >= until;
	report_item(c, &item);
	if (!item.due)
		return 0;
	larger = realloc(c->shots, (c->shot_count + 1) * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	c->shots = larger;
	c->shots[c->shot_count] = strdup(shot->name);
	return c->shots[c->shot_count++] ? 0 : -ENOMEM;
}

static int look_at_shots(struct collection *c)
{
	const struct stele_shot_ops *shots = stele_device_shots(c->image->dev);

	return shots ? shots->each(c->image->dev, look_at_shot, c) : 0;
}

static int remove_shots(struct collection *c)
{
	int ret = 0;

	for (size_t i = 0; i < c->shot_count && ret == 0; i++)
		ret = stele_withdrawn_remove(c->image->dev, &c->change->log,
					     c->shots[i]);
	return ret;
}

/* ---- space --------------------------------------------------------------------------- */

/* What a commit wrote to ahead of the next one stays. */
static int keep_next_place(struct collection *c, struct stele_extents *used)
{
	uint64_t offset, size;
	int ret;

	if (!stele_device_shots(c->image->dev))
		return 0;
	ret = stele_edit_next_place(&c->writer->edit, used, &offset, &size);
	if (ret == 0)
		ret = stele_extents_add(used, offset, size);
	return ret == -ENOSPC ? 0 : ret;
}

/* A power of two; storage that keeps other writers out has no use for pieces. */
static uint64_t piece_size(const struct stele_image *image)
{
	uint64_t size = PIECE_SIZE_MIN;

	if (!image->dev->permit)
		return STELE_IMAGE_SIZE_MAX;
	while (size < PIECE_SIZE_MAX && size * PIECES <= image->sb.image_size / 2)
		size *= 2;
	return size;
}

/*
 * Said on the target before it is done: who takes over meanwhile keeps off it. So it
 * is a piece at a time, and the others are left to him.
 */
static int discard(struct collection *c, uint64_t offset, uint64_t size)
{
	struct stele_device *dev = c->image->dev;
	int ret = stele_intent_reserve(dev, c->image->generation_max + 1,
				       offset, size);

	if (ret == 0)
		ret = stele_device_discard(dev, offset, size);
	stele_intent_settle(dev);
	return ret;
}

static int discard_gap(struct collection *c, const struct stele_catalog_free *gap)
{
	const uint64_t piece = piece_size(c->image);
	uint64_t at = gap->offset, end = gap->offset + gap->size, next;
	int ret = 0;

	for (; at < end && ret == 0; at = next) {
		next = round_down(at, piece) + piece;
		if (next > end)
			next = end;
		ret = discard(c, at, next - at);
	}
	return ret;
}

static int discard_free(struct collection *c)
{
	struct stele_extents used = {0}, gaps = {0};
	int ret = stele_extents_add_copies(&used, c->image);

	if (ret == 0)
		ret = keep_next_place(c, &used);
	if (ret == 0)
		ret = stele_extents_gaps(&used, c->image->sb.image_size, &gaps);
	for (uint32_t i = 0; i < gaps.count && ret == 0; i++)
		ret = discard_gap(c, &gaps.list[i]);
	/* He who took over during the last one had better be known, too. */
	if (ret == 0)
		ret = stele_intent_confirm(c->image->dev);
	stele_extents_release(&gaps);
	stele_extents_release(&used);
	if (ret < 0)
		stele_log_error(&c->change->log,
				"the free space cannot be discarded: %s",
				stele_strerror(ret));
	return ret;
}

static void sum_free(struct collection *c)
{
	const struct stele_catalog *catalog = &c->image->catalog;

	for (uint32_t i = 0; i < catalog->counts.free; i++) {
		struct stele_catalog_free extent;

		stele_catalog_free(catalog, i, &extent);
		c->report->free_size += extent.size;
	}
}

int stele_gc_run(struct stele_image *image, struct stele_writer *writer,
		 const struct stele_change *change, stele_gc_fn fn, void *user,
		 struct stele_gc_report *report)
{
	struct collection c = {
		.image = image,
		.writer = writer,
		.change = change,
		.now = change->opts.time,
		.fn = fn,
		.user = user,
		.report = report,
	};
	int ret;

	memset(report, 0, sizeof(*report));
	ret = look_at_segments(&c);
	if (ret == 0)
		ret = look_at_shots(&c);
	if (ret == 0 && writer)
		ret = free_segments(&c);
	if (ret == 0 && writer)
		ret = remove_shots(&c);
	if (ret == 0 && writer && (change->opts.flags & STELE_CHANGE_DISCARD))
		ret = discard_free(&c);
	sum_free(&c);
	for (size_t i = 0; i < c.shot_count; i++)
		free(c.shots[i]);
	free(c.shots);
	free(c.due);
	return ret;
}

static int only_look(const char *target, const struct stele_change *change,
		     stele_gc_fn fn, void *user, struct stele_gc_report *report)
{
	struct stele_image image = {0};
	struct stele_target parsed = {0};
	struct stele_device *dev;
	int ret = stele_target_open(target, true, change->opts.backend,
				    &change->log, &parsed, &dev);

	if (ret < 0)
		return ret;
	ret = stele_image_load(dev, &change->log, &image);
	if (ret < 0)
		stele_device_close(dev);
	else
		ret = stele_image_check_writable(&image);
	if (ret == 0)
		ret = stele_gc_run(&image, NULL, change, fn, user, report);
	stele_image_release(&image);
	stele_target_release(&parsed);
	return ret;
}

static int gc(const char *target, const struct stele_change_opts *opts,
	      stele_gc_fn fn, void *user, struct stele_gc_report *report)
{
	struct stele_gc_report unwanted;
	struct stele_writer writer = {0};
	struct stele_change change;
	int ret = stele_change_init(&change, opts,
				    STELE_CHANGE_FORCE | STELE_CHANGE_APPLY |
					    STELE_CHANGE_DISCARD);

	if (!report)
		report = &unwanted;
	memset(report, 0, sizeof(*report));
	if (ret < 0)
		return ret;
	if (!(change.opts.flags & STELE_CHANGE_APPLY))
		return only_look(target, &change, fn, user, report);
	if (!change.opts.grace && !(change.opts.flags & STELE_CHANGE_FORCE)) {
		stele_log_error(&change.log,
				"who reads '%s' cannot be seen: give them time "
				"with a grace period, or use force",
				target);
		return -EBUSY;
	}
	ret = stele_writer_open(&writer, target, change.opts.backend,
				&change.log);
	if (ret == 0)
		ret = stele_gc_run(&writer.image, &writer, &change, fn, user,
				   report);
	stele_writer_close(&writer);
	return ret;
}

int stele_gc(const char *target, const struct stele_change_opts *opts,
	     stele_gc_fn fn, void *user, struct stele_gc_report *report)
{
	return STELE_CALL(gc(target, opts, fn, user, report),
			  "cannot free space of '%s'", target);
}

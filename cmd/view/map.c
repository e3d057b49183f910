/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - what lies where on a target, to scale
 *
 * A strip is drawn kind by kind, the rarer ones over the others. All strips have the same scale
 * and width, so that what stands below each other is the same place; only the first one shows
 * the whole target, if most of it is empty.
 */
#include "view/map.h"

#include <inttypes.h>
#include <stdlib.h>

#include "text.h"

#define STRIP_HEIGHT 28
#define CUT_GAP	     4.0  /* units between lines that part segments */
#define LISTED_MAX   200u /* parts that are listed */

/* Of strips, the later over the earlier; what is FREE or after it is background. */
enum kind { OWN, OTHER, TREE, META, FIXED, UNUSED, FREE, NEVER, KINDS };

static const struct {
	const char *name, *label;
} kinds[KINDS] = {
	[OWN] = {"own", "segments of this snapshot"},
	[OTHER] = {"other", "segments of other snapshots only"},
	[TREE] = {"tree", "tree of files (EROFS)"},
	[META] = {"meta", "catalog, lists of deletions"},
	[FIXED] = {"fixed", "superblocks, reserved"},
	[UNUSED] = {"unused", "used by no snapshot, gc would free it"},
	[FREE] = {"free", "free, reusable"},
	[NEVER] = {"never", "never used"},
};

static bool has(const struct stele_region *region, uint32_t snapshot)
{
	for (uint32_t i = 0; i < region->snapshot_count; i++)
		if (region->snapshots[i] == snapshot)
			return true;
	return false;
}

static enum kind kind_of(const struct view *view, const struct stele_region *region)
{
	switch (region->kind) {
	case STELE_REGION_FIXED:
		return FIXED;
	case STELE_REGION_SEGMENT:
		return region->unused ? UNUSED : has(region, view->shown) ? OWN : OTHER;
	case STELE_REGION_TREE:
		return region->unused ? UNUSED : TREE;
	case STELE_REGION_CATALOG:
		return META;
	default:
		return region->offset >= view->about.used_size ? NEVER : FREE;
	}
}

/* ---- strips -------------------------------------------------------------------- */

struct paint {
	struct view *view;
	struct page_boxes boxes;
	uint64_t span;
	double last; /* cut */
	enum kind kind;
	uint32_t snapshot;
	bool alone;
};

static void add(struct paint *paint, const struct stele_region *region)
{
	const double span = (double)paint->span;

	if (region->offset < paint->span)
		page_boxes_add(&paint->boxes, (double)region->offset / span,
			       (double)(region->offset + region->region_size) / span);
}

static int add_kind(void *user, const struct stele_region *region)
{
	struct paint *paint = user;

	if (kind_of(paint->view, region) == paint->kind)
		add(paint, region);
	return 0;
}

static int add_of_snapshot(void *user, const struct stele_region *region)
{
	struct paint *paint = user;

	if (has(region, paint->snapshot) && (region->snapshot_count == 1) == paint->alone)
		add(paint, region);
	return 0;
}

static int cut(void *user, const struct stele_region *region)
{
	struct paint *paint = user;
	const double x = PAGE_WIDTH * (double)region->offset / (double)paint->span;

	if (region->kind == STELE_REGION_SEGMENT && x > paint->last + CUT_GAP) {
		fprintf(paint->view->to, "M%.2f 0V%d", x, STRIP_HEIGHT);
		paint->last = x;
	}
	return 0;
}

static void walk(struct view *view, stele_region_fn fn, void *user)
{
	const int error = stele_image_regions(view->image, fn, user);

	if (error)
		view_failed(view, error);
}

static void strip(struct view *view, uint64_t span, const char *label)
{
	struct paint paint = {.view = view, .span = span};

	page_drawing(view->to, "strip", STRIP_HEIGHT, label);
	for (paint.kind = 0; paint.kind < FREE; paint.kind++) {
		page_boxes_begin(&paint.boxes, view->to, kinds[paint.kind].name, STRIP_HEIGHT);
		walk(view, add_kind, &paint);
		page_boxes_end(&paint.boxes);
	}
	fputs("<path class=cut d=\"", view->to);
	walk(view, cut, &paint);
	fputs("\"/>\n</svg>\n", view->to);
}

void map_snapshot(struct view *view, uint32_t index)
{
	struct paint paint = {.view = view, .span = view->span, .snapshot = index};

	page_drawing(view->to, "row", STRIP_HEIGHT, "segments of the snapshot");
	for (unsigned int i = 0; i < 2; i++) {
		paint.alone = i;
		page_boxes_begin(&paint.boxes, view->to, i ? "own" : "other", STRIP_HEIGHT);
		walk(view, add_of_snapshot, &paint);
		page_boxes_end(&paint.boxes);
	}
	fputs("</svg>\n", view->to);
}

void map_ticks(FILE *to, uint64_t span)
{
	uint64_t step = 1;

	while (step < span / 4)
		step *= 2;
	page_ticks_begin(to);
	page_tick(to, 0, "0");
	for (uint64_t at = step; at < span - span / 5; at += step)
		page_tick_size(to, (double)at / (double)span, at);
	page_tick_size(to, 1, span);
	page_ticks_end(to);
}

/* ---- runs ----------------------------------------------------------------------- */

#define PLACES 1000u /* across the drawing */

struct runs {
	uint64_t sizes[PLACES]; /* of the largest slots there; 0: none */
	uint64_t min, max;
};

/* Is the sample `id` where it is if it lies in one run with `first`? */
static bool in_run(const struct view *view, const struct stele_extent *first, uint64_t id)
{
	struct stele_extent extent = {.size = sizeof(extent)};

	return !stele_dataset_locate(view->ds, id, &extent) &&
	       extent.segment_id == first->segment_id &&
	       extent.slot_size == first->slot_size &&
	       extent.offset - first->offset ==
		       (extent.number - first->number) * first->slot_size;
}

/* How many samples from `id` on do: by doubling, then halving. */
static uint64_t run_length(const struct view *view, const struct stele_extent *first,
			   uint64_t id)
{
	const uint64_t left = view->info.sample_count - id;
	uint64_t good = 1, bad = 2;

	for (; bad <= left && in_run(view, first, id + bad - 1); bad *= 2)
		good = bad;
	bad = bad <= left ? bad : left + 1;
	while (bad - good > 1) {
		const uint64_t middle = good + (bad - good) / 2;

		if (in_run(view, first, id + middle - 1))
			good = middle;
		else
			bad = middle;
	}
	return good;
}

static void add_run(const struct view *view, struct runs *runs,
		    const struct stele_extent *first, uint64_t end)
{
	const double scale = (double)PLACES / (double)view->span;
	const uint64_t last = (uint64_t)((double)end * scale);

	for (uint64_t i = (uint64_t)((double)first->offset * scale); i <= last && i < PLACES; i++)
		if (first->slot_size > runs->sizes[i])
			runs->sizes[i] = first->slot_size;
	if (first->slot_size > runs->max)
		runs->max = first->slot_size;
	if (!runs->min || first->slot_size < runs->min)
		runs->min = first->slot_size;
}

static void find_runs(const struct view *view, struct runs *runs)
{
	struct stele_extent first = {.size = sizeof(first)}, last = {.size = sizeof(last)};
	uint64_t length;

	for (uint64_t id = 0; id < view->info.sample_count; id += length) {
		if (stele_dataset_locate(view->ds, id, &first))
			return;
		length = run_length(view, &first, id);
		if (stele_dataset_locate(view->ds, id + length - 1, &last))
			return;
		add_run(view, runs, &first, last.offset + last.slot_size - 1);
	}
}

/* The power of two below or at it, or above. */
static unsigned int power(uint64_t value, bool above)
{
	unsigned int power = 0;

	while (power < 63 && (UINT64_C(2) << power) <= value)
		power++;
	return power + (above && value > UINT64_C(1) << power);
}

/* Of the logarithm, from 0 to 1. */
static double height(uint64_t size, unsigned int low, unsigned int high)
{
	const unsigned int whole = power(size, false);
	const double part = (double)size / (double)(UINT64_C(1) << whole) - 1;

	return (whole - low + part) / (high - low);
}

static void draw_profile(const struct view *view, const struct runs *runs, unsigned int low,
			 unsigned int high, unsigned int step)
{
	page_drawing(view->to, "runs", 100, "slot size by place on the target");
	fputs("<path class=bar d=\"", view->to);
	for (uint32_t i = 0, j; i < PLACES; i = j) {
		for (j = i + 1; j < PLACES && runs->sizes[j] == runs->sizes[i]; j++)
			;
		if (runs->sizes[i])
			fprintf(view->to, "M%u 100V%.1fH%uV100Z", i,
				100 - 100 * height(runs->sizes[i], low, high), j);
	}
	fputs("\"/>\n<path class=grid d=\"", view->to);
	for (unsigned int i = low + step; i < high; i += step)
		fprintf(view->to, "M0 %.1fH%.0f", 100 - 100.0 * (i - low) / (high - low),
			PAGE_WIDTH);
	fputs("\"/>\n</svg>\n", view->to);
}

static void profile(struct view *view)
{
	struct runs *runs = calloc(1, sizeof(*runs));
	unsigned int low, high, step;
	char text[TEXT_SIZE];

	if (runs)
		find_runs(view, runs);
	if (runs && runs->max) {
		low = power(runs->min, false);
		high = power(runs->max, true);
		high = high > low ? high : low + 1;
		step = (high - low + 3) / 4;
		fputs("<figure>\n<figcaption>Slot size, logarithmic</figcaption>\n"
		      "<div class=plot>\n", view->to);
		draw_profile(view, runs, low, high, step);
		for (unsigned int i = low + step; i < high; i += step)
			fprintf(view->to, "<i style=\"bottom:%.1f%%\">%s</i>",
				100.0 * (i - low) / (high - low),
				text_size(text, UINT64_C(1) << i));
		fputs("</div>\n", view->to);
		map_ticks(view->to, view->span);
		fputs("</figure>\n", view->to);
	}
	free(runs);
}

/* ---- figures -------------------------------------------------------------------- */

struct totals {
	struct view *view;
	uint64_t sizes[KINDS], counts[KINDS], listed, all;
};

static int sum(void *user, const struct stele_region *region)
{
	struct totals *totals = user;
	const enum kind kind = kind_of(totals->view, region);

	totals->sizes[kind] += region->region_size;
	totals->counts[kind]++;
	totals->all++;
	return 0;
}

static void legend(const struct view *view, const struct totals *totals)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];

	fputs("<table>\n<tr><th>What<th class=n>Parts<th class=n>Bytes<th class=n>Share\n",
	      view->to);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		if (totals->sizes[kind])
			fprintf(view->to,
				"<tr><td class=what>" PAGE_SWATCH("%s") "%s<td class=n>%s"
				"<td class=n>%s<td class=n>%s\n",
				kinds[kind].name, kinds[kind].label,
				text_count(a, totals->counts[kind]),
				text_size(b, totals->sizes[kind]),
				text_share(c, totals->sizes[kind], view->about.image_size));
	}
	fputs("</table>\n", view->to);
}

static int list_one(void *user, const struct stele_region *region)
{
	struct totals *totals = user;
	const struct view *view = totals->view;
	const enum kind kind = kind_of(view, region);
	char a[TEXT_SIZE], b[TEXT_SIZE];

	if (totals->listed++ == LISTED_MAX)
		return 1;
	fprintf(view->to,
		"<tr><td class=n>%s<td class=n>%s<td class=what>" PAGE_SWATCH("%s"),
		text_count(a, region->offset), text_size(b, region->region_size),
		kinds[kind].name);
	if (region->kind == STELE_REGION_SEGMENT)
		fprintf(view->to, "segment %016" PRIx64 ", %s, in %s", region->segment_id,
			text_counted(a, region->sample_count, "sample"),
			text_counted(b, region->snapshot_count, "snapshot"));
	else
		fputs(kinds[kind].label, view->to);
	putc('\n', view->to);
	return 0;
}

static void list(struct view *view, struct totals *totals)
{
	char text[TEXT_SIZE];

	fprintf(view->to, "<details><summary>All %s</summary>\n<table>\n"
		"<tr><th class=n>Offset<th class=n>Size<th>What\n",
		text_counted(text, totals->all, "part"));
	stele_image_regions(view->image, list_one, totals);
	if (totals->all > LISTED_MAX)
		fprintf(view->to, "<tr><td><td><td>and %s more\n",
			text_count(text, totals->all - LISTED_MAX));
	fputs("</table></details>\n", view->to);
}

void view_layout(struct view *view)
{
	const bool zoom = view->span < view->about.image_size;
	struct totals totals = {.view = view};

	page_section(view->to, "Layout",
		     "The target from its first byte to its last, to scale. What would be narrower "
		     "than a pixel is drawn as one.");
	fputs("<figure>\n", view->to);
	if (zoom) {
		fputs("<figcaption>The whole target</figcaption>\n", view->to);
		strip(view, view->about.image_size, "the whole target");
		page_drawing(view->to, "zoom", 10, "below: the part that is used");
		fprintf(view->to, "<path class=zoomed d=\"M0 0H%.2fL1000 10H0Z\"/></svg>\n",
			PAGE_WIDTH * (double)view->span / (double)view->about.image_size);
		fputs("<figcaption>The part that is used</figcaption>\n", view->to);
	}
	strip(view, view->span, "layout of the image");
	map_ticks(view->to, view->span);
	fputs("</figure>\n", view->to);
	profile(view);
	walk(view, sum, &totals);
	legend(view, &totals);
	list(view, &totals);
	fputs("</section>\n", view->to);
}

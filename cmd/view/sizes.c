/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sizes.c - how large the samples of a snapshot are
 *
 * Sizes come with the keys, from sections alone. They are counted in eighths of a doubling,
 * of which neighbours are put together until the drawing has a few dozen bars.
 */
#include "view/view.h"

#include <math.h>
#include <stdlib.h>

#include "show.h"
#include "text.h"

#define FINE	 8u /* bars to a doubling, at most */
#define DOUBLING 48u
#define BARS	 64u /* wanted, at most */

struct sizes {
	uint64_t counts[DOUBLING * FINE];
	uint64_t empty, count, sum, min, max;
	struct stele_histogram *histogram;
};

static unsigned int bar_of(uint64_t size)
{
	const unsigned int bar = (unsigned int)(log2((double)size) * FINE);

	return bar < DOUBLING * FINE ? bar : DOUBLING * FINE - 1;
}

static void add(struct sizes *sizes, uint64_t size)
{
	if (size)
		sizes->counts[bar_of(size)]++;
	else
		sizes->empty++;
	if (!sizes->count++ || size < sizes->min)
		sizes->min = size;
	if (size > sizes->max)
		sizes->max = size;
	sizes->sum += size;
	stele_histogram_record(sizes->histogram, size);
}

static int read_sizes(struct stele_dataset *ds, struct sizes *sizes)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int got = stele_cursor_open(ds, NULL, 0, &cursor);

	if (got)
		return got;
	while ((got = stele_cursor_next(cursor, &entry)) > 0)
		add(sizes, entry.size);
	stele_cursor_close(cursor);
	return got;
}

static void figures(const struct view *view, const struct sizes *sizes)
{
	char text[TEXT_SIZE];

	fputs("<dl>\n", view->to);
	page_item(view->to, "Smallest", text_size(text, sizes->min));
	page_item(view->to, "Median",
		  text_size(text, stele_histogram_quantile(sizes->histogram, 0.5)));
	page_item(view->to, "Mean", text_size(text, sizes->sum / sizes->count));
	page_item(view->to, "99 % are up to",
		  text_size(text, stele_histogram_quantile(sizes->histogram, 0.99)));
	page_item(view->to, "Largest", text_size(text, sizes->max));
	page_item(view->to, "Empty", text_count(text, sizes->empty));
	fputs("</dl>\n", view->to);
}

/* Powers of two, of which four or so have room. */
static void ticks(FILE *to, unsigned int low, unsigned int high)
{
	const unsigned int every = (high - low + 3) / 4;

	page_ticks_begin(to);
	for (unsigned int i = low; i <= high; i += every)
		page_tick_size(to, (double)(i - low) / (high - low), UINT64_C(1) << i);
	page_ticks_end(to);
}

static void draw(const struct view *view, const struct sizes *sizes)
{
	const unsigned int low = bar_of(sizes->min ? sizes->min : 1) / FINE;
	const unsigned int high = bar_of(sizes->max) / FINE + 1;
	unsigned int width = 1; /* of a bar, in eighths */
	uint64_t bars[DOUBLING * FINE] = {0}, max = 0;
	char text[TEXT_SIZE];

	while ((high - low) * FINE / width > BARS && width < FINE)
		width *= 2;
	for (unsigned int i = low * FINE; i < high * FINE; i++) {
		uint64_t *bar = &bars[(i - low * FINE) / width];

		*bar += sizes->counts[i];
		max = *bar > max ? *bar : max;
	}
	fprintf(view->to, "<figure>\n<figcaption>Samples by size, logarithmic; the highest bar is "
		"%s</figcaption>\n", text_counted(text, max, "sample"));
	page_drawing(view->to, "bars", 100, "samples by size");
	page_bars(view->to, "bar", bars, (high - low) * FINE / width);
	fputs("</svg>\n", view->to);
	ticks(view->to, low, high);
	fputs("</figure>\n", view->to);
}

void view_sizes(struct view *view)
{
	struct sizes *sizes = calloc(1, sizeof(*sizes));
	int error = 0;

	page_section(view->to, "Sample sizes", NULL);
	if (sizes)
		sizes->histogram = stele_histogram_new();
	if (view->info.sample_count > SHOW_COUNTED_MAX) {
		fputs("<p class=note>Not counted: there are too many samples.</p>\n", view->to);
	} else if (sizes && sizes->histogram) {
		error = read_sizes(view->ds, sizes);
		if (error)
			view_failed(view, error);
		if (sizes->max)
			draw(view, sizes);
		if (sizes->count)
			figures(view, sizes);
	}
	if (sizes)
		stele_histogram_free(sizes->histogram);
	free(sizes);
	fputs("</section>\n", view->to);
}

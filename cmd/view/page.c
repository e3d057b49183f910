/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - what a page of HTML is made of
 *
 * Drawings are PAGE_WIDTH wide and are stretched, each direction by itself, to what the page
 * has for them: so they hold shapes only, and text stands beside them.
 */
#include "view/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define GAP 0.4 /* units between boxes that cannot be seen */

void page_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': fputs("&lt;", to); break;
		case '>': fputs("&gt;", to); break;
		case '&': fputs("&amp;", to); break;
		case '"': fputs("&quot;", to); break;
		case '\'': fputs("&#39;", to); break;
		default: putc(*text, to);
		}
	}
}

void page_bytes(FILE *to, const char *bytes, size_t size)
{
	char *text = text_escape(bytes, size);

	page_text(to, text ? text : "?");
	free(text);
}

void page_section(FILE *to, const char *heading, const char *note)
{
	fprintf(to, "<section>\n<h2>%s</h2>\n", heading);
	if (note)
		fprintf(to, "<p class=note>%s</p>\n", note);
}

void page_item(FILE *to, const char *name, const char *value)
{
	fprintf(to, "<div><dt>%s</dt><dd>", name);
	page_text(to, value);
	fputs("</dd></div>\n", to);
}

void page_drawing(FILE *to, const char *name, unsigned int height, const char *label)
{
	fprintf(to,
		"<svg class=\"%s\" viewBox=\"0 0 %.0f %u\" preserveAspectRatio=\"none\" "
		"role=\"img\" aria-label=\"", name, PAGE_WIDTH, height);
	page_text(to, label);
	fputs("\">\n", to);
}

void page_ticks_begin(FILE *to)
{
	fputs("<div class=ticks>", to);
}

/* Those at the ends stay within. */
void page_tick(FILE *to, double place, const char *text)
{
	const char *name = place < 0.02 ? " class=first" : place > 0.98 ? " class=last" : "";

	fprintf(to, "<span%s style=\"left:%.2f%%\">", name, 100 * place);
	page_text(to, text);
	fputs("</span>", to);
}

/* Without ".0": there is little room. */
void page_tick_size(FILE *to, double place, uint64_t bytes)
{
	char text[TEXT_SIZE], *zero = strstr(text_size(text, bytes), ".0 ");

	if (zero)
		memmove(zero, zero + 2, strlen(zero + 2) + 1);
	page_tick(to, place, text);
}

void page_ticks_end(FILE *to)
{
	fputs("</div>\n", to);
}

void page_boxes_begin(struct page_boxes *boxes, FILE *to, const char *name, double height)
{
	*boxes = (struct page_boxes){.to = to, .bottom = height, .end = -1};
	fprintf(to, "<path class=\"%s\" d=\"", name);
}

static void flush(const struct page_boxes *boxes)
{
	if (boxes->end >= 0)
		fprintf(boxes->to, "M%.2f %.2fH%.2fV%.2fH%.2fZ", boxes->from, boxes->top,
			boxes->end, boxes->bottom, boxes->from);
}

void page_boxes_add(struct page_boxes *boxes, double from, double end)
{
	from *= PAGE_WIDTH;
	end *= PAGE_WIDTH;
	if (boxes->end < 0 || from - boxes->end > GAP) {
		flush(boxes);
		boxes->from = from;
	}
	boxes->end = end;
}

void page_boxes_end(struct page_boxes *boxes)
{
	flush(boxes);
	fputs("\"/>\n", boxes->to);
}

void page_bars(FILE *to, const char *name, const uint64_t *counts, size_t count)
{
	uint64_t max = 1;

	for (size_t i = 0; i < count; i++)
		max = counts[i] > max ? counts[i] : max;
	fprintf(to, "<path class=\"%s\" d=\"", name);
	for (size_t i = 0; i < count; i++) {
		const double from = (double)i * PAGE_WIDTH / (double)count;
		const double width = PAGE_WIDTH / (double)count;
		/* Where there is anything, it shows. */
		const double height = fmax(1, 100 * (double)counts[i] / (double)max);

		if (counts[i])
			fprintf(to, "M%.2f 100v%.2fh%.2fv%.2fZ", from + 0.06 * width, -height,
				0.88 * width, height);
	}
	fputs("\"/>\n", to);
}

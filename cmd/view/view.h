/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - an image and a snapshot as one page of HTML
 *
 * The page is made in memory, part by part. It needs nothing else: style and drawings are
 * inline, there is no script, and a content security policy says so to the browser. All that
 * comes from the image goes through page_text() or page_bytes(), or is a picture whose kind
 * is told by its first bytes.
 */
#ifndef STELE_CMD_VIEW_VIEW_H
#define STELE_CMD_VIEW_VIEW_H

#include <stdio.h>

#include "snapshots.h"
#include "stele.h"

struct view {
	const char *target;
	struct stele_dataset *ds;
	struct stele_image *image;
	struct stele_dataset_info info;
	struct stele_image_info about;
	struct snapshots snapshots;
	uint32_t shown;	 /* index of the snapshot among these; UINT32_MAX: gone since */
	uint64_t span;	 /* bytes of the target that the drawings show */
	uint64_t images; /* how many pictures are wanted */
	FILE *to;
	int error; /* the last failure that left a part incomplete (said); 0: none */
};

void view_failed(struct view *view, int error);

/* The parts, in their order. */
void view_head(struct view *view);
void view_layout(struct view *view);
void view_sizes(struct view *view);
void view_fields(struct view *view);
void view_pictures(struct view *view);
void view_history(struct view *view);
void view_foot(struct view *view);

/* ---- page.c: text and drawings ------------------------------------------------ */

/* Text, and a key or the like, which may hold any byte. */
void page_text(FILE *to, const char *text);
void page_bytes(FILE *to, const char *bytes, size_t size);
/* A part: <section> with its heading; `note` below it, or NULL. </section> is the caller's. */
void page_section(FILE *to, const char *heading, const char *note);
/* What each page has at its head, and nothing else is likely to. */
#define PAGE_MARK "<meta name=\"generator\" content=\"stele\">"
/* The colour of a class, before its name. */
#define PAGE_SWATCH(name) "<span class=\"swatch " name "\"></span>"
/* A name and a value, of a list that is a <dl>. */
void page_item(FILE *to, const char *name, const char *value);

#define PAGE_WIDTH 1000.0 /* of a drawing: it is stretched to that of the page */
/* An <svg> of that width, and of `height` units, in CSS of class `name`. */
void page_drawing(FILE *to, const char *name, unsigned int height, const char *label);
/* Below one: labels at places from 0 to 1, in ascending order. */
void page_ticks_begin(FILE *to);
void page_tick(FILE *to, double place, const char *text);
void page_tick_size(FILE *to, double place, uint64_t bytes);
void page_ticks_end(FILE *to);

/* Boxes of one class, which come by offset: those that nearly touch are one. */
struct page_boxes {
	FILE *to;
	double top, bottom;
	double from, end; /* of the one that is not drawn yet */
};
void page_boxes_begin(struct page_boxes *boxes, FILE *to, const char *name, double height);
void page_boxes_add(struct page_boxes *boxes, double from, double end);
void page_boxes_end(struct page_boxes *boxes);

#define PAGE_BARS_MAX 512u
/* Bars of equal width, with counts; the highest one fills the drawing. */
void page_bars(FILE *to, const char *name, const uint64_t *counts, size_t count);

#endif

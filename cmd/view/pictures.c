/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.c - a few samples that are pictures, as they are
 *
 * Nothing is decoded here: the browser does that, and is told the kind that the first bytes
 * of a field say, of those that cannot hold a script. What is large is left out without
 * being read.
 */
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define PICTURE_MAX (UINT64_C(256) << 10) /* bytes of one */
#define TOTAL_MAX   (UINT64_C(8) << 20)	  /* and of all */
#define TRIES	    8u /* samples looked at for each picture that is wanted */

struct picture {
	const char *type; /* NULL: none */
	const void *data;
	uint64_t size;
};

static const char *type_of(const unsigned char *data, uint64_t size)
{
	if (size > 3 && !memcmp(data, "\xff\xd8\xff", 3))
		return "jpeg";
	if (size > 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8))
		return "png";
	if (size > 12 && !memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4))
		return "webp";
	return NULL;
}

/* The first field that is one. */
static void find(const struct view *view, const struct stele_sample *sample,
		 struct picture *picture)
{
	*picture = (struct picture){.type = NULL};
	for (uint32_t i = 0; !picture->type && i < view->info.field_count; i++)
		if (!stele_sample_bytes(sample, i, &picture->data, &picture->size) &&
		    picture->size <= PICTURE_MAX)
			picture->type = type_of(picture->data, picture->size);
}

static void put(const struct view *view, const struct stele_sample *sample,
		const struct picture *picture, bool first)
{
	char *base64 = text_base64(picture->data, picture->size), text[TEXT_SIZE];

	if (!base64)
		return;
	if (first) {
		page_section(view->to, "Samples", NULL);
		fputs("<div class=pictures>\n", view->to);
	}
	fputs("<figure><img alt=\"\" src=\"data:image/", view->to);
	fprintf(view->to, "%s;base64,%s\"><figcaption>", picture->type, base64);
	page_bytes(view->to, sample->key, sample->key_size);
	fprintf(view->to, "<br>#%" PRIu64 ", %s</figcaption></figure>\n", sample->id,
		text_size(text, sample->size));
	free(base64);
}

/* Return: bytes of the page that it takes; 0: it is no picture, or too large. */
static uint64_t show(struct view *view, uint64_t id, bool first)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	struct stele_sample sample = {0};
	struct picture picture = {.type = NULL};
	int error = stele_dataset_locate(view->ds, id, &extent);

	if (!error && extent.slot_size > 2 * PICTURE_MAX)
		return 0;
	if (!error)
		error = stele_dataset_read(view->ds, id, &sample);
	if (error) {
		view_failed(view, error);
		return 0;
	}
	find(view, &sample, &picture);
	if (picture.type)
		put(view, &sample, &picture, first);
	stele_sample_release(&sample);
	return picture.type ? picture.size : 0;
}

/* Some are no pictures: then the one behind them is looked at, and so on, up to the next. */
void view_pictures(struct view *view)
{
	const uint64_t count = view->info.sample_count;
	const uint64_t wanted = view->images < count ? view->images : count;
	uint64_t shown = 0, bytes = 0;
	char a[TEXT_SIZE], b[TEXT_SIZE];

	for (uint64_t i = 0; i < wanted && bytes < TOTAL_MAX; i++) {
		const uint64_t first = count / wanted * i + count % wanted * i / wanted;
		const uint64_t room = count / wanted < TRIES ? count / wanted : TRIES;
		uint64_t size = 0;

		for (uint64_t j = 0; j < room && !size; j++)
			size = show(view, first + j, !shown);
		shown += size > 0;
		bytes += size;
	}
	if (!shown)
		return;
	fprintf(view->to, "</div>\n<p class=note>%s of %s, evenly chosen by id, that are JPEG, "
		"PNG or WebP of up to 256 KiB.</p>\n</section>\n",
		text_count(a, shown), text_counted(b, count, "sample"));
}

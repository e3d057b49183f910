/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_describe.c - what an image holds, in words: for who is about to overwrite it
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/image/image.h"

#define NAMES_SIZE (STELE_CLAIM_TEXT_SIZE / 2 - 32)

/* "'v1', 'v2'": those that are there, or the deleted ones; cut when there are too many. */
static void list_snapshots(const struct stele_image *image, bool deleted,
			   char names[NAMES_SIZE])
{
	const struct stele_catalog_counts *counts = &image->catalog.counts;
	const uint32_t first = deleted ? counts->snapshots : 0;
	const uint32_t count = deleted ? counts->deleted : counts->snapshots;
	size_t at = 0;

	names[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		struct stele_catalog_snapshot snapshot;

		stele_catalog_snapshot(&image->catalog, first + i, &snapshot);
		if (at + strlen(snapshot.name) + 16 > NAMES_SIZE) {
			memcpy(names + at, ", ...", 6);
			return;
		}
		at += (size_t)sprintf(names + at, "%s'%s'", i ? ", " : "",
				      snapshot.name);
	}
}

void stele_claim_describe(const struct stele_image *image, char text[STELE_CLAIM_TEXT_SIZE])
{
	char there[NAMES_SIZE], deleted[NAMES_SIZE];

	list_snapshots(image, false, there);
	list_snapshots(image, true, deleted);
	snprintf(text, STELE_CLAIM_TEXT_SIZE, "%s%s%s%s%s",
		 *there ? "snapshots " : "without snapshots", there,
		 !*deleted ? "" : *there ? ", and " : " but ", deleted,
		 *deleted ? ", deleted, that can be undeleted" : "");
}

int stele_claim_refuse_image(const struct stele_claim *claim, const struct stele_image *image)
{
	const char *label = image->sb.label;
	char text[STELE_CLAIM_TEXT_SIZE];

	stele_claim_describe(image, text);
	stele_log_emit(&claim->log, claim->force ? STELE_LOG_WARNING : STELE_LOG_ERROR,
		       "'%s' holds a Stele image, %s%s%s%s%s",
		       claim->path, *label ? "label '" : "", label, *label ? "', " : "", text,
		       claim->force ? ", which would be overwritten" : "");
	return claim->force ? 0 : -EEXIST;
}

void stele_claim_tell_lost(struct stele_claim *claim, const struct stele_image *image)
{
	static const char more[] = "...";
	const size_t size = sizeof(claim->lost);
	const char *label = image->sb.label;
	char names[NAMES_SIZE], text[NAMES_SIZE + STELE_NAME_SIZE_MAX + 16];

	list_snapshots(image, false, names);
	snprintf(text, sizeof(text), "%s%s%s%s", *label ? "'" : "", label,
		 *label ? "': " : "", names);
	memcpy(claim->lost, text, size - 1);
	if (strlen(text) >= size)
		memcpy(claim->lost + size - sizeof(more), more, sizeof(more));
}

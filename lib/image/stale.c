/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stale.c - damaged, or gone? See stale.h
 */
#include "lib/image/stale.h"

#include <errno.h>
#include <string.h>

static bool has_segment(const struct stele_catalog *catalog, uint64_t id,
			uint64_t offset)
{
	struct stele_catalog_segment segment;

	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		stele_catalog_segment(catalog, i, &segment);
		if (segment.id == id && segment.offset == offset)
			return true;
	}
	return false;
}

/* Is it in the current catalog on the device? */
static bool is_there(const struct stele_image *old, uint64_t id,
		     uint64_t offset)
{
	struct stele_image now;
	bool there;
	int err = stele_image_load(old->dev, NULL, &now);

	if (err == -EINPROGRESS) /* another image is being built there */
		return false;
	if (err) /* nothing is known: it counts as damage */
		return true;
	there = !memcmp(now.sb.uuid, old->sb.uuid, sizeof(now.sb.uuid)) &&
		has_segment(&now.catalog, id, offset);
	now.dev = NULL; /* the old one's */
	stele_image_release(&now);
	return there;
}

static bool is_gone(const struct stele_image *image, uint64_t id,
		    uint64_t offset)
{
	int err = stele_device_check(image->dev);

	if (err || image->dev->revocable)
		return err == -ESTALE;
	return !is_there(image, id, offset);
}

int stele_image_judge(const struct stele_image *image, uint64_t id,
		      uint64_t offset, int error)
{
	/* Handles are immutable except for what they have logged. */
	struct stele_image *known = (struct stele_image *)image;

	if (error != -EBADMSG && error != -EUCLEAN)
		return error;
	if (atomic_load(&known->stale))
		return -ESTALE;
	if (!is_gone(image, id, offset))
		return error;
	if (!atomic_exchange(&known->stale, true))
		stele_log_error(&image->log,
				"snapshot was deleted, and its space freed, or the image "
				"overwritten, after it was opened");
	return -ESTALE;
}

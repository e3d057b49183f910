/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.c - load a snapshot, and look at what a source can add to it
 */
#include "lib/segment/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/keys.h"
#include "lib/segment/plan.h"

static bool is_field(const struct stele_segment *segment, uint32_t index,
		     const char *name, uint32_t type)
{
	return segment->fields[index].type == type &&
	       strcmp(segment->fields[index].name, name) == 0;
}

/* As the plan of a build makes them? */
static bool fields_fit(const struct stele_segment *segment)
{
	const uint32_t count = segment->descriptor.field_count;

	return count <= STELE_PLAN_FIELDS_MAX &&
	       is_field(segment, 0, STELE_PLAN_DATA_NAME, STELE_FIELD_BYTES) &&
	       (count == 1 || is_field(segment, STELE_PLAN_FIELD_LABEL,
				       STELE_PLAN_LABEL_NAME, STELE_FIELD_I64));
}

static int compare(const void *a, const void *b, void *user)
{
	const struct stele_names *names = user;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(names->names[x], names->names[y]);

	return order ? order : (x > y) - (x < y);
}

static int sort_names(struct stele_base *base)
{
	const uint32_t count = base->names->count;

	base->sorted = calloc((size_t)count + 1, sizeof(*base->sorted));
	if (!base->sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		base->sorted[i] = i;
	qsort_r(base->sorted, count, sizeof(*base->sorted), compare,
		(void *)base->names);
	return 0;
}

int stele_base_load(struct stele_base *base, struct stele_image *image,
		    uint32_t index)
{
	const struct stele_segment *last;
	int ret;

	memset(base, 0, sizeof(*base));
	base->image = image;
	ret = stele_snapshot_load(image, index, &base->snapshot);
	if (ret < 0 || !base->snapshot.segment_count)
		return ret;
	last = &base->snapshot.segments[base->snapshot.segment_count - 1];
	if (!fields_fit(last)) {
		stele_log_error(&image->log,
				"samples of snapshot '%s' have fields that "
				"files of a directory lack",
				base->snapshot.info.name);
		return -EOPNOTSUPP;
	}
	base->has_labels = last->descriptor.field_count > 1;
	if (!base->has_labels)
		return 0;
	base->names = &last->names[STELE_PLAN_FIELD_LABEL];
	return sort_names(base);
}

void stele_base_release(struct stele_base *base)
{
	free(base->sorted);
	stele_snapshot_release(&base->snapshot);
	memset(base, 0, sizeof(*base));
}

/* As stele_key_compare(). */
static int compare_name(const struct stele_base *base, uint32_t place,
			const char *name, size_t size)
{
	const char *at = base->names->names[base->sorted[place]];

	return stele_key_compare(at, strlen(at), name, size);
}

int64_t stele_base_label(const struct stele_base *base, const char *name,
			 size_t size)
{
	const uint32_t count = base->names ? base->names->count : 0;
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare_name(base, middle, name, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && compare_name(base, low, name, size) == 0)
		return base->sorted[low];
	return STELE_NO_CLASS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.c - one scalar field of many samples, from its sections alone
 *
 * Consecutive ids lie in consecutive blocks of a segment's column, but for deleted
 * samples, so blocks are read several at a time and each only once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/image/section.h"
#include "lib/read/dataset.h"

#define BLOCKS_PER_READ UINT64_C(64)

/* Blocks of one segment's column in memory. */
struct window {
	const struct stele_dataset *ds;
	uint32_t field;
	const struct stele_segment *segment; /* NULL: nothing was read */
	struct stele_section section;
	uint64_t first, count;
	struct stele_disk_block *blocks;
};

/* `left`: values that are still wanted. */
static int fill(struct window *w, const struct stele_segment *segment,
		uint64_t index, uint64_t left)
{
	uint64_t count, wanted = left / STELE_COLUMN_PER_BLOCK + 1;

	w->segment = NULL;
	if (stele_descriptor_find_section(&segment->descriptor,
					  STELE_BLOCK_COLUMN, w->field,
					  &w->section) < 0)
		return -EUCLEAN;
	count = w->section.size / STELE_BLOCK_SIZE;
	if (index >= count)
		return -EUCLEAN;
	count -= index;
	count = count < wanted ? count : wanted;
	w->count = count < BLOCKS_PER_READ ? count : BLOCKS_PER_READ;
	w->first = index;
	w->segment = segment;
	return stele_section_read(&w->ds->image, segment, &w->section, index,
				  w->count, w->blocks);
}

static int get(struct window *w, uint64_t id, uint64_t left, uint64_t *value)
{
	const struct stele_segment *segment;
	const struct stele_disk_column *column;
	uint64_t number, index;
	int ret = stele_snapshot_locate(&w->ds->snapshot, id, &segment, &number);

	if (ret < 0)
		return ret;
	index = number / STELE_COLUMN_PER_BLOCK;
	if (w->segment != segment || index < w->first ||
	    index - w->first >= w->count)
		ret = fill(w, segment, index, left);
	if (ret < 0)
		return ret;
	column = (const void *)w->blocks[index - w->first].payload;
	*value = le64_get(column->values[number % STELE_COLUMN_PER_BLOCK]);
	return 0;
}

static int check(const struct stele_dataset *ds, uint32_t field, uint64_t id,
		 uint64_t count, const void *values)
{
	const struct stele_segment *segment = ds->snapshot.segments;

	if (!range_ok(id, count, ds->snapshot.sample_count) || !segment ||
	    field >= segment->descriptor.field_count)
		return -ERANGE;
	return (values || !count) && stele_field_is_scalar(segment->fields[field].type) ?
		       0 :
		       -EINVAL;
}

static int dataset_column(struct stele_dataset *ds, uint32_t field,
			  uint64_t id, uint64_t count, void *values)
{
	struct window w = {.ds = ds, .field = field};
	uint64_t value;
	int ret = check(ds, field, id, count, values);

	if (ret < 0 || !count)
		return ret;
	w.blocks = stele_device_alloc(ds->image.dev,
				      BLOCKS_PER_READ * STELE_BLOCK_SIZE);
	if (!w.blocks)
		return -ENOMEM;
	for (uint64_t i = 0; i < count && !ret; i++) {
		ret = get(&w, id + i, count - i, &value);
		if (!ret)
			memcpy((char *)values + i * sizeof(value), &value,
			       sizeof(value));
	}
	free(w.blocks);
	return ret;
}

int stele_dataset_column(struct stele_dataset *ds, uint32_t field, uint64_t id,
			 uint64_t count, void *values)
{
	return STELE_CALL(dataset_column(ds, field, id, count, values),
			  "cannot read field %" PRIu32 " of samples from %" PRIu64
			  " on", field, id);
}

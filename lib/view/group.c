/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - see group.h
 *
 * All slots of a group are checked where they lie, and what is intact is copied to an image
 * of the pages, zeros so far. What does not match is read once more by itself. Where the
 * device fails, all is read once more; then only the samples that were asked for by themselves,
 * as a bad block below hundreds of small ones would cost as many timeouts.
 */
#include "lib/view/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int widen(void *user, const struct stele_slot *slot)
{
	struct stele_group *group = user;
	const uint64_t end = slot->read_offset + slot->read_size;

	if (group->begin > slot->read_offset)
		group->begin = slot->read_offset;
	if (group->end < end)
		group->end = end;
	return 0;
}

void stele_group_pages(const struct stele_filling *f, const struct stele_slot *slot,
		       uint64_t *first, uint64_t *count)
{
	const uint64_t page_size = f->faults.page_size;

	*first = slot->offset / page_size;
	*count = (slot->offset + slot->size - 1) / page_size - *first + 1;
}

bool stele_group_plan(struct stele_filling *f, const struct stele_slot *slot,
		      struct stele_group *group)
{
	const uint64_t page_size = f->faults.page_size;

	*group = (struct stele_group){
		.begin = UINT64_MAX, .id = slot->id, .last = slot->id};
	stele_group_pages(f, slot, &group->first, &group->count);
	stele_resident_trim(&f->resident, &group->first, &group->count);
	if (!group->count)
		return false;
	stele_places_each(&f->places, group->first * page_size,
			  (group->first + group->count) * page_size, widen, group);
	return true;
}

static bool is_wanted(const struct stele_group_check *check, uint64_t id)
{
	return id >= check->group->id && id <= check->group->last;
}

static void mark_bad(struct stele_group_check *check, const struct stele_slot *slot)
{
	uint64_t first, count;

	stele_group_pages(check->f, slot, &first, &count);
	for (uint64_t i = 0; i < check->group->count; i++) {
		const uint64_t page = check->group->first + i;

		check->bad[i] = check->bad[i] || (page >= first && page < first + count);
	}
}

static void keep(struct stele_group_check *check, const struct stele_slot *slot,
		 const uint8_t *data, const struct stele_sample *sample)
{
	const uint64_t page_size = check->f->faults.page_size;
	const uint64_t begin = check->group->first * page_size;
	const char *const to = check->f->faults.memory + slot->offset;
	uint64_t size;
	const uint8_t *part = stele_record_part(
		data, slot->offset, slot->size, begin,
		begin + check->group->count * page_size, &size);

	if (size)
		memcpy(check->image + (slot->offset + (uint64_t)(part - data) - begin),
		       part, size);
	if (!check->out || slot->id != check->group->id)
		return;
	*check->out = *sample;
	check->out->buffer = NULL;
	check->out->data = to + ((const uint8_t *)sample->data - data);
	check->out->key = to + ((const uint8_t *)sample->key - data);
	check->out->tail = to + ((const uint8_t *)sample->tail - data);
}

static bool is_worth_rereading(const struct stele_group_check *check, uint64_t id,
			       int err)
{
	if (check->status) /* something else may be what cannot be read */
		return (err == -EIO || err == -ENODATA) && is_wanted(check, id);
	return err == -EBADMSG;
}

static int check_slot(void *user, const struct stele_slot *slot)
{
	struct stele_group_check *check = user;
	const struct stele_dataset *ds = check->f->ds;
	const uint8_t *data = check->data + (slot->offset - check->group->begin);
	struct stele_sample sample = {.id = slot->id};
	int err = check->status;

	if (!err)
		err = stele_sample_decode(ds, slot, data, check->f->verify,
					  check->proof, STELE_LOG_INFO, &sample);
	if (is_worth_rereading(check, slot->id, err)) {
		const bool mismatch = err == -EBADMSG;

		err = stele_sample_read(ds, slot, check->f->verify, check->proof,
					STELE_LOG_ERROR, &sample);
		data = (uint8_t *)sample.buffer + (slot->offset - slot->read_offset);
		if (!err && mismatch)
			stele_slot_log_again(ds, slot);
	}
	if (err)
		mark_bad(check, slot);
	else
		keep(check, slot, data, &sample);
	if (err && !check->error && is_wanted(check, slot->id))
		check->error = stele_slot_judge(ds, slot, err);
	free(sample.buffer);
	return 0;
}

int stele_group_take(struct stele_group_check *check)
{
	struct stele_filling *f = check->f;
	const struct stele_group *group = check->group;
	const uint64_t page_size = f->faults.page_size;
	int err;

	check->image = calloc(group->count, page_size);
	check->bad = calloc(group->count, sizeof(*check->bad));
	if (!check->image || !check->bad)
		return -ENOMEM;
	err = stele_places_each(&f->places, group->first * page_size,
				(group->first + group->count) * page_size,
				check_slot, check);
	if (!err)
		err = stele_resident_fill(&f->resident, group->first, group->count,
					  check->image, check->bad);
	if (err)
		memset(check->bad, true, group->count);
	if (err || check->error)
		return check->error ? check->error : err;
	return memchr(check->bad, true, group->count) ? 1 : 0;
}

void stele_group_release(struct stele_group_check *check)
{
	free(check->image);
	free(check->bad);
}

int stele_group_fetch(struct stele_group_check *check)
{
	struct stele_device *dev = check->f->ds->image.dev;
	const struct stele_group *group = check->group;
	const uint64_t size = group->end - group->begin;
	void *data = size <= PTRDIFF_MAX ? stele_device_alloc(dev, size) : NULL;
	int ret = -ENOMEM;

	if (data) {
		check->status = stele_device_read(dev, data, group->begin, size);
		if (check->status == -EIO)
			check->status = stele_device_read(dev, data, group->begin, size);
		check->data = data;
		ret = stele_group_take(check);
	}
	free(data);
	return ret;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_window.c - forward reads over a section that skip damaged blocks
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/section.h"
#include "lib/verify/check.h"

int stele_check_window_open(const struct stele_segment_check *sc, uint32_t type,
			    uint32_t field, uint64_t capacity,
			    struct stele_check_window *window)
{
	memset(window, 0, sizeof(*window));
	window->sc = sc;
	if (stele_descriptor_find_section(&sc->segment.descriptor, type, field,
					  &window->section) < 0)
		return -ENOENT;
	if (capacity > window->section.size / STELE_BLOCK_SIZE)
		capacity = window->section.size / STELE_BLOCK_SIZE;
	window->capacity = capacity;
	window->blocks = stele_device_alloc(sc->check->image->dev,
					    capacity * STELE_BLOCK_SIZE);
	window->good = calloc(capacity, sizeof(*window->good));
	if (window->blocks && window->good)
		return 0;
	stele_check_window_release(window);
	return -ENOMEM;
}

void stele_check_window_release(struct stele_check_window *window)
{
	free(window->blocks);
	free(window->good);
	window->blocks = NULL;
	window->good = NULL;
	window->count = 0;
	window->capacity = 0;
}

uint64_t stele_check_window_offset(const struct stele_check_window *window,
				   uint64_t index)
{
	return window->sc->segment.descriptor.offset + window->section.offset +
	       index * STELE_BLOCK_SIZE;
}

/* stele_verify_sections() has reported damage, except what appeared since. */
static void report_new(const struct stele_check_window *window, uint64_t offset,
		       int error)
{
	struct stele_check *check = window->sc->check;
	bool is_new;

	pthread_mutex_lock(&check->lock);
	is_new = check->report->damaged == 0;
	pthread_mutex_unlock(&check->lock);
	if (is_new)
		stele_check_report(check, error,
				   stele_section_name(window->section.type),
				   offset, STELE_BLOCK_SIZE,
				   "cannot be reread");
}

static void fill(struct stele_check_window *window, uint64_t index)
{
	const struct stele_descriptor *d = &window->sc->segment.descriptor;
	struct stele_check *check = window->sc->check;
	const uint64_t left = window->section.size / STELE_BLOCK_SIZE - index;
	uint64_t offset = stele_check_window_offset(window, index);
	int whole;

	window->first = index;
	window->count = left < window->capacity ? left : window->capacity;
	whole = stele_check_read(check, window->blocks, offset,
				  window->count * STELE_BLOCK_SIZE);
	for (uint64_t i = 0; i < window->count; i++) {
		int ret = whole;

		if (whole < 0)
			ret = stele_check_read(check, &window->blocks[i], offset,
					       STELE_BLOCK_SIZE);
		if (ret == 0)
			ret = stele_block_check(&window->blocks[i],
						window->section.type, offset,
						d->id, NULL);
		if (ret < 0)
			report_new(window, offset, ret);
		window->good[i] = ret == 0;
		offset += STELE_BLOCK_SIZE;
	}
}

const struct stele_disk_block *
stele_check_window_get(struct stele_check_window *window, uint64_t index)
{
	if (index >= window->section.size / STELE_BLOCK_SIZE ||
	    !window->capacity)
		return NULL;
	if (index < window->first || index - window->first >= window->count)
		fill(window, index);
	index -= window->first;
	return window->good[index] ? &window->blocks[index] : NULL;
}

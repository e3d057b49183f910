/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_texts.c - samples of consecutive rows, read at once
 */
#include "lib/query/row_texts.h"

#include <errno.h>
#include <string.h>

void stele_row_texts_clear(struct stele_row_texts *t)
{
	for (size_t i = 0; i < t->count; i++)
		stele_sample_release(&t->samples[i]);
	t->count = 0;
}

void stele_row_texts_release(struct stele_row_texts *t)
{
	stele_row_texts_clear(t);
	stele_reader_close(t->reader);
	memset(t, 0, sizeof(*t));
}

/* How many rows fit into the memory, of those that may be read ahead. */
static size_t fitting(const struct stele_row_texts *t, const struct stele_scan *scan, size_t row)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	uint64_t left = STELE_ROW_TEXTS_MEMORY;
	size_t n = 0;

	while (n < t->ahead && row + n < scan->count) {
		if (stele_dataset_locate(scan->ds, scan->ids[row + n], &extent) ||
		    extent.slot_size > left)
			break;
		left -= extent.slot_size;
		n++;
	}
	return n ? n : 1;
}

/* Each into its place, by tag. Return: 0; errors of the reader. */
static int collect(struct stele_row_texts *t)
{
	struct stele_sample sample;
	int ret = stele_reader_collect(t->reader, &sample, 1, 1);

	if (ret > 0)
		t->samples[sample.tag] = sample;
	return ret < 0 ? ret : ret ? 0 : -EIO;
}

static int fetch(struct stele_row_texts *t, const struct stele_scan *scan, size_t row)
{
	const size_t count = fitting(t, scan, row);
	uint64_t tags[STELE_ROW_TEXTS_MAX];
	size_t sent = 0, done = 0;
	int ret = 0;

	memset(t->samples, 0, sizeof(t->samples));
	for (size_t i = 0; i < count; i++)
		tags[i] = i;
	while (done < count && ret >= 0) {
		ret = stele_reader_submit(t->reader, scan->ids + row + sent, tags + sent,
					  (unsigned int)(count - sent));
		if (ret > 0)
			sent += (size_t)ret;
		if (ret >= 0)
			ret = sent > done ? collect(t) : -ENOBUFS;
		done += !ret;
	}
	while (ret < 0 && stele_reader_in_flight(t->reader) && !collect(t))
		;
	t->first = row;
	t->count = count;
	if (ret < 0)
		stele_row_texts_clear(t);
	return ret < 0 ? ret : 0;
}

int stele_row_texts_get(struct stele_row_texts *t, const struct stele_scan *scan,
			uint32_t field, size_t row, const void **data, uint64_t *size)
{
	const struct stele_sample *sample;
	const bool next = t->count && row == t->first + t->count;
	int ret = 0;

	if (!t->reader)
		ret = stele_reader_open(scan->ds, NULL, &t->reader);
	if (!ret && (row < t->first || row - t->first >= t->count)) {
		t->ahead = next ? t->ahead * 4 : 1;
		if (t->ahead > STELE_ROW_TEXTS_MAX)
			t->ahead = STELE_ROW_TEXTS_MAX;
		stele_row_texts_clear(t);
		ret = fetch(t, scan, row);
	}
	if (ret < 0)
		return ret;
	sample = &t->samples[row - t->first];
	return sample->status ? sample->status : stele_sample_bytes(sample, field, data, size);
}

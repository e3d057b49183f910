/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_texts.h - text fields of the samples of a batch
 *
 * There is no column of them: samples are read. Where one is wanted after the other, more and
 * more are read ahead, together at most STELE_ROW_TEXTS_MEMORY bytes.
 */
#ifndef STELE_QUERY_ROW_TEXTS_H
#define STELE_QUERY_ROW_TEXTS_H

#include "lib/query/scan.h"

#define STELE_ROW_TEXTS_MEMORY (UINT64_C(32) << 20) /* bytes of slots; one, if it is larger */
#define STELE_ROW_TEXTS_MAX    128u		     /* samples */

/* Zeroed at first. */
struct stele_row_texts {
	struct stele_reader *reader; /* owned; NULL: not needed yet */
	struct stele_sample samples[STELE_ROW_TEXTS_MAX];
	size_t first, count; /* rows that they are of */
	size_t ahead;	     /* how many to read at once */
};

/*
 * The bytes of a field, valid until the next call. Return: 0; errors of
 * stele_dataset_read(), stele_reader_open().
 */
int stele_row_texts_get(struct stele_row_texts *texts, const struct stele_scan *scan,
			uint32_t field, size_t row, const void **data, uint64_t *size);
/* The batch is another one. */
void stele_row_texts_clear(struct stele_row_texts *texts);
void stele_row_texts_release(struct stele_row_texts *texts);

#endif

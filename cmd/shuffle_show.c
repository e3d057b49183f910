/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle_show.c - the measures of a shuffle, for people and for programs
 *
 * One table of rows serves both, so that neither lacks what the other has.
 */
#include "shuffle_quality.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "json.h"
#include "text.h"

static const struct row {
	const char *name, *text;
	size_t offset;
	double uniform; /* what a perfect shuffle has; NAN: depends on the data */
} rows[] = {
#define ROW(member, text, uniform)                                             \
	{                                                                      \
#member, text, offsetof(struct shuffle_measures, member),      \
			uniform                                                \
	}
	ROW(size_correlation, "sizes in a batch, correlation", 0),
	ROW(size_spread, "mean size of batches, deviation", NAN),
	ROW(label_correlation, "labels in a batch, correlation", 0),
	ROW(class_entropy, "labels in a batch, bits", NAN),
	ROW(lag1_neighbours, "next sample from nearby", NAN),
	ROW(decile_chi2, "place against id, chi2 / freedom", 1),
	ROW(epoch_tau, "this epoch against the next, tau", 0),
#undef ROW
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static double value(const struct shuffle_measures *measures,
		    const struct row *row)
{
	return *(const double *)((const char *)measures + row->offset);
}

static double uniform(const struct shuffle_quality *quality,
		      const struct row *row)
{
	return row->offset == offsetof(struct shuffle_measures, lag1_neighbours)
		       ? quality->lag1_expected
		       : row->uniform;
}

static const char *number(char text[TEXT_SIZE], double value)
{
	if (isnan(value))
		return "-";
	snprintf(text, TEXT_SIZE, "%.4f", fabs(value) < 0.00005 ? 0 : value);
	return text;
}

void shuffle_quality_print(const struct shuffle_quality *quality)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];

	printf("%s in %s batch%s of %s",
	       text_counted(a, quality->sample_count, "sample"),
	       text_count(b, quality->batch_count),
	       quality->batch_count == 1 ? "" : "es",
	       text_count(c, quality->batch_size));
	if (quality->class_count)
		printf(", %s",
		       text_counted(a, quality->class_count, "label"));
	printf("\n\n%-34s%12s%12s%12s\n", "", "this order", "full", "ideal");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		double seen = value(&quality->order, &rows[i]);
		double full = value(&quality->full, &rows[i]);

		if (isnan(seen) && isnan(full))
			continue;
		printf("%-34s%12s%12s%12s\n", rows[i].text, number(a, seen),
		       number(b, full), number(c, uniform(quality, &rows[i])));
	}
}

static json_t *measures_json(const struct shuffle_measures *measures)
{
	json_t *object = json_make();

	for (size_t i = 0; i < ROW_COUNT; i++)
		json_set_real(object, rows[i].name, value(measures, &rows[i]));
	return object;
}

json_t *shuffle_quality_json(const struct shuffle_quality *quality)
{
	json_t *object = json_make();

	json_set_number(object, "samples", quality->sample_count);
	json_set_number(object, "batches", quality->batch_count);
	json_set_number(object, "batch_size", quality->batch_size);
	json_set_number(object, "labels", quality->class_count);
	json_set_number(object, "block_size", quality->block_size);
	json_set_real(object, "lag1_expected", quality->lag1_expected);
	json_set(object, "order", measures_json(&quality->order));
	json_set(object, "full", measures_json(&quality->full));
	return object;
}

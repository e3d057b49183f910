/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle_quality.h - how well an order mixes a dataset, beside a full shuffle
 *
 * Batches of consecutive positions are walked, not read: sizes are those of the slots,
 * by arithmetic. Labels, if asked for, are the directories that the keys lie in, from the
 * keys section. Of a large dataset evenly spaced batches are taken. Everything is a
 * function of dataset, options and batch size: no time, no randomness of its own.
 */
#ifndef STELE_CMD_SHUFFLE_QUALITY_H
#define STELE_CMD_SHUFFLE_QUALITY_H

#include <jansson.h>

#include "stele.h"

/* One order. NAN: cannot be told (no labels, a single batch, all sizes alike). */
struct shuffle_measures {
	/*
	 * Of two samples of a batch, against any two: the intra-class correlation, 0 if
	 * batches are drawn uniformly, 1 if all of a batch are alike.
	 */
	double size_correlation, label_correlation;
	double size_spread;	/* deviation of batches' mean size, as a share of the mean */
	double class_entropy;	/* mean of a batch, bits */
	double lag1_neighbours; /* share of successors whose ids are less than a block apart */
	double decile_chi2;	/* position x id, by degrees of freedom: near 1 if uniform */
	double epoch_tau;	/* Kendall's, between this epoch and the next: near 0 */
};

struct shuffle_quality {
	uint64_t sample_count, batch_count; /* that were looked at */
	uint32_t batch_size;
	uint32_t class_count;		    /* 0: without labels */
	uint64_t block_size;		    /* what lag1_neighbours counts as near */
	double lag1_expected;		    /* of a uniform order */
	struct shuffle_measures order;	    /* the one asked for */
	struct shuffle_measures full;	    /* a full shuffle of the same seed and epoch */
};

/*
 * `opts` as of stele_shuffle_open(), and not NULL. A batch of more samples than there are is all
 * of them. Labels of more than 2^27 samples are not looked at.
 * Return: 0; -EINVAL (no samples, batch size 0, options of stele_shuffle_open()); -ENOMEM; with
 * `labelled` errors of stele_cursor_next().
 */
int shuffle_quality_measure(struct stele_dataset *ds,
			    const struct stele_shuffle_opts *opts,
			    uint32_t batch_size, int labelled,
			    struct shuffle_quality *out);
/* A table for people, on stdout. */
void shuffle_quality_print(const struct shuffle_quality *quality);
/* As part of a report; what cannot be told is null. NULL: no memory. */
json_t *shuffle_quality_json(const struct shuffle_quality *quality);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.c - how well an order mixes a dataset, beside a full shuffle
 *
 * What it costs to read in an order that the device likes better is one question, what that
 * order is worth for training another: this answers the second, and reads no sample.
 *
 * One walk over the batches of an order gathers sums; correlations are what batches have in
 * common beyond what any two samples have. Sizes are those of the slots, by arithmetic.
 * Labels, if asked for, are the directories that the keys lie in, as 64-bit hashes: that two
 * collide is far below what is measured. Of a large dataset evenly spaced batches are taken.
 * Everything is a function of dataset, options and batch size: no time, no randomness.
 */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text.h"

#define SAMPLES_MAX        (UINT64_C(1) << 20) /* looked at */
#define LABELS_MAX         (UINT64_C(1) << 27) /* 1 GiB of them */
#define RANKED_MAX         (UINT64_C(1) << 16) /* compared with the next epoch */
#define BLOCK_SIZE_DEFAULT 64                  /* as of stele_shuffle_opts */
#define DECILES            10

/* One order. NAN: cannot be told (no labels, a single batch, all sizes alike). */
struct measures {
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

struct quality {
	uint64_t sample_count, batch_count; /* that were looked at */
	uint32_t batch_size;
	uint32_t class_count;		    /* 0: without labels */
	uint64_t block_size;		    /* what lag1_neighbours counts as near */
	double lag1_expected;		    /* of a uniform order */
	struct measures order;	    /* the one asked for */
	struct measures full;	    /* a full shuffle of the same seed and epoch */
};

struct subject {
	const struct stele_dataset *ds;
	struct stele_shuffle_opts opts;
	uint64_t count, block_size;
	uint64_t batch_total, batch_count; /* in the epoch; looked at */
	uint32_t batch_size;
	uint64_t *labels;      /* by id, or NULL */
	uint64_t *batch, *all; /* labels that were looked at */
};

/* Sums over an order. */
struct sums {
	double origin; /* sizes are taken from there, so that squares stay exact */
	double size, size_squares, batch_squares;
	double entropy,
		same; /* of labels: bits, and pairs alike, of each batch */
	uint64_t labelled, near, steps;
	uint64_t deciles[DECILES][DECILES];
};

/* floor(length * i / parts): where part i begins. */
static uint64_t spaced(uint64_t length, uint64_t i, uint64_t parts)
{
	return (uint64_t)((unsigned __int128)length * i / parts);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* ---- labels -------------------------------------------------------------- */

/* FNV-1a of the directory, and a mix for its low bits. */
static uint64_t label_of(const char *key, size_t size)
{
	const char *slash = memrchr(key, '/', size);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *at = key; slash && at < slash; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static int load_labels(struct stele_dataset *ds, struct subject *subject)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int err;

	subject->labels = calloc(subject->count, sizeof(*subject->labels));
	if (!subject->labels)
		return -ENOMEM;
	err = stele_cursor_open(ds, NULL, 0, &cursor);
	if (err)
		return err;
	while ((err = stele_cursor_next(cursor, &entry)) > 0) {
		if (entry.id < subject->count)
			subject->labels[entry.id] =
				label_of(entry.key, entry.key_size);
	}
	stele_cursor_close(cursor);
	return err;
}

/*
 * Sort labels. How many are different, their entropy in bits, and the share of pairs
 * that are alike.
 */
static uint32_t classes(uint64_t *labels, uint64_t count, double *entropy,
			double *same)
{
	double pairs = (double)count * ((double)count - 1);
	uint32_t different = 0;

	*entropy = *same = 0;
	qsort(labels, count, sizeof(*labels), compare_numbers);
	for (uint64_t i = 0, end; i < count; i = end) {
		double n, share;

		for (end = i; end < count && labels[end] == labels[i]; end++)
			;
		n = (double)(end - i);
		share = n / (double)count;
		*entropy -= share * log2(share);
		*same += pairs > 0 ? n * (n - 1) / pairs : 0;
		different++;
	}
	return different;
}

/* ---- one walk ------------------------------------------------------------ */

static double size_of(const struct subject *subject, uint64_t id)
{
	struct stele_extent extent = {.size = sizeof(extent)};

	return stele_dataset_locate(subject->ds, id, &extent)
		       ? 0
		       : (double)extent.slot_size;
}

static void add_batch(const struct subject *subject,
		      struct stele_shuffle *shuffle, uint64_t first,
		      struct sums *sums)
{
	uint64_t before = 0;
	double size, batch = 0, entropy, same;

	for (uint32_t i = 0; i < subject->batch_size; i++) {
		uint64_t at = first + i, id = stele_shuffle_at(shuffle, at);
		uint64_t gap = id > before ? id - before : before - id;

		size = size_of(subject, id) - sums->origin;
		batch += size;
		sums->size_squares += size * size;
		sums->deciles[spaced(DECILES, at, subject->count)]
			     [spaced(DECILES, id, subject->count)]++;
		if (i) {
			sums->near += gap < subject->block_size;
			sums->steps++;
		}
		if (subject->labels) {
			subject->batch[i] = subject->labels[id];
			subject->all[sums->labelled++] = subject->labels[id];
		}
		before = id;
	}
	sums->size += batch;
	sums->batch_squares += batch * batch / subject->batch_size;
	if (!subject->labels)
		return;
	classes(subject->batch, subject->batch_size, &entropy, &same);
	sums->entropy += entropy;
	sums->same += same;
}

/* ---- what the sums say ------------------------------------------------------ */

/* Analysis of variance, one way, groups of one size. */
static void judge_sizes(const struct subject *subject, const struct sums *sums,
			struct measures *out)
{
	double batches = (double)subject->batch_count;
	double n = subject->batch_size, samples = batches * n;
	double whole = sums->size * sums->size / samples;
	double between = (sums->batch_squares - whole) / (batches - 1);
	double within = (sums->size_squares - sums->batch_squares) /
			(batches * (n - 1));
	double mean = sums->origin + sums->size / samples;

	out->size_correlation = out->size_spread = NAN;
	if (batches < 2 || mean <= 0)
		return;
	out->size_spread = sqrt(fmax(between, 0) / n) / mean;
	if (n > 1 && between + within > 0)
		out->size_correlation =
			(between - within) / (between + (n - 1) * within);
}

static uint32_t judge_labels(const struct subject *subject,
			     const struct sums *sums,
			     struct measures *out)
{
	double batches = (double)subject->batch_count, entropy, same;
	uint32_t different;

	out->label_correlation = out->class_entropy = NAN;
	if (!subject->labels)
		return 0;
	different = classes(subject->all, sums->labelled, &entropy, &same);
	out->class_entropy = sums->entropy / batches;
	if (different > 1 && subject->batch_size > 1 && batches > 1)
		out->label_correlation =
			(sums->same / batches - same) / (1 - same);
	return different;
}

static double decile_chi2(const struct sums *sums)
{
	double rows[DECILES] = {0}, columns[DECILES] = {0}, all = 0, chi2 = 0;

	for (int i = 0; i < DECILES; i++) {
		for (int j = 0; j < DECILES; j++) {
			rows[i] += (double)sums->deciles[i][j];
			columns[j] += (double)sums->deciles[i][j];
			all += (double)sums->deciles[i][j];
		}
	}
	for (int i = 0; i < DECILES; i++) {
		for (int j = 0; j < DECILES; j++) {
			double expected = rows[i] * columns[j] / all;
			double off = (double)sums->deciles[i][j] - expected;

			if (expected <= 0)
				return NAN;
			chi2 += off * off / expected;
		}
	}
	return chi2 / ((DECILES - 1) * (DECILES - 1));
}

/* ---- two epochs ----------------------------------------------------------- */

/* Pairs that are out of order, by merging; `spare` is as large. */
static uint64_t inversions(uint64_t *numbers, uint64_t *spare, uint64_t count)
{
	uint64_t half = count / 2, i = 0, j = half, found;

	if (count < 2)
		return 0;
	found = inversions(numbers, spare, half) +
		inversions(numbers + half, spare, count - half);
	for (uint64_t k = 0; k < count; k++) {
		bool left = j == count || (i < half && numbers[i] < numbers[j]);

		found += left ? 0 : half - i;
		spare[k] = numbers[left ? i++ : j++];
	}
	memcpy(numbers, spare, count * sizeof(*numbers));
	return found;
}

/*
 * Of evenly spaced positions of this epoch, in their order: which positions
 * their ids have in the next one.
 */
static int epoch_tau(const struct subject *subject,
		     struct stele_shuffle *shuffle,
		     const struct stele_shuffle_opts *opts, double *tau)
{
	uint64_t n = subject->count < RANKED_MAX ? subject->count : RANKED_MAX;
	struct stele_shuffle_opts next = *opts;
	struct stele_shuffle *later;
	uint64_t *at = calloc(n, 2 * sizeof(*at));
	int err;

	next.epoch++;
	err = at ? stele_shuffle_open(subject->count, &next, &later) : -ENOMEM;
	if (!err) {
		for (uint64_t i = 0; i < n; i++) {
			uint64_t position = spaced(subject->count, i, n);
			uint64_t id = stele_shuffle_at(shuffle, position);

			at[i] = stele_shuffle_position(later, id);
		}
		stele_shuffle_close(later);
		*tau = n < 2 ? NAN
			     : 1 - 4 * (double)inversions(at, at + n, n) /
					       ((double)n * ((double)n - 1));
	}
	free(at);
	return err;
}

/* ---- all of it -------------------------------------------------------------- */

static int measure_order(const struct subject *subject,
			 const struct stele_shuffle_opts *opts,
			 struct measures *out, uint32_t *class_count)
{
	struct sums sums = {.origin = size_of(subject, 0)};
	struct stele_shuffle *shuffle;
	int err = stele_shuffle_open(subject->count, opts, &shuffle);

	if (err)
		return err;
	for (uint64_t i = 0; i < subject->batch_count; i++) {
		uint64_t batch =
			(uint64_t)((long double)i * subject->batch_total /
				   subject->batch_count);

		add_batch(subject, shuffle, batch * subject->batch_size, &sums);
	}
	judge_sizes(subject, &sums, out);
	*class_count = judge_labels(subject, &sums, out);
	out->decile_chi2 = decile_chi2(&sums);
	out->lag1_neighbours =
		sums.steps ? (double)sums.near / (double)sums.steps : NAN;
	err = epoch_tau(subject, shuffle, opts, &out->epoch_tau);
	stele_shuffle_close(shuffle);
	return err;
}

static int prepare(struct stele_dataset *ds, uint32_t batch_size, bool labelled,
		   struct subject *subject)
{
	uint64_t looked_at, most;
	int err;

	subject->ds = ds;
	subject->count = stele_dataset_count(ds);
	if (!subject->count || !batch_size)
		return -EINVAL;
	if (batch_size > subject->count)
		batch_size = (uint32_t)subject->count;
	most = SAMPLES_MAX / batch_size ? SAMPLES_MAX / batch_size : 1;
	subject->batch_size = batch_size;
	subject->batch_total = subject->count / batch_size;
	subject->batch_count =
		subject->batch_total < most ? subject->batch_total : most;
	if (!labelled || subject->count > LABELS_MAX)
		return 0;
	looked_at = subject->batch_count * batch_size;
	subject->batch = calloc(batch_size, sizeof(*subject->batch));
	subject->all = calloc(looked_at, sizeof(*subject->all));
	err = subject->batch && subject->all ? load_labels(ds, subject)
					     : -ENOMEM;
	return err;
}

/*
 * `opts` as of stele_shuffle_open(), and not NULL. A batch of more samples than there are is all
 * of them. Labels of more than 2^27 samples are not looked at.
 * Return: 0; -EINVAL (no samples, batch size 0, options of stele_shuffle_open()); -ENOMEM; with
 * `labelled` errors of stele_cursor_next().
 */
static int quality_measure(struct stele_dataset *ds,
			    const struct stele_shuffle_opts *opts,
			    uint32_t batch_size, int labelled,
			    struct quality *out)
{
	struct stele_shuffle_opts full = *opts;
	struct subject subject = {0};
	double n, block;
	int err;

	memset(out, 0, sizeof(*out));
	full.kind = STELE_SHUFFLE_FULL;
	subject.block_size =
		opts->block_size ? opts->block_size : BLOCK_SIZE_DEFAULT;
	err = prepare(ds, batch_size, labelled, &subject);
	if (!err)
		err = measure_order(&subject, opts, &out->order,
				    &out->class_count);
	if (!err)
		err = measure_order(&subject, &full, &out->full,
				    &out->class_count);
	free(subject.labels);
	free(subject.batch);
	free(subject.all);
	if (err)
		return err;
	out->batch_size = subject.batch_size;
	out->batch_count = subject.batch_count;
	out->sample_count = subject.batch_count * subject.batch_size;
	out->block_size = subject.block_size;
	n = (double)subject.count;
	block = fmin((double)subject.block_size, n);
	out->lag1_expected =
		n > 1 ? (block - 1) * (2 * n - block) / (n * (n - 1)) : NAN;
	return 0;
}

/* ---- report ------------------------------------------------------------------- */

static const struct row {
	const char *name, *text;
	size_t offset;
	double uniform; /* what a perfect shuffle has; NAN: depends on the data */
} rows[] = {
#define MEASURE(member, text, uniform) \
	{#member, text, offsetof(struct measures, member), uniform}
	MEASURE(size_correlation, "sizes in a batch, correlation", 0),
	MEASURE(size_spread, "mean size of batches, deviation", NAN),
	MEASURE(label_correlation, "labels in a batch, correlation", 0),
	MEASURE(class_entropy, "labels in a batch, bits", NAN),
	MEASURE(lag1_neighbours, "next sample from nearby", NAN),
	MEASURE(decile_chi2, "place against id, chi2 / freedom", 1),
	MEASURE(epoch_tau, "this epoch against the next, tau", 0),
#undef MEASURE
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static double value(const struct measures *measures,
		    const struct row *row)
{
	return *(const double *)((const char *)measures + row->offset);
}

static double uniform(const struct quality *quality,
		      const struct row *row)
{
	return row->offset == offsetof(struct measures, lag1_neighbours)
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

/* A table, on stdout. */
static void quality_print(const struct quality *quality)
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

static json_t *measures_json(const struct measures *measures)
{
	json_t *object = json_make();

	for (size_t i = 0; i < ROW_COUNT; i++)
		json_set_real(object, rows[i].name, value(measures, &rows[i]));
	return object;
}

/* What cannot be told is null. */
static json_t *quality_json(const struct quality *quality)
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

static void print(const struct bench_config *config,
		  const struct stele_dataset_info *info,
		  const struct quality *quality)
{
	json_t *object;

	if (config->json) {
		object = bench_json_head(config, info);
		json_set_text(object, "order", bench_order_name(config->order));
		json_set_number(object, "seed", config->seed);
		json_set(object, "shuffle",
				    quality_json(quality));
		json_line(object);
		return;
	}
	bench_text_head(config, info);
	printf(ROW "%s\n\n", "order", bench_order_name(config->order));
	quality_print(quality);
}

int bench_shuffle(struct stele_dataset *ds, const struct bench_config *config)
{
	struct stele_shuffle_opts opts = STELE_OPTS(
		stele_shuffle_opts, .seed = config->seed, .kind = config->order,
		.block_size = config->block_size,
		.block_count = config->block_count);
	int labelled = stele_dataset_field_index(ds, "label") >= 0;
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct quality quality;
	int err = quality_measure(ds, &opts, config->batch, labelled,
					  &quality);

	stele_dataset_info(ds, &info);
	if (err)
		cmd_error(err, "cannot look at the order of '%s'",
			  config->target);
	else
		print(config, &info, &quality);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - sizes x depths, in the time there is
 *
 * A row (one size; in the last, the image's own mix of sizes) goes through doublings of the
 * depth, until two of them in turn hardly gained and cost latency. Each cell gets its share
 * of the time that is left: rows that end early leave theirs to the others, and a slow device
 * ends in time too, with fewer reads in a cell and more noise.
 */
#include "lib/tune/tune.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SIZES_SHARE	0.7  /* of all time, for reads of one size */
#define MIX_SHARE	0.18 /* for the image's own; the rest is for other backends */
#define MIX_PASSES	3
#define MIX_DEPTH_MIN	64u  /* the row does not end below: readers would start there */
#define GAIN_MIN	1.03 /* of a doubling of the depth */
#define LATENCY_RISE	1.5  /* over two of them */
#define PATIENCE	5.0  /* a noisy cell may take so many times its time */
#define PLACES_MIN	16u  /* of larger reads than the smallest */
#define DISTURBED	0.85 /* of what half the depth gave */
#define REMOTE_DEPTH_MAX 256u

static const uint32_t sizes[] = {
	4u << 10,   16u << 10,	64u << 10, 128u << 10,
	256u << 10, 512u << 10, 1u << 20,  4u << 20,
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static bool is_measurable(const struct stele_tune_sweep *sweep, uint32_t size)
{
	const struct stele_limits *limits = &sweep->ds->image.dev->limits;

	return size <= limits->transfer_max &&
	       size % limits->logical_block == 0 &&
	       (!limits->boundary || size <= limits->boundary) &&
	       stele_tune_space_fits(&sweep->space, size,
				     size == sizes[0] ? 1 : PLACES_MIN);
}

static uint32_t depth_limit(const struct stele_tune_sweep *sweep, uint32_t size)
{
	const struct stele_device *dev = sweep->ds->image.dev;
	uint32_t depth = stele_tune_meter_depth(&sweep->meter, size);

	return dev->limits.boundary && depth > REMOTE_DEPTH_MAX
		       ? REMOTE_DEPTH_MAX
		       : depth;
}

struct row {
	uint32_t size, depth_min, depth_max;
	unsigned int cells;	/* so far */
	unsigned int expected;	/* by the row before */
	unsigned int rows_left; /* behind it */
	unsigned int flat;	/* doublings that hardly gained, in turn */
	double end;		/* of its time */
	struct stele_tune_point *points; /* the first of `cells` */
};

/* Time for the next cell; false: there is none left, and something was measured. */
static bool share_time(const struct stele_tune_sweep *sweep,
		       const struct row *row, struct stele_tune_cell *cell)
{
	double left = row->end - stele_tune_clock();
	unsigned int rest = row->expected > row->cells ?
				    row->expected - row->cells :
				    1;
	double share = fmax(left, 0) / (rest + row->rows_left * row->expected);

	if (left <= 0 && sweep->profile->point_count)
		return false;
	cell->seconds_min = fmin(share, sweep->time.cell);
	cell->seconds_max = fmin(1.5 * share, PATIENCE * sweep->time.cell);
	cell->reads_min = sweep->time.reads;
	return true;
}

/* To have a depth there and back takes so long; is it worth its time? */
static bool is_too_slow(const struct row *row, const struct stele_tune_cell *cell)
{
	const struct stele_tune_point *last;

	if (!row->cells)
		return false;
	last = &row->points[row->cells - 1];
	return 2 * cell->depth / last->reads_per_second > 4 * cell->seconds_max;
}

static bool is_done(struct row *row)
{
	const struct stele_tune_point *last = &row->points[row->cells - 1];

	if (row->cells < 2)
		return false;
	row->flat = last->bytes_per_second < GAIN_MIN * last[-1].bytes_per_second ?
			    row->flat + 1 :
			    0;
	return last->depth >= row->depth_min && row->cells >= 3 && row->flat >= 2 &&
	       (double)last->p50_ns > LATENCY_RISE * (double)last[-2].p50_ns;
}

/*
 * Something else disturbed a cell that is slower than the one before: it is measured once
 * more, if there is time. Nothing disturbs to the better, so the better one counts.
 */
static int measure_again(struct stele_tune_sweep *sweep, const struct row *row,
			 struct stele_tune_cell *cell,
			 struct stele_tune_result *result)
{
	struct stele_tune_result again;
	int err;

	if (!row->cells ||
	    result->point.bytes_per_second >
		    DISTURBED * row->points[row->cells - 1].bytes_per_second ||
	    !share_time(sweep, row, cell))
		return 0;
	err = stele_tune_meter_run(&sweep->meter, cell, &sweep->log, &again);
	if (!err && again.point.bytes_per_second > result->point.bytes_per_second)
		*result = again;
	return err;
}

static int tell(const struct stele_tune_sweep *sweep,
		const struct stele_tune_point *point)
{
	const struct stele_tune_opts *opts = sweep->opts;
	double done = (stele_tune_clock() - sweep->began) / sweep->time.seconds;

	if (!opts || !opts->point)
		return 0;
	return opts->point(opts->point_user, point, fmin(done, 1)) ?
		       -ECANCELED :
		       0;
}

static unsigned int doublings(uint32_t depth)
{
	unsigned int count = 1;

	while (depth >>= 1)
		count++;
	return count;
}

static int run_row(struct stele_tune_sweep *sweep, struct row *row)
{
	struct stele_profile *profile = sweep->profile;
	struct stele_tune_cell cell = {.size = row->size};
	struct stele_tune_result result;
	int err;

	if (!row->expected) /* the first */
		row->expected = doublings(row->depth_max);
	row->points = &profile->points[profile->point_count];
	for (cell.depth = 1; cell.depth <= row->depth_max &&
			     profile->point_count < STELE_PROFILE_POINTS_MAX;
	     cell.depth *= 2) {
		if (!share_time(sweep, row, &cell) || is_too_slow(row, &cell))
			break;
		err = stele_tune_meter_run(&sweep->meter, &cell, &sweep->log,
					   &result);
		if (!err)
			err = measure_again(sweep, row, &cell, &result);
		if (!err)
			err = tell(sweep, &result.point);
		if (err)
			return err;
		profile->points[profile->point_count++] = result.point;
		row->cells++;
		if (is_done(row))
			break;
	}
	return 0;
}

/* Each cell of the row once more. Nothing disturbs to the better: the better one counts. */
static int repeat_row(struct stele_tune_sweep *sweep, struct row *row)
{
	struct stele_tune_cell cell = {.size = row->size};
	struct stele_tune_result again;
	int err = 0;

	row->expected = row->cells;
	for (row->cells = 0; row->cells < row->expected; row->cells++) {
		struct stele_tune_point *point = &row->points[row->cells];

		cell.depth = point->depth;
		if (!share_time(sweep, row, &cell))
			break;
		err = stele_tune_meter_run(&sweep->meter, &cell, &sweep->log, &again);
		if (!err && again.point.bytes_per_second > point->bytes_per_second)
			*point = again.point;
		if (!err)
			err = tell(sweep, point);
		if (err)
			break;
	}
	row->cells = row->expected;
	return err;
}

/* The knee of this row is what readers will start with, so it is measured in passes. */
static int run_mix(struct stele_tune_sweep *sweep, double end)
{
	struct row row = {.depth_min = MIX_DEPTH_MIN,
			  .depth_max = depth_limit(sweep, 0)};
	int err = 0;

	for (int left = MIX_PASSES; !err && left; left--) {
		double now = stele_tune_clock();

		row.end = now + (end - now) / left;
		err = left == MIX_PASSES ? run_row(sweep, &row) : repeat_row(sweep, &row);
	}
	return err;
}

int stele_tune_sweep_run(struct stele_tune_sweep *sweep)
{
	const double all = sweep->time.seconds, sizes_end = sweep->began + SIZES_SHARE * all;
	unsigned int rows = 0;
	struct row row = {0};
	int err = 0;

	for (size_t i = 0; i < SIZES; i++)
		rows += is_measurable(sweep, sizes[i]);
	if (!rows)
		return -ENODATA;
	for (size_t i = 0; !err && i < SIZES; i++) {
		if (!is_measurable(sweep, sizes[i]))
			continue;
		row = (struct row){.size = sizes[i],
				   .rows_left = --rows,
				   .depth_max = depth_limit(sweep, sizes[i]),
				   .expected = row.cells,
				   .end = sizes_end};
		err = run_row(sweep, &row);
	}
	if (err)
		return err;
	return run_mix(sweep, fmax(sizes_end, stele_tune_clock()) + MIX_SHARE * all);
}

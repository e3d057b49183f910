/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_fit.c - see model_fit.h
 *
 * Levenberg and Marquardt's method on the logarithms of four positive numbers,
 * with Huber's weights anew in each step and derivatives by differences; from a
 * few beginnings, as a valley may be flat. Some thousand evaluations: no time.
 *
 * Throughput of the model never falls with the depth. A device's does, when it is given
 * too much or is disturbed: such a point says little about what the device can do.
 */
#include "lib/read/model_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWNS	4
#define STEPS_MAX	120
#define DIFFERENCE	1e-5
#define HUBER		1.345 /* deviations beyond which a point counts less */
#define SPREAD_MIN	0.003 /* no measurement is better */
#define GUESS_WEIGHT	1e-3  /* of a point, at least: what holds what nothing determines */
#define GUESS_SPREAD	1.0   /* the guess may be off by e: where points are, it is as good */
#define DOUBT_WEIGHT	0.25  /* of a point that is noisy, or fell */
#define FELL		0.95  /* of the best at lower depths */
#define KAPPA_MAX	16.0
#define PLATEAU		0.90 /* of the best of a row: as good as that, but for noise */
#define NOISY_KNEE	0.90 /* instead of STELE_FIT_KNEE, in a row of noise */

struct fit {
	const struct stele_fit_point *points;
	size_t count;
	double guess[UNKNOWNS], at[UNKNOWNS]; /* logarithms */
	double errors[STELE_FIT_POINTS_MAX];  /* ln measured - ln model */
	bool doubtful[STELE_FIT_POINTS_MAX];
	double spread; /* of the errors, robust */
	double hold;   /* weight of the guess */
};

static void to_model(const double *at, struct stele_model *out)
{
	out->latency = exp(at[0]);
	out->stream_rate = exp(at[1]);
	out->iops_max = exp(at[2]);
	out->bytes_max = exp(at[3]);
	out->kappa = 1;
}

static double log_rate(const double *at, const struct stele_fit_point *point)
{
	struct stele_model model;

	to_model(at, &model);
	return log(stele_model_throughput(&model, (uint64_t)point->size,
					  point->depth));
}

static void set_errors(const struct fit *fit, const double *at, double *errors)
{
	for (size_t i = 0; i < fit->count; i++)
		errors[i] = log(fit->points[i].rate) -
			    log_rate(at, &fit->points[i]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double stele_model_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] :
			   (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double median_error(const struct fit *fit)
{
	double sizes[STELE_FIT_POINTS_MAX];

	for (size_t i = 0; i < fit->count; i++)
		sizes[i] = fabs(fit->errors[i]);
	return stele_model_median(sizes, fit->count);
}

static double weight(const struct fit *fit, size_t i)
{
	double far = fabs(fit->errors[i]) / (HUBER * fit->spread);
	double weight = far > 1 ? 1 / far : 1;

	return fit->doubtful[i] ? weight * DOUBT_WEIGHT : weight;
}

static void find_doubtful(struct fit *fit)
{
	double best = 0;

	for (size_t i = 0; i < fit->count; i++) {
		const struct stele_fit_point *point = &fit->points[i];

		if (!i || point->size != point[-1].size)
			best = 0;
		best = fmax(best, point->rate);
		fit->doubtful[i] = point->noisy || point->rate < FELL * best;
	}
}

/* What is made small, at the weights of now. */
static double badness(const struct fit *fit, const double *at,
		      const double *errors, const double *weights)
{
	double sum = 0;

	for (size_t i = 0; i < fit->count; i++)
		sum += weights[i] * errors[i] * errors[i];
	for (int j = 0; j < UNKNOWNS; j++)
		sum += fit->hold * (at[j] - fit->guess[j]) *
		       (at[j] - fit->guess[j]);
	return sum;
}

/* matrix x = right, by Gauss with pivots. False: it has no one solution. */
static bool solve(double matrix[UNKNOWNS][UNKNOWNS], double *right)
{
	for (int i = 0; i < UNKNOWNS; i++) {
		int pivot = i;

		for (int j = i + 1; j < UNKNOWNS; j++)
			if (fabs(matrix[j][i]) > fabs(matrix[pivot][i]))
				pivot = j;
		if (fabs(matrix[pivot][i]) < 1e-300)
			return false;
		for (int k = 0; k < UNKNOWNS; k++) {
			double swap = matrix[i][k];

			matrix[i][k] = matrix[pivot][k];
			matrix[pivot][k] = swap;
		}
		double swap = right[i];

		right[i] = right[pivot];
		right[pivot] = swap;
		for (int j = i + 1; j < UNKNOWNS; j++) {
			double factor = matrix[j][i] / matrix[i][i];

			for (int k = i; k < UNKNOWNS; k++)
				matrix[j][k] -= factor * matrix[i][k];
			right[j] -= factor * right[i];
		}
	}
	for (int i = UNKNOWNS - 1; i >= 0; i--) {
		for (int k = i + 1; k < UNKNOWNS; k++)
			right[i] -= matrix[i][k] * right[k];
		right[i] /= matrix[i][i];
	}
	return true;
}

/* Normal equations of the weighted, linearised problem. */
static void linearise(const struct fit *fit, const double *weights,
		      double matrix[UNKNOWNS][UNKNOWNS], double *right)
{
	memset(matrix, 0, sizeof(double[UNKNOWNS][UNKNOWNS]));
	for (int j = 0; j < UNKNOWNS; j++) {
		matrix[j][j] = fit->hold;
		right[j] = fit->hold * (fit->guess[j] - fit->at[j]);
	}
	for (size_t i = 0; i < fit->count; i++) {
		double slope[UNKNOWNS];

		for (int j = 0; j < UNKNOWNS; j++) {
			double less[UNKNOWNS], more[UNKNOWNS];

			memcpy(less, fit->at, sizeof(less));
			memcpy(more, fit->at, sizeof(more));
			less[j] -= DIFFERENCE;
			more[j] += DIFFERENCE;
			slope[j] = (log_rate(more, &fit->points[i]) -
				    log_rate(less, &fit->points[i])) /
				   (2 * DIFFERENCE);
		}
		for (int j = 0; j < UNKNOWNS; j++) {
			right[j] += weights[i] * slope[j] * fit->errors[i];
			for (int k = 0; k < UNKNOWNS; k++)
				matrix[j][k] += weights[i] * slope[j] * slope[k];
		}
	}
}

/* One step that makes it better, with as much damping as that takes. */
static bool step(struct fit *fit, double *damping)
{
	double weights[STELE_FIT_POINTS_MAX], errors[STELE_FIT_POINTS_MAX];
	double matrix[UNKNOWNS][UNKNOWNS], right[UNKNOWNS], before;

	fit->spread = fmax(SPREAD_MIN, 1.4826 * median_error(fit));
	fit->hold = fmax(GUESS_WEIGHT, pow(fit->spread / GUESS_SPREAD, 2));
	for (size_t i = 0; i < fit->count; i++)
		weights[i] = weight(fit, i);
	before = badness(fit, fit->at, fit->errors, weights);
	for (int tries = 0; tries < 12; tries++, *damping *= 4) {
		double next[UNKNOWNS], after;

		linearise(fit, weights, matrix, right);
		for (int j = 0; j < UNKNOWNS; j++)
			matrix[j][j] *= 1 + *damping;
		if (!solve(matrix, right))
			continue;
		for (int j = 0; j < UNKNOWNS; j++) /* never by more than e */
			next[j] = fit->at[j] + fmax(-1, fmin(1, right[j]));
		set_errors(fit, next, errors);
		after = badness(fit, next, errors, weights);
		if (!(after < before))
			continue;
		memcpy(fit->at, next, sizeof(next));
		memcpy(fit->errors, errors, sizeof(errors[0]) * fit->count);
		*damping = fmax(*damping / 8, 1e-9);
		return after < before * (1 - 1e-9);
	}
	return false;
}

/*
 * Of a device alone: latency from its smallest read at the lowest depth, rate
 * from how much longer the largest takes. Saturated: a little over the best.
 */
static void make_guess(struct fit *fit)
{
	const struct stele_fit_point *low = &fit->points[0], *high = low;
	double iops = 0, bytes = 0, small, large, more;

	for (size_t i = 0; i < fit->count; i++) {
		const struct stele_fit_point *point = &fit->points[i];

		iops = fmax(iops, point->rate / point->size);
		bytes = fmax(bytes, point->rate);
		if (point->size < low->size ||
		    (point->size <= low->size && point->depth < low->depth))
			low = point;
		if (point->size > high->size ||
		    (point->size >= high->size && point->depth < high->depth))
			high = point;
	}
	small = low->size * low->depth / low->rate;
	large = high->size * high->depth / high->rate;
	more = fmax(large - small, small / 10);
	fit->guess[0] = log(small);
	fit->guess[1] = log(fmax(high->size - low->size, low->size) / more);
	fit->guess[2] = log(iops * 1.1);
	fit->guess[3] = log(bytes * 1.1);
}

/* Best of a few beginnings. */
static void search(struct fit *fit)
{
	double best[UNKNOWNS], least = INFINITY;

	for (int i = 0; i < 4; i++) {
		double damping = 1e-2, error;

		memcpy(fit->at, fit->guess, sizeof(fit->at));
		fit->at[2] += i & 1 ? 1.5 : 0;
		fit->at[1] += i & 2 ? 1.5 : 0;
		set_errors(fit, fit->at, fit->errors);
		for (int j = 0; j < STEPS_MAX && step(fit, &damping); j++)
			;
		error = 0;
		for (size_t k = 0; k < fit->count; k++)
			error += fmin(fabs(fit->errors[k]), 0.5);
		if (error < least) {
			least = error;
			memcpy(best, fit->at, sizeof(best));
		}
	}
	memcpy(fit->at, best, sizeof(best));
	set_errors(fit, fit->at, fit->errors);
}

/* ---- the knee ---------------------------------------------------------------- */

/* Depth that gives `wanted` bytes/s, between the points around it. */
static double depth_for(const struct stele_fit_point *row, size_t count,
			double wanted)
{
	size_t i = 0;
	double share;

	while (i < count && row[i].rate < wanted)
		i++;
	if (!i || i == count)
		return row[i ? count - 1 : 0].depth;
	share = log(wanted / row[i - 1].rate) /
		log(row[i].rate / row[i - 1].rate);
	return row[i - 1].depth * pow(row[i].depth / row[i - 1].depth, share);
}

/*
 * What one row says of kappa; 0: it was not saturated, nothing. The best of a row
 * is half luck: its level is the median of all that come near.
 */
static double row_kappa(const struct stele_fit_point *row, size_t count,
			const struct stele_model *model)
{
	const uint64_t size = (uint64_t)row->size;
	double rates[STELE_FIT_POINTS_MAX], best = 0, depth;
	size_t level = 0, noisy = 0;

	for (size_t i = 0; i < count; i++) {
		best = fmax(best, row[i].rate);
		noisy += row[i].noisy;
	}
	for (size_t i = 0; i < count; i++)
		if (row[i].rate >= PLATEAU * best)
			rates[level++] = row[i].rate;
	if (level < 2)
		return 0;
	depth = depth_for(row, count,
			  stele_model_median(rates, level) *
				  (2 * noisy > count ? NOISY_KNEE :
						       STELE_FIT_KNEE));
	return depth * stele_model_cost(model, size) /
	       stele_model_latency(model, size);
}

static double find_kappa(const struct fit *fit, const struct stele_model *model)
{
	/* Where the model itself gives that share. */
	const double smooth = pow(pow(STELE_FIT_KNEE, -4) - 1, -0.25);
	double kappas[STELE_FIT_POINTS_MAX], kappa;
	size_t count = 0, end;

	for (size_t i = 0; i < fit->count; i = end) {
		for (end = i; end < fit->count &&
			      fit->points[end].size <= fit->points[i].size;
		     end++)
			;
		kappa = row_kappa(fit->points + i, end - i, model);
		if (kappa > 0)
			kappas[count++] = kappa;
	}
	if (!count)
		return smooth;
	return fmax(1, fmin(KAPPA_MAX, stele_model_median(kappas, count)));
}

int stele_model_fit(const struct stele_fit_point *points, size_t count,
		    struct stele_model *out, double *residual)
{
	struct fit fit = {.points = points, .count = count};

	if (!count)
		return -ENODATA;
	if (count > STELE_FIT_POINTS_MAX)
		return -ERANGE;
	for (size_t i = 0; i < count; i++)
		if (!(points[i].rate > 0) || !(points[i].size >= 1) ||
		    !(points[i].depth >= 1))
			return -ENODATA;
	find_doubtful(&fit);
	make_guess(&fit);
	search(&fit);
	to_model(fit.at, out);
	out->kappa = find_kappa(&fit, out);
	*residual = expm1(median_error(&fit));
	return stele_model_valid(out) ? 0 : -ENODATA;
}

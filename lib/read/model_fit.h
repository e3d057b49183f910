/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_fit.h - the five numbers of model.h from what was measured
 *
 * Four by robust least squares on the logarithm of throughput: a point that is
 * off by a factor counts a little, not all. What the points do not determine
 * (one size: iops and bandwidth cannot be told apart) stays near a first guess.
 * Kappa is read off the measured rows: what it takes to get 95 % of what a
 * device can do, where the model has a softer or harder knee than the device.
 * Pure arithmetic; any thread.
 */
#ifndef STELE_READ_MODEL_FIT_H
#define STELE_READ_MODEL_FIT_H

#include "lib/read/model.h"

struct stele_fit_point {
	double size;  /* bytes of each read */
	double depth; /* reads in flight */
	double rate;  /* bytes/s that came back */
	bool noisy;   /* counts a quarter; so does what fell below a lower depth's */
};

/* Points of one size stand together, by ascending depth. */
#define STELE_FIT_POINTS_MAX 256u
/* Of what saturates a device the knee gives this share. */
#define STELE_FIT_KNEE 0.95

/*
 * *residual: median of the relative errors. Return: 0; -ENODATA (no point, or
 * one that is not positive); -ERANGE (too many).
 */
int stele_model_fit(const struct stele_fit_point *points, size_t count,
		    struct stele_model *out, double *residual);

/* Sorts them. */
double stele_model_median(double *values, size_t count);

#endif

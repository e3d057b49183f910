/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model-fit.c - the fit finds the model that points were made of
 *
 * Devices from a disk to fast flash, noise, outliers, points missing as a sweep
 * leaves them out; and what cannot be determined must not run away.
 */
#include "lib/read/model_fit.h"
#include "tests/tap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *what;
	struct stele_model model;
} devices[] = {
	{"flash", {81e-6, 3.1e9, 1.2e6, 7.1e9, 0}},
	{"fast flash", {40e-6, 6e9, 2.6e6, 14e9, 0}},
	{"network", {900e-6, 4e8, 60e3, 3e9, 0}},
	{"virtual disk", {150e-6, 1e9, 90e3, 1.5e9, 0}},
	{"spinning disk", {9e-3, 1.6e8, 180, 1.6e8, 0}},
};

static uint64_t state = 1;

/* Near normal, of deviation 1. */
static double noise(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		sum += (double)(state >> 11) / (double)(UINT64_C(1) << 53);
	}
	return sum;
}

/* As a sweep does: a row ends two doublings behind its plateau. */
static size_t sweep(const struct stele_model *model, double spread,
		    struct stele_fit_point *points)
{
	static const unsigned int sizes[] = {4, 16, 64, 128, 256, 512};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const double size = sizes[i] * 1024.0;
		unsigned int flat = 0;
		double before = 0;

		for (double depth = 1; depth <= 512 && flat < 2; depth *= 2) {
			double rate = stele_model_throughput(
				model, (uint64_t)size, depth);

			flat = rate < before * 1.03 ? flat + 1 : 0;
			before = rate;
			points[count++] = (struct stele_fit_point){
				size, depth, rate * exp(spread * noise()),
				false};
		}
	}
	return count;
}

static bool within(double wanted, double seen, double share)
{
	if (seen > wanted * (1 - share) && seen < wanted * (1 + share))
		return true;
	diag("wanted %g, seen %g", wanted, seen);
	return false;
}

static bool is_model(const struct stele_model *a, const struct stele_model *b,
		     double share)
{
	return within(a->latency, b->latency, share) &
	       within(a->stream_rate, b->stream_rate, 2 * share) &
	       within(a->iops_max, b->iops_max, share) &
	       within(a->bytes_max, b->bytes_max, share);
}

static void check_recovery(void)
{
	struct stele_fit_point points[STELE_FIT_POINTS_MAX];
	struct stele_model seen;
	double residual;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		const struct stele_model *model = &devices[i].model;
		size_t count = sweep(model, 0, points);

		is_int(0, stele_model_fit(points, count, &seen, &residual),
		       "%s: fits", devices[i].what);
		ok(is_model(model, &seen, 0.02), "%s: recovered",
		   devices[i].what);
		ok(residual < 0.002, "%s: residual %g", devices[i].what,
		   residual);
		/* Where the formula itself has 95 %. */
		ok(within(1.448, seen.kappa, 0.25), "%s: kappa",
		   devices[i].what);
		count = sweep(model, 0.03, points);
		is_int(0, stele_model_fit(points, count, &seen, &residual),
		       "%s: fits noise", devices[i].what);
		ok(is_model(model, &seen, 0.12), "%s: recovered from noise",
		   devices[i].what);
		ok(residual > 0.005 && residual < 0.05, "%s: residual %g",
		   devices[i].what, residual);
	}
}

/* One point in eight is off by a factor of three. */
static void check_outliers(void)
{
	struct stele_fit_point points[STELE_FIT_POINTS_MAX];
	const struct stele_model *model = &devices[0].model;
	struct stele_model seen;
	double residual;
	size_t count = sweep(model, 0.01, points);

	for (size_t i = 3; i < count; i += 8)
		points[i].rate /= 3;
	is_int(0, stele_model_fit(points, count, &seen, &residual),
	       "fits with outliers");
	ok(is_model(model, &seen, 0.10), "and hardly sees them");
	for (size_t i = 3; i < count; i += 8)
		points[i].noisy = true;
	stele_model_fit(points, count, &seen, &residual);
	ok(is_model(model, &seen, 0.08), "less if they are known to be noisy");
}

/* More than four times what saturates it makes the device slower. */
static void check_overload(void)
{
	struct stele_fit_point points[STELE_FIT_POINTS_MAX];
	const struct stele_model *model = &devices[3].model;
	struct stele_model seen;
	double residual;
	size_t count = 0;

	for (double size = 4096; size < 600e3; size *= 2)
		for (double depth = 1; depth <= 512; depth *= 2) {
			double knee = stele_model_latency(model, (uint64_t)size) /
				      stele_model_cost(model, (uint64_t)size);
			double rate = stele_model_throughput(
				model, (uint64_t)size, depth);

			if (depth > 4 * knee)
				rate *= pow(depth / (4 * knee), -0.3);
			if (depth <= 16 * knee)
				points[count++] = (struct stele_fit_point){
					size, depth, rate, false};
		}
	is_int(0, stele_model_fit(points, count, &seen, &residual),
	       "fits a device that is overloaded");
	ok(is_model(model, &seen, 0.03), "and sees what it can do");
}

/* Where nothing is certain, rates stay near those that were seen. */
static void check_scatter(void)
{
	struct stele_fit_point points[STELE_FIT_POINTS_MAX];
	const struct stele_model *model = &devices[3].model;
	double residual, worst = 1;
	struct stele_model seen;

	for (int round = 0; round < 40; round++) {
		size_t count = sweep(model, 0.7, points);

		if (stele_model_fit(points, count, &seen, &residual))
			bail("no fit");
		worst = fmax(worst, fmax(seen.bytes_max / model->bytes_max,
					 seen.iops_max / model->iops_max));
	}
	ok(worst < 8, "scatter of a factor of two: no more than %.1f times too much",
	   worst);
}

/* The device needs three times what the formula says. */
static void check_late_knee(void)
{
	struct stele_fit_point points[STELE_FIT_POINTS_MAX];
	struct stele_model model = devices[0].model, seen;
	double residual;
	size_t count = 0;

	for (double size = 4096; size < 1e6; size *= 4)
		for (double depth = 1; depth <= 512; depth *= 2) {
			double most = stele_model_throughput(&model,
							     (uint64_t)size, 1e9);
			double knee = 3 * most / size *
				      stele_model_latency(&model, (uint64_t)size);
			double rate = depth < knee ? 0.95 * most * depth / knee :
						     most;

			points[count++] = (struct stele_fit_point){
				size, depth, rate, false};
		}
	is_int(0, stele_model_fit(points, count, &seen, &residual), "fits");
	for (double size = 4096; size < 1e6; size *= 4) {
		double depth = seen.kappa *
			       stele_model_latency(&seen, (uint64_t)size) /
			       stele_model_cost(&seen, (uint64_t)size);
		double wanted = 3 * stele_model_latency(&model, (uint64_t)size) /
				stele_model_cost(&model, (uint64_t)size);

		ok(within(wanted, depth, 0.35), "knee at %g bytes", size);
	}
}

static void check_little(void)
{
	struct stele_fit_point points[STELE_FIT_POINTS_MAX];
	const struct stele_model *model = &devices[0].model;
	struct stele_model seen;
	double residual;
	size_t count = sweep(model, 0, points);

	is_int(-ENODATA, stele_model_fit(points, 0, &seen, &residual),
	       "no points");
	is_int(0, stele_model_fit(points, 1, &seen, &residual), "one point");
	ok(stele_model_valid(&seen), "is a valid model");
	ok(within(points[0].rate,
		  stele_model_throughput(&seen, 4096, 1), 0.1),
	   "that says so much");
	is_int(0, stele_model_fit(points, 7, &seen, &residual), "one size");
	ok(stele_model_valid(&seen) && residual < 0.05, "is a valid model");
	ok(seen.stream_rate > 1e6 && seen.stream_rate < 1e14 &&
		   seen.bytes_max > 1e6 && seen.bytes_max < 1e14,
	   "nothing runs away");
	points[3].rate = 0;
	is_int(-ENODATA, stele_model_fit(points, count, &seen, &residual),
	       "a point that is not positive");
	points[3].rate = NAN;
	is_int(-ENODATA, stele_model_fit(points, count, &seen, &residual),
	       "or not a number");
	is_int(-ERANGE,
	       stele_model_fit(points, STELE_FIT_POINTS_MAX + 1, &seen,
			       &residual),
	       "too many");
}

int main(void)
{
	plan_lazy();
	check_recovery();
	check_outliers();
	check_overload();
	check_scatter();
	check_late_knee();
	check_little();
	return done();
}

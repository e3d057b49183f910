/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - what a plot on a terminal and a drawn one share: ranges and ticks
 */
#include "plot.h"

#include <math.h>

#define MARGIN	   0.03 /* of the range, at both ends */
#define TICKS_WANT 7

static void widen(struct plot_range *range, double value)
{
	if (value < range->low)
		range->low = value;
	if (value > range->high)
		range->high = value;
}

static double scaled(const struct plot_range *range, double value)
{
	return range->log ? log(value) : value;
}

static double unscaled(const struct plot_range *range, double value)
{
	return range->log ? exp(value) : value;
}

static void finish(struct plot_range *range)
{
	double low = scaled(range, range->low);
	double high = scaled(range, range->high), margin;

	if (!(high > low)) {
		low -= range->log ? 0.5 : fabs(low) / 2 + 0.5;
		high += range->log ? 0.5 : fabs(high) / 2 + 0.5;
	}
	margin = (high - low) * MARGIN;
	range->low = unscaled(range, low - margin);
	range->high = unscaled(range, high + margin);
}

bool plot_ranges(const struct plot *plot, struct plot_range *x,
		 struct plot_range *y)
{
	*x = (struct plot_range){INFINITY, -INFINITY, plot->x.log};
	*y = (struct plot_range){INFINITY, -INFINITY, plot->y.log};
	for (size_t i = 0; i < plot->series_count; i++) {
		for (size_t j = 0; j < plot->series[i].count; j++) {
			widen(x, plot->series[i].x[j]);
			widen(y, plot->series[i].y[j]);
		}
	}
	if (!(x->low <= x->high))
		return false;
	for (size_t i = 0; i < plot->mark_count; i++) {
		widen(x, plot->marks[i].x);
		widen(y, plot->marks[i].y);
	}
	finish(x);
	finish(y);
	return true;
}

double plot_place(const struct plot_range *range, double value)
{
	double low = scaled(range, range->low), high = scaled(range, range->high);

	return (scaled(range, value) - low) / (high - low);
}

/* 1, 2 or 5 times a power of ten, or a power of two; at least `step`. */
static double round_step(double step, bool binary)
{
	static const double nice[] = {1, 2, 5, 10};
	double power = pow(10, floor(log10(step)));

	if (binary)
		return exp2(ceil(log2(step)));
	for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]); i++)
		if (nice[i] * power >= step * (1 - 1e-9))
			return nice[i] * power;
	return 10 * power;
}

static size_t linear_ticks(const struct plot_axis *axis,
			   const struct plot_range *range,
			   double ticks[PLOT_TICKS_MAX])
{
	double step = round_step((range->high - range->low) / TICKS_WANT,
				 axis->binary);
	double first = ceil(range->low / step);
	size_t count = 0;

	while (count < PLOT_TICKS_MAX &&
	       (first + (double)count) * step <= range->high) {
		ticks[count] = (first + (double)count) * step;
		count++;
	}
	return count;
}

/* Every n-th power of two, or of ten, or 1-2-5 between these if they are few. */
static size_t log_ticks(const struct plot_axis *axis,
			const struct plot_range *range,
			double ticks[PLOT_TICKS_MAX])
{
	static const double between[] = {1, 2, 5};
	const double base = axis->binary ? 2 : 10;
	const double span = log(range->high / range->low) / log(base);
	const bool dense = !axis->binary && span < 3;
	const double every = fmax(1, ceil(span / TICKS_WANT));
	double power = floor(log(range->low) / log(base) / every) * every;
	size_t count = 0;

	for (; pow(base, power) <= range->high; power += every) {
		for (size_t i = 0; i < (dense ? 3u : 1u); i++) {
			double tick = between[i] * pow(base, power);

			if (tick >= range->low && tick <= range->high &&
			    count < PLOT_TICKS_MAX)
				ticks[count++] = tick;
		}
	}
	return count;
}

size_t plot_ticks(const struct plot_axis *axis, const struct plot_range *range,
		  double ticks[PLOT_TICKS_MAX])
{
	return axis->log ? log_ticks(axis, range, ticks) :
			   linear_ticks(axis, range, ticks);
}

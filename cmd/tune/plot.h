/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - curves for people: on a terminal, and as an SVG drawing
 *
 * A plot is a few series of points that are joined in their order, each point with a number,
 * and marks upon them. Axes are linear or logarithmic; ticks come out round, in powers of
 * two where the unit is bytes. Nothing is kept: all belongs to the caller.
 */
#ifndef STELE_CMD_TUNE_PLOT_H
#define STELE_CMD_TUNE_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "text.h"

#define PLOT_MARK	"<svg" /* how each begins */
#define PLOT_SERIES_MAX 16u /* what has letters and colours; more are left out */

struct plot_axis {
	const char *label; /* with its unit, if the format says none */
	bool log;	   /* all values are positive */
	bool binary;	   /* round numbers are powers of two */
	char *(*format)(char buffer[TEXT_SIZE], double value);
};

struct plot_series {
	const char *name;
	const double *x, *y;
	const uint32_t *tags; /* a number beside each point */
	size_t count;
};

struct plot_mark {
	double x, y;
	size_t series; /* that it belongs to */
};

struct plot {
	const char *titles[3]; /* lines above it, the first one in bold */
	const char *tags; /* what they are, in the legend */
	struct plot_axis x, y;
	const struct plot_series *series;
	size_t series_count;
	const struct plot_mark *marks;
	size_t mark_count;
	const char *mark_name; /* in the legend */
};

/* At most `columns` wide, and about `rows` lines. `utf8`: by Braille dots. */
void plot_text(FILE *to, const struct plot *plot, int columns, int rows,
	       bool utf8);
/* On white, 860 x 556. Return: false when the file took not all. */
bool plot_svg(FILE *to, const struct plot *plot);

#endif

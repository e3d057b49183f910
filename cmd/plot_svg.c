/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot_svg.c - a plot as an SVG drawing
 *
 * Plain shapes and text, no style sheet and no script: whatever shows SVG shows
 * it alike. The colours can be told apart by the colour-blind (after Okabe and
 * Ito), and each series has its own kind of line as well.
 */
#include "plot.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH  860
#define HEIGHT 556
#define LEFT   92
#define RIGHT  150 /* the legend */
#define TOP    84
#define BOTTOM 64
#define FONT   "font-family=\"Helvetica,Arial,sans-serif\""

static const char *const colours[] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7",
	"#56b4e9", "#e69f00", "#000000", "#7f5a3c",
};
#define COLOURS (sizeof(colours) / sizeof(colours[0]))
static const char *const dashes[] = {"", " stroke-dasharray=\"7 3\""};

struct canvas {
	FILE *to;
	const struct plot *plot;
	struct plot_range x, y;
};

static double at_x(const struct canvas *canvas, double value)
{
	return LEFT + plot_place(&canvas->x, value) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct canvas *canvas, double value)
{
	return HEIGHT - BOTTOM -
	       plot_place(&canvas->y, value) * (HEIGHT - TOP - BOTTOM);
}

/* Of numbers as SVG wants them, whatever the locale: tenths. */
static const char *number(char buffer[32], double value)
{
	long tenths = (long)(value * 10 + (value < 0 ? -0.5 : 0.5));

	snprintf(buffer, 32, "%s%ld.%ld", tenths < 0 ? "-" : "",
		 labs(tenths) / 10, labs(tenths) % 10);
	return buffer;
}

static void put_text(const struct canvas *canvas, double x, double y,
		     const char *attributes, const char *text)
{
	char a[32], b[32];

	fprintf(canvas->to, "<text x=\"%s\" y=\"%s\" " FONT " %s>",
		number(a, x), number(b, y), attributes);
	for (; *text; text++) {
		switch (*text) {
		case '<': fputs("&lt;", canvas->to); break;
		case '>': fputs("&gt;", canvas->to); break;
		case '&': fputs("&amp;", canvas->to); break;
		default: putc(*text, canvas->to);
		}
	}
	fputs("</text>\n", canvas->to);
}

static void put_line(const struct canvas *canvas, double x1, double y1,
		     double x2, double y2, const char *attributes)
{
	char a[32], b[32], c[32], d[32];

	fprintf(canvas->to,
		"<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" %s/>\n",
		number(a, x1), number(b, y1), number(c, x2), number(d, y2),
		attributes);
}

static void put_axes(const struct canvas *canvas)
{
	static const char grid[] = "stroke=\"#dddddd\"";
	const struct plot *plot = canvas->plot;
	const double right = WIDTH - RIGHT, bottom = HEIGHT - BOTTOM;
	double ticks[PLOT_TICKS_MAX];
	char text[TEXT_SIZE], turned[160], a[32], b[32];
	size_t count = plot_ticks(&plot->x, &canvas->x, ticks);

	for (size_t i = 0; i < count; i++) {
		double x = at_x(canvas, ticks[i]);

		put_line(canvas, x, TOP, x, bottom, grid);
		put_text(canvas, x, bottom + 18,
			 "font-size=\"12\" text-anchor=\"middle\" fill=\"#333333\"",
			 plot->x.format(text, ticks[i]));
	}
	count = plot_ticks(&plot->y, &canvas->y, ticks);
	for (size_t i = 0; i < count; i++) {
		double y = at_y(canvas, ticks[i]);

		put_line(canvas, LEFT, y, right, y, grid);
		put_text(canvas, LEFT - 8, y + 4,
			 "font-size=\"12\" text-anchor=\"end\" fill=\"#333333\"",
			 plot->y.format(text, ticks[i]));
	}
	put_line(canvas, LEFT, bottom, right, bottom, "stroke=\"#333333\"");
	put_line(canvas, LEFT, TOP, LEFT, bottom, "stroke=\"#333333\"");
	put_text(canvas, (LEFT + right) / 2, HEIGHT - 18,
		 "font-size=\"13\" text-anchor=\"middle\"", plot->x.label);
	snprintf(turned, sizeof(turned),
		 "font-size=\"13\" text-anchor=\"middle\" "
		 "transform=\"rotate(-90 %s %s)\"",
		 number(a, 22), number(b, (TOP + bottom) / 2));
	put_text(canvas, 22, (TOP + bottom) / 2, turned, plot->y.label);
}

static void put_series(const struct canvas *canvas, size_t index)
{
	const struct plot_series *series = &canvas->plot->series[index];
	const char *colour = colours[index % COLOURS];
	char a[32], b[32], style[64], tag[16];

	fputs("<polyline fill=\"none\" points=\"", canvas->to);
	for (size_t i = 0; i < series->count; i++)
		fprintf(canvas->to, "%s%s,%s", i ? " " : "",
			number(a, at_x(canvas, series->x[i])),
			number(b, at_y(canvas, series->y[i])));
	fprintf(canvas->to, "\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", colour,
		dashes[index / COLOURS % 2]);
	for (size_t i = 0; i < series->count; i++)
		fprintf(canvas->to,
			"<circle cx=\"%s\" cy=\"%s\" r=\"2.6\" fill=\"%s\"/>\n",
			number(a, at_x(canvas, series->x[i])),
			number(b, at_y(canvas, series->y[i])), colour);
	snprintf(style, sizeof(style), "font-size=\"9\" fill=\"%s\"", colour);
	for (size_t i = 0; i < series->count; i++) {
		snprintf(tag, sizeof(tag), "%u", series->tags[i]);
		put_text(canvas, at_x(canvas, series->x[i]) + 4,
			 at_y(canvas, series->y[i]) - 4, style, tag);
	}
}

static void put_mark(const struct canvas *canvas, double x, double y,
		     const char *colour)
{
	char a[32], b[32];

	fprintf(canvas->to,
		"<path d=\"M %s %s l 7 7 l -7 7 l -7 -7 z\" fill=\"#ffffff\" "
		"stroke=\"%s\" stroke-width=\"2.2\"/>\n",
		number(a, x), number(b, y - 7), colour);
}

static void put_legend(const struct canvas *canvas)
{
	static const char style[] = "font-size=\"12\" fill=\"#333333\"";
	const struct plot *plot = canvas->plot;
	const double x = WIDTH - RIGHT + 16;
	double y = TOP + 8;
	char attributes[96];

	for (size_t i = 0; i < plot->series_count && i < PLOT_SERIES_MAX; i++) {
		snprintf(attributes, sizeof(attributes),
			 "stroke=\"%s\" stroke-width=\"2\"%s",
			 colours[i % COLOURS], dashes[i / COLOURS % 2]);
		put_line(canvas, x, y, x + 24, y, attributes);
		put_text(canvas, x + 32, y + 4, style, plot->series[i].name);
		y += 20;
	}
	put_text(canvas, x, y + 4, style, plot->tags);
	y += 20;
	if (!plot->mark_count)
		return;
	put_mark(canvas, x + 12, y + 2, "#333333");
	put_text(canvas, x + 32, y + 6, style, plot->mark_name);
}

bool plot_svg(FILE *to, const struct plot *plot)
{
	struct canvas canvas = {.to = to, .plot = plot};

	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
	put_text(&canvas, LEFT, 26, "font-size=\"15\" font-weight=\"bold\"",
		 plot->titles[0]);
	put_text(&canvas, LEFT, 46, "font-size=\"12\"", plot->titles[1]);
	put_text(&canvas, LEFT, 64, "font-size=\"12\"", plot->titles[2]);
	if (plot_ranges(plot, &canvas.x, &canvas.y)) {
		put_axes(&canvas);
		for (size_t i = 0;
		     i < plot->series_count && i < PLOT_SERIES_MAX; i++)
			put_series(&canvas, i);
		for (size_t i = 0; i < plot->mark_count; i++)
			put_mark(&canvas, at_x(&canvas, plot->marks[i].x),
				 at_y(&canvas, plot->marks[i].y),
				 colours[plot->marks[i].series % COLOURS]);
		put_legend(&canvas);
	}
	fputs("</svg>\n", to);
	return !ferror(to);
}

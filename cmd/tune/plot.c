/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - a plot as an SVG drawing, and in the characters of a terminal
 *
 * SVG: plain shapes and text, no style sheet and no script: every viewer shows it alike. The
 * colours can be told apart by the colour-blind (after Okabe and Ito), and each series has its
 * own kind of line as well.
 *
 * Terminal: with UTF-8 in Braille, 2 x 4 dots to a character; without, in dots and letters.
 * Each series has a letter, which stands where it ends.
 */
#include "plot.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranges and ticks ------------------------------------------------------- */

#define MARGIN	   0.03 /* of the range, at both ends */
#define TICKS_WANT 7
#define TICKS_MAX  12u

/* What the points span on one axis, a little widened. */
struct range {
	double low, high; /* low < high */
	bool log;
};

static void widen(struct range *range, double value)
{
	if (value < range->low)
		range->low = value;
	if (value > range->high)
		range->high = value;
}

static double scaled(const struct range *range, double value)
{
	return range->log ? log(value) : value;
}

static double unscaled(const struct range *range, double value)
{
	return range->log ? exp(value) : value;
}

static void finish(struct range *range)
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

static bool ranges(const struct plot *plot, struct range *x,
		 struct range *y)
{
	*x = (struct range){INFINITY, -INFINITY, plot->x.log};
	*y = (struct range){INFINITY, -INFINITY, plot->y.log};
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

static double place(const struct range *range, double value)
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
			   const struct range *range,
			   double ticks[TICKS_MAX])
{
	double step = round_step((range->high - range->low) / TICKS_WANT,
				 axis->binary);
	double first = ceil(range->low / step);
	size_t count = 0;

	while (count < TICKS_MAX &&
	       (first + (double)count) * step <= range->high) {
		ticks[count] = (first + (double)count) * step;
		count++;
	}
	return count;
}

/* Every n-th power of two, or of ten, or 1-2-5 between these if they are few. */
static size_t log_ticks(const struct plot_axis *axis,
			const struct range *range,
			double ticks[TICKS_MAX])
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
			    count < TICKS_MAX)
				ticks[count++] = tick;
		}
	}
	return count;
}

static size_t find_ticks(const struct plot_axis *axis, const struct range *range,
		  double ticks[TICKS_MAX])
{
	return axis->log ? log_ticks(axis, range, ticks) :
			   linear_ticks(axis, range, ticks);
}

/* ---- SVG ---------------------------------------------------------------------- */

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
	struct range x, y;
};

static double at_x(const struct canvas *canvas, double value)
{
	return LEFT + place(&canvas->x, value) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct canvas *canvas, double value)
{
	return HEIGHT - BOTTOM -
	       place(&canvas->y, value) * (HEIGHT - TOP - BOTTOM);
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
	double ticks[TICKS_MAX];
	char text[TEXT_SIZE], turned[160], a[32], b[32];
	size_t count = find_ticks(&plot->x, &canvas->x, ticks);

	for (size_t i = 0; i < count; i++) {
		double x = at_x(canvas, ticks[i]);

		put_line(canvas, x, TOP, x, bottom, grid);
		put_text(canvas, x, bottom + 18,
			 "font-size=\"12\" text-anchor=\"middle\" fill=\"#333333\"",
			 plot->x.format(text, ticks[i]));
	}
	count = find_ticks(&plot->y, &canvas->y, ticks);
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
		PLOT_MARK " xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
	put_text(&canvas, LEFT, 26, "font-size=\"15\" font-weight=\"bold\"",
		 plot->titles[0]);
	put_text(&canvas, LEFT, 46, "font-size=\"12\"", plot->titles[1]);
	put_text(&canvas, LEFT, 64, "font-size=\"12\"", plot->titles[2]);
	if (ranges(plot, &canvas.x, &canvas.y)) {
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

/* ---- terminal ----------------------------------------------------------------- */

#define COLUMNS_MAX 160
#define ROWS_MAX    60
#define GUTTER	    11 /* labels of the y axis, and the axis */
#define MARK	    '*'

struct grid {
	int columns, rows; /* of characters, within the axes */
	bool utf8;
	struct range x, y;
	uint8_t dots[ROWS_MAX][COLUMNS_MAX]; /* Braille: a bit for each */
	char letters[ROWS_MAX][COLUMNS_MAX]; /* over dots; 0: none */
};

/* Dots in both directions, from the left and from the top. */
static void dot_at(const struct grid *grid, double x, double y, double *right,
		   double *down)
{
	*right = place(&grid->x, x) * (grid->columns * 2 - 1);
	*down = (1 - place(&grid->y, y)) * (grid->rows * 4 - 1);
}

static void set_dot(struct grid *grid, double right, double down)
{
	static const uint8_t bits[4][2] = {
		{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
	int x = (int)(right + 0.5), y = (int)(down + 0.5);

	if (x >= 0 && y >= 0 && x < grid->columns * 2 && y < grid->rows * 4)
		grid->dots[y / 4][x / 2] |= bits[y % 4][x % 2];
}

static void set_letter(struct grid *grid, double x, double y, char letter)
{
	double right, down;
	int column, row;

	dot_at(grid, x, y, &right, &down);
	column = (int)(right + 0.5) / 2;
	row = (int)(down + 0.5) / 4;
	if (column >= 0 && row >= 0 && column < grid->columns &&
	    row < grid->rows)
		grid->letters[row][column] = letter;
}

static void draw_line(struct grid *grid, const struct plot_series *series,
		      size_t i)
{
	double x1, y1, x2, y2, steps;

	dot_at(grid, series->x[i], series->y[i], &x1, &y1);
	dot_at(grid, series->x[i + 1], series->y[i + 1], &x2, &y2);
	steps = fmax(1, ceil(fmax(fabs(x2 - x1), fabs(y2 - y1))));
	for (double at = 0; at <= steps; at++)
		set_dot(grid, x1 + (x2 - x1) * at / steps,
			y1 + (y2 - y1) * at / steps);
}

/* To the right of the point, if nothing else stands there. */
static void set_tag(struct grid *grid, double x, double y, uint32_t tag)
{
	double right, down;
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", tag), column, row;

	dot_at(grid, x, y, &right, &down);
	column = (int)(right + 0.5) / 2 + 1;
	row = (int)(down + 0.5) / 4;
	if (column + length > grid->columns || row < 0 || row >= grid->rows)
		return;
	/* With a gap on both sides: two numbers must not become one. */
	for (int i = -1; i <= length; i++)
		if (column + i >= 0 && column + i < grid->columns &&
		    isalnum((unsigned char)grid->letters[row][column + i]))
			return;
	for (int i = 0; i < length; i++)
		if (grid->letters[row][column + i])
			return;
	memcpy(&grid->letters[row][column], text, (size_t)length);
}

static char letter_of(size_t index)
{
	return (char)('a' + index % 26);
}

/* Marks first: what they say is wanted most. */
static void tag_mark(struct grid *grid, const struct plot *plot,
		     const struct plot_mark *mark)
{
	const struct plot_series *series = &plot->series[mark->series];

	for (size_t i = 0; i < series->count; i++)
		if (series->x[i] == mark->x && series->y[i] == mark->y)
			set_tag(grid, mark->x, mark->y, series->tags[i]);
}

static void draw_all(struct grid *grid, const struct plot *plot)
{
	size_t count = plot->series_count < PLOT_SERIES_MAX ?
			       plot->series_count :
			       PLOT_SERIES_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct plot_series *series = &plot->series[i];

		for (size_t j = 0; j + 1 < series->count; j++)
			draw_line(grid, series, j);
	}
	for (size_t i = 0; i < plot->mark_count; i++)
		set_letter(grid, plot->marks[i].x, plot->marks[i].y, MARK);
	for (size_t i = 0; i < count; i++) {
		const struct plot_series *series = &plot->series[i];

		if (series->count)
			set_letter(grid, series->x[series->count - 1],
				   series->y[series->count - 1], letter_of(i));
	}
	for (size_t i = 0; i < plot->mark_count; i++)
		tag_mark(grid, plot, &plot->marks[i]);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < plot->series[i].count; j++)
			set_tag(grid, plot->series[i].x[j], plot->series[i].y[j],
				plot->series[i].tags[j]);
}

static void put_cell(FILE *to, const struct grid *grid, int row, int column)
{
	uint8_t dots = grid->dots[row][column];

	if (grid->letters[row][column])
		putc(grid->letters[row][column], to);
	else if (!dots)
		putc(' ', to);
	else if (grid->utf8) /* U+2800 ... U+28ff */
		fprintf(to, "\xe2%c%c", 0xa0 | dots >> 6, 0x80 | (dots & 0x3f));
	else
		putc(dots & 0xe4 ? '.' : '\'', to);
}

static void put_rows(FILE *to, const struct grid *grid, const struct plot *plot)
{
	double ticks[TICKS_MAX], right, down;
	size_t count = find_ticks(&plot->y, &grid->y, ticks);
	const char *axis = grid->utf8 ? "\xe2\x94\x82" : "|";
	char labels[ROWS_MAX][TEXT_SIZE] = {{0}};

	for (size_t i = 0; i < count; i++) {
		dot_at(grid, grid->x.low, ticks[i], &right, &down);
		plot->y.format(labels[(int)(down + 0.5) / 4], ticks[i]);
	}
	for (int row = 0; row < grid->rows; row++) {
		int last = grid->columns - 1;

		while (last >= 0 && !grid->dots[row][last] &&
		       !grid->letters[row][last])
			last--;
		fprintf(to, "%*s %s", GUTTER - 2, labels[row], axis);
		for (int column = 0; column <= last; column++)
			put_cell(to, grid, row, column);
		putc('\n', to);
	}
}

/* Labels that would touch the one before are left out. */
static void put_below(FILE *to, const struct grid *grid,
		      const struct plot *plot)
{
	char line[COLUMNS_MAX + GUTTER + 1], text[TEXT_SIZE];
	double ticks[TICKS_MAX], right, down;
	size_t count = find_ticks(&plot->x, &grid->x, ticks);
	const int width = grid->columns + GUTTER;
	int free_from = 0;

	fprintf(to, "%*s%s", GUTTER - 1, "", grid->utf8 ? "\xe2\x94\x94" : "+");
	for (int i = 0; i < grid->columns; i++)
		fputs(grid->utf8 ? "\xe2\x94\x80" : "-", to);
	putc('\n', to);
	memset(line, ' ', sizeof(line));
	for (size_t i = 0; i < count; i++) {
		int length = (int)strlen(plot->x.format(text, ticks[i])), at;

		dot_at(grid, ticks[i], grid->y.low, &right, &down);
		at = GUTTER + (int)(right + 0.5) / 2 - length / 2;
		if (at < free_from || at + length > width)
			continue;
		memcpy(line + at, text, (size_t)length);
		free_from = at + length + 2;
	}
	free_from = width;
	while (free_from && line[free_from - 1] == ' ')
		free_from--;
	fprintf(to, "%.*s\n", free_from, line);
	fprintf(to, "%*s\n", GUTTER + (grid->columns +
				       (int)strlen(plot->x.label)) / 2,
		plot->x.label);
}

static void write_legend(FILE *to, const struct plot *plot, int columns)
{
	int used = 0;

	for (size_t i = 0; i <= plot->series_count && i < PLOT_SERIES_MAX; i++) {
		bool mark = i == plot->series_count;
		const char *name = mark ? plot->mark_name : plot->series[i].name;
		int width;

		if (mark && !plot->mark_count)
			break;
		width = (int)strlen(name) + 5;
		if (used && used + width > columns) {
			putc('\n', to);
			used = 0;
		}
		fprintf(to, "  %c  %s", mark ? MARK : letter_of(i), name);
		used += width;
	}
	fprintf(to, "%s%s\n", used ? "  " : "", plot->tags);
}

void plot_text(FILE *to, const struct plot *plot, int columns, int rows,
	       bool utf8)
{
	struct grid *grid = calloc(1, sizeof(*grid));

	if (!grid || !ranges(plot, &grid->x, &grid->y)) {
		free(grid);
		return;
	}
	grid->columns = columns - GUTTER - 1;
	grid->rows = rows;
	grid->utf8 = utf8;
	if (grid->columns > COLUMNS_MAX)
		grid->columns = COLUMNS_MAX;
	if (grid->rows > ROWS_MAX)
		grid->rows = ROWS_MAX;
	if (grid->columns >= 10 && grid->rows >= 4) {
		draw_all(grid, plot);
		for (size_t i = 0; i < 3; i++)
			fprintf(to, "%s\n", plot->titles[i]);
		fprintf(to, "%s\n", plot->y.label);
		put_rows(to, grid, plot);
		put_below(to, grid, plot);
		write_legend(to, plot, columns);
	}
	free(grid);
}

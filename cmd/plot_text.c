/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot_text.c - a plot in the characters of a terminal
 *
 * With UTF-8 in Braille, 2 x 4 dots to a character; without, in dots and
 * letters. Each series has a letter, which stands where it ends.
 */
#include "plot.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 160
#define ROWS_MAX    60
#define GUTTER	    11 /* labels of the y axis, and the axis */
#define MARK	    '*'

struct grid {
	int columns, rows; /* of characters, within the axes */
	bool utf8;
	struct plot_range x, y;
	uint8_t dots[ROWS_MAX][COLUMNS_MAX]; /* Braille: a bit for each */
	char letters[ROWS_MAX][COLUMNS_MAX]; /* over dots; 0: none */
};

/* Dots in both directions, from the left and from the top. */
static void dot_at(const struct grid *grid, double x, double y, double *right,
		   double *down)
{
	*right = plot_place(&grid->x, x) * (grid->columns * 2 - 1);
	*down = (1 - plot_place(&grid->y, y)) * (grid->rows * 4 - 1);
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

static void draw(struct grid *grid, const struct plot *plot)
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
	double ticks[PLOT_TICKS_MAX], right, down;
	size_t count = plot_ticks(&plot->y, &grid->y, ticks);
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
	double ticks[PLOT_TICKS_MAX], right, down;
	size_t count = plot_ticks(&plot->x, &grid->x, ticks);
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

static void put_legend(FILE *to, const struct plot *plot, int columns)
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

	if (!grid || !plot_ranges(plot, &grid->x, &grid->y)) {
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
		draw(grid, plot);
		for (size_t i = 0; i < 3; i++)
			fprintf(to, "%s\n", plot->titles[i]);
		fprintf(to, "%s\n", plot->y.label);
		put_rows(to, grid, plot);
		put_below(to, grid, plot);
		put_legend(to, plot, columns);
	}
	free(grid);
}

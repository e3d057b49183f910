/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_plot.c - latency against throughput, with the knee of each curve
 */
#include "tune.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "output.h"
#include "plot.h"

#define COLUMNS 80
#define ROWS	18

struct drawing {
	struct plot plot;
	struct plot_series series[PLOT_SERIES_MAX];
	struct plot_mark marks[PLOT_SERIES_MAX];
	char names[PLOT_SERIES_MAX][TEXT_SIZE];
	char title[256];
	double *x, *y;
};

/* "512.0 MiB" to "512 MiB": ticks are round. */
static char *trim(char *text)
{
	char *point = strchr(text, '.'), *end;

	if (!point)
		return text;
	end = point + 1 + strspn(point + 1, "0");
	if (*end < '0' || *end > '9')
		memmove(point, end, strlen(end) + 1);
	return text;
}

static char *format_rate(char buffer[TEXT_SIZE], double value)
{
	trim(text_size(buffer, (uint64_t)(value + 0.5)));
	return strcat(buffer, "/s");
}

static char *format_latency(char buffer[TEXT_SIZE], double value)
{
	return trim(text_latency(buffer, (uint64_t)(value + 0.5)));
}

/* On the measured curve, at the depth that the model names. */
static bool find_knee(const struct stele_tune_point *row, size_t count,
		      const struct stele_profile *profile,
		      struct plot_mark *mark)
{
	double depth = stele_profile_depth(profile, row->size), share;

	for (size_t i = 0; i + 1 < count; i++) {
		const struct stele_tune_point *a = &row[i], *b = &row[i + 1];

		if (depth > b->depth)
			continue;
		share = fmax(0, log(depth / a->depth) / log(2));
		mark->x = a->bytes_per_second *
			  pow(b->bytes_per_second / a->bytes_per_second, share);
		mark->y = (double)a->p50_ns *
			  pow((double)b->p50_ns / (double)a->p50_ns, share);
		return true;
	}
	return false;
}

static void add_row(struct drawing *drawing,
		    const struct stele_tune_point *row, size_t count,
		    const struct stele_profile *profile, size_t first)
{
	struct plot *plot = &drawing->plot;
	size_t index = plot->series_count++;

	trim(text_size(drawing->names[index], row->size));
	drawing->series[index] = (struct plot_series){
		drawing->names[index], drawing->x + first, drawing->y + first,
		count};
	drawing->marks[plot->mark_count].series = index;
	plot->mark_count += find_knee(row, count, profile,
				      &drawing->marks[plot->mark_count]);
}

/* Return: false when out of memory. */
static bool prepare(struct drawing *drawing, const struct tune_report *report)
{
	const struct stele_tune_point *points = report->points;
	size_t end;

	memset(drawing, 0, sizeof(*drawing));
	drawing->x = calloc(report->count + 1, sizeof(double));
	drawing->y = calloc(report->count + 1, sizeof(double));
	if (!drawing->x || !drawing->y)
		return false;
	snprintf(drawing->title, sizeof(drawing->title), "%s, by '%s'",
		 *report->profile.device ? report->profile.device : report->target,
		 report->profile.backend);
	drawing->plot = (struct plot){
		.title = drawing->title,
		.x = {"throughput", true, true, format_rate},
		.y = {"median latency of a read", true, false, format_latency},
		.series = drawing->series,
		.marks = drawing->marks,
		.mark_name = "knee",
	};
	for (size_t i = 0; i < report->count; i++) {
		drawing->x[i] = points[i].bytes_per_second;
		drawing->y[i] = (double)points[i].p50_ns;
	}
	for (size_t i = 0; i < report->count; i = end) {
		for (end = i; end < report->count &&
			      points[end].size == points[i].size;
		     end++)
			;
		if (points[i].size &&
		    drawing->plot.series_count < PLOT_SERIES_MAX)
			add_row(drawing, &points[i], end - i, &report->profile,
				i);
	}
	return true;
}

static void drop(struct drawing *drawing)
{
	free(drawing->x);
	free(drawing->y);
}

/* Numbers stay as they are in any locale; only its letters are asked for. */
static bool is_utf8_terminal(void)
{
	return isatty(STDOUT_FILENO) && setlocale(LC_CTYPE, "") &&
	       !strcmp(nl_langinfo(CODESET), "UTF-8");
}

void tune_plot_text(const struct tune_report *report)
{
	struct drawing drawing;

	if (prepare(&drawing, report))
		plot_text(stdout, &drawing.plot, COLUMNS, ROWS,
			  is_utf8_terminal());
	drop(&drawing);
}

static bool put_svg(FILE *to, const void *plot)
{
	return plot_svg(to, plot);
}

int tune_plot_svg(const struct tune_report *report, const char *path)
{
	struct drawing drawing;
	int error = -ENOMEM;

	if (prepare(&drawing, report))
		error = output_write(path, put_svg, &drawing.plot);
	else
		cmd_error(error, "cannot write '%s'", path);
	drop(&drawing);
	return error;
}

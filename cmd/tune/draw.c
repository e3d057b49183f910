/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - latency against throughput, with the knee of each curve
 */
#include "tune.h"

#include <langinfo.h>
#include <locale.h>
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
	char where[192], backend[64];
	double x[STELE_TUNE_POINTS_MAX], y[STELE_TUNE_POINTS_MAX];
	uint32_t tags[STELE_TUNE_POINTS_MAX];
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

static void mark_knee(struct plot *plot, const struct plot_series *series, size_t index,
		      uint32_t depth, struct plot_mark *marks)
{
	for (size_t i = 0; i < series->count; i++)
		if (series->tags[i] == depth)
			marks[plot->mark_count++] = (struct plot_mark){
				series->x[i], series->y[i], index};
}

static void add_row(struct drawing *drawing, const struct stele_tuning *tuning,
		    size_t first, size_t count)
{
	struct plot *plot = &drawing->plot;
	uint32_t size = tuning->points[first].size;
	size_t index = plot->series_count++;

	if (size)
		trim(text_size(drawing->names[index], size));
	else
		strcpy(drawing->names[index], "mix");
	drawing->series[index] = (struct plot_series){
		drawing->names[index], drawing->x + first, drawing->y + first,
		drawing->tags + first, count};
	mark_knee(plot, &drawing->series[index], index, stele_tuning_depth(tuning, size),
		  drawing->marks);
}

static void prepare(struct drawing *drawing, const struct tune_report *report)
{
	const struct stele_tuning *tuning = &report->tuning;
	const struct stele_tune_point *points = tuning->points;
	char time[TEXT_SIZE];
	size_t end;

	memset(drawing, 0, sizeof(*drawing));
	snprintf(drawing->where, sizeof(drawing->where), "on host '%s', %s", report->host,
		 text_time(time, report->time));
	snprintf(drawing->backend, sizeof(drawing->backend), "read by '%s'", tuning->backend);
	drawing->plot = (struct plot){
		.titles = {report->target, drawing->where, drawing->backend},
		.x = {"throughput", true, true, format_rate},
		.y = {"median latency of a read", true, false, format_latency},
		.tags = "numbers: depth",
		.series = drawing->series,
		.marks = drawing->marks,
		.mark_name = "knee",
	};
	for (size_t i = 0; i < tuning->point_count; i = end) {
		for (end = i; end < tuning->point_count &&
			      points[end].size == points[i].size;
		     end++) {
			drawing->x[end] = points[end].bytes_per_second;
			drawing->y[end] = (double)points[end].p50_ns;
			drawing->tags[end] = points[end].depth;
		}
		if (drawing->plot.series_count < PLOT_SERIES_MAX)
			add_row(drawing, tuning, i, end - i);
	}
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

	prepare(&drawing, report);
	plot_text(stdout, &drawing.plot, COLUMNS, ROWS, is_utf8_terminal());
}

static bool put_svg(FILE *to, const void *plot)
{
	return plot_svg(to, plot);
}

int tune_plot_svg(const struct tune_report *report, const char *path)
{
	struct drawing drawing;

	prepare(&drawing, report);
	return output_write(path, put_svg, &drawing.plot);
}

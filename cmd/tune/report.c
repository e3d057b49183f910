/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - what stele tune found: for people, in 80 columns, and as JSON
 */
#include "tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text.h"

#define BLOCK_MAX  6 /* sizes beside each other */
#define SIZES_MAX  16
#define CELL	   11
#define COLUMNS	   80
#define SLOW_NS	   100000000 /* then milliseconds are told */

static const struct stele_tune_point *
find_point(const struct stele_tuning *tuning, uint32_t size, uint32_t depth)
{
	for (uint32_t i = 0; i < tuning->point_count; i++)
		if (tuning->points[i].size == size &&
		    tuning->points[i].depth == depth)
			return &tuning->points[i];
	return NULL;
}

/* Where the snapshot's own sizes were read at the knee. */
static const struct stele_tune_point *
knee_point(const struct stele_tuning *tuning)
{
	return find_point(tuning, 0, tuning->depth);
}

/* The size of each row, "mix" for the snapshot's own. */
static const char *size_name(char buffer[TEXT_SIZE], uint32_t size)
{
	if (!size)
		return "mix";
	snprintf(buffer, TEXT_SIZE, "%u KiB", size >> 10);
	return buffer;
}

static size_t list_sizes(const struct stele_tuning *tuning,
			 uint32_t sizes[SIZES_MAX])
{
	size_t count = 0;

	for (uint32_t i = 0; i < tuning->point_count && count < SIZES_MAX; i++)
		if (!count || tuning->points[i].size != sizes[count - 1])
			sizes[count++] = tuning->points[i].size;
	return count;
}

void tune_print_knee(const struct tune_report *report)
{
	const struct stele_tuning *tuning = &report->tuning;
	const struct stele_tune_point *point = knee_point(tuning);
	char a[TEXT_SIZE], b[TEXT_SIZE];

	printf(ROW "depth %u by '%s'", "knee", tuning->depth, tuning->backend);
	if (point)
		printf(", %s/s, p99 %s there", text_size(a, (uint64_t)point->bytes_per_second),
		       text_latency(b, point->p99_ns));
	printf("\n" ROW "%s, on host '%s'\n", "measured", text_time(a, report->time),
	       report->host);
	printf(ROW "'%s', %s of samples\n", "on", report->target,
	       text_size(a, tuning->slots_size));
}

/* ---- cells ------------------------------------------------------------------- */

typedef void (*cell_fn)(char *text, size_t size,
			const struct stele_tune_point *point, bool slow);

static void throughput_cell(char *text, size_t size,
			    const struct stele_tune_point *point, bool slow)
{
	double value = point->bytes_per_second / (1 << 20);

	(void)slow;
	snprintf(text, size, "%s%.*f", point->noisy ? "~" : "",
		 value < 99.95 ? 1 : 0, value);
}

/* In milliseconds if `slow`, else microseconds. */
static void latency_cell(char *text, size_t size,
			 const struct stele_tune_point *point, bool slow)
{
	double unit = slow ? 1e6 : 1e3, p50 = (double)point->p50_ns / unit,
	       p99 = (double)point->p99_ns / unit;

	snprintf(text, size, "%.*f/%.*f", slow && p50 < 99.5, p50,
		 slow && p99 < 99.5, p99);
}

static void print_table(const struct stele_tuning *tuning, const char *title,
			const uint32_t *sizes, size_t count, cell_fn cell,
			bool slow)
{
	uint32_t depth_max = 0;
	char text[TEXT_SIZE];

	for (uint32_t i = 0; i < tuning->point_count; i++)
		if (tuning->points[i].depth > depth_max)
			depth_max = tuning->points[i].depth;
	printf("\n%s\n%5s", title, "depth");
	for (size_t i = 0; i < count; i++)
		printf(" %*s", CELL, size_name(text, sizes[i]));
	putchar('\n');
	for (uint32_t depth = 1; depth && depth <= depth_max; depth *= 2) {
		int gap = 0;

		printf("%5u", depth);
		for (size_t i = 0; i < count; i++) {
			const struct stele_tune_point *point =
				find_point(tuning, sizes[i], depth);

			gap += CELL + 1;
			if (!point)
				continue;
			*text = '*';
			cell(text + 1, sizeof(text) - 1, point, slow);
			printf("%*s", gap, text + (depth != stele_tuning_depth(tuning,
										sizes[i])));
			gap = 0;
		}
		putchar('\n');
	}
}

/* Broken at blanks, so that all fits. */
static void print_note(const char *note)
{
	const size_t width = COLUMNS - 6; /* "note: " */
	const char *indent = "note: ";

	while (strlen(note) > width) {
		size_t end = width;

		while (end && note[end] != ' ')
			end--;
		if (!end)
			break;
		printf("%s%.*s\n", indent, (int)end, note);
		note += end + 1;
		indent = "      ";
	}
	printf("%s%s\n", indent, note);
}

static void print_tables(const struct stele_tuning *tuning, const char *title,
			 cell_fn cell, bool slow)
{
	uint32_t sizes[SIZES_MAX];
	size_t count = list_sizes(tuning, sizes), wide;
	const size_t blocks = (count + BLOCK_MAX - 1) / BLOCK_MAX;

	for (size_t i = 0; i < count; i += wide) {
		wide = (count + blocks - 1) / blocks;
		if (wide > count - i)
			wide = count - i;
		print_table(tuning, title, sizes + i, wide, cell, slow);
	}
}

void tune_print_cells(const struct tune_report *report)
{
	const struct stele_tuning *tuning = &report->tuning;
	bool noisy = false, slow = false;

	for (uint32_t i = 0; i < tuning->point_count; i++) {
		slow |= tuning->points[i].p99_ns >= SLOW_NS;
		noisy |= tuning->points[i].noisy;
	}
	print_tables(tuning,
		     noisy ? "throughput, MiB/s (*: knee, ~: noisy, over 3 %)" :
			     "throughput, MiB/s (*: knee)",
		     throughput_cell, false);
	print_tables(tuning, slow ? "latency, ms: p50/p99" : "latency, us: p50/p99",
		     latency_cell, slow);
	putchar('\n');
	for (size_t i = 0; i < report->note_count; i++)
		print_note(report->notes[i]);
	if (report->note_count)
		putchar('\n');
}

/* Without memory one is missing, which does no harm. */
void tune_report_note(struct tune_report *report, const char *line)
{
	char **grown = reallocarray(report->notes, report->note_count + 1,
				    sizeof(*grown));
	char *copy = strdup(line);

	if (grown)
		report->notes = grown;
	if (grown && copy)
		report->notes[report->note_count++] = copy;
	else
		free(copy);
}

void tune_report_release(struct tune_report *report)
{
	for (size_t i = 0; i < report->note_count; i++)
		free(report->notes[i]);
	free(report->notes);
	memset(report, 0, sizeof(*report));
}

/* ---- JSON -------------------------------------------------------------------- */

/* The knee and what it was measured on, without the table. */
static json_t *knee_json(const struct tune_report *report)
{
	const struct stele_tuning *tuning = &report->tuning;
	json_t *object = json_make();

	json_set_text(object, "backend", tuning->backend);
	json_set_number(object, "depth", tuning->depth);
	json_set_text(object, "host", report->host);
	json_set_number(object, "slots_size", tuning->slots_size);
	json_set_number(object, "mean_size", tuning->mean_size);
	json_set_time(object, "time", report->time);
	return object;
}

/* size 0: the snapshot's own mix. */
static json_t *point_json(const struct stele_tune_point *point)
{
	json_t *object = json_make();

	json_set_number(object, "size", point->size);
	json_set_number(object, "depth", point->depth);
	json_set_real(object, "reads_per_second", point->reads_per_second);
	json_set_real(object, "bytes_per_second", point->bytes_per_second);
	json_set_number(object, "p50_ns", point->p50_ns);
	json_set_number(object, "p99_ns", point->p99_ns);
	json_set(object, "noisy", json_boolean(point->noisy));
	return object;
}

void tune_print_json(const struct tune_report *report)
{
	json_t *object = json_make(), *points = json_make_list(),
	       *notes = json_make_list();

	json_set_text(object, "target", report->target);
	json_set(object, "knee", knee_json(report));
	for (uint32_t i = 0; i < report->tuning.point_count; i++)
		json_add(points, point_json(&report->tuning.points[i]));
	json_set(object, "points", points);
	for (size_t i = 0; i < report->note_count; i++)
		json_add(notes, json_text(report->notes[i]));
	json_set(object, "notes", notes);
	json_line(object);
}

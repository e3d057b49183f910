/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_text.c - what stele tune found, for people, in 80 columns
 */
#include "tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define ROW	   "%-12s"
#define BLOCK_MAX  6 /* sizes beside each other */
#define SIZES_MAX  16
#define CELL	   11
#define COLUMNS	   80

char *tune_summary(char buffer[160], const struct stele_profile *profile)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];

	snprintf(buffer, 160,
		 "depth %u at the knee, up to %s/s and %s reads/s",
		 profile->depth, text_size(a, (uint64_t)profile->bytes_max),
		 text_count(b, (uint64_t)profile->iops_max));
	return buffer;
}

void tune_print_profile(const struct tune_report *report)
{
	const struct stele_profile *p = &report->profile;
	char a[TEXT_SIZE], b[TEXT_SIZE];

	printf(ROW "%s, by '%s'\n", "device",
	       *p->device ? p->device : "unknown", p->backend);
	printf(ROW "%s, then %s/s: a read alone\n", "latency",
	       text_latency(a, (uint64_t)(p->latency * 1e9)),
	       text_size(b, (uint64_t)p->stream_rate));
	printf(ROW "%s/s, %s reads/s\n", "at most",
	       text_size(a, (uint64_t)p->bytes_max),
	       text_count(b, (uint64_t)p->iops_max));
	printf(ROW "depth %u for this snapshot's sizes, p99 %s there\n", "knee",
	       p->depth, text_latency(a, p->p99_ns));
	printf(ROW, "depths");
	for (uint32_t size = 4096; size <= p->transfer_max && size <= 4u << 20;
	     size *= 8)
		printf("%s%.0f at %.0f KiB", size > 4096 ? ", " : "",
		       stele_profile_depth(p, size), size / 1024.0);
	putchar('\n');
	printf(ROW "kappa %.2f, median error of the fit %.1f %%\n", "model",
	       p->kappa, 100 * p->residual);
	printf(ROW "%s, of up to %s\n", "ceiling",
	       text_counted(b, p->depth_max, "request"),
	       text_size(a, p->transfer_max));
	printf(ROW "over gaps of less than %s\n", "merging",
	       text_size(a, p->gap));
	printf(ROW "%s\n", "measured", text_time(a, p->time));
	if (report->saved)
		printf(ROW "%s\n", "kept in", report->path);
	else
		printf(ROW "no: readers do not know it\n", "kept");
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

static const struct stele_tune_point *
find_point(const struct tune_report *report, uint32_t size, uint32_t depth)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->points[i].size == size &&
		    report->points[i].depth == depth)
			return &report->points[i];
	return NULL;
}

static void print_table(const struct tune_report *report, const char *title,
			const uint32_t *sizes, size_t count, cell_fn cell,
			bool slow)
{
	uint32_t depth_max = 0;
	char text[32];

	for (size_t i = 0; i < report->count; i++)
		if (report->points[i].size && report->points[i].depth > depth_max)
			depth_max = report->points[i].depth;
	printf("\n%s\n%5s", title, "depth");
	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%u KiB", sizes[i] >> 10);
		printf(" %*s", CELL, text);
	}
	putchar('\n');
	for (uint32_t depth = 1; depth && depth <= depth_max; depth *= 2) {
		int gap = 0;

		printf("%5u", depth);
		for (size_t i = 0; i < count; i++) {
			const struct stele_tune_point *point =
				find_point(report, sizes[i], depth);

			gap += CELL + 1;
			if (!point)
				continue;
			cell(text, sizeof(text), point, slow);
			printf("%*s", gap, text);
			gap = 0;
		}
		putchar('\n');
	}
}

static size_t list_sizes(const struct tune_report *report,
			 uint32_t sizes[SIZES_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < report->count && count < SIZES_MAX; i++)
		if (report->points[i].size &&
		    (!count || report->points[i].size != sizes[count - 1]))
			sizes[count++] = report->points[i].size;
	return count;
}

static void print_mix(const struct tune_report *report)
{
	const struct stele_tune_point *point =
		report->count ? &report->points[report->count - 1] : NULL;
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];

	if (!point || point->size)
		return;
	printf("\nthis snapshot's sizes at depth %u\n"
	       "%s/s, %s reads/s, latency p50 %s, p99 %s\n",
	       point->depth, text_size(a, (uint64_t)point->bytes_per_second),
	       text_count(b, (uint64_t)point->reads_per_second),
	       text_latency(c, point->p50_ns), text_latency(d, point->p99_ns));
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

void tune_print_cells(const struct tune_report *report)
{
	uint32_t sizes[SIZES_MAX];
	size_t count = list_sizes(report, sizes), part;
	uint64_t slowest = 0;
	bool noisy = false;

	for (size_t i = 0; i < report->count; i++) {
		if (report->points[i].p99_ns > slowest)
			slowest = report->points[i].p99_ns;
		noisy |= report->points[i].noisy;
	}
	for (size_t i = 0; i < count; i += part) {
		part = count - i < BLOCK_MAX ? count - i : BLOCK_MAX;
		print_table(report,
			    noisy ? "throughput, MiB/s (~: noisy, over 3 %)" :
				    "throughput, MiB/s",
			    sizes + i, part, throughput_cell, false);
	}
	for (size_t i = 0; i < count; i += part) {
		part = count - i < BLOCK_MAX ? count - i : BLOCK_MAX;
		print_table(report,
			    slowest >= 100000000 ? "latency, ms: p50/p99" :
						   "latency, us: p50/p99",
			    sizes + i, part, latency_cell,
			    slowest >= 100000000);
	}
	print_mix(report);
	if (report->note_count)
		putchar('\n');
	for (size_t i = 0; i < report->note_count; i++)
		print_note(report->notes[i]);
	putchar('\n');
}

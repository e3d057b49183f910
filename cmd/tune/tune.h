/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - what stele tune found, and the ways to show it
 */
#ifndef STELE_CMD_TUNE_TUNE_H
#define STELE_CMD_TUNE_TUNE_H

#include "cmd.h"

#include <jansson.h>
#include <stdio.h>

struct tune_report {
	const char *target;
	struct stele_tuning tuning;
	char **notes; /* what the library found worth telling */
	size_t note_count;
	char host[72]; /* where it was measured ... */
	int64_t time;  /* ... and when: seconds since 1970 */
};

/* Copies. */
void tune_report_note(struct tune_report *report, const char *line);
void tune_report_release(struct tune_report *report);

/* The knee, and where it was measured. */
void tune_print_knee(const struct tune_report *report);
/* Throughput and latency, sizes by depths; and the notes. */
void tune_print_cells(const struct tune_report *report);
void tune_print_json(const struct tune_report *report);
/* Latency against throughput, a curve for each size. */
void tune_plot_text(const struct tune_report *report);
/* Return: 0; negative errno (said). */
int tune_plot_svg(const struct tune_report *report, const char *path);

#endif

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
	struct stele_profile profile;
	char **notes; /* what the library found worth telling */
	size_t note_count;
	char path[4096]; /* of the profile's file, or empty */
	bool saved;
};

/* Copies. */
void tune_report_note(struct tune_report *report, const char *line);
void tune_report_release(struct tune_report *report);

/* "depth 22 by 'uring', 6.6 GiB/s, p99 1.23 ms there". */
char *tune_summary(char buffer[160], const struct stele_profile *profile);
void tune_print_profile(const struct tune_report *report);
/* Throughput and latency, sizes by depths; and the notes. */
void tune_print_cells(const struct tune_report *report);
/* The settings and where they come from, without the table. */
json_t *tune_profile_json(const struct stele_profile *profile);
void tune_print_json(const struct tune_report *report);
/* Latency against throughput, a curve for each size. */
void tune_plot_text(const struct tune_report *report);
/* Return: 0; negative errno (said). */
int tune_plot_svg(const struct tune_report *report, const char *path);

#endif

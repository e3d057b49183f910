/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - what stele tune found, and the ways to show it
 */
#ifndef STELE_CMD_TUNE_H
#define STELE_CMD_TUNE_H

#include "cmd.h"

#include <jansson.h>
#include <stdio.h>

struct tune_report {
	const char *target;
	struct stele_profile profile;
	struct stele_tune_point *points; /* by size, then depth; the mix last */
	size_t count, room;
	char **notes; /* lines of the library, of no trouble */
	size_t note_count;
	char path[4096]; /* of the file that keeps the profile; or empty */
	bool saved;
};

/* Copies. Return: false when out of memory. */
bool tune_report_add(struct tune_report *report,
		     const struct stele_tune_point *point);
void tune_report_note(struct tune_report *report, const char *line);
void tune_report_release(struct tune_report *report);

/* "depth 22 at the knee, up to 6.6 GiB/s and 1,234,567 reads/s". */
char *tune_summary(char buffer[160], const struct stele_profile *profile);
void tune_print_profile(const struct tune_report *report);
/* Throughput and latency, sizes by depths; and what was noted. */
void tune_print_cells(const struct tune_report *report);
json_t *tune_profile_json(const struct stele_profile *profile);
void tune_print_json(const struct tune_report *report);
/* Latency against throughput, a curve for each size. */
void tune_plot_text(const struct tune_report *report);
/* Return: 0; negative errno (said). */
int tune_plot_svg(const struct tune_report *report, const char *path);

#endif

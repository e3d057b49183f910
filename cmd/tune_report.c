/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_report.c - what stele tune found, as JSON
 */
#include "tune.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

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

json_t *tune_profile_json(const struct stele_profile *profile)
{
	json_t *object = json_make();

	json_set_text(object, "device", profile->device);
	json_set_text(object, "backend", profile->backend);
	json_set_number(object, "depth", profile->depth);
	json_set_text(object, "host", profile->host);
	json_set_text(object, "target", profile->target);
	json_set_number(object, "slots_size", profile->slots_size);
	json_set_number(object, "mean_size", profile->mean_size);
	json_set_time(object, "time", profile->time);
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
	json_set(object, "profile", tune_profile_json(&report->profile));
	if (*report->path)
		json_set_text(object, "path", report->path);
	json_set(object, "saved", json_boolean(report->saved));
	for (uint32_t i = 0; i < report->profile.point_count; i++)
		json_add(points, point_json(&report->profile.points[i]));
	json_set(object, "points", points);
	for (size_t i = 0; i < report->note_count; i++)
		json_add(notes, json_text(report->notes[i]));
	json_set(object, "notes", notes);
	json_line(object);
}

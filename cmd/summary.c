/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - what a build or an append did, for people and for programs
 */
#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "text.h"


static const struct {
	const char *name, *text;
} reasons[SUMMARY_REASONS] = {
	[STELE_SKIP_SYMLINK] = {"symlink", "symbolic link"},
	[STELE_SKIP_SPECIAL] = {"special", "socket, fifo or device"},
	[STELE_SKIP_UNREADABLE] = {"unreadable", "cannot be read"},
	[STELE_SKIP_VANISHED] = {"vanished", "vanished"},
	[STELE_SKIP_CHANGED] = {"changed", "changed while it was read"},
	[STELE_SKIP_TARGET] = {"target", "the target itself"},
	[STELE_SKIP_EXCLUDED] = {"excluded", "excluded"},
	[STELE_SKIP_NO_SAMPLE] = {"no_sample", "part of no sample"},
};

void summary_skip(void *user, enum stele_skip_reason reason, const char *key,
		  size_t key_size, int error)
{
	struct summary *summary = user;
	unsigned int count;
	char *copy;

	(void)error;
	if (reason >= SUMMARY_REASONS)
		return;
	count = summary->skipped[reason].count;
	copy = count < SUMMARY_KEYS_MAX ? malloc(key_size + 1) : NULL;
	if (!copy)
		return;
	memcpy(copy, key, key_size);
	summary->skipped[reason].keys[count] = copy;
	summary->skipped[reason].sizes[count] = key_size;
	summary->skipped[reason].count++;
}

void summary_release(struct summary *summary)
{
	for (int i = 0; i < SUMMARY_REASONS; i++) {
		for (unsigned int j = 0; j < summary->skipped[i].count; j++)
			free(summary->skipped[i].keys[j]);
	}
	memset(summary, 0, sizeof(*summary));
}

static void print_skipped(const struct summary *summary, int reason,
			  uint64_t count)
{
	unsigned int named = summary->skipped[reason].count;
	char number[TEXT_SIZE];

	if (count == 0)
		return;
	printf(ROW "%s: %s\n", "skipped", text_count(number, count),
	       reasons[reason].text);
	/* A place in a shard begins with its name, in quotes of its own. */
	for (unsigned int i = 0; i < named; i++) {
		char *key = text_escape(summary->skipped[reason].keys[i],
					summary->skipped[reason].sizes[i]);

		printf(key && *key == '\'' ? ROW "  %s\n" : ROW "  '%s'\n", "", key ? key : "?");
		free(key);
	}
	if (named && count > named)
		printf(ROW "  and %s more\n", "",
		       text_count(number, count - named));
}

void summary_explain(const struct summary *summary,
		     const struct stele_build_report *report)
{
	for (int i = 0; i < SUMMARY_REASONS; i++) {
		char number[TEXT_SIZE], *key = NULL;

		if (!report->skipped[i] || !reasons[i].text)
			continue;
		if (summary->skipped[i].count)
			key = text_escape(summary->skipped[i].keys[0],
					  summary->skipped[i].sizes[0]);
		cmd_message(key && *key == '\'' ? "skipped: %s: %s, such as %s" :
						  "skipped: %s: %s, such as '%s'",
			    text_count(number, report->skipped[i]),
			    reasons[i].text, key ? key : "?");
		free(key);
	}
}

static void print_space(const struct stele_build_report *report,
			const char *target)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];

	printf(ROW "%s, a table of %s\n", "runs",
	       text_count(a, report->run_count),
	       text_size(b, report->table_size));
	if (report->slots_size)
		printf(ROW "granule %u: %s, %s of them padding (%s)\n", "slots",
		       report->granule, text_size(a, report->slots_size),
		       text_size(b, report->padding_size),
		       text_share(c, report->padding_size, report->slots_size));
	printf(ROW "%s (keys, order, digests, columns)\n", "sections",
	       text_size(a, report->sections_size));
	printf(ROW "%s", "image", text_size(a, report->image_end));
	if (target && report->target_size)
		printf(" of %s", text_size(a, report->target_size));
	putchar('\n');
}

static void print_identity(const struct stele_build_report *report,
			   const char *target)
{
	char hex[TEXT_HEX_SIZE] = "";

	const char *name = cmd_snapshot_of(target);
	const int size = (int)(name ? (size_t)(name - 1 - target) : strlen(target));

	printf(ROW "%s on '%.*s'\n", "snapshot", report->snapshot, size, target);
	printf(ROW "sha256:%s\n", "digest",
	       text_hex(hex, report->digest, sizeof(report->digest)));
}

static void print_end(const struct summary *summary,
		      const struct stele_build_report *report, bool dry_run)
{
	char speed[TEXT_SIZE], threads[TEXT_SIZE];
	double seconds = report->total_seconds;

	for (int i = 0; i < SUMMARY_REASONS; i++)
		print_skipped(summary, i, report->skipped[i]);
	if (dry_run)
		puts("dry run: nothing was written");
	else
		printf(ROW "%.1f s with %s, %s: %s/s\n", "done in", seconds,
		       text_counted(threads, report->jobs, "thread"),
		       report->backend,
		       text_size(speed, seconds > 0
				       ? (uint64_t)((double)report->payload_size /
						    seconds)
				       : 0));
}

static void print_samples(const struct stele_build_report *report)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];

	printf(ROW "%s, %s\n", "samples", text_count(a, report->sample_count),
	       text_size(b, report->payload_size));
	if (report->class_count)
		printf(ROW "%s class%s\n", "label",
		       text_count(a, report->class_count),
		       report->class_count == 1 ? "" : "es");
}

static void print_changes(const struct stele_build_report *report, bool dry_run)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];

	printf(ROW "%s\n", "base", report->base);
	printf(ROW "%s: %s added, %s updated, %s unchanged; %s deleted\n",
	       "samples", text_count(a, report->sample_count),
	       text_count(b, report->added), text_count(c, report->updated),
	       text_count(d, report->unchanged),
	       text_count((char[TEXT_SIZE]){0}, report->deleted));
	printf(ROW "%s\n", dry_run ? "to write" : "written",
	       text_size(a, report->written_size));
}

void summary_print(const struct summary *summary,
		   const struct stele_build_report *report,
		   const char *target, bool dry_run)
{
	if (!dry_run && (!*report->base || report->created))
		print_identity(report, target);
	if (*report->base && !report->created)
		printf("nothing has changed since '%s': no snapshot%s\n",
		       report->base, dry_run ? "" : " was made");
	if (*report->base)
		print_changes(report, dry_run);
	else
		print_samples(report);
	if (!*report->base || report->created)
		print_space(report, target);
	print_end(summary, report, dry_run);
}

static json_t *skipped_json(const struct summary *summary,
			    const struct stele_build_report *report)
{
	json_t *all = json_make(), *entry, *keys, *key;

	for (int i = 0; i < SUMMARY_REASONS; i++) {
		if (!reasons[i].name || !report->skipped[i])
			continue;
		entry = json_make();
		keys = json_make_list();
		json_set_number(entry, "count", report->skipped[i]);
		for (unsigned int j = 0; j < summary->skipped[i].count; j++) {
			key = json_make();
			json_set_key(key, "key", summary->skipped[i].keys[j],
				     summary->skipped[i].sizes[j]);
			json_add(keys, key);
		}
		json_set(entry, "first", keys);
		json_set(all, reasons[i].name, entry);
	}
	return all;
}

static void set_layout(json_t *object, const struct stele_build_report *report)
{
	json_set_number(object, "payload_size", report->payload_size);
	json_set_number(object, "classes", report->class_count);
	json_set_number(object, "runs", report->run_count);
	json_set_number(object, "table_size", report->table_size);
	json_set_number(object, "granule", report->granule);
	json_set_number(object, "slots_size", report->slots_size);
	json_set_number(object, "padding_size", report->padding_size);
	json_set_number(object, "sections_size", report->sections_size);
	json_set_number(object, "image_end", report->image_end);
	json_set_number(object, "target_size", report->target_size);
}

static void set_identity(json_t *object,
			 const struct stele_build_report *report)
{
	json_set_text(object, "snapshot", report->snapshot);
	json_set_uuid(object, "uuid", report->uuid);
	json_set_hex(object, "digest", report->digest, sizeof(report->digest));
}

static void set_changes(json_t *object, const struct stele_build_report *report)
{
	json_set_text(object, "base", report->base);
	json_set_number(object, "samples", report->sample_count);
	json_set_number(object, "added", report->added);
	json_set_number(object, "updated", report->updated);
	json_set_number(object, "deleted", report->deleted);
	json_set_number(object, "unchanged", report->unchanged);
	json_set_number(object, "kept", report->kept);
	json_set_number(object, "written_size", report->written_size);
}

static void set_end(json_t *object, const struct stele_build_report *report)
{
	json_set_number(object, "jobs", report->jobs);
	json_set_text(object, "backend", report->backend);
	json_set_seconds(object, "scan_seconds", report->scan_seconds);
	json_set_seconds(object, "write_seconds", report->write_seconds);
	json_set_seconds(object, "total_seconds", report->total_seconds);
}

void summary_json(const struct summary *summary,
		  const struct stele_build_report *report, const char *target,
		  bool dry_run)
{
	json_t *object = json_make();

	if (target)
		json_set_text(object, "target", target);
	if (!dry_run)
		set_identity(object, report);
	json_set(object, "dry_run", json_boolean(dry_run));
	if (*report->base)
		set_changes(object, report);
	if (*report->base)
		json_set(object, "created", json_boolean(report->created));
	json_set_number(object, *report->base ? "segment_samples" : "samples",
			report->written_count);
	set_layout(object, report);
	json_set(object, "skipped", skipped_json(summary, report));
	if (!dry_run)
		set_end(object, report);
	json_line(object);
}

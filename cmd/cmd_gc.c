/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_gc.c - stele gc: the space of what no snapshot uses
 *
 * Without --apply only a list of what there is, and what could be done.
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json.h"
#include "parse.h"
#include "progress.h"
#include "stop.h"
#include "text.h"

static const struct option longopts[] = {
	{"apply", no_argument, NULL, 'a'},
	{"discard", no_argument, NULL, 'd'},
	{"dry-run", no_argument, NULL, 'n'},
	{"force", no_argument, NULL, 'f'},
	{"grace", required_argument, NULL, 'g'},
	{"json", no_argument, NULL, 'J'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

#define AGE_SIZE   (TEXT_SIZE + 32)
#define FUTURE_MIN 60 /* seconds: clocks of several machines never agree */

struct collection {
	struct stele_txn_opts opts;
	const char *target;
	uint32_t deleted; /* deleted snapshots that have samples */
	uint32_t forgotten; /* deleted snapshots that are due */
	int64_t future; /* from when on something that is not due is unused; 0: none is so late */
	bool json, applied, dry_run; /* applied: --apply was given */
};

static void print_item_json(const struct stele_gc_item *item)
{
	json_t *object = json_make();
	char id[TEXT_SIZE];

	if (item->segment_id) {
		snprintf(id, sizeof(id), "%016" PRIx64, item->segment_id);
		json_set_text(object, item->tree ? "tree" : "segment", id);
		json_set_number(object, "offset", item->offset);
		json_set_number(object, "size", item->segment_size);
		if (!item->tree)
			json_set_number(object, "samples", item->sample_count);
		json_set_time(object, "unused_since", item->unused_since);
	} else if (item->deleted) {
		json_set_text(object, "snapshot", item->name);
		json_set_number(object, "samples", item->sample_count);
		json_set_time(object, "deleted_time", item->unused_since);
	} else {
		json_set_text(object, "tombstoned", item->name);
		json_set_time(object, "until", item->unused_since);
	}
	json_set(object, "due", json_boolean(item->due));
	json_line(object);
}

static bool is_future(const struct stele_gc_item *item, int64_t now)
{
	return item->unused_since > now && item->unused_since - now >= FUTURE_MIN;
}

/* "unused for 4 s", or since when, if that is still to come. */
static char *text_age(char *out, const struct stele_gc_item *item, int64_t now)
{
	const bool snapshot = item->deleted;
	char text[TEXT_SIZE];

	if (is_future(item, now))
		snprintf(out, AGE_SIZE, "%s %s", snapshot ? "deleted" : "unused since",
			 text_time(text, item->unused_since));
	else
		snprintf(out, AGE_SIZE, "%s %s%s", snapshot ? "deleted" : "unused for",
			 text_duration(text, now > item->unused_since ?
						     (uint64_t)now - (uint64_t)item->unused_since :
						     0),
			 snapshot ? " ago" : "");
	return out;
}

static void print_snapshot(const struct stele_gc_item *item, int64_t now)
{
	char a[TEXT_SIZE], b[AGE_SIZE];

	printf("snapshot '%s'  %s  %s%s\n", item->name,
	       text_counted(a, item->sample_count, "sample"), text_age(b, item, now),
	       item->due ? "" : ", kept");
}

static void print_segment(const struct stele_gc_item *item, int64_t now)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[AGE_SIZE];

	printf("segment %016" PRIx64 "  %12s  %14s %-7s  %s%s\n",
	       item->segment_id, text_size(a, item->segment_size),
	       text_count(b, item->sample_count),
	       item->sample_count == 1 ? "sample" : "samples",
	       text_age(c, item, now),
	       item->due ? "" : ", kept");
}

static void print_tree(const struct stele_gc_item *item, int64_t now)
{
	char a[TEXT_SIZE], b[AGE_SIZE];

	printf("tree    %016" PRIx64 "  %12s  %22s  %s%s\n", item->segment_id,
	       text_size(a, item->segment_size), "of files", text_age(b, item, now),
	       item->due ? "" : ", kept");
}

static void print_item(void *user, const struct stele_gc_item *item)
{
	struct collection *collection = user;
	char until[TEXT_SIZE];
	const bool tombstoned = !item->segment_id && !item->deleted;
	char *name;

	if (!item->due && !tombstoned && item->unused_since > collection->future &&
	    is_future(item, collection->opts.time))
		collection->future = item->unused_since;
	collection->deleted += item->deleted && item->sample_count;
	collection->forgotten += item->deleted && item->due;
	if (collection->json) {
		print_item_json(item);
		return;
	}
	if (!tombstoned) {
		(item->deleted ? print_snapshot : item->tree ? print_tree : print_segment)(
			item, collection->opts.time);
		return;
	}
	name = text_escape(item->name, strlen(item->name));
	printf("tombstoned %s  until %s%s\n", name ? name : "?",
	       text_time(until, item->unused_since), item->due ? "" : ", kept");
	free(name);
}

static void print_report(const struct collection *collection,
			 const struct stele_gc_report *report)
{
	bool apply = !(collection->opts.flags & STELE_DRY_RUN);
	const char *how = collection->applied ? "; dry run, leave -n out to free" :
						"; dry run, use --apply to free";
	char a[TEXT_SIZE], b[TEXT_SIZE];
	json_t *object;

	if (collection->json) {
		object = json_make();
		json_set_number(object, "unused", report->unused_count);
		json_set_number(object, "unused_size", report->unused_size);
		json_set_number(object, apply ? "freed" : "would_free",
				report->freed_count);
		json_set_number(object, apply ? "freed_size" : "would_free_size",
				report->freed_size);
		json_set_number(object, "free_size", report->free_size);
		json_set_number(object, "finished_size", report->finished_size);
		json_line(object);
		return;
	}
	if (report->finished_size)
		printf(apply ? "%s that only older superblocks led to: freed\n" :
			       "%s to free, that only older superblocks lead to\n",
		       text_size(a, report->finished_size));
	if (collection->forgotten)
		printf(apply ? "%s freed, which can no longer be undeleted\n" :
			       "%s to free, which can be undeleted until then%s\n",
		       text_counted(a, collection->forgotten, "deleted snapshot"),
		       report->unused_count ? "" : how);
	if (!report->unused_count) {
		printf("no unused space\n");
		if (collection->deleted)
			cmd_hint("what was deleted is in segments that other snapshots use; 'stele "
				 "compact' writes the samples of one to a segment of their own");
		return;
	}
	printf("%s of %s %s%s\n", text_size(a, report->freed_size),
	       text_size(b, report->unused_size), apply ? "freed" : "to free",
	       apply ? "" : how);
	if (!apply && !collection->opts.grace &&
	    !(collection->opts.flags & STELE_FORCE))
		printf("--apply needs --grace=DURATION, to wait for readers, or "
		       "--force\n");
}

/* A change is never dated before the one that it follows, so one such clock is enough. */
static void warn_future(const struct collection *collection)
{
	char text[TEXT_SIZE];

	cmd_message("warning: '%s' has a change dated %s, in the future: no grace period ends "
		    "before that", collection->target, text_time(text, collection->future));
	cmd_hint("set the clock of this machine if it is slow; else the date is wrong: use --force "
		 "once nobody reads what was deleted");
}

static int run(struct collection *collection)
{
	struct cmd_log log = {.target = collection->target};
	struct stele_gc_report report = {.size = sizeof(report)};
	char freed[TEXT_SIZE];
	int error;

	collection->opts.log = cmd_log_line;
	collection->opts.log_user = &log;
	collection->opts.progress = progress_show;
	if (collection->opts.flags & STELE_TXN_DISCARD)
		stop_catch();
	progress_start(!collection->json);
	error = stele_gc(collection->target, &collection->opts, print_item,
			 collection, &report);
	progress_end();
	if (!error)
		print_report(collection, &report);
	else if (error == -ECANCELED && stop_requested()) {
		cmd_message("%s: stopped; %s freed, but not all that is unused is discarded",
			    strsignal(stop_requested()),
			    text_size(freed, report.freed_size));
		cmd_hint("the same command discards the rest");
	} else {
		cmd_log_error(error, collection->target);
	}
	if (!error && collection->future)
		warn_future(collection);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

int cmd_gc(const struct cmd *cmd, int argc, char **argv)
{
	struct collection collection = {
		.opts = {.size = sizeof(collection.opts), .time = time(NULL),
			 .flags = STELE_DRY_RUN}};
	int c;

	while ((c = cmd_option(cmd, argc, argv, "fnh", longopts)) != -1) {
		switch (c) {
		case 'a':
			collection.applied = true;
			collection.opts.flags &= ~(uint32_t)STELE_DRY_RUN;
			break;
		case 'd':
			collection.opts.flags |= STELE_TXN_DISCARD;
			break;
		case 'f':
			collection.opts.flags |= STELE_FORCE;
			break;
		case 'g':
			cmd_option_value(cmd, longopts, c,
					 parse_duration(optarg, &collection.opts.grace));
			break;
		case 'J':
			collection.json = true;
			break;
		case 'n':
			collection.dry_run = true;
			break;
		}
	}
	if (argc - optind != 1)
		return cmd_misuse(cmd, "gc needs one TARGET");
	if (cmd_check_whole(cmd->name, argv[optind]) >= 0)
		return CMD_USAGE;
	if ((collection.opts.flags & STELE_FORCE) &&
	    collection.opts.grace)
		return cmd_misuse(cmd, "--force gives no --grace");
	if ((collection.opts.flags & STELE_TXN_DISCARD) &&
	    (collection.opts.flags & STELE_DRY_RUN))
		return cmd_misuse(cmd, "--discard needs --apply");
	if (!(collection.opts.flags &
	      (STELE_DRY_RUN | STELE_FORCE)) &&
	    !collection.opts.grace)
		return cmd_misuse(cmd, "--apply needs --grace=DURATION, to wait for "
				       "readers that cannot be seen, or --force");
	if (collection.dry_run)
		collection.opts.flags |= STELE_DRY_RUN;
	collection.target = argv[optind];
	return run(&collection);
}

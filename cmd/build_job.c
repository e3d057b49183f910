/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_job.c - what build, append and compact share around the library call
 */
#include "build_job.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "from/foreign.h"
#include "from/shards.h"
#include "from/source.h"
#include "progress.h"
#include "remedy.h"
#include "stop.h"
#include "text.h"

/* What is skipped may be a sample of the base; of a directory, it is known by its key. */
static int check_skipping(struct build_job *job)
{
	struct build_options *options = job->options;

	if (job->from && options->from.skip &&
	    options->opts.flags & STELE_APPEND_DELETE_MISSING) {
		cmd_message("--delete-missing needs a source without damage: "
			    "it does not go with --on-error=skip");
		return -EINVAL;
	}
	if (options->from.skip)
		options->opts.flags |= STELE_BUILD_SKIP_CHANGED;
	return 0;
}

int build_job_sources(struct build_job *job, char *const *sources, int count)
{
	int error;

	job->options->from.target = job->target;
	error = from_open(sources, (size_t)count, &job->options->from, &job->from);
	job->source = sources[0];
	if (!error)
		error = check_skipping(job);
	if (!error)
		return -1;
	from_close(job->from);
	return cmd_finish(error == -EINVAL ? CMD_USAGE : CMD_FAILED);
}

/* While a shard is scanned, what counts is how much of it. */
static int show_progress(void *user, const struct stele_progress *progress)
{
	const struct build_job *job = user;
	struct stele_progress known = *progress;

	if (job->from && known.phase == STELE_PHASE_SCAN)
		from_progress(job->from, &known);
	return progress_show(NULL, &known);
}

/* What an append is told of is what classes are new. */
static void log_line(void *user, enum stele_log_level level, const char *line)
{
	const struct cmd_log *log = user;

	if (level == STELE_LOG_INFO && !log->quiet)
		cmd_message("%s", line);
	else
		cmd_log_line(user, level, line);
}

void build_job_begin(struct build_job *job)
{
	struct build_options *options = job->options;

	job->report.size = sizeof(job->report);
	job->log.target = job->target ? job->target : job->source;
	job->log.quiet = options->quiet;
	options->opts.log = log_line;
	options->opts.log_user = &job->log;
	options->opts.progress = show_progress;
	options->opts.progress_user = job;
	options->opts.skip = summary_skip;
	options->opts.skip_user = &job->summary;
	stop_catch();
	progress_start(!options->quiet && !options->json);
}

static void explain(const struct build_job *job, int error)
{
	const bool whole = job->options->who == BUILD_OPTIONS_BUILD;

	if (error == -ECANCELED && stop_requested()) {
		cmd_message("%s: stopped%s", strsignal(stop_requested()),
			    whole ? "" : "; the image is as it was");
		remedy_print(whole ? "build" : "append", error, stele_errmsg(),
			     job->target);
	} else if (from_complained(job->from)) {
		return;
	} else if (error == -EEXIST && from_groups(job->from)) {
		cmd_log_error_as("webdataset", error, job->target);
	} else if (job->from && (error == -ENOENT ||
				 (error == -EOPNOTSUPP && from_has_types(job->from)))) {
		cmd_log_error_as("table", error, job->target);
	} else {
		cmd_log_error(error, job->target);
	}
}

/* Who names a snapshot like a file may have meant one. */
static void explain_name(const char *target)
{
	const char *name = cmd_snapshot_of(target);
	const char *end = name ? strrchr(name, '.') : NULL;

	if (end && (!strcmp(end, ".stele") || !strcmp(end, ".img")))
		cmd_hint("'%s' is the name of the snapshot: the last '@' begins it; for a file of "
			 "that name write '%s@'", name, target);
}

/* A directory of shards may have been meant for what is in them. */
static void explain_shards(const struct build_job *job)
{
	struct shards shards;
	const char *what;

	if (job->from || job->options->from.format)
		return;
	what = foreign_directory(job->source);
	if (what)
		cmd_hint("'%s' is a dataset of %s, and the samples are its files: 'python3 -m "
			 "stele.sources build SOURCE TARGET' takes what is in them", job->source,
			 what);
	else if (shards_look(job->source, &shards))
		cmd_hint("the samples are the files of '%s' as they are (%s): '%s' takes what is "
			 "in them", job->source, shards.format,
			 shards.foreign ? "python3 -m stele.sources build SOURCE TARGET" :
					  "stele build SOURCE/* TARGET");
}

/* An older image beside the new one is a file like others. */
static void explain_image(const struct build_job *job)
{
	char name[NAME_MAX + 1];

	if (job->source && !job->options->exclude_count && !job->options->from.format &&
	    shards_find_image(job->source, job->target, name))
		cmd_hint("the image '%s' in the source is a sample, too: '--exclude=*.stele' "
			 "leaves images out", name);
}

/* It may not be what was meant. */
static void explain_success(const struct build_job *job)
{
	const struct build_options *options = job->options;
	const struct stele_build_report *report = &job->report;
	char count[TEXT_SIZE];

	if (options->who == BUILD_OPTIONS_BUILD && job->target)
		explain_name(job->target);
	if (!options->quiet && from_replaced(job->from))
		cmd_message("%" PRIu64 " member%s replaced by later ones of the same name",
			    from_replaced(job->from),
			    from_replaced(job->from) == 1 ? " was" : "s were");
	if (!options->quiet)
		from_warn_keys(job->from);
	if (options->who == BUILD_OPTIONS_BUILD && !options->quiet)
		from_hint(job->from);
	if (options->who == BUILD_OPTIONS_BUILD && !options->quiet)
		explain_shards(job);
	if (!options->quiet && (options->who == BUILD_OPTIONS_BUILD || report->added))
		explain_image(job);
	if (!options->quiet && !options->json && report->kept)
		cmd_hint("%s of the source %s by key already, and not compared: --update does "
			 "that", text_counted(count, report->kept, "sample"),
			 report->kept == 1 ? "was there" : "were there");
	if (options->exclude_count && !report->skipped[STELE_SKIP_EXCLUDED])
		cmd_hint("--exclude left out nothing: no name there matches it");
}

int build_job_end(struct build_job *job, int error)
{
	const struct build_options *options = job->options;
	const bool dry_run = options->opts.flags & STELE_DRY_RUN;
	const bool complained = from_complained(job->from);
	int status = CMD_OK;

	progress_end();
	if (error)
		explain(job, error);
	else if (options->json)
		summary_json(&job->summary, &job->report, job->target, dry_run);
	else if (!options->quiet)
		summary_print(&job->summary, &job->report, job->target, dry_run);
	if (!error)
		explain_success(job);
	if (!job->report.sample_count && (error || options->quiet))
		summary_explain(&job->summary, &job->report);
	summary_release(&job->summary);
	from_close(job->from);
	if (error == -ECANCELED && stop_requested())
		stop_raise();
	if (error)
		status = cmd_status_of(error);
	/* A build finds no damage: there is no image yet. Nor is a source one. */
	if (status == CMD_DAMAGED && (options->who == BUILD_OPTIONS_BUILD || complained))
		status = CMD_FAILED;
	return cmd_finish(status);
}

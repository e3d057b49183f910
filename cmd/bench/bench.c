/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c - stele bench: how fast samples are read, how late, at what price
 *
 * Options, one dataset, one run, one report. Damaged samples are counted, and said
 * after the first few only once: a benchmark may read each a thousand times.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accelerator.h"
#include "key.h"
#include "output.h"
#include "progress.h"
#include "remedy.h"
#include "stop.h"
#include "text.h"

#define LINES_MAX	8u /* of the library, about samples */
#define PROMETHEUS_SIZE (256 << 10)

struct bench_log {
	struct cmd_log log;
	unsigned int lines; /* atomic */
};

static void log_line(void *user, enum stele_log_level level, const char *line)
{
	struct bench_log *log = user;
	unsigned int before = __atomic_fetch_add(&log->lines, 1,
						 __ATOMIC_RELAXED);

	if (before < LINES_MAX)
		cmd_log_line(&log->log, level, line);
	else if (before == LINES_MAX)
		cmd_message("warning: more of these follow, and are not shown");
}

static int open_target(struct bench_log *log, const struct bench_config *config,
		       struct stele_dataset **ds)
{
	struct stele_open_opts opts = STELE_OPTS(
		stele_open_opts, .log = log_line, .log_user = log,
		.backend = config->backend, .verify = config->verify);
	int err = stele_dataset_open(config->target, &opts, ds);

	if (err) {
		cmd_log_error(err, config->target);
		return err;
	}
	if (!stele_dataset_count(*ds)) {
		cmd_message("cannot bench '%s': it has no samples",
			    config->target);
		return -ENOENT;
	}
	return 0;
}

/* All epochs as positions. */
static int set_positions(struct bench_config *config, uint64_t count)
{
	if (config->epochs &&
	    __builtin_mul_overflow(config->epochs, count, &config->samples)) {
		cmd_message("'%s' has too many samples for %" PRIu64 " epochs",
			    config->target, config->epochs);
		return -EOVERFLOW;
	}
	return 0;
}

/* target="...", its value as the format wants it: UTF-8, escaped. NULL: no memory. */
static char *prometheus_labels(const char *target)
{
	static const char name[] = "target=\"";
	bool exact;
	char *value = text_replace(target, strlen(target), &exact);
	char *labels = value ? malloc(sizeof(name) + 2 * strlen(value) + 1) :
			       NULL;
	char *to = labels;

	if (labels) {
		to = stpcpy(to, name);
		for (const char *from = value; *from; from++) {
			if (strchr("\\\"\n", *from))
				*to++ = '\\';
			*to++ = *from == '\n' ? 'n' : *from;
		}
		strcpy(to, "\"");
	}
	free(value);
	return labels;
}

static bool put_text(FILE *to, const void *text)
{
	return fputs(text, to) >= 0;
}

/* Return: 0; negative errno (said). */
static int write_prometheus(const struct bench_config *config,
			    const struct bench_result *result)
{
	char *labels = prometheus_labels(config->target);
	char *text = malloc(PROMETHEUS_SIZE);
	int err = -ENOMEM, size;

	if (text && labels) {
		size = stele_stats_prometheus(&result->sum, labels, text,
					      PROMETHEUS_SIZE);
		err = size < 0 ? size : size >= PROMETHEUS_SIZE ? -ENOBUFS : 0;
	}
	if (err)
		cmd_error(err, "cannot write '%s'", config->prometheus);
	else
		err = output_write(config->prometheus, put_text, text);
	free(labels);
	free(text);
	return err;
}

/* Say which sample failed first, and end with what that means. */
static int status_of(struct stele_dataset *ds, const struct bench_config *config,
		     const struct bench_result *result)
{
	const struct bench_part *part = result->parts;
	char failed[TEXT_SIZE], all[TEXT_SIZE], *first;

	while (part < result->parts + result->part_count && !part->sample_error)
		part++;
	if (part == result->parts + result->part_count)
		return CMD_OK;
	/* A loader has told it; its batch only tells the reason. */
	first = config->loader ? NULL : key_name(ds, part->sample_id);
	cmd_error(part->sample_error, "%s of %s of '%s' failed%s%s",
		  text_count(failed, result->failed),
		  text_counted(all, result->samples, "sample"),
		  config->target, first ? ", the first " : "", first ? first : "");
	free(first);
	remedy_print("bench", part->sample_error, "", config->target);
	return cmd_status_of(part->sample_error);
}

static int report(struct stele_dataset *ds, const struct bench_config *config,
		  const struct bench_result *result)
{
	int status = status_of(ds, config, result);

	(config->json ? bench_json : bench_text)(config, result);
	if (config->prometheus && write_prometheus(config, result) &&
	    status == CMD_OK)
		status = CMD_FAILED;
	if (config->iolog && bench_iolog_write(config, result) &&
	    status == CMD_OK)
		status = CMD_FAILED;
	return status;
}

/* Return: the status to end with. */
static int measure(struct stele_dataset *ds, struct bench_config *config,
		   struct bench_result *result)
{
	int err = set_positions(config, stele_dataset_count(ds));

	if (!err && config->prometheus)
		err = output_check(config->prometheus, "# HELP stele_");
	if (!err && config->iolog)
		err = bench_iolog_check(config);
	if (err)
		return cmd_status_of(err);
	stop_catch();
	progress_start(!config->quiet);
	err = config->model ? bench_model_run(ds, config, result)
			    : bench_run(ds, config, result);
	progress_end();
	return err ? cmd_status_of(err) : report(ds, config, result);
}

static int bench(struct bench_config *config, double load, uint64_t began)
{
	struct bench_log log = {.log.target = config->target};
	struct bench_result result = {.start.load = load};
	struct stele_dataset *ds = NULL;
	int err, status;

	err = open_target(&log, config, &ds);
	result.start.open = (double)(bench_clock() - began) / 1e9;
	log.lines = 0;
	if (!err && config->shuffle)
		err = bench_shuffle(ds, config);
	if (err)
		status = cmd_status_of(err);
	else
		status = config->shuffle ? CMD_OK
					 : measure(ds, config, &result);
	bench_result_release(&result);
	stele_dataset_close(ds);
	return cmd_finish(status);
}

int cmd_bench(const struct cmd *cmd, int argc, char **argv)
{
	struct bench_config config = {0};
	uint64_t began = bench_clock();
	struct timespec used = {0};
	int status;

	/* exec, dynamic linking: a new process has used nothing but for these. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	status = bench_options_parse(cmd, argc, argv, &config);
	if (status >= 0)
		return status;
	return bench(&config, (double)used.tv_sec + (double)used.tv_nsec / 1e9,
		     began);
}

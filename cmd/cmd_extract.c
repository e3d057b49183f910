/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_extract.c - stele extract: samples to files
 *
 * Samples are read in the order of their ids, many at a time, and written as
 * they come; one that is larger than memory gets its name when it is whole.
 * What cannot be written or read is named and counted, and the rest goes on.
 * A signal leaves whole files only. Keys are taken from the records, which
 * their checksums cover; of large samples from the keys section.
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extract.h"
#include "fields.h"
#include "output.h"
#include "parse.h"
#include "remedy.h"
#include "stop.h"
#include "text.h"
#include "tree.h"

enum { OPTION_VERIFY = 256, OPTION_FIELD, OPTION_SKIP };

static const struct option longopts[] = {
	{"field", required_argument, NULL, OPTION_FIELD},
	{"force", no_argument, NULL, 'f'},
	{"quiet", no_argument, NULL, 'q'},
	{"skip-existing", no_argument, NULL, OPTION_SKIP},
	{"verify", required_argument, NULL, OPTION_VERIFY},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* *made: it was not there. Return: fd; negative errno (said). */
static int open_root(const char *path, bool *made)
{
	int fd, error = 0;

	*made = !mkdir(path, 0777);
	if (!*made && errno != EEXIST)
		error = -errno;
	fd = error ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	error = error ? error : -errno;
	if (error == -ENOENT) {
		cmd_no_directory(path);
		return error;
	}
	fd = output_directory(path);
	cmd_message("cannot open directory '%s': %s", path, output_why(fd, error));
	output_hint_place(fd, error, "DIR");
	if (fd >= 0)
		close(fd);
	return error;
}

static bool is_left(const struct extract *job)
{
	return job->done + job->skipped + job->failed + job->refused < job->count;
}

/* What was written is there for good; but files that --force replaces are there before. */
static void hint_resume(const struct extract *job)
{
	if (job->replace || !is_left(job) || !(job->done + job->skipped))
		return;
	cmd_hint("%s goes on where this stopped",
		 job->skip ? "the same command" : "--skip-existing");
}

static void summarize(const struct extract *job, const char *dir)
{
	char count[TEXT_SIZE], size[TEXT_SIZE];

	complaints_sum(&job->complaints);
	fields_warn_unlike(job->ds, &job->labels);
	tree_tell_refused(job->refused, NULL);
	if (job->failed)
		cmd_message("%s failed",
			    text_counted(count, job->failed, "sample"));
	if (job->too_large)
		output_hint_place(job->root, -EFBIG, "DIR");
	if (job->stopped) {
		cmd_message("stopped after %s of %s",
			    text_counted(count, job->done, "sample"),
			    text_count(size, job->count));
		output_hint_place(job->root, job->stopped, "DIR");
		hint_resume(job);
	}
	if (job->damaged)
		remedy_print("extract", -EBADMSG, "", NULL);
	if (!job->quiet)
		printf("%s, %s, in '%s'\n",
		       text_counted(count, job->done, "sample"),
		       text_size(size, job->bytes), dir);
	if (!job->quiet && job->skipped)
		printf("%s skipped: there already\n",
		       text_counted(count, job->skipped, "file"));
}

/* Return: 0; -EINVAL (said). */
static int choose_field(const char *field, struct extract *job)
{
	job->field = field ? field_find(job->ds, field, true) : -1;
	return field && job->field < 0 ? job->field : 0;
}

static int run(const char *target, const char *dir, char **keys, const char *field,
	       uint32_t verify, struct extract *job)
{
	struct cmd_log log = {.target = target};
	bool made;
	int error, status;

	error = cmd_open_dataset(&log, verify, &job->ds);
	if (error)
		return cmd_finish(cmd_status_of(error));
	log.errors_max = COMPLAINTS_NAMED; /* each belongs to a sample that fails */
	error = choose_field(field, job);
	status = error ? cmd_status_of(error) : CMD_FAILED;
	job->root = error ? -1 : open_root(dir, &made);
	if (job->root >= 0) {
		if (!field && !job->quiet && fields_warn_joined(job->ds, "file"))
			cmd_hint("--field=NAME writes one");
		if (!field && !job->quiet)
			fields_warn_left(job->ds, "file", &job->labels);
		stop_catch();
		status = extract_run(job, keys);
		if (stop_requested() && is_left(job)) {
			cmd_message("%s: stopped", strsignal(stop_requested()));
			hint_resume(job);
			stop_raise();
		}
		summarize(job, dir);
		close(job->root);
		if (made && status)
			rmdir(dir); /* if nothing is in it */
	}
	labels_release(&job->labels);
	stele_dataset_close(job->ds);
	return cmd_finish(status);
}

int cmd_extract(const struct cmd *cmd, int argc, char **argv)
{
	uint32_t verify = STELE_VERIFY_DEFAULT;
	struct extract job = {0};
	const char *field = NULL;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "fqh", longopts)) != -1) {
		switch (c) {
		case OPTION_FIELD:
			field = optarg;
			break;
		case 'f':
			job.replace = true;
			break;
		case 'q':
			job.quiet = true;
			break;
		case OPTION_SKIP:
			job.skip = true;
			break;
		case OPTION_VERIFY:
			cmd_option_value(cmd, longopts, c,
					 parse_verify(optarg, &verify));
			break;
		}
	}
	if (job.skip && job.replace)
		return cmd_misuse(cmd, "--force goes without --skip-existing");
	if (argc - optind < 2)
		return cmd_misuse(cmd, "extract needs a TARGET and a DIR");
	if (!*argv[optind + 1])
		return cmd_misuse(cmd, "the name of DIR is empty: '.' is this directory");
	return run(argv[optind], argv[optind + 1], argv + optind + 2, field, verify, &job);
}

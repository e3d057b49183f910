/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_export.c - stele export: a snapshot as an archive or record file
 *
 * A file gets its name when it is whole. What goes to stdout cannot be taken
 * back: there, only the exit status says that the archive is cut short.
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export.h"
#include "libarchive.h"
#include "parse.h"
#include "remedy.h"
#include "stop.h"
#include "tar.h"
#include "text.h"
#include "tree.h"

enum { OPTION_EXAMPLE = 256, OPTION_FIELD, OPTION_PREFIX, OPTION_TO, OPTION_VERIFY };

static const struct option longopts[] = {
	{"example", no_argument, NULL, OPTION_EXAMPLE},
	{"field", required_argument, NULL, OPTION_FIELD},
	{"force", no_argument, NULL, 'f'},
	{"prefix", required_argument, NULL, OPTION_PREFIX},
	{"quiet", no_argument, NULL, 'q'},
	{"to", required_argument, NULL, OPTION_TO},
	{"verify", required_argument, NULL, OPTION_VERIFY},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* A path to write to; of "-" only `to` is set. */
struct output {
	const char *path;
	bool replace;
	int to; /* descriptor */
	struct tree_part part;
};

static const char *open_reason(int error)
{
	if (error == -EEXIST)
		return "it exists (use --force to replace it)";
	return strerror(-error);
}

/* Return: fd of the directory; negative errno. */
static int open_directory_of(const char *path, const char **base)
{
	const char *slash = strrchr(path, '/');
	char *name;
	int fd;

	*base = slash ? slash + 1 : path;
	if (!slash)
		name = strdup(".");
	else
		name = strndup(path, (size_t)(slash - path) + 1);
	if (!name)
		return -ENOMEM;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(name);
	return fd < 0 ? -errno : fd;
}

/* Renaming over a device, a fifo or a symlink is never what was meant. */
static bool is_strange(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int open_file(struct output *output)
{
	const char *base;
	int dir, error;

	if (is_strange(output->path)) {
		cmd_message("'%s' is not a regular file; export to '-' and "
			    "redirect the output", output->path);
		return -EINVAL;
	}
	dir = open_directory_of(output->path, &base);
	error = dir < 0 ? dir : 0;
	if (!error && tree_refusal(base, strlen(base)))
		error = -EISDIR;
	if (!error)
		error = tree_part_create(dir, base, output->replace,
					 &output->part);
	if (dir >= 0)
		close(dir);
	output->to = output->part.fd;
	if (error == -ENOENT)
		cmd_no_directory(output->path);
	else if (error)
		cmd_message("cannot create '%s': %s", output->path,
			    open_reason(error));
	return error;
}

static int open_output(struct output *output)
{
	if (strcmp(output->path, "-") != 0)
		return open_file(output);
	if (isatty(STDOUT_FILENO)) {
		cmd_message("not writing an archive to a terminal");
		return -EINVAL;
	}
	output->path = NULL;
	output->to = STDOUT_FILENO;
	return 0;
}

/* The name only stands for bytes that would survive a crash. */
static int keep_file(struct output *output)
{
	int error;

	if (fsync(output->to) == 0)
		return tree_part_keep(&output->part, output->replace);
	error = -errno;
	tree_part_drop(&output->part);
	return error;
}

static void summarize(const struct export *job, const char *path)
{
	char count[TEXT_SIZE], size[TEXT_SIZE];

	if (job->refused)
		cmd_message("%s refused",
			    text_counted(count, job->refused, "key"));
	if (!job->quiet && path)
		printf("%s, %s, in '%s'\n",
		       text_counted(count, job->done, "sample"),
		       text_size(size, job->bytes), path);
}

/* Return: enum cmd_status. */
static int export(struct export *job, struct output *output)
{
	int error, status = CMD_FAILED;

	if (job->format <= TO_WEBDATASET && !libarchive_load())
		return CMD_FAILED;
	if (open_output(output) < 0)
		return CMD_FAILED;
	job->to = output->to;
	stop_catch();
	error = export_run(job);
	if (error && !job->write_error)
		status = cmd_status_of(error);
	if (output->path && error)
		tree_part_drop(&output->part);
	else if (output->path)
		error = job->write_error = keep_file(output);
	if (stop_requested()) {
		cmd_message("%s: stopped", strsignal(stop_requested()));
		stop_raise();
	}
	if (job->write_error)
		cmd_message("cannot write '%s': %s",
			    output->path ? output->path : "-",
			    open_reason(job->write_error));
	if (error && status == CMD_DAMAGED)
		remedy_print("export", -EBADMSG, "", NULL);
	if (error)
		return status;
	summarize(job, output->path);
	return job->refused ? CMD_FAILED : CMD_OK;
}

static int run(const char *target, uint32_t verify, struct output *output,
	       struct export *job)
{
	struct cmd_log log = {.target = target};
	int status, error = cmd_open_dataset(&log, verify, &job->ds);

	if (error)
		return cmd_finish(cmd_status_of(error));
	status = export(job, output);
	stele_dataset_close(job->ds);
	return cmd_finish(status);
}

/* It stands before every key. Return: NULL; what it wants to be. */
static const char *set_prefix(struct export *job, const char *prefix)
{
	const char *wanted = parse_text(prefix, 0, TAR_PATH_MAX / 2,
					&job->prefix);
	char path[TAR_PATH_MAX / 2 + 2];
	const size_t size = strlen(prefix);

	if (wanted)
		return wanted;
	memcpy(path, prefix, size);
	path[size] = 'x';
	return tree_refusal(path, size + 1) ?
		       "a relative path without '.', '..' or empty names" :
		       NULL;
}

/* An environment may be called by its directory. Return: NULL: no memory. */
static const char *data_file(const char *path, char **inside)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return path;
	if (asprintf(inside, "%s/data.mdb", path) < 0)
		*inside = NULL;
	return *inside;
}

int cmd_export(const struct cmd *cmd, int argc, char **argv)
{
	struct export job = {.prefix = ""};
	uint32_t verify = STELE_VERIFY_DEFAULT;
	bool example = false;
	struct output output = {0};
	char *inside = NULL;
	int c, status;

	while ((c = cmd_option(cmd, argc, argv, "fqh", longopts)) != -1) {
		switch (c) {
		case OPTION_EXAMPLE:
			example = true;
			break;
		case OPTION_FIELD:
			job.field = optarg;
			break;
		case 'f':
			output.replace = true;
			break;
		case OPTION_PREFIX:
			cmd_option_value(cmd, longopts, c, set_prefix(&job, optarg));
			break;
		case 'q':
			job.quiet = true;
			break;
		case OPTION_TO:
			cmd_option_value(cmd, longopts, c, to_parse(optarg, &job.format));
			break;
		case OPTION_VERIFY:
			cmd_option_value(cmd, longopts, c,
					 parse_verify(optarg, &verify));
			break;
		}
	}
	if (argc - optind != 2)
		return cmd_misuse(cmd, "export needs a TARGET and a FILE or -");
	if (example && job.format != TO_TFRECORD)
		return cmd_misuse(cmd, "--example goes with --to=tfrecord");
	if (example)
		job.format = TO_EXAMPLE;
	if (job.field && job.format != TO_TFRECORD && job.format != TO_LMDB)
		return cmd_misuse(cmd, "--field goes with --to=tfrecord, without --example, and "
				  "--to=lmdb");
	output.path = argv[optind + 1];
	if (job.format == TO_LMDB && !strcmp(output.path, "-"))
		return cmd_misuse(cmd, "--to=lmdb needs a FILE or directory");
	if (job.format == TO_LMDB)
		output.path = data_file(output.path, &inside);
	status = output.path ? run(argv[optind], verify, &output, &job) : CMD_FAILED;
	free(inside);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_export.c - stele export: a snapshot as an archive or record file
 *
 * A file gets its name when it is whole: see to/file.h. What goes to stdout cannot be taken
 * back: there, only the exit status says that the archive is cut short.
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "export.h"
#include "fields.h"
#include "libarchive.h"
#include "parse.h"
#include "remedy.h"
#include "stop.h"
#include "tar.h"
#include "text.h"
#include "tree.h"

enum {
	OPTION_EXAMPLE = 256,
	OPTION_FIELD,
	OPTION_PREFIX,
	OPTION_SHARD_SIZE,
	OPTION_TO,
	OPTION_VERIFY,
};

static const struct option longopts[] = {
	{"example", no_argument, NULL, OPTION_EXAMPLE},
	{"field", required_argument, NULL, OPTION_FIELD},
	{"force", no_argument, NULL, 'f'},
	{"prefix", required_argument, NULL, OPTION_PREFIX},
	{"quiet", no_argument, NULL, 'q'},
	{"shard-size", required_argument, NULL, OPTION_SHARD_SIZE},
	{"to", required_argument, NULL, OPTION_TO},
	{"verify", required_argument, NULL, OPTION_VERIFY},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void summarize(const struct export *job)
{
	char *names = to_file_names(&job->file, job->file.number + 1);
	char count[TEXT_SIZE], size[TEXT_SIZE];

	complaints_sum(&job->complaints);
	fields_warn_unlike(job->ds, &job->labels);
	tree_tell_refused(job->refused,
			  job->format == TO_WEBDATASET && !job->unfit ?
				  "--to=tar takes such keys: each sample is a file of its own" :
				  NULL);
	if (!job->quiet && names && strcmp(names, "-") != 0)
		printf("%s, %s, in '%s'\n",
		       text_counted(count, job->done, "sample"),
		       text_size(size, job->bytes), names);
	if (!job->quiet && !job->file.shard_size && !to_file_pattern(job->file.path))
		cmd_hint("with --shard-size=SIZE that name makes several files");
	free(names);
}

/* Return: enum cmd_status. */
static int export(struct export *job)
{
	int error, status = CMD_FAILED;

	if (job->format <= TO_WEBDATASET && !libarchive_load())
		return CMD_FAILED;
	if (to_file_open(&job->file) < 0)
		return CMD_FAILED;
	stop_catch();
	error = export_run(job);
	if (error && !job->write_error)
		status = cmd_status_of(error);
	if (!error)
		error = to_file_keep(&job->file);
	else if (job->write_error && !stop_requested())
		to_file_complain(&job->file, job->write_error);
	if (error)
		to_file_drop(&job->file);
	/* Else it was complete before. */
	if (error && stop_requested()) {
		cmd_message("%s: stopped", strsignal(stop_requested()));
		stop_raise();
	}
	if (error && status == CMD_DAMAGED)
		remedy_print("export", -EBADMSG, "", NULL);
	if (error)
		return status;
	summarize(job);
	return job->refused ? CMD_FAILED : CMD_OK;
}

static int run(const char *target, uint32_t verify, struct export *job)
{
	struct cmd_log log = {.target = target};
	int status, error = cmd_open_dataset(&log, verify, &job->ds);

	if (error)
		return cmd_finish(cmd_status_of(error));
	status = export(job);
	labels_release(&job->labels);
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

#define OTHER_FORMATS "there are tar, webdataset, tfrecord and lmdb"

/* What a file is called says more than what is in it by default: a plain tar archive. */
static int check_name(const struct cmd *cmd, const char *path)
{
	static const struct {
		const char *ending, *instead;
	} endings[] = {
		{".tfrecord", "--to=tfrecord writes that"},
		{".tfrecords", "--to=tfrecord writes that"},
		{".lmdb", "--to=lmdb writes that"},
		{".mdb", "--to=lmdb writes that"},
		{".gz", "'-' for FILE, and '| gzip'"},
		{".tgz", "'-' for FILE, and '| gzip'"},
		{".zst", "'-' for FILE, and '| zstd'"},
		{".xz", "'-' for FILE, and '| xz'"},
		{".bz2", "'-' for FILE, and '| bzip2'"},
		{".zip", OTHER_FORMATS}, {".7z", OTHER_FORMATS}, {".rar", OTHER_FORMATS},
		{".txz", "'-' for FILE, and '| xz'"}, {".lz4", "'-' for FILE, and '| lz4'"},
		{".tbz", "'-' for FILE, and '| bzip2'"}, {".tbz2", "'-' for FILE, and '| bzip2'"},
		{".tzst", "'-' for FILE, and '| zstd'"},
		{".tfrec", "--to=tfrecord writes that"},
		{".parquet", "'python -m stele.parquet' writes that"},
		{".csv", "'stele query --csv' writes columns"},
		{".json", "'stele query --json' writes columns"},
		{".jsonl", "'stele query --json' writes columns"},
		{".npy", OTHER_FORMATS}, {".npz", OTHER_FORMATS}, {".h5", OTHER_FORMATS},
		{".hdf5", OTHER_FORMATS}, {".rec", OTHER_FORMATS}, {".arrow", OTHER_FORMATS},
		{".sqlite", OTHER_FORMATS}, {".db", OTHER_FORMATS},
		{".stele", "'stele copy' makes an image"},
	};
	const size_t size = strlen(path);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const size_t end = strlen(endings[i].ending);

		if (size > end && !strcasecmp(path + size - end, endings[i].ending))
			return cmd_misuse(cmd, "'%s' would be a plain tar archive: %s (or give "
					  "--to=tar)", path, endings[i].instead);
	}
	return -1;
}

/* Do these options go together? Return: -1: they do; CMD_USAGE. */
static int check(const struct cmd *cmd, const struct export *job, bool example)
{
	const char *wanted = job->file.shard_size ? to_file_pattern(job->file.path) : NULL;

	if (example && job->format != TO_TFRECORD)
		return cmd_misuse(cmd, "--example goes with --to=tfrecord");
	if (job->field && (example || job->format == TO_WEBDATASET))
		return cmd_misuse(cmd, "--field goes with neither --example nor --to=webdataset: "
				  "they take all fields");
	if (job->format == TO_LMDB && job->file.shard_size)
		return cmd_misuse(cmd, "--shard-size does not go with --to=lmdb");
	if (job->format == TO_LMDB && !strcmp(job->file.path, "-"))
		return cmd_misuse(cmd, "--to=lmdb needs a FILE or directory");
	return wanted ? cmd_misuse(cmd, "--shard-size needs %s, not '%s'", wanted,
				   job->file.path) : -1;
}

int cmd_export(const struct cmd *cmd, int argc, char **argv)
{
	struct export job = {.prefix = ""};
	uint32_t verify = STELE_VERIFY_DEFAULT;
	bool example = false, chosen = false;
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
			job.file.replace = true;
			break;
		case OPTION_PREFIX:
			cmd_option_value(cmd, longopts, c, set_prefix(&job, optarg));
			break;
		case 'q':
			job.quiet = true;
			break;
		case OPTION_SHARD_SIZE:
			cmd_option_value(cmd, longopts, c,
					 parse_size(optarg, 1, PARSE_SIZE_MAX,
						    &job.file.shard_size));
			break;
		case OPTION_TO:
			chosen = true;
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
	if (!*argv[optind + 1])
		return cmd_misuse(cmd, "the name of FILE is empty");
	job.file.path = argv[optind + 1];
	status = check(cmd, &job, example);
	if (status < 0 && !chosen)
		status = check_name(cmd, job.file.path);
	if (status >= 0)
		return status;
	if (example)
		job.format = TO_EXAMPLE;
	if (job.format == TO_LMDB)
		job.file.path = data_file(job.file.path, &inside);
	job.file.lmdb = job.format == TO_LMDB;
	status = job.file.path ? run(argv[optind], verify, &job) : CMD_FAILED;
	free(inside);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_build.c - stele build: a directory or other source to an image
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "build_job.h"
#include "cmd.h"
#include "from/source.h"

/* What its name ends with; "": nothing. */
static const char *extension_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

	return dot && dot > (slash ? slash + 1 : path) ? dot : "";
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

/* Files of which one is no image. Texts have no other sign. */
static bool is_called_like(const char *path, const char *source)
{
	return is_file(path) && is_file(source) &&
	       !strcmp(extension_of(path), extension_of(source)) && stele_image_detect(path) <= 0;
}

/* "build s-*.tar": with --force the last of them would be lost, for a TARGET that was forgotten. */
static bool refuse_source(const struct build_job *job, const char *source)
{
	char *path = job->from && job->target ? cmd_path_of(job->target) : NULL;
	const char *format = path ? from_guess(path) : NULL;
	const char *same = format ? from_guess(source) : NULL;
	bool refused = same && !strcmp(same, format);

	if (refused)
		cmd_message("'%s' is not overwritten: it looks like what is to be built (%s)", path,
			    format);
	else if (path && is_called_like(path, source)) {
		refused = true;
		cmd_message("'%s' is not overwritten: its name ends like that of what is to be "
			    "built, and it is no image", path);
	}
	if (refused)
		cmd_hint("TARGET comes last, and may be missing here; if it is that file, remove "
			 "it first");
	free(path);
	return refused;
}

static int run(struct build_job *job)
{
	const struct stele_build_opts *opts = &job->options->opts;

	build_job_begin(job);
	return build_job_end(
		job, job->from ? stele_build_from(from_ops(job->from), job->from,
						  job->target, opts, &job->report) :
				 stele_build(job->source, job->target, opts,
					     &job->report));
}

int cmd_build(const struct cmd *cmd, int argc, char **argv)
{
	static struct build_options options = {.who = BUILD_OPTIONS_BUILD};
	struct build_job job = {.options = &options};
	bool dry_run;
	int status;

	build_options_parse(cmd, argc, argv, &options);
	dry_run = options.opts.flags & STELE_DRY_RUN;
	argc -= optind;
	argv += optind;
	if (argc < (dry_run ? 1 : 2))
		return cmd_misuse(cmd, "build needs a SOURCE and a TARGET");
	if (argc > 1)
		job.target = argv[--argc];
	if (job.target && cmd_refuse_target(cmd, job.target))
		return CMD_USAGE;
	status = build_job_sources(&job, argv, argc);
	if (status < 0 && refuse_source(&job, argv[0])) {
		from_close(job.from);
		return CMD_USAGE;
	}
	return status >= 0 ? status : run(&job);
}

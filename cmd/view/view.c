/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - stele view: an image and a snapshot as one page of HTML
 *
 * The page is complete before its file is touched. What cannot be read is said, and left
 * out; the page is written all the same.
 */
#include "view/view.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "output.h"
#include "parse.h"

#define IMAGES_DEFAULT 24
#define IMAGES_MAX     1000

struct options {
	const char *html;
	uint64_t images;
};

struct text {
	char *data;
	size_t size;
};

void view_failed(struct view *view, int error)
{
	cmd_log_error(error, view->target);
	view->error = error;
}

static bool put(FILE *to, const void *what)
{
	const struct text *text = what;

	return fwrite(text->data, 1, text->size, to) == text->size;
}

static int load(struct view *view)
{
	int error = stele_dataset_info(view->ds, &view->info);

	if (!error)
		error = stele_image_info(view->image, &view->about);
	if (!error)
		error = snapshots_load(&view->snapshots, view->image);
	if (error)
		return error;
	view->shown = UINT32_MAX;
	for (uint32_t i = 0; i < view->snapshots.count; i++)
		if (!strcmp(view->snapshots.infos[i].name, view->info.snapshot))
			view->shown = i;
	/* Of a target that is mostly empty, what is used is drawn once more. */
	view->span = view->about.used_size < view->about.image_size / 2 ?
			     view->about.used_size :
			     view->about.image_size;
	return 0;
}

static int make(struct view *view, struct text *text)
{
	int error;

	view->to = open_memstream(&text->data, &text->size);
	if (!view->to)
		return -errno;
	view_head(view);
	view_layout(view);
	view_sizes(view);
	view_fields(view);
	view_pictures(view);
	view_history(view);
	view_foot(view);
	error = ferror(view->to) ? -ENOMEM : 0;
	if (fclose(view->to) != 0 && !error)
		error = -errno;
	return error;
}

static int run(const char *target, const struct options *options)
{
	struct cmd_log log = {.target = target};
	struct view view = {.target = target,
			    .images = options->images,
			    .info.size = sizeof(view.info),
			    .about.size = sizeof(view.about)};
	const bool to_stdout = !strcmp(options->html, "-");
	struct text text = {0};
	int error = 0;

	if (!to_stdout && output_check(options->html, PAGE_MARK))
		return cmd_finish(CMD_FAILED);
	error = cmd_open_dataset(&log, STELE_VERIFY_DEFAULT, &view.ds);
	if (!error)
		error = cmd_open_image(&log, &view.image);
	if (!error) {
		error = load(&view);
		if (!error)
			error = make(&view, &text);
		if (error)
			cmd_error(error, "cannot show '%s'", target);
		else if (to_stdout)
			put(stdout, &text);
		else
			error = output_write(options->html, put, &text);
	}
	free(text.data);
	snapshots_release(&view.snapshots);
	stele_image_close(view.image);
	stele_dataset_close(view.ds);
	error = error ? error : view.error;
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

int cmd_view(const struct cmd *cmd, int argc, char **argv)
{
	static const struct option longopts[] = {
		{"html", required_argument, NULL, 'o'},
		{"images", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options options = {.images = IMAGES_DEFAULT};
	const char *wanted = NULL;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "h", longopts)) != -1) {
		if (c == 'o')
			wanted = parse_text(optarg, 1, PATH_MAX, &options.html);
		else if (c == 'i')
			wanted = parse_number(optarg, 0, IMAGES_MAX, &options.images);
		cmd_option_value(cmd, longopts, c, wanted);
	}
	if (argc - optind != 1)
		return cmd_misuse(cmd, "view needs one TARGET");
	if (!options.html)
		return cmd_misuse(cmd, "view needs --html=FILE");
	return run(argv[optind], &options);
}

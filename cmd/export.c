/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - read ahead in the order of the keys, write in that order
 *
 * Samples come from the reader as they are ready, and wait in a window for
 * their turn. They were asked for in order, so the one whose turn it is is
 * always on its way. What the reader has no room for is streamed in its turn.
 */
#include "export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "key.h"
#include "progress.h"
#include "stop.h"
#include "tar.h"
#include "text.h"
#include "tree.h"

#define WINDOW	   256u
#define ARENA_SIZE (UINT64_C(64) << 20)
#define WRITE_SIZE (4u << 20) /* until the next look at stop_requested() */

/* One sample between the cursor and the archive. */
struct entry {
	uint64_t id, size;
	char *path; /* prefix and key, terminated */
	size_t path_size, key_size;
	struct stele_sample sample;
	bool arrived, large; /* larger than the arena: read in its turn */
};

/* Numbers count all samples in key order; number n lies at n % WINDOW. */
struct window {
	struct export *job;
	struct stele_cursor *cursor;
	struct stele_reader *reader;
	struct tar *tar;
	struct entry entries[WINDOW];
	uint64_t head, submitted, tail; /* written; asked for; known */
	bool at_end;
	int64_t time;
};

/* ---- the archive ----------------------------------------------------------- */

static int put(void *user, const void *data, size_t size)
{
	struct export *job = user;

	for (size_t n; size; data = (const char *)data + n, size -= n) {
		n = size < WRITE_SIZE ? size : WRITE_SIZE;
		if (stop_requested())
			job->write_error = -EINTR;
		else if (fwrite(data, 1, n, job->to) != n)
			job->write_error = errno ? -errno : -EIO;
		if (job->write_error)
			return job->write_error;
	}
	return 0;
}

/* What went wrong with the archive, and not with what should go into it. */
static int check_tar(struct export *job, int error)
{
	if (error)
		job->write_error = error;
	return error;
}

struct piecewise {
	struct window *w;
	uint64_t left;
};

/* More than was announced would be taken for the next file. */
static int put_piece(void *user, const void *data, size_t size)
{
	struct piecewise *piecewise = user;

	if (size > piecewise->left)
		return -EUCLEAN;
	piecewise->left -= size;
	return check_tar(piecewise->w->job,
			 tar_data(piecewise->w->tar, data, size));
}

static int put_stream(struct window *w, const struct entry *entry)
{
	struct piecewise piecewise = {w, entry->size};
	int error = stele_dataset_stream(w->job->ds, entry->id, put_piece,
					 &piecewise);

	if (!error && piecewise.left)
		error = -EUCLEAN;
	return error;
}

/* Is it what the keys section announced? */
static bool is_announced(const struct entry *entry)
{
	const struct stele_sample *sample = &entry->sample;
	const char *key = entry->path + entry->path_size - entry->key_size;

	return sample->size == entry->size &&
	       sample->key_size == entry->key_size &&
	       memcmp(sample->key, key, entry->key_size) == 0;
}

static int put_sample(struct window *w, struct entry *entry)
{
	struct export *job = w->job;
	int error = entry->sample.status;

	if (!error && !entry->large && !is_announced(entry))
		error = -EUCLEAN;
	if (!error)
		error = check_tar(job, tar_file(w->tar, entry->path,
						entry->size, w->time));
	if (!error && entry->large)
		error = put_stream(w, entry);
	else if (!error)
		error = check_tar(job, tar_data(w->tar, entry->sample.data,
						entry->size));
	if (!error)
		error = check_tar(job, tar_file_end(w->tar));
	if (!error) {
		job->done++;
		job->bytes += entry->size;
	}
	return error;
}

/* ---- the window ------------------------------------------------------------ */

static struct entry *entry_of(struct window *w, uint64_t number)
{
	return &w->entries[number % WINDOW];
}

static void refuse(struct export *job, const struct stele_cursor_entry *from,
		   const char *reason)
{
	char *name = text_escape(from->key, from->key_size);

	cmd_message("refused '%s': %s", name ? name : "?", reason);
	free(name);
	job->refused++;
}

static int add(struct window *w, const struct stele_cursor_entry *from)
{
	const size_t prefix = strlen(w->job->prefix);
	struct entry *entry = entry_of(w, w->tail);
	const char *reason = tree_refusal(from->key, from->key_size);

	if (reason) {
		refuse(w->job, from, reason);
		return 0;
	}
	*entry = (struct entry){
		.id = from->id,
		.size = from->size,
		.path_size = prefix + from->key_size,
		.key_size = from->key_size,
	};
	entry->path = malloc(entry->path_size + 1);
	if (!entry->path)
		return -ENOMEM;
	memcpy(entry->path, w->job->prefix, prefix);
	memcpy(entry->path + prefix, from->key, from->key_size);
	entry->path[entry->path_size] = '\0';
	w->tail++;
	return 0;
}

/* Fill the window, and ask for as much of it as the reader takes. */
static int look_ahead(struct window *w)
{
	struct stele_cursor_entry from;
	int got = 1;

	while (!w->at_end && w->tail - w->head < WINDOW) {
		got = stele_cursor_next(w->cursor, &from);
		if (got > 0)
			got = add(w, &from);
		else
			w->at_end = true;
		if (got < 0)
			return got;
	}
	for (got = 1; got > 0 && w->submitted < w->tail; w->submitted += got) {
		struct entry *entry = entry_of(w, w->submitted);

		entry->large = stele_reader_buffer_size(w->reader, entry->id) >
			       ARENA_SIZE;
		entry->arrived = entry->large;
		if (entry->large)
			continue;
		got = stele_reader_submit(w->reader, &entry->id, &w->submitted,
					  1);
		if (got < 0)
			return got;
	}
	return 0;
}

static int collect(struct window *w)
{
	struct stele_sample samples[16];
	int got = stele_reader_collect(w->reader, samples, 16, 1);

	for (int i = 0; i < got; i++) {
		struct entry *entry = entry_of(w, samples[i].tag);

		entry->sample = samples[i];
		entry->arrived = true;
	}
	return got < 0 ? got : 0;
}

static void drop_head(struct window *w)
{
	struct entry *entry = entry_of(w, w->head++);

	if (entry->arrived)
		stele_reader_release(w->reader, &entry->sample);
	free(entry->path);
}

/* Say which sample it was, unless it was not the sample. */
static void complain(struct window *w, int error)
{
	char *name;

	if (error == w->job->write_error)
		return;
	name = key_name(w->job->ds, entry_of(w, w->head)->id);
	cmd_error(error, "cannot read %s", name ? name : "a sample");
	free(name);
}

static int pass_all(struct window *w)
{
	struct progress_state progress = {
		.verb = "exporting",
		.samples_total = stele_dataset_count(w->job->ds)};
	int error = look_ahead(w);

	if (error)
		cmd_error(error, "cannot read the keys");
	while (!error && w->head < w->tail) {
		while (!error && !entry_of(w, w->head)->arrived)
			error = collect(w);
		if (error) {
			cmd_error(error, "cannot read the samples");
			break;
		}
		error = put_sample(w, entry_of(w, w->head));
		if (error) {
			complain(w, error);
			break;
		}
		drop_head(w);
		progress.samples_done = w->job->done + w->job->refused;
		progress.bytes_done = w->job->bytes;
		progress_update(&progress);
		error = look_ahead(w);
		if (error)
			cmd_error(error, "cannot read the keys");
	}
	return error;
}

int export_run(struct export *job)
{
	struct window *w = calloc(1, sizeof(*w));
	struct stele_dataset_info info;
	int error = w ? 0 : -ENOMEM;

	if (!error) {
		stele_dataset_info(job->ds, &info);
		w->job = job;
		w->time = info.time;
		error = stele_cursor_open(job->ds, NULL, 0, &w->cursor);
	}
	if (!error)
		error = stele_reader_open(job->ds,
					  &STELE_OPTS(stele_reader_opts,
						      .arena_size = ARENA_SIZE),
					  &w->reader);
	if (error)
		cmd_error(error, "cannot read the samples");
	if (!error)
		error = check_tar(job, tar_open(put, job, &w->tar));
	progress_start(!job->quiet);
	if (!error)
		error = pass_all(w);
	if (!error)
		error = check_tar(job, tar_end(w->tar));
	progress_end();
	while (w && w->head < w->tail)
		drop_head(w);
	if (w) {
		tar_close(w->tar);
		stele_reader_close(w->reader);
		stele_cursor_close(w->cursor);
	}
	free(w);
	return error;
}

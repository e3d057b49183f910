/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.c - many samples, read at once, each to its file
 *
 * They are asked for in the order of the device, neighbours with one read. Whether a
 * file had holes is not known to an image: blocks of zeros become some.
 */
#include "extract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "key.h"
#include "progress.h"
#include "stop.h"
#include "text.h"
#include "tree.h"

#define BATCH	   1024
#define MERGE_GAP  (16u << 10) /* bytes that are read to save a read */
#define HOLE_SIZE  4096u
#define ARENA_SIZE (UINT64_C(64) << 20) /* larger samples come in pieces */
#define LOOK_SIZE  (64u << 10)
#define WRITE_SIZE (4u << 20) /* until the next look at stop_requested() */

static int append(struct extract *job, uint64_t id)
{
	uint64_t *grown;

	/* At each power of two: room for as many again. */
	if ((job->count & (job->count - 1)) == 0) {
		grown = reallocarray(job->ids, job->count ? 2 * job->count : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		job->ids = grown;
	}
	job->ids[job->count++] = id;
	return 0;
}

/* All keys below the directory that `text` names. Return: count; errno. */
static int append_below(struct extract *job, const char *text)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	uint64_t before = job->count;
	char *prefix;
	int got;

	if (asprintf(&prefix, "%s/", text) < 0)
		return -ENOMEM;
	got = stele_cursor_open(job->ds, prefix, strlen(prefix), &cursor);
	free(prefix);
	if (got < 0)
		return got;
	while ((got = stele_cursor_next(cursor, &entry)) > 0) {
		got = append(job, entry.id);
		if (got < 0)
			break;
	}
	stele_cursor_close(cursor);
	return got < 0 ? got : job->count > before;
}

static int by_id(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A sample that was named twice is wanted once; ids are the device's order. */
static void sort(struct extract *job)
{
	uint64_t kept = 0;

	if (!job->ids)
		return;
	qsort(job->ids, job->count, sizeof(*job->ids), by_id);
	for (uint64_t i = 0; i < job->count; i++) {
		if (!kept || job->ids[kept - 1] != job->ids[i])
			job->ids[kept++] = job->ids[i];
	}
	job->count = kept;
}

/* Unknown keys are said and counted; only the rest is an error. */
static int choose(struct extract *job, char **keys)
{
	uint64_t id;
	char *name;
	int error;

	if (!*keys) {
		job->count = stele_dataset_count(job->ds);
		return 0;
	}
	for (; *keys; keys++) {
		error = key_resolve(job->ds, *keys, false, &id);
		error = error ? error : append(job, id);
		if (error == -ENOENT || error == -EINVAL) {
			error = append_below(job, *keys);
			if (error == 0) {
				name = text_escape(*keys, strlen(*keys));
				cmd_message("no key '%s', and none below it",
					    name ? name : *keys);
				free(name);
				job->failed++;
			}
		} else if (error == -ERANGE) {
			cmd_message("no sample '%s'", *keys);
			job->failed++;
			error = 0;
		}
		if (error < 0)
			return error;
	}
	sort(job);
	return 0;
}

/* ---- a file, with holes ---------------------------------------------------- */

/* Bytes come in order; those of zero blocks are left out. */
struct file {
	int fd;
	uint64_t size; /* so far */
	bool hole;     /* it ends with one */
};

/* How many of these bytes are whole blocks of zeros, as the file counts blocks. */
static size_t zeros_at(const struct file *file, const char *data, size_t size)
{
	size_t n = 0;

	if (file->size % HOLE_SIZE)
		return 0;
	while (size - n >= HOLE_SIZE && !data[n] &&
	       !memcmp(data + n, data + n + 1, HOLE_SIZE - 1))
		n += HOLE_SIZE;
	return n;
}

/* How many of these bytes go out with one write: up to the next block of zeros. */
static size_t data_at(const struct file *file, const char *data, size_t size)
{
	size_t n = HOLE_SIZE - file->size % HOLE_SIZE;

	while (n < size && n < WRITE_SIZE) {
		const struct file behind = {.size = file->size + n};

		if (zeros_at(&behind, data + n, size - n))
			return n;
		n += HOLE_SIZE;
	}
	return n < size ? n : size;
}

static int fill(struct file *file, const char *data, size_t size)
{
	while (size) {
		size_t n = zeros_at(file, data, size);
		ssize_t got = (ssize_t)n;

		file->hole = n > 0;
		if (!n)
			got = pwrite(file->fd, data, data_at(file, data, size),
				     (off_t)file->size);
		if (stop_requested())
			return -EINTR;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got < 0)
			continue;
		data += got;
		size -= (size_t)got;
		file->size += (uint64_t)got;
	}
	return 0;
}

static int finish(struct file *file)
{
	if (file->hole && ftruncate(file->fd, (off_t)file->size) < 0)
		return -errno;
	return 0;
}

/* That a small file is there may as well be seen once it should get its name. */
static unsigned int how(const struct extract *job, uint64_t size)
{
	if (job->replace)
		return TREE_REPLACE;
	return job->skip || size > LOOK_SIZE ? TREE_LOOK : 0;
}

/* Return: 0; negative errno. */
static int write_file(struct extract *job, const char *path,
		      const struct stele_sample *sample)
{
	struct tree_part part;
	struct file file = {0};
	int error = tree_part_create(&job->tree, path, how(job, sample->size), &part);

	if (error)
		return error;
	file.fd = part.fd;
	error = fill(&file, sample->data, sample->size);
	if (!error)
		error = finish(&file);
	if (!error)
		return tree_part_keep(&part);
	tree_part_drop(&part);
	return error;
}

static const char *file_reason(int error)
{
	switch (error) {
	case -EEXIST:
		return "it exists (--force replaces it, --skip-existing keeps it)";
	case -EISNAM:
		return "it exists with another size (--force replaces it)";
	case -ELOOP:
	case -EXDEV:
		return "a symlink is in the way";
	default:
		return strerror(-error);
	}
}

/* Count it. Return: whether to name it, too. */
static bool is_new(struct extract *job, const char *what, const char *reason)
{
	char text[EXTRACT_KIND_SIZE];

	snprintf(text, sizeof(text), "%s: %s", what, reason);
	for (size_t i = 0; i < EXTRACT_KINDS; i++) {
		struct extract_kind *kind = &job->kinds[i];

		if (!kind->count)
			memcpy(kind->text, text, sizeof(text));
		if (!strcmp(kind->text, text))
			return ++kind->count <= EXTRACT_NAMED;
	}
	return true;
}

static void complain(struct extract *job, const char *what, const char *key,
		     size_t key_size, const char *reason)
{
	char *name;

	if (!is_new(job, what, reason))
		return;
	name = text_escape(key, key_size);
	cmd_message("%s '%s': %s", what, name ? name : "?", reason);
	free(name);
}

/* Would every other file fail likewise? */
static void consider(struct extract *job, int error)
{
	if (error == -ENOSPC || error == -EDQUOT || error == -EROFS)
		job->stopped = error;
}

/* 0 for a file that exists, as it should; -EISNAM: with another size; else `error`. */
static int skip_existing(struct extract *job, int error, const char *path,
			 uint64_t size)
{
	struct stat st;

	if (error != -EEXIST || !job->skip)
		return error;
	if (fstatat(job->tree.root, path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return error;
	if (size != UINT64_MAX && (uint64_t)st.st_size != size)
		return -EISNAM;
	job->skipped++;
	return 0;
}

static void keep(struct extract *job, const struct stele_sample *sample)
{
	const char *reason = tree_refusal(sample->key, sample->key_size);
	char *path;
	int error;

	if (reason) {
		complain(job, "refused", sample->key, sample->key_size, reason);
		job->refused++;
		return;
	}
	path = strndup(sample->key, sample->key_size);
	error = path ? write_file(job, path, sample) : -ENOMEM;
	if (!error) {
		job->done++;
		job->bytes += sample->size;
	}
	error = skip_existing(job, error, path, sample->size);
	if (error && !stop_requested())
		complain(job, "cannot write", sample->key, sample->key_size,
			 file_reason(error));
	consider(job, error);
	job->failed += error && error != -EINTR;
	free(path);
}

/* ---- samples larger than memory -------------------------------------------- */

/* A failure to read is negative, one to write is kept here. */
struct piecewise {
	struct tree_part part;
	struct file file;
	int write_error;
};

static int put_piece(void *user, const void *data, size_t size)
{
	struct piecewise *piecewise = user;

	piecewise->write_error = fill(&piecewise->file, data, size);
	return piecewise->write_error ? 1 : 0;
}

/* The file has its name when all of it has been read and checked. */
static int stream_file(struct extract *job, uint64_t id, const char *path)
{
	struct piecewise piecewise = {0};
	int error = tree_part_create(&job->tree, path, how(job, UINT64_MAX),
				     &piecewise.part);
	int read_error = 0;

	if (!error) {
		piecewise.file.fd = piecewise.part.fd;
		read_error = stele_dataset_stream(job->ds, id, put_piece,
						  &piecewise);
		error = piecewise.write_error;
		if (!error && !read_error)
			error = finish(&piecewise.file);
		if (read_error || error)
			tree_part_drop(&piecewise.part);
		else
			error = tree_part_keep(&piecewise.part);
	}
	if (!error && !read_error) {
		job->done++;
		job->bytes += piecewise.file.size;
	}
	job->seen_bytes += piecewise.file.size;
	error = skip_existing(job, error, path, UINT64_MAX); /* it was whole */
	if (error && !stop_requested())
		complain(job, "cannot write", path, strlen(path),
			 file_reason(error));
	consider(job, error);
	job->failed += error && error != -EINTR;
	return read_error < 0 ? read_error : 0;
}

/* Its key is known from the keys section alone. Return: 0; errno of reading. */
static int keep_large(struct extract *job, uint64_t id)
{
	const char *reason;
	size_t size;
	char *path;
	int error = key_of(job->ds, id, &path, &size);

	if (error)
		return error;
	reason = tree_refusal(path, size);
	if (reason) {
		complain(job, "refused", path, size, reason);
		job->refused++;
	} else {
		error = stream_file(job, id, path);
	}
	free(path);
	return error;
}

static void fail(struct extract *job, uint64_t id, int error)
{
	char *name;

	/* Nothing of the snapshot can be relied on any more. */
	job->stale = error == -ESTALE;
	if (job->stale)
		return;
	if (is_new(job, "cannot read", stele_strerror(error))) {
		name = key_name(job->ds, id);
		cmd_error(error, "cannot read %s", name ? name : "a sample");
		free(name);
	}
	job->failed++;
	if (cmd_status_of(error) == CMD_DAMAGED)
		job->damaged = true;
}

static void take(struct extract *job, const struct stele_sample *sample)
{
	if (sample->status)
		fail(job, sample->id, sample->status);
	else
		keep(job, sample);
}

/* What the reader's arena cannot hold comes at once, in pieces. */
static int submit(struct extract *job, struct stele_reader *reader,
		  uint64_t next)
{
	uint64_t ids[BATCH], id = 0;
	unsigned int count = 0;
	int error;

	for (; count < BATCH && next + count < job->count; count++) {
		id = job->ids ? job->ids[next + count] : next + count;
		if (stele_reader_buffer_size(reader, id) > ARENA_SIZE)
			break;
		ids[count] = id;
	}
	if (count || next == job->count)
		return stele_reader_submit(reader, ids, NULL, count);
	error = keep_large(job, id);
	if (error)
		fail(job, id, error);
	return 1;
}

/* Bytes of what is wanted; those of named samples with their slots' padding. */
static uint64_t size_all(const struct extract *job)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_extent extent = {.size = sizeof(extent)};
	uint64_t size = 0;

	stele_dataset_info(job->ds, &info);
	for (uint64_t i = 0; job->ids && i < job->count; i++)
		if (!stele_dataset_locate(job->ds, job->ids[i], &extent))
			size += extent.slot_size;
	return job->ids ? size : info.payload_size;
}

static int read_all(struct extract *job, struct stele_reader *reader)
{
	struct stele_progress progress = {.samples_total = job->count,
					  .bytes_total = size_all(job)};
	struct stele_sample samples[BATCH];
	uint64_t next = 0;
	int got;

	while (!stop_requested() && !job->stale && !job->stopped &&
	       (next < job->count || stele_reader_in_flight(reader))) {
		got = submit(job, reader, next);
		if (got < 0)
			return got;
		next += (uint64_t)got;
		got = stele_reader_collect(reader, samples, BATCH, 1);
		if (got < 0)
			return got;
		for (int i = 0; i < got; i++) {
			if (!stop_requested() && !job->stale && !job->stopped)
				take(job, &samples[i]);
			if (!samples[i].status)
				job->seen_bytes += samples[i].size;
			stele_reader_release(reader, &samples[i]);
		}
		progress.samples_done = next - stele_reader_in_flight(reader);
		progress.bytes_done = job->seen_bytes;
		progress_update("extracting", &progress);
	}
	return job->stale ? -ESTALE : 0;
}

int extract_run(struct extract *job, char **keys)
{
	struct stele_reader *reader = NULL;
	int error;

	progress_start(!job->quiet);
	error = choose(job, keys);
	if (!error && job->count)
		error = stele_reader_open(job->ds,
					  &STELE_OPTS(stele_reader_opts,
						      .arena_size = ARENA_SIZE,
						      .merge_gap = MERGE_GAP),
					  &reader);
	if (!error && job->count)
		error = read_all(job, reader);
	stele_reader_close(reader);
	progress_end();
	free(job->ids);
	job->ids = NULL;
	if (error)
		cmd_error(error, "cannot read the samples");
	if (job->damaged || cmd_status_of(error) == CMD_DAMAGED)
		return CMD_DAMAGED;
	return error || job->failed || job->refused || job->stopped ? CMD_FAILED : CMD_OK;
}

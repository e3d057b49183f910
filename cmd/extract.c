/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.c - many samples, read at once, each to its file
 *
 * They are asked for in the order of the device, neighbours with one read, by one thread. What
 * it collects is a batch, and batches are a ring: filled, taken by whoever has time to write
 * one, and released in the same order, as only the reader's thread may. That thread writes,
 * too, while all batches are filled; so a single processor needs no other.
 * Whether a file had holes is not known to an image: blocks of zeros become some.
 */
#include "extract.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "key.h"
#include "output.h"
#include "progress.h"
#include "stop.h"
#include "text.h"
#include "tree.h"

#define BATCH	   1024		/* samples */
#define BATCH_SIZE (4u << 20)	/* bytes, or one sample */
#define THREADS	   8u		/* at most, with the reader's */
#define BATCHES	   (2 * THREADS)
#define MERGE_GAP  (16u << 10) /* bytes that are read to save a read */
#define HOLE_SIZE  4096u
#define ARENA_SIZE (UINT64_C(64) << 20) /* larger samples come in pieces */
#define LOOK_SIZE  (64u << 10)
#define WRITE_SIZE (4u << 20) /* until the next look at stop_requested() */

struct batch {
	struct stele_sample samples[BATCH];
	int count;
	bool written;
};

struct extracting {
	struct extract *job;
	struct stele_reader *reader;
	uint64_t next;		 /* to be submitted */
	unsigned int batch_most; /* samples */
	struct batch *ring;
	pthread_mutex_t lock; /* of the ring, what the job counts, and messages */
	pthread_cond_t changed;
	uint64_t filled, taken, released; /* batches */
	bool end;  /* no more will be filled */
	bool stop; /* write no more */
};

/* One in each thread. */
struct writer {
	struct extracting *e;
	struct tree tree;
};

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

/* All keys below the directory that `text` names, with a slash or without. Return: count; errno. */
static int append_below(struct extract *job, const char *text)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	uint64_t before = job->count;
	size_t size = strlen(text);
	char *prefix;
	int got;

	while (size > 1 && text[size - 1] == '/')
		size--;
	if (asprintf(&prefix, "%.*s/", (int)size, text) < 0)
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

static void say_unknown(struct extract *job, const char *what, const char *key)
{
	char *name = text_escape(key, strlen(key));

	cmd_message(what, name ? name : key);
	free(name);
	job->failed++;
}

/*
 * The sample of that key, which may be a directory too, and what is below it; of #ID the sample
 * alone. One that is unknown is said and counted. Return: 0; errno.
 */
static int append_named(struct extract *job, const char *key)
{
	uint64_t id;
	int error = key_resolve(job->ds, key, false, &id), below;

	if (error == -ERANGE) {
		say_unknown(job, "no sample '%s'", key);
		return 0;
	}
	if (error && error != -ENOENT && error != -EINVAL)
		return error;
	if (!error && append(job, id))
		return -ENOMEM;
	below = key_is_id(key, &id) ? 0 : append_below(job, key);
	if (error && below == 0) {
		say_unknown(job, "no key '%s', and none below it", key);
		if (strpbrk(key, "*?["))
			cmd_hint("'stele ls -0 TARGET PATTERN | xargs -0 stele extract TARGET DIR' "
				 "takes those that match a pattern");
	}
	return below < 0 ? below : 0;
}

static int choose(struct extract *job, char **keys)
{
	if (!*keys) {
		job->count = stele_dataset_count(job->ds);
		return 0;
	}
	for (; *keys; keys++) {
		int error = append_named(job, *keys);

		if (error)
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
		return TREE_REPLACE | TREE_SPARE;
	return job->skip || size > LOOK_SIZE ? TREE_LOOK : 0;
}

/* Return: 0; negative errno. */
static int write_file(struct writer *w, const char *path, const void *data, uint64_t size)
{
	struct tree_part part;
	struct file file = {0};
	int error = tree_part_create(&w->tree, path, how(w->e->job, size), &part);

	if (error)
		return error;
	file.fd = part.fd;
	error = fill(&file, data, size);
	if (!error)
		error = finish(&file);
	if (!error)
		return tree_part_keep(&part);
	tree_part_drop(&part);
	return error;
}

static const char *file_reason(const struct extract *job, int error)
{
	switch (error) {
	case -EEXIST: /* --skip-existing keeps files, and nothing else */
		return job->skip ? "it exists, and is no regular file (--force replaces it)" :
				   "it exists (--force replaces it, --skip-existing keeps it)";
	case -EISNAM:
		return "it exists with another size (--force replaces it)";
	case -EISDIR:
		return "a directory has that name ('stele cat' reads the sample)";
	case -ETXTBSY:
		return output_spared_reason();
	case -EBUSY:
		return "it is in use: something is mounted on it";
	case -ENOTDIR:
		return "a file has the name of its directory ('stele cat' reads the sample)";
	case -ELOOP:
	case -EXDEV:
		return "a symlink is in the way";
	default:
		return output_why(job->root, error);
	}
}

/* Would every other file fail likewise? */
static bool is_final(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EROFS;
}

/* Has `path` what it should have? Return: 0; -EISNAM: with another size; -EEXIST: no file. */
static int look(const struct extract *job, const char *path, uint64_t size)
{
	struct stat st;

	if (fstatat(job->root, path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return -EEXIST;
	return size != UINT64_MAX && (uint64_t)st.st_size != size ? -EISNAM : 0;
}

static void stop(struct extracting *e)
{
	__atomic_store_n(&e->stop, true, __ATOMIC_RELAXED);
}

static bool stopped(const struct extracting *e)
{
	return stop_requested() || __atomic_load_n(&e->stop, __ATOMIC_RELAXED);
}

static bool is_directory(const struct extract *job, const char *path)
{
	struct stat st;

	return !fstatat(job->root, path, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* After one error that is final those of other threads are the same. */
static void count_failure(struct extracting *e, const char *path, int error)
{
	struct extract *job = e->job;

	if (error == -EINTR || job->stopped)
		return;
	if (error == -EEXIST && is_directory(job, path))
		error = -EISDIR;
	if (!stop_requested())
		complaints_add(&job->complaints, "cannot write", path, strlen(path),
			 file_reason(job, error));
	job->failed++;
	if (error == -EFBIG)
		job->too_large = true;
	if (is_final(error)) {
		job->stopped = error;
		stop(e);
	}
}

/* Count a file that has `written` bytes, or could not be written. @size: of what it should be. */
static void count_file(struct extracting *e, const char *path, int error,
		       uint64_t written, uint64_t size)
{
	struct extract *job = e->job;
	const bool made = !error;

	if (error == -EEXIST && job->skip)
		error = look(job, path, size);
	pthread_mutex_lock(&e->lock);
	if (made) {
		job->done++;
		job->bytes += written;
	} else if (!error) {
		job->skipped++;
	} else {
		count_failure(e, path, error);
	}
	pthread_mutex_unlock(&e->lock);
}

static void refuse(struct extracting *e, const char *key, size_t key_size,
		   const char *reason)
{
	pthread_mutex_lock(&e->lock);
	complaints_add(&e->job->complaints, "refused", key, key_size, reason);
	e->job->refused++;
	pthread_mutex_unlock(&e->lock);
}

static void say_failure(struct extract *job, uint64_t id, int error)
{
	char *name;

	if (complaints_count(&job->complaints, "cannot read", stele_strerror(error))) {
		name = key_name(job->ds, id);
		cmd_error(error, "cannot read %s", name ? name : "a sample");
		free(name);
	}
	job->failed++;
	if (cmd_status_of(error) == CMD_DAMAGED)
		job->damaged = true;
}

static void fail(struct extracting *e, uint64_t id, int error)
{
	pthread_mutex_lock(&e->lock);
	if (error == -ESTALE) { /* nothing of the snapshot can be relied on any more */
		e->job->stale = true;
		stop(e);
	} else {
		say_failure(e->job, id, error);
	}
	pthread_mutex_unlock(&e->lock);
}

static void keep(struct writer *w, const struct stele_sample *sample)
{
	const char *reason = tree_refusal(sample->key, sample->key_size);
	const int field = w->e->job->field;
	char path[STELE_KEY_SIZE_MAX + 1];
	const void *data = sample->data;
	uint64_t size = sample->size;
	int error = 0;

	if (field >= 0)
		error = stele_sample_bytes(sample, (uint32_t)field, &data, &size);
	if (error) {
		fail(w->e, sample->id, error);
		return;
	}
	if (reason) {
		refuse(w->e, sample->key, sample->key_size, reason);
		return;
	}
	labels_check(&w->e->job->labels, sample);
	memcpy(path, sample->key, sample->key_size);
	path[sample->key_size] = '\0';
	count_file(w->e, path, write_file(w, path, data, size), size, size);
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
static int stream_file(struct writer *w, uint64_t id, const char *path)
{
	struct piecewise piecewise = {0};
	struct extract *job = w->e->job;
	int error = tree_part_create(&w->tree, path, how(job, UINT64_MAX),
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
	job->seen_bytes += piecewise.file.size;
	if (read_error < 0)
		return read_error;
	count_file(w->e, path, error, piecewise.file.size,
		   UINT64_MAX); /* one that exists was whole */
	return 0;
}

/* A field is cut out in memory. Return: 0; errno of reading. */
static int keep_field(struct writer *w, uint64_t id)
{
	struct stele_sample sample;
	int error = stele_dataset_read(w->e->job->ds, id, &sample);

	if (error)
		return error;
	w->e->job->seen_bytes += sample.size;
	keep(w, &sample);
	stele_sample_release(&sample);
	return 0;
}

/* Its key is known from the keys section alone. Return: 0; errno of reading. */
static int keep_large(struct writer *w, uint64_t id)
{
	const char *reason;
	size_t size;
	char *path;
	int error = key_of(w->e->job->ds, id, &path, &size);

	if (error)
		return error;
	reason = tree_refusal(path, size);
	if (reason)
		refuse(w->e, path, size, reason);
	else
		error = stream_file(w, id, path);
	if (!reason && !error)
		labels_check_key(&w->e->job->labels, w->e->job->ds, id, path, size);
	free(path);
	return error;
}

/* ---- the ring -------------------------------------------------------------- */

static struct batch *batch_at(const struct extracting *e, uint64_t n)
{
	return &e->ring[n % BATCHES];
}

static void write_batch(struct writer *w, const struct batch *batch)
{
	for (int i = 0; i < batch->count && !stopped(w->e); i++) {
		const struct stele_sample *sample = &batch->samples[i];

		if (sample->status)
			fail(w->e, sample->id, sample->status);
		else
			keep(w, sample);
	}
}

/* The lock is held, but for writing. Return: was there one? */
static bool write_next(struct writer *w)
{
	struct extracting *e = w->e;
	struct batch *batch;

	if (e->taken == e->filled)
		return false;
	batch = batch_at(e, e->taken++);
	pthread_mutex_unlock(&e->lock);
	write_batch(w, batch);
	pthread_mutex_lock(&e->lock);
	batch->written = true;
	pthread_cond_broadcast(&e->changed);
	return true;
}

/* A thread besides the reader's. */
static void *write_all(void *user)
{
	struct extracting *e = user;
	struct writer w = {.e = e};

	tree_init(&w.tree, e->job->root);
	pthread_mutex_lock(&e->lock);
	while (write_next(&w) || !e->end)
		if (e->taken == e->filled && !e->end)
			pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
	tree_release(&w.tree);
	return NULL;
}

/* The reader's thread: its samples go back, and with them the memory for others. */
static void release_written(struct extracting *e)
{
	while (e->released < e->taken && batch_at(e, e->released)->written) {
		struct batch *batch = batch_at(e, e->released++);

		pthread_mutex_unlock(&e->lock);
		for (int i = 0; i < batch->count; i++)
			stele_reader_release(e->reader, &batch->samples[i]);
		batch->written = false;
		pthread_mutex_lock(&e->lock);
	}
}

/* Wait, or rather write, until at most so many batches are neither empty nor written. */
static void await_written(struct writer *w, uint64_t most)
{
	struct extracting *e = w->e;

	pthread_mutex_lock(&e->lock);
	release_written(e);
	while (e->filled - e->released > most) {
		if (!write_next(w))
			pthread_cond_wait(&e->changed, &e->lock);
		release_written(e);
	}
	pthread_mutex_unlock(&e->lock);
}

/* Return: as stele_reader_collect(). */
static int fill_batch(struct extracting *e)
{
	struct batch *batch = batch_at(e, e->filled);
	int got = stele_reader_collect(e->reader, batch->samples, e->batch_most, 1);

	if (got <= 0)
		return got;
	batch->count = got;
	for (int i = 0; i < got; i++)
		if (!batch->samples[i].status)
			e->job->seen_bytes += batch->samples[i].size;
	pthread_mutex_lock(&e->lock);
	e->filled++;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	return got;
}

/* What the reader's arena cannot hold comes at once, in pieces. */
static int submit(struct writer *w)
{
	const struct extracting *e = w->e;
	const struct extract *job = e->job;
	uint64_t ids[BATCH], id = 0;
	unsigned int count = 0;
	int error;

	for (; count < BATCH && e->next + count < job->count; count++) {
		id = job->ids ? job->ids[e->next + count] : e->next + count;
		if (stele_reader_buffer_size(e->reader, id) > ARENA_SIZE)
			break;
		ids[count] = id;
	}
	if (count || e->next == job->count)
		return stele_reader_submit(e->reader, ids, NULL, count);
	error = job->field < 0 ? keep_large(w, id) : keep_field(w, id);
	if (error)
		fail(w->e, id, error);
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

/* Return: 0; errno of the reader. */
static int read_all(struct writer *w, struct stele_progress *progress)
{
	struct extracting *e = w->e;
	const struct extract *job = e->job;

	while (!stopped(e) &&
	       (e->next < job->count || stele_reader_in_flight(e->reader))) {
		int got = submit(w);

		if (got < 0)
			return got;
		e->next += (uint64_t)got;
		/* Nothing taken, nothing to come: the arena is full of what is written. */
		await_written(w, got || stele_reader_in_flight(e->reader) ?
					 BATCHES - 1 : 0);
		got = fill_batch(e);
		if (got < 0)
			return got;
		progress->samples_done = e->next - stele_reader_in_flight(e->reader);
		progress->bytes_done = job->seen_bytes;
		progress_update("extracting", progress);
	}
	return 0;
}

/* Those that the system refuses are missed by nobody. Signals are the caller's. */
static unsigned int start(struct extracting *e, pthread_t threads[THREADS])
{
	unsigned int count = 0, wanted = 1;
	sigset_t all, old;
	cpu_set_t allowed;

	if (!sched_getaffinity(0, sizeof(allowed), &allowed))
		wanted = (unsigned int)CPU_COUNT(&allowed);
	if (wanted > THREADS)
		wanted = THREADS;
	if (e->job->count <= e->batch_most)
		wanted = 1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (count + 1 < wanted &&
	       !pthread_create(&threads[count], NULL, write_all, e))
		count++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return count;
}

/* With threads that write. Return: 0; errno of the reader. */
static int pass_all(struct extracting *e)
{
	struct stele_progress progress = {.samples_total = e->job->count,
					  .bytes_total = size_all(e->job)};
	const uint64_t mean = progress.bytes_total / e->job->count + 1;
	struct writer w = {.e = e};
	pthread_t threads[THREADS];
	unsigned int count;
	int error;

	tree_init(&w.tree, e->job->root);
	e->batch_most = mean > BATCH_SIZE	  ? 1 :
			BATCH_SIZE / mean > BATCH ? BATCH :
						    (unsigned int)(BATCH_SIZE / mean);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	count = start(e, threads);
	error = read_all(&w, &progress);
	await_written(&w, 0);
	pthread_mutex_lock(&e->lock);
	e->end = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	while (count)
		pthread_join(threads[--count], NULL);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	tree_release(&w.tree);
	return e->job->stale ? -ESTALE : error;
}

int extract_run(struct extract *job, char **keys)
{
	struct extracting e = {.job = job};
	int error;

	progress_start(!job->quiet);
	error = choose(job, keys);
	if (!error && job->count)
		error = stele_reader_open(job->ds,
					  &STELE_OPTS(stele_reader_opts,
						      .arena_size = ARENA_SIZE,
						      .merge_gap = MERGE_GAP),
					  &e.reader);
	e.ring = error ? NULL : calloc(BATCHES, sizeof(*e.ring));
	if (!error && !e.ring)
		error = -ENOMEM;
	if (!error && job->count)
		error = pass_all(&e);
	stele_reader_close(e.reader);
	progress_end();
	free(e.ring);
	free(job->ids);
	job->ids = NULL;
	if (error)
		cmd_error(error, "cannot read the samples");
	if (job->damaged || cmd_status_of(error) == CMD_DAMAGED)
		return CMD_DAMAGED;
	return error || job->failed || job->refused || job->stopped ? CMD_FAILED : CMD_OK;
}

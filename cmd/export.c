/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - samples in the order of their keys, read in that of the device
 *
 * A thread takes keys from the cursor until their samples fill a window, reads
 * those in the order of ids, so that neighbours come with one read, and copies
 * each to its place. Meanwhile the window before is written, in the order of keys.
 * What is too large for a window is streamed by who writes, in its turn.
 */
#include "export.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "fields.h"
#include "key.h"
#include "progress.h"
#include "stop.h"
#include "tar.h"
#include "tree.h"

#define WINDOW_SIZE (64u << 20) /* keys, samples and what is known of them */
#define LARGE_SIZE  (WINDOW_SIZE / 2)
#define ARENA_SIZE  (UINT64_C(64) << 20)
#define MERGE_GAP   (16u << 10) /* bytes that are read to save a read */
#define BATCH	    256u
#define AHEAD	    8192u /* samples in flight, before more are submitted */
#define AT_ONCE	    4096u /* samples submitted: enough to fill large reads */
#define WRITE_SIZE  (4u << 20) /* until the next look at stop_requested() */

/* One sample between the cursor and the archive. Offsets are into the window. */
struct entry {
	uint64_t id, size;
	size_t values, path, data; /* values: of fields, in formats that have them */
	uint32_t key_size;
	int status;
	bool large;
	const char *refused; /* why */
};

/* What is read by the reader, in its order. */
struct wanted {
	uint64_t id, index; /* of entry */
};

/* Its memory has entries at the begin, and from the end down their bytes. */
struct window {
	char *memory;
	struct wanted *wanted;
	size_t count, bytes; /* entries; taken from the end */
	bool full;	     /* the writer's turn */
	bool last;
	int error; /* of the keys, or of the reader: behind all entries */
	const char *what; /* failed, then */
};

struct exporting {
	struct export *job;
	struct stele_cursor *cursor;
	struct stele_reader *reader;
	struct to to;
	struct window windows[2];
	uint64_t read; /* bytes of samples */
	struct stele_cursor_entry held; /* that the window before had no room for */
	bool is_held;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
};

static struct entry *entry_of(const struct window *w, size_t index)
{
	return (struct entry *)w->memory + index;
}

static const char *key_in(const struct window *w, const struct entry *entry)
{
	return w->memory + entry->data - 1 - entry->key_size;
}

/* ---- the file -------------------------------------------------------------- */

static int put(void *user, const void *data, size_t size)
{
	struct export *job = user;

	while (size && !job->write_error) {
		const size_t n = size < WRITE_SIZE ? size : WRITE_SIZE;
		ssize_t got = write(job->file.fd, data, n);

		if (stop_requested())
			job->write_error = -EINTR;
		else if (got < 0 && errno != EINTR)
			job->write_error = -errno;
		if (got > 0) {
			data = (const char *)data + got;
			size -= (size_t)got;
		}
	}
	return job->write_error;
}

/* What went wrong with the archive, and not with what should go into it. */
static int check_tar(struct export *job, int error)
{
	if (error)
		job->write_error = error;
	return error;
}

struct piecewise {
	struct exporting *e;
	uint64_t left;
};

/* More than was announced would be taken for the next file. */
static int put_piece(void *user, const void *data, size_t size)
{
	struct piecewise *piecewise = user;

	if (size > piecewise->left)
		return -EUCLEAN;
	piecewise->left -= size;
	return check_tar(piecewise->e->job,
			 tar_data(piecewise->e->to.tar, data, size));
}

/* A file of all bytes, which need not be in memory. */
static int put_stream(struct exporting *e, const struct window *w, const struct entry *entry)
{
	struct piecewise piecewise = {e, entry->size};
	int error = check_tar(e->job, tar_file(e->to.tar, w->memory + entry->path, entry->size,
					       e->to.time));

	if (!error)
		error = stele_dataset_stream(e->job->ds, entry->id, put_piece, &piecewise);
	if (!error && piecewise.left)
		error = -EUCLEAN;
	e->to.bytes += entry->size;
	return error ? error : check_tar(e->job, tar_file_end(e->to.tar));
}

/* One that is large is in memory as a whole meanwhile, if it has to be taken apart. */
static int put_one(struct exporting *e, const struct window *w, const struct entry *entry)
{
	struct to_sample sample = {
		.path = w->memory + entry->path,
		.data = (const uint8_t *)w->memory + entry->data,
		.size = entry->size,
		.values = (const union stele_value *)(w->memory + entry->values)};
	union stele_value values[STELE_FIELDS_MAX];
	struct stele_sample large;
	int error;

	if (!entry->large)
		return check_tar(e->job, to_put(&e->to, &sample));
	if (!e->to.field_count)
		return put_stream(e, w, entry);
	error = stele_dataset_read(e->job->ds, entry->id, &large);
	if (error)
		return error;
	error = to_values(&e->to, &large, values);
	sample.data = large.data;
	sample.size = large.size;
	sample.values = values;
	if (!error)
		error = check_tar(e->job, to_put(&e->to, &sample));
	stele_sample_release(&large);
	return error;
}

static int begin_file(struct exporting *e)
{
	return e->job->format > TO_WEBDATASET ?
		       0 : check_tar(e->job, tar_open(put, e->job, &e->to.tar));
}

/* The next shard, if this one is full. */
static int turn_file(struct exporting *e)
{
	const uint64_t full = e->job->file.shard_size;
	int error;

	if (!full || to_size(&e->to) < full)
		return 0;
	error = to_end(&e->to);
	tar_close(e->to.tar);
	e->to.tar = NULL;
	if (!error)
		error = to_file_next(&e->job->file);
	return error ? check_tar(e->job, error) : begin_file(e);
}

static int put_sample(struct exporting *e, const struct window *w,
		      const struct entry *entry)
{
	struct export *job = e->job;
	int error = entry->status;

	if (!error)
		error = turn_file(e);
	if (!error)
		error = put_one(e, w, entry);
	if (!error && entry->large)
		labels_check_key(&job->labels, job->ds, entry->id, key_in(w, entry),
				 entry->key_size);
	if (!error) {
		job->done++;
		job->bytes = e->to.bytes;
		e->read += entry->size;
	}
	return error;
}

static void refuse(struct export *job, const struct window *w,
		   const struct entry *entry)
{
	complaints_add(&job->complaints, "refused", key_in(w, entry), entry->key_size,
		       entry->refused);
	job->refused++;
	job->unfit += tree_refusal(key_in(w, entry), entry->key_size) != NULL;
}

/* ---- a window, filled ------------------------------------------------------ */

/* Return: was there room? */
static bool add(struct exporting *e, struct window *w,
		const struct stele_cursor_entry *from)
{
	const size_t prefix = strlen(e->job->prefix);
	const size_t values = e->to.field_count * sizeof(union stele_value);
	const bool large = from->size > LARGE_SIZE;
	/* A multiple of 8, so that values are aligned. */
	const size_t size = (values + prefix + from->key_size + 1 +
			     (large ? 0 : (size_t)from->size) + 7) & ~(size_t)7;
	struct entry *entry = entry_of(w, w->count);
	char *to;

	if (w->count >= WINDOW_SIZE / (2 * sizeof(*entry)) ||
	    (w->count + 1) * sizeof(*entry) + w->bytes + size > WINDOW_SIZE)
		return false;
	w->bytes += size;
	*entry = (struct entry){
		.id = from->id,
		.size = from->size,
		.values = WINDOW_SIZE - w->bytes,
		.path = WINDOW_SIZE - w->bytes + values,
		.key_size = (uint32_t)from->key_size,
		.large = large,
		.refused = to_refusal(&e->to, from->key, from->key_size),
	};
	entry->data = entry->path + prefix + from->key_size + 1;
	to = w->memory + entry->path;
	memcpy(to, e->job->prefix, prefix);
	memcpy(to + prefix, from->key, from->key_size);
	to[prefix + from->key_size] = '\0';
	w->count++;
	return true;
}

/* Return: 0; an error of the cursor. */
static int take_keys(struct exporting *e, struct window *w)
{
	for (;;) {
		int got = 1;

		if (!e->is_held)
			got = stele_cursor_next(e->cursor, &e->held);
		if (got <= 0) {
			w->last = true;
			return got;
		}
		e->is_held = !add(e, w, &e->held);
		if (e->is_held)
			return 0;
	}
}

static int by_id(const void *a, const void *b)
{
	const uint64_t x = ((const struct wanted *)a)->id;
	const uint64_t y = ((const struct wanted *)b)->id;

	return (x > y) - (x < y);
}

/* Return: how many are to be read by the reader. */
static size_t sort(struct window *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->count; i++) {
		const struct entry *entry = entry_of(w, i);

		if (!entry->large && !entry->refused)
			w->wanted[n++] = (struct wanted){entry->id, i};
	}
	qsort(w->wanted, n, sizeof(*w->wanted), by_id);
	return n;
}

/* To its place, if it is what the keys section announced. */
static void keep(const struct exporting *e, struct window *w, struct entry *entry,
		 const struct stele_sample *sample)
{
	union stele_value *values = (union stele_value *)(w->memory + entry->values);

	entry->status = sample->status;
	if (entry->status)
		return;
	if (sample->size != entry->size || sample->key_size != entry->key_size ||
	    memcmp(sample->key, key_in(w, entry), entry->key_size) != 0)
		entry->status = -EUCLEAN;
	else
		entry->status = to_values(&e->to, sample, values);
	if (!entry->status)
		labels_check(&e->job->labels, sample);
	if (!entry->status && sample->size)
		memcpy(w->memory + entry->data, sample->data, entry->size);
}

static bool stopped(struct exporting *e)
{
	return __atomic_load_n(&e->stop, __ATOMIC_RELAXED);
}

/* Return: how many of these the reader took; an error of it. */
static int submit(struct exporting *e, const struct wanted *wanted, size_t count)
{
	uint64_t ids[AT_ONCE], tags[AT_ONCE];

	if (stele_reader_in_flight(e->reader) >= AHEAD)
		return 0;
	if (count > AT_ONCE)
		count = AT_ONCE;
	for (size_t i = 0; i < count; i++) {
		ids[i] = wanted[i].id;
		tags[i] = wanted[i].index;
	}
	return stele_reader_submit(e->reader, ids, tags, (unsigned int)count);
}

/* In the order of ids entries lie anywhere: those of a batch come to the cache at once. */
static int collect(struct exporting *e, struct window *w)
{
	struct stele_sample samples[BATCH];
	int got = stele_reader_collect(e->reader, samples, BATCH, 1);

	for (int i = 0; i < got; i++)
		__builtin_prefetch(entry_of(w, samples[i].tag), 1);
	for (int i = 0; i < got; i++)
		__builtin_prefetch(key_in(w, entry_of(w, samples[i].tag)), 1);
	for (int i = 0; i < got; i++) {
		keep(e, w, entry_of(w, samples[i].tag), &samples[i]);
		stele_reader_release(e->reader, &samples[i]);
	}
	return got;
}

static int read_samples(struct exporting *e, struct window *w)
{
	const size_t count = sort(w);
	size_t next = 0;

	while ((next < count || stele_reader_in_flight(e->reader)) &&
	       !stopped(e)) {
		int got = submit(e, w->wanted + next, count - next);

		if (got < 0)
			return got;
		next += (size_t)got;
		got = collect(e, w);
		if (got < 0)
			return got;
	}
	return 0;
}

static void fill(struct exporting *e, struct window *w)
{
	int error;

	w->count = w->bytes = 0;
	w->error = take_keys(e, w);
	w->what = "cannot read the keys";
	error = read_samples(e, w);
	if (error) {
		w->count = 0; /* nothing is known of them */
		w->error = error;
		w->what = "cannot read the samples";
	}
	w->last |= w->error != 0;
}

/* ---- turns ----------------------------------------------------------------- */

/* Until it is that side's turn. False: it is to stop. */
static bool await_turn(struct exporting *e, struct window *w, bool full)
{
	pthread_mutex_lock(&e->lock);
	while (w->full != full && !e->stop)
		pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
	return !stopped(e);
}

static void hand_over(struct exporting *e, struct window *w, bool full)
{
	pthread_mutex_lock(&e->lock);
	w->full = full;
	pthread_cond_signal(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

/* The reader and the cursor are this thread's. */
static void *read_ahead(void *user)
{
	struct exporting *e = user;
	struct window *w = e->windows;
	int error = stele_reader_open(e->job->ds,
				      &STELE_OPTS(stele_reader_opts,
						  .arena_size = ARENA_SIZE,
						  .merge_gap = MERGE_GAP),
				      &e->reader);

	if (error) {
		*w = (struct window){.memory = w->memory,
				     .wanted = w->wanted, .error = error,
				     .last = true,
				     .what = "cannot read the samples"};
		hand_over(e, w, true);
		return NULL;
	}
	for (bool last = false; !last && await_turn(e, w, false);) {
		fill(e, w);
		last = w->last; /* from now on it is the writer's */
		hand_over(e, w, true);
		w = w == e->windows ? w + 1 : e->windows;
	}
	stele_reader_close(e->reader);
	return NULL;
}

/* Say which sample it was, unless it was not the sample. */
static void complain(struct exporting *e, const struct entry *entry, int error)
{
	char *name;

	if (error == e->job->write_error)
		return;
	name = key_name(e->job->ds, entry->id);
	cmd_error(error, "cannot read %s", name ? name : "a sample");
	free(name);
}

static int write_window(struct exporting *e, struct window *w,
			struct stele_progress *progress)
{
	int error = 0;

	for (size_t i = 0; i < w->count && !error; i++) {
		const struct entry *entry = entry_of(w, i);

		if (entry->refused)
			refuse(e->job, w, entry);
		else
			error = put_sample(e, w, entry);
		if (error)
			complain(e, entry, error);
		progress->samples_done = e->job->done + e->job->refused;
		progress->bytes_done = e->read;
		progress_update("exporting", progress);
	}
	if (!error && w->error) {
		error = w->error;
		cmd_error(error, "%s", w->what);
	}
	return error;
}

static int write_all(struct exporting *e)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_progress progress = {
		.samples_total = stele_dataset_count(e->job->ds)};
	struct window *w = e->windows;
	bool last = false;
	int error = 0;

	stele_dataset_info(e->job->ds, &info);
	progress.bytes_total = info.payload_size;
	while (!error && !last) {
		await_turn(e, w, true);
		error = write_window(e, w, &progress);
		last = w->last;
		hand_over(e, w, false);
		w = w == e->windows ? w + 1 : e->windows;
	}
	return error;
}

/* With a thread that reads ahead. Signals are the caller's. */
static int pass_all(struct exporting *e)
{
	sigset_t all, old;
	pthread_t thread;
	int error;

	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = -pthread_create(&thread, NULL, read_ahead, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error) {
		cmd_error(error, "cannot read the samples");
	} else {
		error = write_all(e);
		pthread_mutex_lock(&e->lock);
		__atomic_store_n(&e->stop, true, __ATOMIC_RELAXED);
		pthread_cond_signal(&e->changed);
		pthread_mutex_unlock(&e->lock);
		pthread_join(thread, NULL);
	}
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	return error;
}

static int allocate(struct exporting *e)
{
	const size_t most = WINDOW_SIZE / (2 * sizeof(struct entry));

	for (unsigned int i = 0; i < 2; i++) {
		struct window *w = &e->windows[i];

		w->memory = malloc(WINDOW_SIZE);
		w->wanted = calloc(most, sizeof(*w->wanted));
		if (!w->memory || !w->wanted)
			return -ENOMEM;
	}
	return 0;
}

int export_run(struct export *job)
{
	struct exporting e = {
		.job = job,
		.to = {.format = job->format, .prefix = job->prefix, .field = job->field,
		       .quiet = job->quiet, .fd = job->file.fd, .write = put, .user = job}};
	int error = to_open(&e.to, job->ds);

	if (error) {
		to_release(&e.to);
		return error;
	}
	if (job->format == TO_TAR && !job->field && !job->quiet &&
	    fields_warn_joined(job->ds, "file"))
		cmd_hint("--field=NAME takes one, --to=webdataset makes each a file");
	if (job->format == TO_TAR && !job->field && !job->quiet)
		fields_warn_left(job->ds, "file", &job->labels);
	error = allocate(&e);
	if (!error)
		error = stele_cursor_open(job->ds, NULL, 0, &e.cursor);
	if (error)
		cmd_error(error, "cannot read the samples");
	if (!error)
		error = begin_file(&e);
	progress_start(!job->quiet);
	if (!error)
		error = pass_all(&e);
	if (!error)
		error = check_tar(job, to_end(&e.to));
	progress_end();
	tar_close(e.to.tar);
	to_release(&e.to);
	stele_cursor_close(e.cursor);
	for (unsigned int i = 0; i < 2; i++) {
		free(e.windows[i].memory);
		free(e.windows[i].wanted);
	}
	return error;
}

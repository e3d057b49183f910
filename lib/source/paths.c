/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.c - a source whose keys are paths, with the labels that a directory would have
 *
 * Directories are recorded as keys come, in any order and perhaps from several threads: a
 * tree finds those that are known. Everything else is the source's own.
 */
#include "lib/source/labels.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A directory that is recorded, in the tree. */
struct known {
	struct stele_label_dir *parent;
	const char *name; /* not terminated while it is looked for */
	size_t size;
	struct stele_label_dir *dir;
};

struct paths {
	struct stele_source source; /* that is labelled */
	struct stele_log log;
	struct stele_labels labels;
	struct stele_field fields[STELE_LABELS_FIELDS_MAX];
	pthread_mutex_t lock; /* of labels and tree, during the scan */
	void *known;
};

/* ---- scan ------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
	const struct known *x = a, *y = b;
	const size_t size = x->size < y->size ? x->size : y->size;
	int order;

	if (x->parent != y->parent)
		return (uintptr_t)x->parent < (uintptr_t)y->parent ? -1 : 1;
	order = memcmp(x->name, y->name, size);
	return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int keep(struct paths *paths, const struct known *found)
{
	struct known *known = malloc(sizeof(*known));

	if (!known)
		return -ENOMEM;
	*known = *found;
	known->name = found->dir->name;
	if (tsearch(known, &paths->known, compare))
		return 0;
	free(known);
	return -ENOMEM;
}

/* One level down: *dir is the directory that is recorded there, or stays. */
static int enter(struct paths *paths, uint32_t level, const char *name,
		 size_t size, struct stele_label_dir **dir)
{
	struct known wanted = {.parent = *dir, .name = name, .size = size};
	struct known **found = tfind(&wanted, &paths->known, compare);
	char text[STELE_KEY_SIZE_MAX + 1];
	int ret;

	if (found) {
		*dir = (*found)->dir;
		return 0;
	}
	memcpy(text, name, size);
	text[size] = '\0';
	ret = stele_labels_record(&paths->labels, wanted.parent, level, text,
				  &wanted.dir);
	if (ret || wanted.dir == wanted.parent)
		return ret;
	*dir = wanted.dir;
	return keep(paths, &wanted);
}

static int record(struct paths *paths, const char *key, size_t size)
{
	const char *const whole = key, *const end = key + size;
	struct stele_label_dir *dir = NULL;
	const char *slash;
	uint32_t level = 1;
	int ret = 0;

	while (!ret && (slash = memchr(key, '/', size))) {
		const size_t taken = (size_t)(slash - key);

		ret = enter(paths, level++, key, taken, &dir);
		key += taken + 1;
		size -= taken + 1;
	}
	if (!ret)
		stele_labels_count(&paths->labels, dir, whole, (size_t)(end - whole));
	return ret;
}

struct labelling {
	struct paths *paths;
	const struct stele_source_sink *sink;
};

/* What the sink refuses has no label. */
static int take_entry(void *user, const struct stele_source_entry *entry)
{
	struct labelling *l = user;
	int ret = l->sink->entry(l->sink->user, entry);

	if (ret)
		return ret;
	pthread_mutex_lock(&l->paths->lock);
	ret = record(l->paths, entry->key, entry->key_size);
	pthread_mutex_unlock(&l->paths->lock);
	return ret;
}

static int take_skip(void *user, enum stele_skip_reason reason, const char *key,
		     size_t key_size, int error)
{
	const struct labelling *l = user;

	return l->sink->skip(l->sink->user, reason, key, key_size, error);
}

static int take_tick(void *user)
{
	const struct labelling *l = user;

	return l->sink->tick(l->sink->user);
}

static int paths_scan(void *user, const struct stele_source_sink *sink)
{
	struct paths *paths = user;
	struct labelling labelling = {paths, sink};
	const struct stele_source_sink own = {
		.size = sizeof(own),
		.user = &labelling,
		.entry = take_entry,
		.skip = take_skip,
		.tick = take_tick,
		.jobs = sink->jobs,
	};

	return paths->source.ops.scan(paths->source.user, &own);
}

/* ---- fields ---------------------------------------------------------------- */

static int paths_schema(void *user, const struct stele_schema *base,
			struct stele_schema *out)
{
	struct paths *paths = user;

	return stele_labels_schema(&paths->labels, paths->fields, base,
				   &paths->log, out);
}

struct reader {
	const struct paths *paths;
	void *reader; /* the source's */
};

static int reader_new(void *user, void **out)
{
	const struct paths *paths = user;
	struct reader *reader = malloc(sizeof(*reader));
	int ret = 0;

	if (!reader)
		return -ENOMEM;
	*reader = (struct reader){paths, paths->source.user};
	if (paths->source.ops.reader_new)
		ret = paths->source.ops.reader_new(paths->source.user,
						   &reader->reader);
	if (ret)
		free(reader);
	else
		*out = reader;
	return ret;
}

static void reader_free(void *user)
{
	struct reader *reader = user;

	if (reader->paths->source.ops.reader_free)
		reader->paths->source.ops.reader_free(reader->reader);
	free(reader);
}

static int open_sample(void *user, const struct stele_source_entry *entry,
		       union stele_value *values)
{
	const struct reader *reader = user;
	const struct stele_source_ops *ops = &reader->paths->source.ops;
	int ret = ops->open ? ops->open(reader->reader, entry, values) : 0;

	if (!ret)
		stele_labels_values(&reader->paths->labels, entry, values);
	return ret;
}

static int64_t read_sample(void *user, const struct stele_source_entry *entry,
			   uint64_t offset, void *data, size_t size)
{
	const struct reader *reader = user;

	return reader->paths->source.ops.read(reader->reader, entry, offset, data,
					      size);
}

static void close_sample(void *user)
{
	const struct reader *reader = user;

	if (reader->paths->source.ops.close)
		reader->paths->source.ops.close(reader->reader);
}

static void describe_sample(void *user, const struct stele_source_entry *entry,
			    char *text, size_t size)
{
	const struct paths *paths = user;

	paths->source.ops.describe(paths->source.user, entry, text, size);
}

static int replace_sample(void *user, const struct stele_source_entry *earlier,
			  struct stele_source_entry *later)
{
	const struct paths *paths = user;

	return paths->source.ops.replace(paths->source.user, earlier, later);
}

static int64_t label_sample(void *user, const struct stele_source_entry *entry)
{
	return stele_labels_label(&((struct paths *)user)->labels, entry);
}

/* ---- the source ------------------------------------------------------------ */

static void paths_release(void *user)
{
	struct paths *paths = user;

	tdestroy(paths->known, free);
	stele_labels_release(&paths->labels);
	stele_source_close(&paths->source);
	pthread_mutex_destroy(&paths->lock);
	free(paths);
}

int stele_source_label_paths(struct stele_source *source, uint32_t from,
			     const struct stele_log *log)
{
	struct paths *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	paths->source = *source;
	if (log)
		paths->log = *log;
	paths->labels.from = from;
	pthread_mutex_init(&paths->lock, NULL);
	*source = (struct stele_source){
		.ops = {
			.size = sizeof(source->ops),
			.flags = paths->source.ops.flags & STELE_SOURCE_REPEATS,
			.scan = paths_scan,
			.schema = paths_schema,
			.reader_new = reader_new,
			.reader_free = reader_free,
			.open = open_sample,
			.read = read_sample,
			.close = close_sample,
			.describe = paths->source.ops.describe ? describe_sample : NULL,
			.replace = paths->source.ops.replace ? replace_sample : NULL,
		},
		.user = paths,
		.release = paths_release,
		.label = label_sample,
		.label_told = from != STELE_LABEL_FROM_AUTO,
	};
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - samples one behind the other, in memory or in a file
 *
 *	| head | key | value of each field | bytes of all fields |
 *
 * The place of a sample is where its head begins. Heads and values are of this process
 * alone, as it has them in memory.
 */
#include "lib/source/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/field.h"
#include "lib/base/options.h"
#include "lib/base/temp.h"

#define BUFFER_SIZE (UINT64_C(1) << 20) /* of one that writes, or looks for keys */
#define READER_SIZE (UINT64_C(64) << 10)
#define TICK_EVERY  4096u

struct head {
	uint64_t data_size;
	uint64_t key_size;
};

#define FIXED_MAX (sizeof(struct head) + STELE_KEY_SIZE_MAX + \
		   STELE_FIELDS_MAX * sizeof(union stele_value))
_Static_assert(FIXED_MAX <= READER_SIZE, "a buffer has all but bytes");

/* ---- memory and file ---------------------------------------------------- */

static int map(struct stele_spool *spool, uint64_t room)
{
	void *data = mmap(NULL, room, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	spool->data = data;
	spool->room = room;
	return 0;
}

static void unmap(struct stele_spool *spool)
{
	if (spool->data)
		munmap(spool->data, spool->room);
	spool->data = NULL;
	spool->room = 0;
}

static int write_all(int fd, const uint8_t *data, uint64_t size, uint64_t at)
{
	while (size) {
		ssize_t done = pwrite(fd, data, size, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		data += done;
		size -= (uint64_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

static int log_file(const struct stele_spool *spool, const char *what, int error)
{
	stele_log_error(&spool->log,
			"cannot %s samples in a temporary file in '%s': %s", what,
			spool->directory, strerror(-error));
	return error;
}

/* What is in memory goes into the file; the memory is free again. */
static int flush(struct stele_spool *spool)
{
	int ret = write_all(spool->fd, spool->data, spool->size - spool->begin,
			    spool->begin);

	if (ret < 0)
		return log_file(spool, "keep", ret);
	spool->begin = spool->size;
	return 0;
}

static int move_to_file(struct stele_spool *spool)
{
	int ret;

	spool->fd = stele_temp_open(spool->directory);
	if (spool->fd < 0)
		return log_file(spool, "keep", spool->fd);
	ret = flush(spool);
	if (ret < 0) {
		close(spool->fd);
		spool->fd = -1;
		return ret;
	}
	if (spool->room <= BUFFER_SIZE)
		return 0;
	unmap(spool);
	return map(spool, BUFFER_SIZE);
}

static uint64_t left(const struct stele_spool *spool)
{
	return spool->room - (spool->size - spool->begin);
}

static int append(struct stele_spool *spool, const void *data, uint64_t size)
{
	int ret = 0;

	if (size <= left(spool)) {
		if (size)
			memcpy(spool->data + (spool->size - spool->begin), data,
			       size);
		spool->size += size;
		return 0;
	}
	if (spool->fd < 0)
		ret = move_to_file(spool);
	else
		ret = flush(spool);
	if (ret < 0)
		return ret;
	if (size <= spool->room)
		return append(spool, data, size);
	ret = write_all(spool->fd, data, size, spool->size);
	if (ret < 0)
		return log_file(spool, "keep", ret);
	spool->size += size;
	spool->begin = spool->size;
	return 0;
}

/* To a size that it had: what lies in the file behind it is written over. */
static void take_back(struct stele_spool *spool, uint64_t size)
{
	spool->size = size;
	if (spool->begin > size)
		spool->begin = size;
}

/* Bytes of a sample, which is there as a whole: in the file, in memory, or in both. */
static int fetch(const struct stele_spool *spool, uint64_t at, void *data,
		 uint64_t size)
{
	uint8_t *to = data;

	while (size && at < spool->begin) {
		const uint64_t most = spool->begin - at;
		ssize_t got = pread(spool->fd, to, size < most ? size : most,
				    (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return log_file(spool, "read", got ? -errno : -EIO);
		to += got;
		size -= (uint64_t)got;
		at += (uint64_t)got;
	}
	if (size)
		memcpy(to, spool->data + (at - spool->begin), size);
	return 0;
}

/* ---- put ---------------------------------------------------------------- */

static int refuse(const struct stele_spool *spool, const char *key,
		  size_t key_size, const char *field, const char *what)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(&spool->log, "'%s': field '%s' %s",
			stele_source_quote(key, key_size, text), field, what);
	return -EINVAL;
}

/* NULL, or what is wrong with a value of a field of this type. */
static const char *value_wrong(uint32_t type, const struct stele_txn_value *value)
{
	const bool bytes = value->data || value->size;
	const uint64_t zero = 0;
	bool f64 = memcmp(&value->f64, &zero, sizeof(zero)) != 0;

	if (type == STELE_TYPE_I64)
		return bytes || f64 ? "is an i64, and got something else" : NULL;
	if (type == STELE_TYPE_F64)
		return bytes || value->i64 ? "is an f64, and got something else" :
					     NULL;
	if (f64 || value->i64)
		return "has bytes, and got a number";
	return value->size && !value->data ? "has a size and no bytes" : NULL;
}

/* A value of a field that has classes is one of them, or -1: none. */
static int check_class(const struct stele_spool *spool, uint32_t field,
		       int64_t value, const struct stele_source_entry *entry)
{
	const struct stele_class_names *names = &spool->fields.names[field];
	const uint32_t count = names->value_count ? names->value_count :
						    names->count;
	char text[STELE_QUOTE_SIZE];

	if (!count || (value >= -1 && value < count))
		return 0;
	stele_log_error(&spool->log,
			"'%s': field '%s' has %" PRIu32 " classes, and none "
			"with the number %" PRId64,
			stele_source_quote(entry->key, entry->key_size, text),
			spool->fields.list[field].name, count, value);
	return -EINVAL;
}

/* A sample that is being checked. */
struct putting {
	struct stele_source_entry entry;
	union stele_value values[STELE_FIELD_COUNT_MAX];
	le64 ends[STELE_FIELD_COUNT_MAX];
};

/* Key, types, sizes. */
static int take(const struct stele_spool *spool,
		const struct stele_txn_value *values, struct putting *p)
{
	struct stele_source_entry *entry = &p->entry;
	uint32_t ends = 0;

	for (uint32_t i = 0; i < spool->fields.count; i++) {
		const struct stele_descriptor_field *field =
			&spool->fields.list[i];
		const char *wrong = value_wrong(field->type, &values[i]);

		if (wrong && entry->key)
			return refuse(spool, entry->key, entry->key_size,
				      field->name, wrong);
		if (field->type == STELE_TYPE_I64) {
			if (entry->key &&
			    check_class(spool, i, values[i].i64, entry))
				return -EINVAL;
			p->values[i].i64 = values[i].i64;
		} else if (field->type == STELE_TYPE_F64) {
			p->values[i].f64 = values[i].f64;
		} else {
			p->values[i].size = values[i].size;
			if (!checked_add(entry->data_size, values[i].size,
					 &entry->data_size))
				entry->data_size = UINT64_MAX;
			p->ends[ends++] = le64_put(entry->data_size);
		}
	}
	return stele_source_check_entry(entry, &spool->log);
}

/* Shapes and texts. */
static int check(const struct stele_spool *spool,
		 const struct stele_txn_value *values, const struct putting *p)
{
	const struct stele_fields *fields = &spool->fields;
	struct stele_payload_check check;
	const char *wrong;

	stele_payload_check_init(&check, fields->list, fields->count);
	wrong = stele_payload_check_begin(&check, p->ends, p->entry.data_size);
	for (uint32_t i = 0; i < fields->count && !wrong; i++)
		if (!stele_field_is_scalar(fields->list[i].type))
			wrong = stele_payload_check_add(&check, values[i].data,
							values[i].size);
	if (!wrong)
		wrong = stele_payload_check_end(&check);
	return wrong ? refuse(spool, p->entry.key, p->entry.key_size,
			      fields->list[check.field].name, wrong) :
		       0;
}

static int keep(struct stele_spool *spool, const struct stele_txn_value *values,
		const struct putting *p)
{
	const struct stele_fields *fields = &spool->fields;
	const struct head head = {p->entry.data_size, p->entry.key_size};
	const uint64_t size = spool->size;
	int ret = append(spool, &head, sizeof(head));

	if (!ret)
		ret = append(spool, p->entry.key, p->entry.key_size);
	if (!ret)
		ret = append(spool, p->values, fields->count * sizeof(*p->values));
	for (uint32_t i = 0; i < fields->count && !ret; i++)
		if (!stele_field_is_scalar(fields->list[i].type))
			ret = append(spool, values[i].data, values[i].size);
	if (ret < 0)
		take_back(spool, size);
	else
		spool->count++;
	return ret;
}

int stele_spool_put(struct stele_spool *spool, const char *key, size_t key_size,
		    const struct stele_txn_value *values, uint32_t count)
{
	struct putting p = {
		.entry = {.size = sizeof(p.entry), .key = key, .key_size = key_size},
	};
	int ret = spool->data ? 0 : map(spool, spool->memory);

	if (ret < 0)
		return ret;
	if (!values || count != spool->fields.count) {
		stele_log_error(&spool->log, "a sample has %u field%s, and got %u",
				spool->fields.count, spool->fields.count == 1 ? "" : "s",
				values ? count : 0);
		return -EINVAL;
	}
	ret = take(spool, values, &p);
	if (!ret)
		ret = check(spool, values, &p);
	return ret ? ret : keep(spool, values, &p);
}

/* ---- as a source -------------------------------------------------------- */

/* Bytes around the place that was last asked for. */
struct window {
	const struct stele_spool *spool;
	uint64_t begin, end;
	uint64_t room;
	uint8_t *data;
};

/* `size` bytes, which the window has room for; so many more as it has, below `end`. */
static int look(struct window *w, uint64_t at, uint64_t size, uint64_t end,
		const uint8_t **data)
{
	int ret;

	if (at < w->begin || at + size > w->end) {
		w->begin = at;
		w->end = end - at < w->room ? end : at + w->room;
		ret = fetch(w->spool, at, w->data, w->end - at);
		if (ret < 0) {
			w->end = w->begin;
			return ret;
		}
	}
	*data = w->data + (at - w->begin);
	return 0;
}

/* What is at *at, which is behind it then. Its key is good until the next look. */
static int next(struct window *w, struct stele_source_entry *entry, uint64_t *at)
{
	const uint8_t *data;
	struct head head;
	int ret = look(w, *at, sizeof(head), w->spool->size, &data);

	*entry = (struct stele_source_entry){.size = sizeof(*entry), .place = *at};
	if (ret < 0)
		return ret;
	memcpy(&head, data, sizeof(head));
	*at += sizeof(head);
	ret = look(w, *at, head.key_size, w->spool->size, &data);
	if (ret < 0)
		return ret;
	entry->key = (const char *)data;
	entry->key_size = head.key_size;
	entry->data_size = head.data_size;
	*at += head.key_size +
	       w->spool->fields.count * sizeof(union stele_value) + head.data_size;
	return 0;
}

static int spool_scan(void *user, const struct stele_source_sink *sink)
{
	const struct stele_spool *spool = user;
	struct window w = {.spool = spool, .room = BUFFER_SIZE,
			   .data = malloc(BUFFER_SIZE)};
	struct stele_source_entry entry;
	uint64_t at = 0;
	int ret = w.data ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < spool->count && !ret; i++) {
		ret = next(&w, &entry, &at);
		if (!ret)
			ret = sink->entry(sink->user, &entry);
		if (!ret && i % TICK_EVERY == 0 && sink->tick(sink->user))
			ret = -ECANCELED;
	}
	free(w.data);
	return ret;
}

/* How many were put before it. */
static void spool_describe(void *user, const struct stele_source_entry *entry, char *text,
			   size_t size)
{
	const struct stele_spool *spool = user;
	struct window w = {.spool = spool, .room = BUFFER_SIZE, .data = malloc(BUFFER_SIZE)};
	struct stele_source_entry other;
	uint64_t at = 0, number = spool->before;
	int ret = w.data ? 0 : -ENOMEM;

	while (!ret && at < entry->place) {
		ret = next(&w, &other, &at);
		number++;
	}
	if (!ret)
		snprintf(text, size, "%" PRIu64, number);
	free(w.data);
}

static int spool_schema(void *user, const struct stele_schema *base,
			struct stele_schema *out)
{
	const struct stele_spool *spool = user;

	(void)base;
	*out = spool->schema;
	return 0;
}

static int spool_reader_new(void *user, void **reader)
{
	struct window *w = malloc(sizeof(*w) + READER_SIZE);

	if (!w)
		return -ENOMEM;
	*w = (struct window){.spool = user, .room = READER_SIZE,
			     .data = (uint8_t *)(w + 1)};
	*reader = w;
	return 0;
}

static uint64_t values_of(const struct stele_source_entry *entry)
{
	return entry->place + sizeof(struct head) + entry->key_size;
}

/* Small samples come with their values: one read. */
static int spool_open(void *reader, const struct stele_source_entry *entry,
		      union stele_value *values)
{
	struct window *w = reader;
	const uint64_t at = values_of(entry);
	const uint64_t size = w->spool->fields.count * sizeof(*values);
	const uint8_t *data;
	int ret = look(w, at, size, at + size + entry->data_size, &data);

	if (!ret)
		memcpy(values, data, size);
	return ret;
}

static int64_t spool_read(void *reader, const struct stele_source_entry *entry,
			  uint64_t offset, void *data, size_t size)
{
	struct window *w = reader;
	const uint64_t at = values_of(entry) + offset +
			    w->spool->fields.count * sizeof(union stele_value);
	int ret;

	if (size > entry->data_size - offset)
		size = (size_t)(entry->data_size - offset);
	if (at >= w->begin && at < w->end) {
		if (size > w->end - at)
			size = (size_t)(w->end - at);
		memcpy(data, w->data + (at - w->begin), size);
		return (int64_t)size;
	}
	ret = fetch(w->spool, at, data, size);
	return ret < 0 ? ret : (int64_t)size;
}

/* ---- new, free ---------------------------------------------------------- */

static void free_schema(struct stele_spool *spool)
{
	struct stele_field *fields =
		(struct stele_field *)(uintptr_t)spool->schema.fields;

	for (uint32_t i = 0; fields && i < spool->schema.count; i++) {
		char **names = (char **)(uintptr_t)fields[i].names;

		for (uint32_t k = 0; names && k < fields[i].name_count; k++)
			free(names[k]);
		free(names);
	}
	free(fields);
	spool->schema.fields = NULL;
}

static int copy_names(struct stele_field *field, const char *const *names)
{
	char **own = calloc((size_t)field->name_count + 1, sizeof(*own));

	field->names = (const char *const *)own;
	if (!own)
		return -ENOMEM;
	for (uint32_t i = 0; i < field->name_count; i++) {
		own[i] = strdup(names[i]);
		if (!own[i])
			return -ENOMEM;
	}
	return 0;
}

/* Of a schema that has been checked. */
static int copy_schema(struct stele_spool *spool, const struct stele_schema *schema)
{
	const char *at = (const char *)schema->fields;
	struct stele_field *fields = calloc(schema->count, sizeof(*fields));
	int ret = fields ? 0 : -ENOMEM;

	spool->schema = (struct stele_schema){
		.size = sizeof(spool->schema), .fields = fields, .count = schema->count};
	for (uint32_t i = 0; i < schema->count && !ret; i++) {
		const char *const *names;

		ret = stele_options_copy(at + i * schema->fields->size, &fields[i],
					 sizeof(fields[i]), &spool->log);
		names = fields[i].names;
		fields[i].size = sizeof(fields[i]);
		fields[i].names = NULL;
		if (!ret && fields[i].name_count)
			ret = copy_names(&fields[i], names);
	}
	return ret;
}

static int take_schema(struct stele_spool *spool, const struct stele_schema *schema,
		       const struct stele_base *base)
{
	int ret;

	spool->schema = *schema;
	ret = stele_fields_take(&spool->fields, &spool->source, base, &spool->log);
	spool->schema = (struct stele_schema){0};
	stele_fields_release(&spool->fields);
	if (!ret)
		ret = copy_schema(spool, schema);
	return ret ? ret : stele_fields_take(&spool->fields, &spool->source, base,
					     &spool->log);
}

int stele_spool_new(const struct stele_schema *schema,
		    const struct stele_base *base, uint64_t memory,
		    const char *directory, const struct stele_log *log,
		    struct stele_spool **out)
{
	struct stele_spool *spool = calloc(1, sizeof(*spool));
	int ret;

	if (!spool)
		return -ENOMEM;
	spool->source = (struct stele_source){
		.ops = {
			.size = sizeof(spool->source.ops),
			.scan = spool_scan,
			.schema = spool_schema,
			.reader_new = spool_reader_new,
			.reader_free = free,
			.open = spool_open,
			.read = spool_read,
			.describe = spool_describe,
		},
		.user = spool,
		.puts = true,
	};
	spool->log = *log;
	spool->fd = -1;
	spool->memory = memory;
	spool->directory = strdup(stele_temp_directory(directory));
	ret = spool->directory ? take_schema(spool, schema, base) : -ENOMEM;
	/* Now, not when the memory is full. Any other default is not asked for. */
	if (!ret && directory && access(directory, W_OK | X_OK) < 0)
		ret = log_file(spool, "keep", -errno);
	if (ret < 0) {
		stele_spool_free(spool);
		return ret;
	}
	*out = spool;
	return 0;
}

void stele_spool_empty(struct stele_spool *spool)
{
	unmap(spool);
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
	spool->before += spool->count;
	spool->begin = spool->size = spool->count = 0;
}

void stele_spool_free(struct stele_spool *spool)
{
	if (!spool)
		return;
	stele_spool_empty(spool);
	stele_fields_release(&spool->fields);
	free_schema(spool);
	free(spool->directory);
	free(spool);
}

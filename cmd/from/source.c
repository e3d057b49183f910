/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - the table of formats, and one source over what they find
 */
#include "from/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "from/names.h"
#include "from/scan.h"
#include "libarchive.h"
#include "remedy.h"
#include "text.h"

#define TICK_EVERY 1024u
#define MAGIC_SIZE 16u

/* What may begin as several of them is the first that says so. */
static const struct from_format *const formats[] = {
	&from_tfrecord, /* has a checksum */
	&from_tar,
	&from_webdataset,
};
#define FORMATS (sizeof(formats) / sizeof(*formats))
#define DIRECTORY "dir"

/* ---- messages ------------------------------------------------------------ */

static void complain(struct from *from, int error, const char *text)
{
	if (__atomic_exchange_n(&from->complained, true, __ATOMIC_RELAXED))
		return;
	cmd_message("%s", text);
	remedy_print("from", error, text, NULL);
}

bool from_complained(const struct from *from)
{
	return from && __atomic_load_n(&from->complained, __ATOMIC_RELAXED);
}

int from_failed(struct from *from, int error, const char *format, ...)
{
	char text[1024], message[1400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(message, sizeof(message), "%s: %s", text,
		 error == -ETXTBSY || error == -EBADMSG ? stele_strerror(error) :
							  strerror(-error));
	if (error != -ECANCELED)
		complain(from, error, message);
	return error;
}

static int cannot_keep(struct from *from, int error)
{
	return from_failed(from, error, "cannot keep samples in a temporary file in '%s'",
			   store_directory());
}

int from_cannot_keep(struct from_scan *scan, int error)
{
	return cannot_keep(scan->from, error);
}

int from_damaged(struct from_scan *scan, uint64_t offset, const char *format, ...)
{
	const struct from_shard *shard = scan->shard;
	char text[1024], message[1400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(message, sizeof(message), "'%s' at byte %llu%s: %s", shard->name,
		 (unsigned long long)offset,
		 shard->compression ? ", decompressed" : "", text);
	if (!scan->from->opts.skip) {
		complain(scan->from, -EBADMSG, message);
		return -EBADMSG;
	}
	scan->damages++;
	return scan->sink->skip(scan->sink->user, STELE_SKIP_UNREADABLE, message,
				strlen(message), -EBADMSG);
}

/* ---- samples ------------------------------------------------------------- */

bool from_is_plain(const struct from_scan *scan)
{
	return scan->shard->regular && !scan->shard->compression;
}

uint64_t from_place(const struct from_scan *scan, uint64_t offset)
{
	return scan->index << PLACE_SHARD_SHIFT | offset;
}

static int tick(struct from_scan *scan)
{
	return scan->sink->tick(scan->sink->user) ? -ECANCELED : 0;
}

int from_sample(struct from_scan *scan, const char *key, size_t key_size,
		uint64_t size, uint64_t place)
{
	const struct stele_source_entry entry = {
		.size = sizeof(entry),
		.key = key,
		.key_size = key_size,
		.data_size = size,
		.place = place,
		.changed = scan->shard->changed,
	};
	int ret = scan->sink->entry(scan->sink->user, &entry);

	return ret || ++scan->reported % TICK_EVERY ? ret : tick(scan);
}

int from_record(struct from_scan *scan, const char *key, size_t key_size,
		const struct record *record)
{
	struct from *from = scan->from;
	uint64_t offset, size;
	int ret = record_keep(&from->store, &from->fields, record, &offset, &size);

	return ret ? from_cannot_keep(scan, ret) :
		     from_sample(scan, key, key_size, size, offset);
}

int from_skip(struct from_scan *scan, enum stele_skip_reason reason,
	      const char *key, size_t key_size)
{
	return scan->sink->skip(scan->sink->user, reason, key, key_size, 0);
}

/* ---- shards -------------------------------------------------------------- */

static int open_shard(const struct from_shard *shard)
{
	int fd = strcmp(shard->path, "-") ?
			 open(shard->path, O_RDONLY | O_CLOEXEC | O_NOCTTY) :
			 fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

/* A file that was redirected is read like one that is named, unless from its middle. */
static bool can_read_again(int fd, const struct stat *st)
{
	return S_ISREG(st->st_mode) && lseek(fd, 0, SEEK_CUR) == 0;
}

static void take_stat(struct from_shard *shard, const struct stat *st)
{
	const int64_t status = st->st_ctim.tv_sec;

	shard->dev = st->st_dev;
	shard->inode = st->st_ino;
	shard->size = (uint64_t)st->st_size;
	shard->modified = st->st_mtim;
	shard->changed = st->st_mtim.tv_sec > status ? st->st_mtim.tv_sec :
						       status;
}

/* A record of some size begins as gzip does. */
static enum input_compression see_compression(const uint8_t *data, size_t size)
{
	return from_tfrecord.detect(data, size) ? INPUT_PLAIN :
						  input_compression(data, size);
}

/* `input` for the shard, which is looked at if it never was. It is not open yet. */
static int see_shard(struct from *from, struct from_shard *shard, struct input *input)
{
	const uint8_t *data;
	struct stat st;
	int64_t got;

	input->fd = open_shard(shard);
	if (input->fd < 0)
		return input->fd;
	if (fstat(input->fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!shard->seen) {
		shard->regular = can_read_again(input->fd, &st);
		if (shard->regular)
			take_stat(shard, &st);
	}
	input->regular = shard->regular;
	input->first = shard->regular ? NULL : &from->first;
	if (!shard->seen) {
		struct input plain = *input;

		plain.rewinds = true;
		got = input_look(&plain, MAGIC_SIZE, &data);
		if (got >= 0)
			shard->compression = see_compression(data, (size_t)got);
		plain.fd = -1;
		input_close(&plain);
		if (got < 0)
			return (int)got;
	}
	shard->seen = true;
	input->compression = shard->compression;
	return shard->size > PLACE_OFFSET_MAX ? -EFBIG : 0;
}

static int fail_shard(struct from *from, const struct from_shard *shard, int error)
{
	return from_failed(from, error, "cannot read source '%s'", shard->name);
}

/* ---- detection ----------------------------------------------------------- */

static const struct from_format *find_format(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

const char *from_parse(const char *text, const char **format)
{
	static char wanted[256];
	size_t at = (size_t)snprintf(wanted, sizeof(wanted), DIRECTORY);

	*format = text;
	if (!strcmp(text, DIRECTORY) || find_format(text))
		return NULL;
	for (size_t i = 0; i < FORMATS; i++)
		at += (size_t)snprintf(wanted + at, sizeof(wanted) - at, "%s%s",
				       i + 1 < FORMATS ? ", " : " or ",
				       formats[i]->name);
	return wanted;
}

static int unknown(struct from *from, const struct from_shard *shard)
{
	const char *format;

	cmd_message("cannot tell the format of '%s'; name it with --from: %s",
		    shard->name, from_parse("", &format));
	from->complained = true;
	return -EMEDIUMTYPE;
}

/* By how the first shard begins. That is also where bad compression shows. */
static int detect(struct from *from, const struct from_shard *shard,
		  struct input *input)
{
	const uint8_t *data;
	int64_t got;
	int ret;

	input->rewinds = true;
	ret = input_open(input);
	got = ret ? ret : input_look(input, FROM_HEAD_SIZE, &data);
	for (size_t i = 0; i < FORMATS && got > 0 && !from->format; i++)
		if (formats[i]->detect && formats[i]->detect(data, (size_t)got))
			from->format = formats[i];
	if (got != -EBADMSG)
		return got < 0 ? (int)got : 0;
	cmd_message("'%s' at byte 0, decompressed: %s", shard->name, input_why(input));
	from->complained = true;
	return -EBADMSG;
}

static int look_at_first(struct from *from)
{
	struct from_shard *shard = &from->shards[0];
	struct input input = {.fd = -1};
	int ret = see_shard(from, shard, &input);

	if (!ret && from->opts.format)
		from->format = find_format(from->opts.format);
	else if (!ret)
		ret = detect(from, shard, &input);
	input_close(&input);
	if (ret)
		return fail_shard(from, shard, ret);
	return from->format ? 0 : unknown(from, shard);
}

/* ---- open ---------------------------------------------------------------- */

/* A name that exists stands for itself, whatever is in it. */
static int take_source(struct names *names, const char *source)
{
	struct stat st;

	if (!strcmp(source, "-") || stat(source, &st) == 0)
		return names_add(names, source);
	return names_expand(names, source);
}

static int check_names(const struct names *names)
{
	unsigned int pipes = 0;

	for (size_t i = 0; i < names->count; i++)
		pipes += !strcmp(names->list[i], "-");
	if (pipes <= (names->count == 1))
		return 0;
	cmd_message("standard input is a source of its own");
	return -EINVAL;
}

static int take_names(struct from *from, struct names *names)
{
	from->shards = calloc(names->count, sizeof(*from->shards));
	if (!from->shards)
		return -ENOMEM;
	for (size_t i = 0; i < names->count; i++) {
		struct from_shard *shard = &from->shards[i];
		struct stat st;

		shard->path = names->list[i];
		shard->name = strcmp(shard->path, "-") ? shard->path :
							 "standard input";
		names->list[i] = NULL;
		from->shard_count++;
		if (stat(shard->path, &st) == 0 && S_ISREG(st.st_mode))
			from->total += (uint64_t)st.st_size;
	}
	return 0;
}

/* What is not there is reported by who opens it: the library, which takes directories. */
static bool is_directory(const struct names *names, const struct from_opts *opts)
{
	struct stat st;

	if (opts->format)
		return !strcmp(opts->format, DIRECTORY);
	return names->count == 1 && strcmp(names->list[0], "-") &&
	       (stat(names->list[0], &st) < 0 || S_ISDIR(st.st_mode));
}

static int make(struct names *names, const struct from_opts *opts,
		struct from **out)
{
	struct from *from = calloc(1, sizeof(*from));
	int ret;

	if (!from)
		return -ENOMEM;
	from->opts = *opts;
	from->store.fd = -1;
	ret = take_names(from, names);
	if (!ret && !libarchive_load())
		ret = -ENOSYS;
	if (!ret)
		ret = look_at_first(from);
	if (ret)
		from_close(from);
	else
		*out = from;
	return ret;
}

int from_open(char *const *sources, size_t count, const struct from_opts *opts,
	      struct from **out)
{
	struct names names = {0};
	int ret = 0;

	*out = NULL;
	for (size_t i = 0; i < count && !ret; i++)
		ret = take_source(&names, sources[i]);
	if (ret)
		cmd_error(ret, "cannot expand the names of sources");
	if (!ret && !is_directory(&names, opts)) {
		ret = check_names(&names);
		if (!ret)
			ret = make(&names, opts, out);
	} else if (!ret && count > 1) {
		cmd_message("a directory is a source of its own");
		ret = -EINVAL;
	}
	names_release(&names);
	return ret;
}

void from_close(struct from *from)
{
	if (!from)
		return;
	for (size_t i = 0; i < from->shard_count; i++)
		free(from->shards[i].path);
	free(from->shards);
	free(from->first.data);
	store_release(&from->store);
	record_fields_release(&from->fields);
	free(from);
}

void from_progress(const struct from *from, struct stele_progress *progress)
{
	progress->bytes_done = __atomic_load_n(&from->done, __ATOMIC_RELAXED);
	progress->bytes_total = from->total;
}

/* ---- scan ---------------------------------------------------------------- */

static int on_bytes(void *user, uint64_t bytes)
{
	struct from_scan *scan = user;

	__atomic_fetch_add(&scan->from->done, bytes, __ATOMIC_RELAXED);
	return tick(scan);
}

int from_cannot_read(struct from_scan *scan, int error)
{
	return fail_shard(scan->from, scan->shard, error);
}

static int read_shard(struct from_scan *scan)
{
	int ret = input_open(&scan->input);

	if (ret == -EBADMSG)
		return from_damaged(scan, 0, "%s", input_why(&scan->input));
	return ret ? from_cannot_read(scan, ret) : scan->from->format->scan(scan);
}

static int scan_shard(struct from *from, size_t index,
		      const struct stele_source_sink *sink)
{
	struct from_shard *shard = &from->shards[index];
	struct from_scan scan = {
		.from = from,
		.sink = sink,
		.shard = shard,
		.index = index,
		.input = {.fd = -1},
	};
	int ret = see_shard(from, shard, &scan.input);

	scan.input.tick = on_bytes;
	scan.input.user = &scan;
	if (ret)
		fail_shard(from, shard, ret);
	else
		ret = read_shard(&scan);
	input_close(&scan.input);
	return ret;
}

static int scan(void *user, const struct stele_source_sink *sink)
{
	struct from *from = user;
	int ret = 0;

	for (size_t i = 0; i < from->shard_count && !ret; i++)
		ret = scan_shard(from, i, sink);
	if (!ret) {
		ret = store_flush(&from->store);
		if (ret)
			cannot_keep(from, ret);
	}
	return ret;
}

/* ---- read ---------------------------------------------------------------- */

/* One thread's: the shard that it read from last stays open. */
struct reader {
	struct from *from;
	uint64_t index;
	int fd;
	/* Of a record. */
	struct record_piece pieces[STELE_FIELDS_MAX];
	uint32_t piece;
	uint64_t begin; /* of that piece, in the sample */
};

static int reader_new(void *user, void **out)
{
	struct reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	*reader = (struct reader){.from = user, .fd = -1};
	*out = reader;
	return 0;
}

static void reader_free(void *user)
{
	struct reader *reader = user;

	if (reader->fd >= 0)
		close(reader->fd);
	free(reader);
}

/* The file that was scanned, and no other version of it. */
static int reopen(struct reader *reader, uint64_t index)
{
	const struct from_shard *shard = &reader->from->shards[index];
	struct stat st;

	if (reader->fd >= 0)
		close(reader->fd);
	reader->index = index;
	reader->fd = open_shard(shard);
	if (reader->fd < 0)
		return fail_shard(reader->from, shard, reader->fd);
	if (fstat(reader->fd, &st) == 0 && st.st_dev == shard->dev &&
	    st.st_ino == shard->inode && (uint64_t)st.st_size == shard->size &&
	    st.st_mtim.tv_sec == shard->modified.tv_sec &&
	    st.st_mtim.tv_nsec == shard->modified.tv_nsec)
		return 0;
	close(reader->fd);
	reader->fd = -1;
	return fail_shard(reader->from, shard, -ETXTBSY);
}

static int64_t read_place(struct reader *reader, uint64_t place, void *data,
			  size_t size)
{
	const uint64_t index = place >> PLACE_SHARD_SHIFT;
	int fd = reader->from->store.fd;
	ssize_t got;

	if (index != PLACE_STORE) {
		int ret = reader->fd < 0 || reader->index != index ?
				  reopen(reader, index) :
				  0;

		if (ret)
			return ret;
		fd = reader->fd;
	}
	do
		got = pread(fd, data, size, (off_t)(place & PLACE_OFFSET_MAX));
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int64_t read_sample(void *user, const struct stele_source_entry *entry,
			   uint64_t offset, void *data, size_t size)
{
	const uint64_t left = entry->data_size - offset;

	if (!left)
		return 0;
	return read_place(user, entry->place + offset, data,
			  size < left ? size : (size_t)left);
}

static const struct stele_source_ops files = {
	.size = sizeof(files),
	.flags = STELE_SOURCE_PATHS,
	.scan = scan,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.read = read_sample,
};

static const struct stele_source_ops blobs = {
	.size = sizeof(blobs),
	.scan = scan,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.read = read_sample,
};

/* ---- records ------------------------------------------------------------- */

static int schema(void *user, const struct stele_schema *base, struct stele_schema *out)
{
	struct from *from = user;
	int ret = record_schema(&from->fields, base, out);

	return ret ? from_failed(from, ret, "cannot take the fields") : 0;
}

static int open_record(void *user, const struct stele_source_entry *entry,
		       union stele_value *values)
{
	struct reader *reader = user;

	reader->piece = 0;
	reader->begin = 0;
	return record_load(&reader->from->store, &reader->from->fields,
			   entry->place, values, reader->pieces);
}

static int64_t read_record(void *user, const struct stele_source_entry *entry,
			   uint64_t offset, void *data, size_t size)
{
	struct reader *reader = user;
	const struct record_piece *piece = &reader->pieces[reader->piece];
	uint64_t left;

	if (offset >= entry->data_size)
		return 0;
	while (offset - reader->begin >= piece->size) {
		reader->begin += piece->size;
		reader->piece++;
		piece++;
	}
	left = piece->size - (offset - reader->begin);
	return read_place(reader, piece->place + (offset - reader->begin), data,
			  size < left ? size : (size_t)left);
}

static const struct stele_source_ops records = {
	.size = sizeof(records),
	.scan = scan,
	.schema = schema,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.open = open_record,
	.read = read_record,
};

const struct stele_source_ops *from_ops(const struct from *from)
{
	static const struct stele_source_ops *const ops[] = {
		[FROM_RECORDS] = &records,
		[FROM_BLOBS] = &blobs,
		[FROM_FILES] = &files,
	};

	return ops[from->format->kind];
}

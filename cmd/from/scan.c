/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - read all shards once, and report what they have
 *
 * What is copied to the store has its origin in front of it, so that it can be named.
 */
#include "from/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "from/lmdb.h"
#include "from/row.h"
#include "remedy.h"
#include "tree.h"

#define TICK_EVERY 1024u
#define MAGIC_SIZE 16u

/* ---- messages ------------------------------------------------------------ */

/* Is it the first complaint, the only one that is said? */
static bool is_first(struct from *from)
{
	return !__atomic_exchange_n(&from->complained, true, __ATOMIC_RELAXED);
}

static void complain(struct from *from, int error, const char *text)
{
	if (!is_first(from))
		return;
	cmd_message("%s", text);
	remedy_print("from", error, text, NULL);
}

/* All shards are read as the format of the first one. Return: is this one of another? */
static bool hint_mixed(const struct from *from, const struct from_shard *shard)
{
	const char *first = shard == from->shards ? NULL : from_guess(from->shards->path);
	const char *other = first ? from_guess(shard->path) : NULL;

	if (!other || strcmp(first, other) == 0)
		return false;
	cmd_hint("all sources have one format: '%s' looks like %s, and '%s' like %s",
		 from->shards->name, first, shard->name, other);
	return true;
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
	/* Others are the system's. */
	snprintf(message, sizeof(message), "%s: %s", text,
		 error == -ETXTBSY || error == -EBADMSG || error == -EOVERFLOW ?
			 stele_strerror(error) : strerror(-error));
	if (error != -ECANCELED)
		complain(from, error, message);
	return error;
}

int from_too_many(struct from_scan *scan)
{
	int ret = from_failed(scan->from, -EOVERFLOW, "'%s' has more than %d fields",
			      scan->shard->name, STELE_FIELDS_MAX);

	if (from_has_types(scan->from))
		cmd_hint("--type=COLUMN:none leaves a column out");
	return ret;
}

int from_refused(struct from *from, int error, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain(from, error, text);
	return error;
}

int from_spare(struct from *from, const char *path, const struct stat *st)
{
	struct from_span span;

	from_span_find(st, &span);
	if (!from_span_overlaps(&span, &from->target))
		return 0;
	if (S_ISBLK(st->st_mode) || S_ISBLK(from->target.levels[0].st.st_mode))
		return from_refused(from, -EINVAL, "'%s' is of the source, and shares bytes with "
				    "'%s', which would be written to", path, from->opts.target);
	return from_refused(from, -EINVAL,
			    "'%s' is a file of the source, which the image would replace", path);
}

static int cannot_keep(struct from *from, int error)
{
	return from_failed(from, error, "cannot keep samples in a temporary file in '%s'",
			   store_directory());
}

int from_shard_failed(struct from *from, const struct from_shard *shard, int error)
{
	return from_failed(from, error, "cannot read source '%s'", shard->name);
}

int from_cannot_read(struct from_scan *scan, int error)
{
	return from_shard_failed(scan->from, scan->shard, error);
}

int from_changed(struct from_scan *scan, const char *name)
{
	struct from *from = scan->from;

	if (!from->opts.skip)
		return from_failed(from, -ETXTBSY, "cannot read source '%s'", name);
	from->shards[scan->index].torn = from->torn = true;
	return 0;
}

static void place_text(const struct from_shard *shard, uint64_t offset, char *text,
		       size_t size)
{
	snprintf(text, size, "'%s' at byte %" PRIu64 "%s%s", shard->name, offset,
		 shard->compression ? ", decompressed" : "",
		 shard->torn ? ", which changed while it was read" : "");
}

/* What was decompressed before was handed on, and may be as wrong. */
static bool is_late(const struct from_scan *scan)
{
	return scan->shard->compression && scan->input.error == -EBADMSG &&
	       !scan->from->format->verifies;
}

int from_damaged(struct from_scan *scan, uint64_t offset, const char *format, ...)
{
	const bool late = is_late(scan);
	char place[1024], text[1024], message[2200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	place_text(scan->shard, offset, place, sizeof(place));
	snprintf(message, sizeof(message), "%s: %s%s", place, text,
		 scan->from->opts.skip && late && !scan->shard->regular ?
			 ": it comes through a pipe, of which nothing is left out then" : "");
	if (!scan->from->opts.skip || late) {
		/* What is no damage, but two versions, is called that. */
		if (!from_shard_holds(scan->shard, scan->input.fd))
			return from_changed(scan, scan->shard->name);
		if (!is_first(scan->from))
			return -EBADMSG;
		cmd_message("%s", message);
		if (!hint_mixed(scan->from, scan->shard))
			remedy_print("from", -EBADMSG, message, NULL);
		return -EBADMSG;
	}
	scan->damages++;
	return scan->sink->skip(scan->sink->user, STELE_SKIP_UNREADABLE, message,
				strlen(message), -EBADMSG);
}

int from_no_class(struct from_scan *scan, uint64_t offset, int error, const char *what)
{
	switch (error) {
	case -EINVAL:
		return from_damaged(scan, offset, "%s, which no class can have as a name", what);
	case -EILSEQ:
		return from_damaged(scan, offset, "%s with a NUL byte, which no name of a class "
				    "can have", what);
	case -ENAMETOOLONG:
		return from_damaged(scan, offset, "%s of more than %d bytes, too long for the name "
				    "of a class", what, STELE_KEY_SIZE_MAX);
	default:
		return from_failed(scan->from, error, "class names");
	}
}

void from_warn(struct from_scan *scan, uint64_t offset, const char *text)
{
	char place[1024];

	place_text(scan->shard, offset, place, sizeof(place));
	cmd_message("warning: %s: %s", place, text);
}

int from_input_failed(struct from_scan *scan, int error)
{
	if (error == -EBADMSG)
		return from_damaged(scan, scan->input.offset, "%s",
				    input_why(&scan->input));
	return from_cannot_read(scan, error);
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

const char *from_below(const char *path)
{
	for (;;) {
		if (path[0] == '/')
			path++;
		else if (path[0] == '.' && path[1] == '/')
			path += 2;
		else
			return path;
	}
}

int from_append(struct from_scan *scan, const void *data, size_t size)
{
	int ret = store_append(&scan->from->store, data, size);

	return ret ? cannot_keep(scan->from, ret) : 0;
}

int from_store(struct from_scan *scan, uint64_t offset, uint64_t *place)
{
	const uint64_t origin = from_place(scan, offset & PLACE_OFFSET_MAX);
	int ret = from_append(scan, &origin, sizeof(origin));

	*place = PLACE_STORE << PLACE_SHARD_SHIFT | scan->from->store.size;
	return ret;
}

int from_number_key(const struct from_scan *scan, uint64_t number,
		    char key[FROM_NUMBER_KEY_MAX])
{
	const char *slash = strrchr(scan->shard->path, '/');
	const char *name = slash ? slash + 1 : scan->shard->path;

	return snprintf(key, FROM_NUMBER_KEY_MAX, "%.*s/%010" PRIu64, STELE_KEY_SIZE_MAX,
			strcmp(name, "-") ? name : "stdin", number);
}

static int tick(struct from_scan *scan)
{
	return scan->sink->tick(scan->sink->user) ? -ECANCELED : 0;
}

/* An image takes any key, but not every command does. */
static void judge_key(struct from *from, const char *key, size_t size)
{
	if (!tree_refusal(key, size) || from->unfit++)
		return;
	snprintf(from->unfit_key, sizeof(from->unfit_key), "%.*s", (int)size, key);
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

	judge_key(scan->from, key, key_size);
	return ret || ++scan->reported % TICK_EVERY ? ret : tick(scan);
}

int from_check_key(struct from_scan *scan, uint64_t offset, const char *key, size_t key_size)
{
	const char *why = !key_size			     ? "is empty" :
			  key_size > STELE_KEY_SIZE_MAX    ? "has more than 4000 bytes" :
			  memchr(key, '\0', key_size)	     ? "has a zero byte" :
								 NULL;

	return why ? from_damaged(scan, offset, "a key that %s", why) : 1;
}

int from_record(struct from_scan *scan, const char *key, size_t key_size,
		const struct record *record)
{
	struct from *from = scan->from;
	int ret;

	ret = from_check_key(scan, record->offset, key, key_size);
	if (ret <= 0)
		return ret;
	ret = record_keep(&from->index, &from->fields, record, key, key_size,
			  from_place(scan, record->offset & PLACE_OFFSET_MAX));
	if (ret)
		return cannot_keep(from, ret);
	judge_key(from, key, key_size);
	return ++scan->reported % TICK_EVERY ? 0 : tick(scan);
}

int from_skip(struct from_scan *scan, enum stele_skip_reason reason,
	      const char *key, size_t key_size)
{
	return scan->sink->skip(scan->sink->user, reason, key, key_size, 0);
}

/* ---- shards -------------------------------------------------------------- */

static int open_shard(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
	int ret;

	if (fd < 0)
		return -errno;
	ret = input_wait(fd);
	if (!ret && (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int from_shard_descriptor(const struct from_shard *shard)
{
	const bool named = strcmp(shard->path, "-") != 0;
	int fd;

	if (named && shard->pipe < 0)
		return open_shard(shard->path);
	fd = fcntl(named ? shard->pipe : STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* Who writes to a FIFO loses what nobody has open, and does not write it again. */
static int keep_pipe(struct from_shard *shard, int fd)
{
	if (shard->regular || !strcmp(shard->path, "-"))
		return 0;
	shard->pipe = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return shard->pipe < 0 ? -errno : 0;
}

/* A file that was redirected is read like one that is named, unless from its middle. */
static bool can_read_again(int fd, const struct stat *st)
{
	return (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode)) && lseek(fd, 0, SEEK_CUR) == 0;
}

/* Of a block device fstat(2) does not say it. */
static int find_size(int fd, struct stat *st)
{
	const off_t size = S_ISBLK(st->st_mode) ? lseek(fd, 0, SEEK_END) : st->st_size;

	if (size < 0 || (S_ISBLK(st->st_mode) && lseek(fd, 0, SEEK_SET) < 0))
		return -errno;
	st->st_size = size;
	return 0;
}

void from_shard_seen(struct from_shard *shard, const struct stat *st)
{
	const int64_t status = st->st_ctim.tv_sec;

	version_take(&shard->version, st);
	shard->size = (uint64_t)st->st_size;
	shard->changed = st->st_mtim.tv_sec > status ? st->st_mtim.tv_sec :
						       status;
}

/*
 * An environment of LMDB may be written; a transaction keeps what was found there. LMDB makes no
 * file smaller: who has overwritten it is somebody else. One as large, of as many transactions, is
 * not told apart.
 */
bool from_shard_holds(const struct from_shard *shard, int fd)
{
	bool same;

	if (!shard->watched)
		return true;
	same = version_holds(&shard->version, fd);
	if (!shard->lmdb)
		return same;
	return (same || version_may_hold(&shard->version, fd)) &&
	       lmdb_holds(shard->lmdb, fd, same);
}

/* A record of some size begins as gzip does. */
static enum input_compression see_compression(const uint8_t *data, size_t size)
{
	return from_tfrecord.detect(data, size) ? INPUT_PLAIN :
						  input_compression(data, size);
}

int from_shard_open(struct from *from, struct from_shard *shard, struct input *input)
{
	const uint8_t *data;
	struct stat st;
	int64_t got;
	int ret;

	input->fd = from_shard_descriptor(shard);
	if (input->fd < 0)
		return input->fd;
	if (fstat(input->fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	ret = from_spare(from, shard->name, &st);
	if (ret)
		return ret;
	if (!shard->seen) {
		shard->watched = S_ISREG(st.st_mode);
		version_take(&shard->version, &st);
		shard->regular = can_read_again(input->fd, &st);
		ret = shard->regular ? find_size(input->fd, &st) :
				       keep_pipe(shard, input->fd);
		if (ret)
			return ret;
		if (shard->regular)
			from_shard_seen(shard, &st);
	}
	input->regular = shard->regular;
	input->first = shard->regular ? NULL : &from->first;
	if (input->first && !shard->seen)
		from->first.size = 0; /* another pipe's */
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

static int on_bytes(void *user, uint64_t bytes)
{
	struct from_scan *scan = user;

	__atomic_fetch_add(&scan->from->done, bytes, __ATOMIC_RELAXED);
	return tick(scan);
}

/*
 * Damage may be left out, but what is compressed shows it behind bytes that are wrong already, at
 * worst at its end. So all of it is read before anything is taken. A pipe cannot be.
 * Return: 1: it is sound, or not to be left out; 0: it was skipped; negative errno (said).
 */
static int look_through(struct from_scan *scan)
{
	struct input input = scan->input;
	const uint8_t *data;
	int64_t got;

	if (!scan->from->opts.skip || !scan->shard->compression || !scan->shard->regular ||
	    scan->from->format->verifies)
		return 1;
	__atomic_fetch_add(&scan->from->total, scan->shard->size, __ATOMIC_RELAXED);
	got = input_open(&input);
	while (!got && (got = input_look(&input, 1, &data)) > 0)
		got = input_skip(&input, (uint64_t)got);
	if (got == -EBADMSG)
		got = from_damaged(scan, input.offset, "%s: nothing of the file can be trusted",
				   input_why(&input));
	else
		got = got ? from_cannot_read(scan, (int)got) : 1;
	input.fd = -1; /* it stays open */
	input_close(&input);
	return (int)got;
}

/* Checksums of what is compressed are at its end, which a format need not come to. */
static int read_rest(struct from_scan *scan)
{
	struct input *input = &scan->input;
	const uint8_t *data;
	int64_t got;

	if (!input->compression || input->error)
		return 0;
	while ((got = input_look(input, 1, &data)) > 0)
		input_skip(input, (uint64_t)got);
	return got < 0 ? from_input_failed(scan, (int)got) : 0;
}

/* Also what was copied may be of two versions. */
static int read_shard(struct from_scan *scan)
{
	int ret = look_through(scan);

	if (ret <= 0)
		return ret;
	ret = input_open(&scan->input);
	ret = ret ? from_input_failed(scan, ret) : scan->from->format->scan(scan);
	if (!ret)
		ret = read_rest(scan);
	if (ret || from_shard_holds(scan->shard, scan->input.fd))
		return ret;
	return from_changed(scan, scan->shard->name);
}

int from_no_image(const struct from_scan *scan)
{
	const char *name = scan->shard->name;
	int ret = scan->shard->regular ? from_refuse_image(name, name) : 0;

	scan->from->complained |= ret != 0;
	return ret;
}

/* A shard without samples: zeros, as a crash leaves them, are worth a word. */
static int judge_empty(const struct from_scan *scan)
{
	int ret = from_no_image(scan);

	if (!ret && scan->from->shard_count > 1)
		cmd_message("warning: '%s' has no samples", scan->shard->name);
	return ret;
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
	int ret = from_shard_open(from, shard, &scan.input);

	scan.input.tick = on_bytes;
	scan.input.user = &scan;
	if (ret)
		from_shard_failed(from, shard, ret);
	else
		ret = read_shard(&scan);
	input_close(&scan.input);
	return ret || scan.reported ? ret : judge_empty(&scan);
}

/* ---- all --------------------------------------------------------------------- */

/* An f64, because of others, would be another number. */
static int refuse_large(struct from *from, const struct record_field *field)
{
	const char *name = field->field.name;
	char place[1024], types[2 * STELE_NAME_SIZE_MAX + 96] = "";

	place_text(&from->shards[field->large_at >> PLACE_SHARD_SHIFT],
		   field->large_at & PLACE_OFFSET_MAX, place, sizeof(place));
	if (from->format->options & FROM_TYPES)
		snprintf(types, sizeof(types), " (--type=%s:text takes all as text, --type=%s:none "
			 "leaves the column out)", name, name);
	return from_refused(from, -ERANGE, "%s: '%s' has an integer that no f64 is, while others "
			    "are missing, have a fraction or another sign%s", place, name, types);
}

/* As pandas and databases write a value that is missing. */
static bool means_missing(const char *name)
{
	static const char *const words[] = {"NaN", "nan", "null", "NULL", "None", "NA", "N/A",
					    "<NA>"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i], name))
			return true;
	return false;
}

/* One that became a class among others. */
static void warn_of_missing(const struct from *from)
{
	for (uint32_t i = 0; i < from->fields.count; i++) {
		const struct stele_field *field = &from->fields.list[i].field;
		uint32_t k = 0;

		while (k < field->name_count && !means_missing(field->names[k]))
			k++;
		if (k < field->name_count)
			cmd_message("warning: '%s' is one of the classes of '%s': samples have "
				    "none where the source has an empty value",
				    field->names[k], field->name);
	}
}

/* pandas writes integers so if some are missing. */
static void warn_of_gaps(const struct from *from)
{
	for (uint32_t i = 0; i < from->fields.count; i++) {
		const struct record_field *field = &from->fields.list[i];

		if (field->family == RECORD_FAMILY_CLASS &&
		    field->field.type == STELE_TYPE_F64 && field->count < from->fields.samples)
			cmd_message("warning: '%s' has numbers with a fraction, such as 1.0, so "
				    "it is f64, and NaN where there is none: integers would be "
				    "classes, and -1 there (in pandas: astype('Int64'))",
				    field->field.name);
	}
}

static int resolve(struct from *from)
{
	const struct record_field *field = NULL;
	int ret = record_resolve(&from->fields, &field);

	if (!ret) {
		warn_of_gaps(from);
		warn_of_missing(from);
		return 0;
	}
	if (ret == -ERANGE)
		return refuse_large(from, field);
	return from_failed(from, ret, "cannot take the classes of field '%s'", field->field.name);
}

static int report_records(struct from *from, const struct stele_source_sink *sink)
{
	struct record_entry *record = &from->entry;
	int ret = resolve(from);

	for (uint64_t at = 0, n = 1; !ret && at < from->index.size; at = record->next, n++) {
		struct stele_source_entry entry = {.size = sizeof(entry), .place = at};

		ret = record_load(&from->index, &from->fields, at, record);
		if (ret)
			return cannot_keep(from, ret);
		entry.key = record->key;
		entry.key_size = record->key_size;
		entry.data_size = record->data_size;
		entry.changed = from->shards[record->origin >> PLACE_SHARD_SHIFT].changed;
		if (entry.changed && record->record.changed > entry.changed)
			entry.changed = record->record.changed;
		ret = sink->entry(sink->user, &entry);
		if (!ret && n % TICK_EVERY == 0 && sink->tick(sink->user))
			ret = -ECANCELED;
	}
	return ret;
}

int from_scan_all(void *user, const struct stele_source_sink *sink)
{
	struct from *from = user;
	int ret = 0;

	for (size_t i = 0; i < from->shard_count && !ret; i++)
		ret = scan_shard(from, i, sink);
	if (ret)
		return ret;
	ret = store_flush(&from->store);
	if (!ret)
		ret = store_flush(&from->index);
	if (ret)
		return cannot_keep(from, ret);
	if (from->format->kind != FROM_RECORDS)
		return 0;
	ret = row_check_columns(from);
	return ret ? ret : report_records(from, sink);
}

int from_origin(const struct from *from, const struct stele_source_entry *entry,
		uint64_t *origin)
{
	const uint64_t at = (entry->place & PLACE_OFFSET_MAX) - sizeof(*origin);
	int64_t got = sizeof(*origin);

	*origin = entry->place;
	if (entry->place >> PLACE_SHARD_SHIFT == PLACE_STORE)
		got = store_read(&from->store, at, origin, sizeof(*origin));
	return got == sizeof(*origin) ? 0 : got < 0 ? (int)got : -EIO;
}

void from_describe(void *user, const struct stele_source_entry *entry, char *text,
		   size_t size)
{
	struct from *from = user;
	uint64_t origin;

	*text = '\0';
	if (from->format->kind != FROM_RECORDS) {
		if (from_origin(from, entry, &origin))
			return;
	} else {
		if (record_load(&from->index, &from->fields, entry->place, &from->entry))
			return;
		origin = from->entry.origin;
	}
	place_text(&from->shards[origin >> PLACE_SHARD_SHIFT], origin & PLACE_OFFSET_MAX, text,
		   size);
}

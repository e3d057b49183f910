/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - the files of profiles: where they are, what is in them, load, save
 *
 *	stele profile 1
 *	device = Example SSD 9 eui.0123456789abcdef
 *	backend = uring
 *	depth = 22
 *	...
 *	size depth bytes/s p50_ns p99_ns noisy
 *	4096 1 49152000 81250 95000 0
 *	...
 *	crc32c = 89abcdef
 *
 * One table says which line holds what. The parser may be lax, since what was read must be
 * exactly what encoding it again gives: each profile has one spelling.
 *
 * Each user has a directory of his own; what root measured is used by all who have measured
 * nothing themselves.
 */
#include "lib/node/profile.h"

#include "format/crc32c.h"
#include "lib/node/access.h"
#include "lib/node/node_dir.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_SIZE   112u /* of a file: what of the identity a name can hold, its crc32c */
#define NUMBER_MAX  (UINT64_C(1) << 60)
#define TIME_FORMAT "%Y-%m-%dT%H:%M:%SZ"
#define TIME_MAX    INT64_C(253402300799) /* 9999-12-31T23:59:59Z */
#define COLUMNS	    "size depth bytes/s p50_ns p99_ns noisy\n"
#define TAIL	    "crc32c = "
#define TAIL_SIZE   (sizeof(TAIL) - 1 + 8 + 1)

/* Both in one, so that one table reaches all. */
struct record {
	struct stele_profile profile;
	struct stele_profile_facts facts;
};

enum kind {
	TEXT,	  /* printable, not empty */
	WORD,	  /* printable without blanks, may be empty */
	NUMBER,	  /* uint64_t */
	NUMBER32, /* uint32_t */
	TIME,	  /* int64_t, seconds since 1970 */
};

#define FIELD(name, kind, member) \
	{name, kind, offsetof(struct record, member), \
	 sizeof(((struct record *)0)->member)}

static const struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	size_t size; /* of TEXT and WORD */
} fields[] = {
	FIELD("device", TEXT, profile.device),
	FIELD("backend", WORD, profile.backend),
	FIELD("depth", NUMBER32, profile.depth),
	FIELD("host", WORD, profile.host),
	FIELD("target", TEXT, profile.target),
	FIELD("time", TIME, profile.time),
	FIELD("slots_size", NUMBER, profile.slots_size),
	FIELD("mean_size", NUMBER, profile.mean_size),
	FIELD("kernel", WORD, facts.kernel),
	FIELD("scheduler", WORD, facts.scheduler),
	FIELD("max_sectors_kb", NUMBER, facts.max_sectors_kb),
	FIELD("nr_requests", NUMBER, facts.nr_requests),
	FIELD("points", NUMBER32, profile.point_count),
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* Names with " = " and "\n", texts, numbers of up to 20 digits; then the table. */
_Static_assert(FIELD_COUNT * (20 + 4 + 20) + sizeof(struct record) -
				       sizeof(((struct stele_profile *)0)->points) +
			       sizeof(COLUMNS) +
			       STELE_PROFILE_POINTS_MAX * (10 + 10 + 3 * 20 + 1 + 6) +
			       TAIL_SIZE + 32 <
		       STELE_PROFILE_SIZE_MAX,
	       "a profile fits");

/* ---- encode ------------------------------------------------------------------ */

/* `text` is where it goes on. Never more than there is room for: see the assertion. */
__attribute__((format(printf, 2, 3))) static void put(char **text, const char *format,
						       ...)
{
	va_list args;

	va_start(args, format);
	*text += vsprintf(*text, format, args);
	va_end(args);
}

static void put_time(char **text, const char *name, int64_t seconds)
{
	time_t time = (time_t)(seconds >= 0 && seconds <= TIME_MAX ? seconds : 0);
	char value[32];
	struct tm tm;

	strftime(value, sizeof(value), TIME_FORMAT, gmtime_r(&time, &tm));
	put(text, "%s = %s\n", name, value);
}

static void put_field(char **text, const struct field *field,
		      const struct record *record)
{
	const void *at = (const char *)record + field->offset;

	switch (field->kind) {
	case TEXT:
	case WORD:
		put(text, "%s = %.*s\n", field->name, (int)field->size - 1,
		    (const char *)at);
		break;
	case NUMBER:
		put(text, "%s = %" PRIu64 "\n", field->name, *(const uint64_t *)at);
		break;
	case NUMBER32:
		put(text, "%s = %" PRIu32 "\n", field->name, *(const uint32_t *)at);
		break;
	case TIME:
		put_time(text, field->name, *(const int64_t *)at);
		break;
	}
}

static uint64_t whole(double value)
{
	return value > 0 && value < (double)NUMBER_MAX ? (uint64_t)(value + 0.5) : 0;
}

static void put_tail(char **text, const char *begin)
{
	put(text, TAIL "%08" PRIx32 "\n",
	    stele_crc32c(0, begin, (size_t)(*text - begin)));
}

static void encode(const struct record *record, char *text)
{
	const struct stele_profile *profile = &record->profile;
	const char *begin = text;

	put(&text, "stele profile %u\n", STELE_PROFILE_VERSION);
	for (size_t i = 0; i < FIELD_COUNT; i++)
		put_field(&text, &fields[i], record);
	put(&text, COLUMNS);
	for (uint32_t i = 0; i < profile->point_count; i++) {
		const struct stele_tune_point *point = &profile->points[i];

		put(&text, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
			   " %d\n",
		    point->size, point->depth, whole(point->bytes_per_second),
		    point->p50_ns, point->p99_ns, point->noisy);
	}
	put_tail(&text, begin);
}

void stele_profile_encode(const struct stele_profile *profile,
			  const struct stele_profile_facts *facts, char *text)
{
	const struct record record = {*profile, *facts};

	encode(&record, text);
}

/* ---- decode ------------------------------------------------------------------ */

static bool get_number(const char **at, uint64_t max, uint64_t *out)
{
	char *end;

	*out = strtoull(*at, &end, 10);
	if (end == *at || *out > max)
		return false;
	*at = end;
	return true;
}

static bool get_number32(const char **at, uint32_t *out)
{
	uint64_t value;

	if (!get_number(at, UINT32_MAX, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool get_text(const char *value, size_t length, const struct field *field,
		     char *out)
{
	if (length >= field->size || (field->kind == TEXT && !length))
		return false;
	for (size_t i = 0; i < length; i++)
		if (value[i] < ' ' || value[i] > '~' ||
		    (field->kind == WORD && value[i] == ' '))
			return false;
	memcpy(out, value, length);
	return true;
}

static bool get_time(const char *value, int64_t *out)
{
	struct tm tm = {0};

	if (!strptime(value, TIME_FORMAT, &tm))
		return false;
	*out = timegm(&tm);
	return *out >= 0 && *out <= TIME_MAX;
}

/* `line` begins with "NAME = VALUE\n". */
static bool get_field(const char *line, const struct field *field,
		      struct record *record)
{
	void *at = (char *)record + field->offset;
	size_t length = strlen(field->name);

	if (strncmp(line, field->name, length) || strncmp(line + length, " = ", 3))
		return false;
	line += length + 3;
	switch (field->kind) {
	case TEXT:
	case WORD:
		return get_text(line, strcspn(line, "\n"), field, at);
	case NUMBER:
		return get_number(&line, NUMBER_MAX, at);
	case NUMBER32:
		return get_number32(&line, at);
	case TIME:
		return get_time(line, at);
	}
	return false;
}

static bool get_point(const char *line, const struct stele_profile *profile,
		      struct stele_tune_point *out)
{
	uint64_t rate, noisy;

	if (!get_number32(&line, &out->size) || !get_number32(&line, &out->depth) ||
	    !get_number(&line, NUMBER_MAX, &rate) ||
	    !get_number(&line, NUMBER_MAX, &out->p50_ns) ||
	    !get_number(&line, NUMBER_MAX, &out->p99_ns) ||
	    !get_number(&line, 1, &noisy) || !rate || !out->depth ||
	    out->depth > STELE_QUEUE_DEPTH_MAX)
		return false;
	out->noisy = noisy;
	out->bytes_per_second = (double)rate;
	out->reads_per_second =
		(double)rate / (double)(out->size ? out->size : profile->mean_size);
	return true;
}

static bool are_settings_sound(const struct stele_profile *profile)
{
	return *profile->backend && profile->depth &&
	       profile->depth <= STELE_QUEUE_DEPTH_MAX && profile->mean_size &&
	       profile->point_count <= STELE_PROFILE_POINTS_MAX;
}

static int bad(const char **why, const char *step, int err)
{
	*why = step;
	return err;
}

/* The line after this one; of the last one, the terminator. */
static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

static int get_lines(const char *text, struct record *record, const char **why)
{
	char head[32];

	snprintf(head, sizeof(head), "stele profile %u\n", STELE_PROFILE_VERSION);
	if (strncmp(text, head, strlen(head)))
		return bad(why, "version", -EOPNOTSUPP);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		text = next_line(text);
		if (!get_field(text, &fields[i], record))
			return bad(why, fields[i].name, -EUCLEAN);
	}
	if (!are_settings_sound(&record->profile))
		return bad(why, "bounds", -EUCLEAN);
	text = next_line(text);
	for (uint32_t i = 0; i < record->profile.point_count; i++) {
		text = next_line(text);
		if (!get_point(text, &record->profile, &record->profile.points[i]))
			return bad(why, "table", -EUCLEAN);
	}
	return 0;
}

int stele_profile_decode(const char *text, size_t size,
			 struct stele_profile *profile,
			 struct stele_profile_facts *facts, const char **why)
{
	char copy[STELE_PROFILE_SIZE_MAX], again[STELE_PROFILE_SIZE_MAX], *tail;
	struct record record = {0};
	int err;

	if (size <= TAIL_SIZE || size >= sizeof(copy) || memchr(text, 0, size))
		return bad(why, "length", -EBADMSG);
	memcpy(copy, text, size);
	tail = copy + size - TAIL_SIZE;
	put_tail(&tail, copy);
	if (memcmp(copy, text, size))
		return bad(why, "checksum", -EBADMSG);
	err = get_lines(copy, &record, why);
	if (err)
		return err;
	encode(&record, again);
	if (strcmp(again, copy))
		return bad(why, "spelling", -EUCLEAN);
	*profile = record.profile;
	*facts = record.facts;
	return 0;
}

/* ---- places ------------------------------------------------------------------ */

static int put_path(char *path, size_t size, const char *base, const char *rest)
{
	int length = snprintf(path, size, "%s%s", base, rest);

	return length >= 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

/* The user's own. *only: there is no other one. */
static int own_dir(char *path, size_t size, bool *only)
{
	const char *dir = secure_getenv(STELE_STATE_DIR_ENV);

	*only = true;
	if (dir && *dir)
		return put_path(path, size, dir, "");
	if (!geteuid())
		return put_path(path, size, STELE_STATE_DIR_DEFAULT, "");
	*only = false;
	dir = secure_getenv("XDG_STATE_HOME");
	if (dir && *dir == '/')
		return put_path(path, size, dir, "/stele");
	dir = secure_getenv("HOME");
	if (dir && *dir == '/')
		return put_path(path, size, dir, "/.local/state/stele");
	return -ENOENT;
}

bool stele_profile_any(void)
{
	char dir[PATH_MAX];
	bool only;
	int err = own_dir(dir, sizeof(dir), &only);

	return (!err && !access(dir, X_OK)) ||
	       (!only && !access(STELE_STATE_DIR_DEFAULT, X_OK));
}

static int file_in(const char *dir, const char *device, char *path, size_t size)
{
	char name[NAME_SIZE + 16];
	size_t length = 0;

	while (device[length] && length < NAME_SIZE - 10) {
		char c = device[length];

		name[length++] = isalnum((unsigned char)c) || c == '.' ? c : '-';
	}
	if (name[0] == '.') /* never hidden */
		name[0] = '-';
	snprintf(name + length, sizeof(name) - length, "-%08x",
		 stele_crc32c(0, device, strlen(device)));
	if (strlen(dir) + strlen(name) + 2 > size)
		return -ENAMETOOLONG;
	sprintf(path, "%s/%s", dir, name);
	return 0;
}

int stele_profile_file(const char *device, char *path, size_t size)
{
	char dir[PATH_MAX];
	bool only;
	int err = own_dir(dir, sizeof(dir), &only);

	return err ? err : file_in(dir, device, path, size);
}

/* ---- load -------------------------------------------------------------------- */

/*
 * Return: bytes; -ENOENT; -EBADMSG (no file of that kind or length); -EPERM (not ours,
 * nor root's); errno.
 */
static int read_file(const char *path, char text[STELE_PROFILE_SIZE_MAX],
		     const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t size = -EBADMSG;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		size = stele_access_check(fd, why);
	if (size == 0) {
		size = read(fd, text, STELE_PROFILE_SIZE_MAX);
		if (size < 0)
			size = -errno;
		else if (size == STELE_PROFILE_SIZE_MAX)
			size = -EBADMSG;
	}
	close(fd);
	return (int)size;
}

/* What has changed since it was measured; NULL: nothing. */
static const char *difference(const struct stele_profile_facts *then,
			      const struct stele_profile_facts *now)
{
	if (strcmp(then->kernel, now->kernel))
		return "kernel";
	if (strcmp(then->scheduler, now->scheduler))
		return "scheduler";
	if (then->max_sectors_kb != now->max_sectors_kb)
		return "max_sectors_kb";
	return then->nr_requests != now->nr_requests ? "nr_requests" : NULL;
}

static int load_file(const char *path, const struct stele_profile_source *source,
		     const struct stele_log *log, struct stele_profile *out)
{
	char text[STELE_PROFILE_SIZE_MAX];
	struct stele_profile_facts facts;
	const char *why = "kind or length", *changed;
	int size = read_file(path, text, &why), err;

	if (size == -ENOENT || size == -ENOTDIR || size == -EACCES)
		return -ENOENT;
	err = size < 0 ? size :
			 stele_profile_decode(text, (size_t)size, out, &facts,
					      &why);
	if (!err && strcmp(out->device, source->device)) {
		err = -EUCLEAN;
		why = "device";
	}
	if (err == -EBADMSG || err == -EUCLEAN || err == -EOPNOTSUPP ||
	    err == -EPERM) {
		stele_log_warning(log, "bad profile '%s': %s; ignored",
				  path, why);
		return -ENOENT;
	}
	if (err) {
		stele_log_warning(log, "cannot read profile '%s': %s", path,
				  strerror(-err));
		return -ENOENT;
	}
	changed = difference(&facts, &source->facts);
	if (changed)
		stele_log_info(log, "profile '%s' is stale: %s has changed since it was measured",
			       path, changed);
	return changed ? -ENOENT : 0;
}

int stele_profile_load(const struct stele_profile_source *source,
		       const struct stele_log *log, struct stele_profile *out)
{
	char dir[PATH_MAX], path[PATH_MAX + NAME_SIZE + 16];
	bool only;
	int err = own_dir(dir, sizeof(dir), &only);

	if (!err)
		err = file_in(dir, source->device, path, sizeof(path));
	if (!err)
		err = load_file(path, source, log, out);
	if (err && !only) {
		err = file_in(STELE_STATE_DIR_DEFAULT, source->device, path,
			      sizeof(path));
		if (!err)
			err = load_file(path, source, log, out);
	}
	if (err)
		memset(out, 0, sizeof(*out));
	return err ? -ENOENT : 0;
}

/* ---- save -------------------------------------------------------------------- */

/* And its parents. */
static int make_dir(const char *dir)
{
	char path[PATH_MAX];
	int err = 0;

	if (put_path(path, sizeof(path), dir, ""))
		return -ENAMETOOLONG;
	for (char *at = path + 1; *at && !err; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		err = stele_node_dir_make(path);
		*at = '/';
	}
	return err ? err : stele_node_dir_make(path);
}

/* Beside, synced, then renamed over what was there. */
static int write_file(const char *path, const char *text)
{
	char beside[2 * PATH_MAX];
	size_t size = strlen(text);
	int fd, err = 0;
	ssize_t n;

	snprintf(beside, sizeof(beside), "%s.XXXXXX", path);
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, size);
	if (n != (ssize_t)size)
		err = n < 0 ? -errno : -EIO;
	else if (fchmod(fd, 0644) || fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(beside, path))
		err = -errno;
	if (err)
		unlink(beside);
	return err;
}

/* Of the user's own. Return: 0; negative errno (logged). */
static int make_place(char *dir, size_t size, const struct stele_log *log)
{
	bool only;
	int err = own_dir(dir, size, &only);

	if (err) {
		stele_log_error(log, "no directory for profiles: neither $%s "
				     "nor $HOME is set", STELE_STATE_DIR_ENV);
		return err;
	}
	err = make_dir(dir);
	if (!err && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (err)
		stele_log_error(log, "cannot keep a profile in '%s': %s",
				dir, strerror(-err));
	return err;
}

int stele_profile_check(const struct stele_log *log)
{
	char dir[PATH_MAX];

	return make_place(dir, sizeof(dir), log);
}

int stele_profile_save(const struct stele_profile *profile,
		       const struct stele_profile_source *source,
		       const struct stele_log *log)
{
	char dir[PATH_MAX], path[PATH_MAX + NAME_SIZE + 16] = "";
	char text[STELE_PROFILE_SIZE_MAX];
	int err = make_place(dir, sizeof(dir), log);

	if (err)
		return err;
	stele_profile_encode(profile, &source->facts, text);
	err = file_in(dir, source->device, path, sizeof(path));
	if (!err)
		err = write_file(path, text);
	if (err)
		stele_log_error(log, "cannot save profile '%s': %s", path,
				strerror(-err));
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-directory.c - every file below a directory, whatever its name and depth
 *
 * Keys, sizes and bytes of what is a sample; what becomes of all that is none.
 */
#include "lib/source/source.h"
#include "tests/fixture/rest.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEEN_MAX 4096

struct seen {
	char *keys[SEEN_MAX];
	size_t sizes[SEEN_MAX]; /* of keys */
	uint64_t bytes[SEEN_MAX];
	int64_t changed[SEEN_MAX];
	unsigned int count;
	char *skipped[SEEN_MAX];
	enum stele_skip_reason reasons[SEEN_MAX];
	unsigned int skip_count;
	int skip_return, entry_return, tick_return;
	unsigned int ticks;
	bool hold; /* entries until the first tick */
	int busy; /* two calls at once show here */
	bool overlapped;
};

static void enter(struct seen *seen)
{
	if (__atomic_exchange_n(&seen->busy, 1, __ATOMIC_ACQ_REL))
		seen->overlapped = true;
}

static void leave(struct seen *seen)
{
	__atomic_store_n(&seen->busy, 0, __ATOMIC_RELEASE);
}

static int on_entry(void *user, const struct stele_source_entry *entry)
{
	struct seen *seen = user;

	while (__atomic_load_n(&seen->hold, __ATOMIC_ACQUIRE))
		sched_yield();
	if (seen->tick_return)
		test_others_rest(); /* the callback has yet to return */
	enter(seen);
	seen->keys[seen->count] = strndup(entry->key, entry->key_size);
	seen->sizes[seen->count] = entry->key_size;
	seen->changed[seen->count] = entry->changed;
	seen->bytes[seen->count++] = entry->data_size;
	leave(seen);
	return seen->entry_return;
}

static int on_skip(void *user, enum stele_skip_reason reason, const char *key,
		   size_t key_size, int error)
{
	struct seen *seen = user;

	(void)error;
	enter(seen);
	seen->skipped[seen->skip_count] = strndup(key, key_size);
	seen->reasons[seen->skip_count++] = reason;
	leave(seen);
	return reason == STELE_SKIP_UNREADABLE ? seen->skip_return : 0;
}

static int on_tick(void *user)
{
	struct seen *seen = user;

	seen->ticks++;
	__atomic_store_n(&seen->hold, false, __ATOMIC_RELEASE);
	return seen->tick_return;
}

static void seen_release(struct seen *seen)
{
	for (unsigned int i = 0; i < seen->count; i++)
		free(seen->keys[i]);
	for (unsigned int i = 0; i < seen->skip_count; i++)
		free(seen->skipped[i]);
	memset(seen, 0, sizeof(*seen));
}

static int scan(const struct stele_source *source, struct seen *seen,
		unsigned int jobs)
{
	const struct stele_source_sink sink = {
		.size = sizeof(sink),
		.user = seen,
		.entry = on_entry,
		.skip = on_skip,
		.tick = on_tick,
		.jobs = jobs,
	};

	return source->ops.scan(source->user, &sink);
}

static int scan_path(const char *path, struct seen *seen, unsigned int jobs)
{
	struct stele_source source;
	int ret = stele_source_open_directory(path, 0, 0, &(struct stele_build_opts){0},
					NULL, &source);

	if (ret < 0)
		return ret;
	ret = scan(&source, seen, jobs);
	stele_source_close(&source);
	return ret;
}

static int find_key(const struct seen *seen, const char *key)
{
	for (unsigned int i = 0; i < seen->count; i++)
		if (!strcmp(seen->keys[i], key))
			return (int)i;
	return -1;
}

static bool was_skipped(const struct seen *seen, const char *key,
			enum stele_skip_reason reason)
{
	for (unsigned int i = 0; i < seen->skip_count; i++)
		if (!strcmp(seen->skipped[i], key) &&
		    seen->reasons[i] == reason)
			return true;
	return false;
}

static char *path_of(const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", test_tmpdir(), name) < 0)
		sysbail("no memory");
	return path;
}

static int make_dir(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0755) < 0)
		sysbail("cannot make directory %s", name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		sysbail("cannot open directory %s", name);
	return fd;
}

static int top_dir(const char *name)
{
	char *path = path_of(name);
	int fd;

	fd = make_dir(AT_FDCWD, path);
	free(path);
	return fd;
}

static void make_file(int at, const char *name, const char *data)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || write(fd, data, strlen(data)) != (ssize_t)strlen(data))
		sysbail("cannot write %s", name);
	close(fd);
}

static void resize(int at, const char *name, size_t size)
{
	int fd = openat(at, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		sysbail("cannot resize %s", name);
	close(fd);
}

static const char *const odd_names[] = {
	"plain", "with space", "new\nline", "\xff\xfe not utf-8", "-dash",
	"'quote\"", "back\\slash", "*", "...", "\x01\x7f",
};
#define ODD_COUNT (sizeof(odd_names) / sizeof(odd_names[0]))

static void check_names(unsigned int jobs)
{
	struct seen seen = {0};
	char *path = path_of("names");

	is_int(0, scan_path(path, &seen, jobs), "scan with %u jobs", jobs);
	is_uint(ODD_COUNT * 2, seen.count, "all files are there, once");
	for (size_t i = 0; i < ODD_COUNT; i++) {
		char key[64];
		int at = find_key(&seen, odd_names[i]);

		ok(at >= 0 && seen.bytes[at] == strlen(odd_names[i]),
		   "file %zu with its size", i);
		snprintf(key, sizeof(key), "dir %zu/%s", i, odd_names[i]);
		ok(find_key(&seen, key) >= 0, "file %zu in a directory", i);
	}
	ok(!seen.overlapped, "the sink sees one call at a time");
	seen_release(&seen);
	free(path);
}

static void test_names(void)
{
	int top = top_dir("names");

	for (size_t i = 0; i < ODD_COUNT; i++) {
		char name[32];
		int dir;

		snprintf(name, sizeof(name), "dir %zu", i);
		dir = make_dir(top, name);
		make_file(top, odd_names[i], odd_names[i]);
		make_file(dir, odd_names[i], "");
		close(dir);
	}
	close(top);
	check_names(1);
	check_names(16);
}

static void make_socket(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char *dir = path_of("special");

	/* Paths of sockets are short: bind from within. */
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	if (fd < 0 || chdir(dir) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chdir("/") < 0)
		sysbail("cannot make a socket");
	close(fd);
	free(dir);
}

static void test_special(void)
{
	char *path = path_of("special");
	int top = top_dir("special");
	struct seen seen = {0};
	struct stele_source source;
	struct stat st;

	make_file(top, "file", "x");
	make_file(top, "target", "y");
	make_socket("socket");
	if (symlinkat("file", top, "link") || symlinkat("..", top, "up") ||
	    symlinkat("nowhere", top, "dangling") ||
	    mkfifoat(top, "fifo", 0644) || fstatat(top, "target", &st, 0))
		sysbail("cannot make special files");
	close(make_dir(top, "empty"));

	is_int(0, stele_source_open_directory(path, st.st_dev, st.st_ino,
					      &(struct stele_build_opts){0}, NULL, &source),
	       "open");
	is_int(0, scan(&source, &seen, 3), "scan");
	is_uint(1, seen.count, "one is a sample");
	ok(find_key(&seen, "file") == 0, "the file");
	ok(was_skipped(&seen, "link", STELE_SKIP_SYMLINK), "link to a file");
	ok(was_skipped(&seen, "up", STELE_SKIP_SYMLINK), "link to a directory");
	ok(was_skipped(&seen, "dangling", STELE_SKIP_SYMLINK), "dangling link");
	ok(was_skipped(&seen, "fifo", STELE_SKIP_SPECIAL), "fifo");
	ok(was_skipped(&seen, "socket", STELE_SKIP_SPECIAL), "socket");
	ok(was_skipped(&seen, "target", STELE_SKIP_TARGET), "the target");
	is_uint(6, seen.skip_count, "and an empty directory is nothing");
	seen_release(&seen);
	stele_source_close(&source);
	close(top);
	free(path);
}

/* Keys that are left, without and with what was left out, sorted and joined. */
static void is_left(const char *path, const char *pattern, const char *wanted, uint32_t out)
{
	const char *const exclude[] = {"nothing", pattern, NULL};
	const struct stele_build_opts opts = {.exclude = exclude};
	struct stele_source source;
	struct seen seen = {0};
	char text[256] = "";

	is_int(0, stele_source_open_directory(path, 0, 0, &opts, NULL, &source), "open");
	is_int(0, scan(&source, &seen, 2), "'%s': scan", pattern);
	for (char c = '0'; c <= '9'; c++)
		for (unsigned int i = 0; i < seen.count; i++)
			if (seen.keys[i][seen.sizes[i] - 1] == c)
				snprintf(text + strlen(text), 2, "%c", c);
	is_string(wanted, text, "'%s' leaves %s", pattern, wanted);
	is_uint(out, seen.skip_count, "and so many are named as left out");
	for (unsigned int i = 0; i < seen.skip_count; i++)
		ok(seen.reasons[i] == STELE_SKIP_EXCLUDED, "'%s' is excluded", seen.skipped[i]);
	seen_release(&seen);
	stele_source_close(&source);
}

static void test_exclude(void)
{
	char *path = path_of("exclude");
	int top = top_dir("exclude"), a = make_dir(top, "a"), hidden = make_dir(a, ".git");
	int cache = make_dir(top, "cache"), deep = make_dir(a, "cache");

	make_file(top, "f0", "");
	make_file(top, ".f1", "");
	make_file(a, "f2", "");
	make_file(a, "g3", "");
	make_file(hidden, "f4", "");
	make_file(cache, "f5", "");
	make_file(deep, "f6", "");
	if (symlinkat("f0", top, "link"))
		sysbail("cannot make a link");
	is_left(path, "link", "0123456", 1);
	unlinkat(top, "link", 0);
	is_left(path, "no?e", "0123456", 0);
	is_left(path, ".*", "02356", 2);
	is_left(path, "f*", "13", 5);
	is_left(path, "*", "", 4);
	is_left(path, "cache", "01234", 2);
	is_left(path, "cache/", "01234", 2);
	is_left(path, "/cache", "012346", 1);
	is_left(path, "/cache/", "012346", 1);
	is_left(path, "a/f2", "013456", 1);
	is_left(path, "/a/[fg]?", "01456", 2);
	is_left(path, "*/f*", "01346", 2);
	is_left(path, "a/*/", "015", 4);
	is_left(path, "f2/g3", "0123456", 0);
	close(deep);
	close(cache);
	close(hidden);
	close(a);
	close(top);
	free(path);
}

/* A chain of directories with names of `name_size`, and a file at its end. */
static void make_deep(int top, unsigned int levels, size_t name_size,
		      const char *file)
{
	char name[NAME_MAX + 1];
	int at = dup(top);

	memset(name, 'd', name_size);
	name[name_size] = '\0';
	for (unsigned int i = 0; i < levels; i++) {
		int next = make_dir(at, name);

		close(at);
		at = next;
	}
	if (file)
		make_file(at, file, "deep");
	close(at);
}

/* nftw(3), which clears up behind us, stops at PATH_MAX; rm(1) does not. */
static void remove_deep(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) < 0)
		sysbail("cannot remove %s", path);
}

static void test_depth(void)
{
	char *path = path_of("deep"), *far = path_of("far");
	int top = top_dir("deep"), beyond = top_dir("far");
	struct seen seen = {0};

	make_deep(top, 1999, 1, "f"); /* key of 3999 bytes */
	is_int(0, scan_path(path, &seen, 2), "2000 levels");
	is_uint(1, seen.count, "the file is found");
	is_uint(3999, seen.count ? seen.sizes[0] : 0, "key of 3999 bytes");
	seen_release(&seen);

	make_deep(beyond, 40, 250, NULL); /* 10040 bytes */
	is_int(0, scan_path(far, &seen, 2), "no file lies beyond PATH_MAX");
	is_uint(0, seen.count, "nothing is found");
	seen_release(&seen);
	close(beyond);
	remove_deep(far);
	remove_deep(path);
	free(far);
	close(top);
	free(path);
}

static void test_long_key(void)
{
	char *path = path_of("long");
	int top = top_dir("long");
	char name[256];
	struct seen seen = {0};

	memset(name, 'f', sizeof(name));
	name[161] = '\0';
	make_deep(top, 15, 255, name); /* 15 * 256 + 161 = 4001 */
	is_int(-ENAMETOOLONG, scan_path(path, &seen, 2), "key of 4001 bytes");
	seen_release(&seen);
	close(top);
	free(path);
}

static void test_unreadable(void)
{
	char *path = path_of("locked");
	int top = top_dir("locked");
	struct seen seen = {.skip_return = -EACCES};
	struct stele_source source;

	make_file(top, "open", "");
	close(make_dir(top, "closed"));
	if (fchmodat(top, "closed", 0, 0) < 0)
		sysbail("cannot lock a directory");
	is_int(0, stele_source_open_directory(path, 0, 0, &(struct stele_build_opts){0},
					NULL, &source),
	       "open");
	if (geteuid() == 0 && seteuid(65534) < 0)
		sysbail("cannot become nobody");
	is_int(-EACCES, scan(&source, &seen, 2), "the sink refuses");
	ok(was_skipped(&seen, "closed", STELE_SKIP_UNREADABLE), "is told");
	seen_release(&seen);
	is_int(0, scan(&source, &seen, 2), "the sink lets it pass");
	is_uint(1, seen.count, "the rest is there");
	seen_release(&seen);
	if (getuid() == 0 && seteuid(0) < 0)
		sysbail("cannot become root again");
	stele_source_close(&source);
	fchmodat(top, "closed", 0700, 0);
	close(top);
	free(path);
}

static void test_stops(void)
{
	char *path = path_of("names");
	struct seen seen = {.entry_return = -EDOM};

	is_int(-EDOM, scan_path(path, &seen, 4), "the sink's error comes back");
	seen_release(&seen);
	seen.hold = true;
	seen.tick_return = 1;
	is_int(-ECANCELED, scan_path(path, &seen, 4), "a scan can be stopped");
	is_uint(1, seen.ticks > 0, "from the thread that scans");
	ok(seen.count < 20, "and does not go on to the end");
	seen_release(&seen);
	free(path);
	path = path_of("nowhere");
	is_int(-ENOENT, scan_path(path, &seen, 1), "no such directory");
	free(path);
	path = path_of("names/plain");
	is_int(-ENOTDIR, scan_path(path, &seen, 1), "a file is no directory");
	free(path);
}

static int open_key(const struct stele_source *source, void *reader,
		    const char *key, uint64_t size)
{
	const struct stele_source_entry entry = {
		.size = sizeof(entry), .key = key, .key_size = strlen(key),
		.data_size = size};
	union stele_value values[2];

	return source->ops.open(reader, &entry, values);
}

/* Opened, and read with a byte more than there should be, as reader.c does. */
static int take_key(const struct stele_source *source, void *reader,
		    const char *key, uint64_t size)
{
	const struct stele_source_entry entry = {.size = sizeof(entry), .data_size = size};
	int64_t ret = open_key(source, reader, key, size);
	char data[8192];

	if (ret)
		return (int)ret;
	ret = source->ops.read(reader, &entry, 0, data, size + 1);
	source->ops.close(reader);
	if (ret < 0)
		return (int)ret;
	return ret == (int64_t)size ? 0 : -ETXTBSY;
}

static void test_read(void)
{
	char *path = path_of("read");
	int top = top_dir("read");
	struct stele_source source;
	struct stele_source_entry entry = {.size = sizeof(entry), .data_size = 10};
	const struct stele_source_ops *ops = &source.ops;
	char data[16];
	void *reader;
	int fifo;

	make_file(top, "file", "0123456789");
	close(make_dir(top, "dir"));
	if (mkfifoat(top, "fifo", 0644) || symlinkat("file", top, "link") ||
	    symlinkat("dir", top, "dirlink"))
		sysbail("cannot make special files");
	fifo = openat(top, "fifo", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (write(fifo, "0123456789", 10) != 10)
		sysbail("cannot fill the fifo");
	stele_source_open_directory(path, 0, 0, &(struct stele_build_opts){0},
					NULL, &source);
	is_int(0, ops->reader_new(source.user, &reader), "a reader");
	is_int(0, open_key(&source, reader, "file", 10), "open");
	is_int(4, ops->read(reader, &entry, 0, data, 4), "read 4 bytes");
	is_int(6, ops->read(reader, &entry, 4, data + 4, 12), "read the rest");
	is_blob("0123456789", data, 10, "the bytes of the file");
	is_int(0, ops->read(reader, &entry, 10, data, 1), "end");
	ops->close(reader);
	is_int(0, take_key(&source, reader, "file", 10), "whole");
	is_int(-ETXTBSY, take_key(&source, reader, "file", 9), "grew");
	is_int(-ETXTBSY, take_key(&source, reader, "file", 11), "shrank");
	is_int(-ETXTBSY, open_key(&source, reader, "file", 1 << 20),
	       "large, and shrank: seen before it is read");
	is_int(-ENOENT, open_key(&source, reader, "gone", 1), "vanished");
	is_int(-ENOENT, open_key(&source, reader, "file/x", 1),
	       "a file took the directory's place");
	is_int(-ETXTBSY, open_key(&source, reader, "link", 10),
	       "a symlink took the file's place");
	is_int(-ETXTBSY, open_key(&source, reader, "dirlink/x", 1),
	       "a symlink took the directory's place");
	is_int(-ETXTBSY, take_key(&source, reader, "fifo", 0),
	       "a fifo took the file's place");
	is_int(-ETXTBSY, take_key(&source, reader, "fifo", 10),
	       "also one that holds as many bytes");
	is_int(10, read(fifo, data, sizeof(data)), "which nobody took");
	is_int(-ETXTBSY, take_key(&source, reader, "dir", 4096),
	       "a directory took the file's place");
	is_int(-ETXTBSY, take_key(&source, reader, "dir", 0),
	       "of an empty file, too");
	close(fifo);
	ops->reader_free(reader);
	stele_source_close(&source);
	close(top);
	free(path);
}

static size_t pread_max = SIZE_MAX; /* reads of more come back short */

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	return syscall(SYS_pread64, fd, data, size < pread_max ? size : pread_max, offset);
}

enum torn_how {
	TORN_NOT,
	TORN_WRITTEN,
	TORN_BACKDATED, /* and has its old mtime again */
};

#define TORN_SMALL 10u
#define TORN_LARGE (1u << 20)
#define TICK_US	   20000 /* of the kernel's clock, at most */

/* A file is overwritten, in its size, when `at` bytes of it were read by reads of `piece`. */
static const struct torn {
	const char *what;
	size_t size, piece, at, short_read;
	enum torn_how how;
	int wanted;
} torn[] = {
	{"several reads", TORN_SMALL, 4, TORN_SMALL, 0, TORN_NOT, 0},
	{"between two reads", TORN_SMALL, 4, 4, 0, TORN_WRITTEN, -ETXTBSY},
	{"after the last byte, before the end was seen", TORN_SMALL, 5, 10, 0, TORN_WRITTEN,
	 -ETXTBSY},
	{"its mtime as it was", TORN_SMALL, 4, 4, 0, TORN_BACKDATED, -ETXTBSY},
	{"before its only read", TORN_SMALL, 11, 0, 0, TORN_WRITTEN, 0},
	{"behind a read that came back short", TORN_SMALL, 11, 3, 3, TORN_WRITTEN,
	 -ETXTBSY},
	{"large", TORN_LARGE, 65536, TORN_LARGE, 0, TORN_NOT, 0},
	{"large, between two reads", TORN_LARGE, 65536, 65536, 0, TORN_WRITTEN, -ETXTBSY},
	{"large, before its only read", TORN_LARGE, TORN_LARGE + 1, 0, 0, TORN_WRITTEN, -ETXTBSY},
};

static void overwrite(int top, enum torn_how how)
{
	int fd = openat(top, "file", O_WRONLY | O_CLOEXEC);
	struct stat st;

	if (how == TORN_NOT) {
		close(fd);
		return;
	}
	if (fd < 0 || fstat(fd, &st) || pwrite(fd, "x", 1, 0) != 1 ||
	    (how == TORN_BACKDATED &&
	     futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim})))
		sysbail("cannot overwrite the file");
	close(fd);
}

/* As reader.c does: a byte more is asked for where the piece has room for it. */
static int read_torn(const struct stele_source_ops *ops, void *reader, int top,
		     const struct torn *t)
{
	const struct stele_source_entry entry = {.size = sizeof(entry), .data_size = t->size};
	char *data = malloc(t->piece);
	bool done = false;
	int64_t got = 1;
	size_t at = 0;

	pread_max = t->short_read ? t->short_read : SIZE_MAX;
	while (got > 0) {
		const size_t want = t->size - at < t->piece ? t->size - at + 1 : t->piece;

		if (at >= t->at && !done) {
			overwrite(top, t->how);
			done = true;
		}
		got = ops->read(reader, &entry, at, data, want);
		at += got > 0 ? (size_t)got : 0;
		if (at == t->size && got > 0 && (size_t)got < want)
			break;
	}
	pread_max = SIZE_MAX;
	free(data);
	return got < 0 ? (int)got : at == t->size ? 0 : -ETXTBSY;
}

static void test_torn(void)
{
	char *path = path_of("torn");
	int top = top_dir("torn");
	struct stele_source source;
	void *reader;

	stele_source_open_directory(path, 0, 0, &(struct stele_build_opts){0}, NULL, &source);
	is_int(0, source.ops.reader_new(source.user, &reader), "a reader");
	for (size_t i = 0; i < sizeof(torn) / sizeof(*torn); i++) {
		unlinkat(top, "file", 0);
		make_file(top, "file", "0123456789");
		resize(top, "file", torn[i].size);
		usleep(TICK_US);
		is_int(0, open_key(&source, reader, "file", torn[i].size), "open");
		is_int(torn[i].wanted, read_torn(&source.ops, reader, top, &torn[i]),
		       "overwritten: %s", torn[i].what);
		source.ops.close(reader);
	}
	source.ops.reader_free(reader);
	stele_source_close(&source);
	close(top);
	free(path);
}

/* The beginning of a second: what is done from now on has no earlier time. */
static int64_t next_second(void)
{
	const time_t now = time(NULL);

	while (time(NULL) == now)
		usleep(1000);
	return now + 1;
}

/* Which files have not changed before `since`: the first letters of their keys, sorted. */
static void is_changed(const char *path, int64_t since, const char *wanted, const char *what)
{
	char text[16] = "";
	struct seen seen = {0};
	size_t size = 0;

	is_int(0, scan_path(path, &seen, 2), "%s: is scanned", what);
	for (char c = 'a'; c <= 'z'; c++)
		for (unsigned int i = 0; i < seen.count && size < sizeof(text) - 1; i++)
			if (seen.keys[i][0] == c && seen.changed[i] >= since)
				text[size++] = c;
	is_string(wanted, text, "%s", what);
	seen_release(&seen);
}

/* A rename of a directory leaves no trace on files; what else leaves one there says nothing. */
static void test_moved(void)
{
	static const char *const names[] = {"a", "b", "c"};
	char *path = path_of("moved"), *aside = path_of("aside");
	int top = top_dir("moved"), below[3], aside_fd;
	int64_t since;

	for (int i = 0; i < 3; i++) {
		int dir = make_dir(top, names[i]);

		below[i] = make_dir(dir, "in");
		make_file(below[i], "1", "1");
		make_file(dir, "1", "1");
		close(dir);
	}
	since = next_second();
	is_changed(path, since, "", "nothing was done");
	make_file(below[0], "new", "1");
	is_changed(path, since, "a", "a directory gets a file");
	if (fchmod(below[0], 0700) || fchmodat(top, "b", 0700, 0))
		sysbail("cannot change a mode");
	is_changed(path, since, "a", "directories get a mode");
	if (renameat(top, "c/in", top, "c/on"))
		sysbail("cannot rename");
	is_changed(path, since, "ac", "one is renamed: all below it");
	since = next_second();
	is_changed(path, since, "", "that was before");
	if (renameat(top, "a", top, "d"))
		sysbail("cannot rename");
	make_file(below[1], "new", "1");
	is_changed(path, since, "bddd", "one is renamed that has more below it");
	since = next_second();
	aside_fd = make_dir(AT_FDCWD, aside);
	make_file(top, "e", "1");
	is_changed(path, since, "bbbccddde", "the top may have been another");
	close(aside_fd);
	for (int i = 0; i < 3; i++)
		close(below[i]);
	close(top);
	free(path);
	free(aside);
}

static void test_quote(void)
{
	char text[STELE_QUOTE_SIZE], long_key[1000];

	is_string("a\\x0ab\\x5c\\x27\xff",
		  stele_source_quote("a\nb\\'\xff", 6, text), "escapes");
	memset(long_key, '\n', sizeof(long_key));
	stele_source_quote(long_key, sizeof(long_key), text);
	ok(strlen(text) < STELE_QUOTE_SIZE &&
	   !strcmp(text + strlen(text) - 7, "\\x0a..."), "is cut");
}

int main(void)
{
	plan_lazy();
	umask(022); /* nobody is to read, too */
	test_names();
	test_special();
	test_exclude();
	test_depth();
	test_long_key();
	test_unreadable();
	test_stops();
	test_read();
	test_torn();
	test_moved();
	test_quote();
	return done();
}

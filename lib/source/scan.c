/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - the parallel scan of a directory
 *
 * Threads take directories from one stack: last in, first out, so that it
 * stays short. A directory is named by its path below the top and opened from
 * there, so a deep tree costs no descriptors. The sink is called under a lock
 * of its own; a scan is over when the stack is empty and nobody works.
 *
 * Renaming a directory changes no time of what lies below it: only its own ctime, and that
 * of the directory that it comes to. So it cannot have been moved later than the earlier of
 * these two says; and all below it may be what it is since then only. The second one keeps
 * this from being said of each directory that gets a file.
 */
#include "lib/source/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/workers.h"

/* A directory that was opened where symlinks are followed: none may be below itself. */
struct seen {
	struct seen *next, *above;
	dev_t dev;
	ino_t inode;
};

struct pending {
	struct pending *next;
	struct seen *above; /* that it lies in; NULL: the top, or symlinks are not followed */
	struct seen *self;  /* once it is open */
	struct stele_label_dir *dir; /* the nearest that is recorded; NULL: none */
	uint32_t level; /* 0: the top */
	int64_t moved;	/* at the latest: it, or what it lies in; seconds, or STELE_MOVED_NEVER */
	size_t size;
	char path[]; /* below the top */
};

struct scan {
	struct stele_directory *directory;
	const struct stele_source_sink *sink;
	pthread_mutex_t sink_lock; /* of the sink and the labels */
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	struct pending *stack;
	struct seen *seen; /* owned: all of them */
	unsigned int working;
	int stop; /* negative errno, or 0 */
};

/* A directory while one thread reads it. */
struct visit {
	struct scan *scan;
	const struct pending *where;
	int fd;
};

static struct pending *pending_new(const struct pending *parent,
				   const char *name)
{
	size_t name_size = strlen(name);
	size_t head = parent && parent->size ? parent->size + 1 : 0;
	struct pending *p = malloc(sizeof(*p) + head + name_size + 1);

	if (!p)
		return NULL;
	p->next = NULL;
	p->above = parent ? parent->self : NULL;
	p->self = NULL;
	p->dir = parent ? parent->dir : NULL;
	p->level = parent ? parent->level + 1 : 0;
	p->moved = parent ? parent->moved : STELE_MOVED_NEVER;
	p->size = head + name_size;
	if (head) {
		memcpy(p->path, parent->path, parent->size);
		p->path[parent->size] = '/';
	}
	memcpy(p->path + head, name, name_size + 1);
	return p;
}

static int record(struct scan *scan, struct pending *p,
		  const struct pending *parent, const char *name)
{
	int ret;

	pthread_mutex_lock(&scan->sink_lock);
	ret = stele_labels_record(&scan->directory->labels, parent->dir,
				  p->level, name, &p->dir);
	pthread_mutex_unlock(&scan->sink_lock);
	return ret;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Without a parent it is the directory itself. `turned`: the link to it, if it is one. */
static int push(struct scan *scan, const struct pending *parent,
		const char *name, int64_t turned)
{
	struct pending *p = pending_new(parent, name);
	int ret = p ? 0 : -ENOMEM;

	if (p)
		p->moved = later(p->moved, turned);
	if (p && parent)
		ret = record(scan, p, parent, name);
	if (ret) {
		free(p);
		return ret;
	}
	pthread_mutex_lock(&scan->lock);
	p->next = scan->stack;
	scan->stack = p;
	pthread_cond_signal(&scan->changed);
	pthread_mutex_unlock(&scan->lock);
	return 0;
}

/* The next directory, or NULL at the end. The caller then works. */
static struct pending *pop(struct scan *scan)
{
	struct pending *p = NULL;

	pthread_mutex_lock(&scan->lock);
	while (!scan->stop && !scan->stack && scan->working)
		pthread_cond_wait(&scan->changed, &scan->lock);
	if (!scan->stop && scan->stack) {
		p = scan->stack;
		scan->stack = p->next;
		scan->working++;
	}
	pthread_mutex_unlock(&scan->lock);
	return p;
}

/* Work on what pop() gave is over. */
static void visited(struct scan *scan, int error)
{
	pthread_mutex_lock(&scan->lock);
	scan->working--;
	if (error && !scan->stop)
		scan->stop = error;
	if (scan->stop || (!scan->stack && !scan->working))
		pthread_cond_broadcast(&scan->changed);
	pthread_mutex_unlock(&scan->lock);
}

static int stopped(struct scan *scan)
{
	int stop;

	pthread_mutex_lock(&scan->lock);
	stop = scan->stop;
	pthread_mutex_unlock(&scan->lock);
	return stop;
}

static int tell_skip(struct scan *scan, enum stele_skip_reason reason,
		     const struct pending *what, int error)
{
	int ret;

	pthread_mutex_lock(&scan->sink_lock);
	ret = scan->sink->skip(scan->sink->user, reason, what->path,
			       what->size, error);
	pthread_mutex_unlock(&scan->sink_lock);
	return ret;
}

/* What could not be read: gone, out of reach, or we have run out of something. */
static int tell_failed(struct scan *scan, const struct pending *what, int error)
{
	switch (error) {
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return error;
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
		return tell_skip(scan, STELE_SKIP_VANISHED, what, error);
	default:
		return tell_skip(scan, STELE_SKIP_UNREADABLE, what, error);
	}
}

static int tell_entry(struct scan *scan, const struct pending *what,
		      const struct statx *st)
{
	const int64_t own = later(st->stx_mtime.tv_sec, st->stx_ctime.tv_sec);
	struct stele_directory *directory = scan->directory;
	const struct stele_source_entry entry = {
		.size = sizeof(entry),
		.key = what->path,
		.key_size = what->size,
		.data_size = st->stx_size,
		.changed = later(own, what->moved),
	};
	int ret;

	if (what->size > STELE_KEY_SIZE_MAX) {
		char text[STELE_QUOTE_SIZE];

		stele_log_error(&directory->log,
				"key of %zu bytes is longer than %d: '%s'",
				what->size, STELE_KEY_SIZE_MAX,
				stele_source_quote(what->path, what->size,
						   text));
		return -ENAMETOOLONG;
	}
	pthread_mutex_lock(&scan->sink_lock);
	stele_labels_count(&directory->labels, what->dir, what->path, what->size);
	ret = scan->sink->entry(scan->sink->user, &entry);
	pthread_mutex_unlock(&scan->sink_lock);
	return ret;
}

static bool is_avoided(const struct stele_directory *directory,
		       const struct statx *st)
{
	return directory->avoid_inode != 0 &&
	       directory->avoid_inode == st->stx_ino &&
	       directory->avoid_dev ==
		       makedev(st->stx_dev_major, st->stx_dev_minor);
}

static int cycle(struct scan *scan, const struct pending *where,
		 const char *what)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(&scan->directory->log, "'%s' %s",
			stele_source_quote(where->path, where->size, text),
			what);
	return -ELOOP;
}

/* What a symlink leads to could not be looked at. */
static int tell_link(struct scan *scan, const struct pending *what, int error)
{
	if (error == -ELOOP)
		return cycle(scan, what, "is a symbolic link to itself");
	if (error == -ENOENT || error == -ENOTDIR)
		return tell_skip(scan, STELE_SKIP_SYMLINK, what, error);
	return tell_failed(scan, what, error);
}

static int stat_entry(const struct visit *visit, const char *name, int flags,
		      struct statx *st)
{
	const unsigned int wanted = STATX_TYPE | STATX_SIZE | STATX_INO | STATX_MTIME |
				    STATX_CTIME;

	return statx(visit->fd, name, flags | AT_NO_AUTOMOUNT, wanted, st) < 0 ? -errno : 0;
}

/* Something whose type only statx knows, or whose size is wanted. */
static int visit_stat(struct visit *visit, const char *name,
		      struct pending *what)
{
	struct scan *scan = visit->scan;
	int64_t turned = STELE_MOVED_NEVER;
	struct statx st;
	int ret = stat_entry(visit, name, AT_SYMLINK_NOFOLLOW, &st);

	if (ret)
		return tell_failed(scan, what, ret);
	if (S_ISLNK(st.stx_mode) && scan->directory->follow) {
		turned = st.stx_ctime.tv_sec;
		what->moved = later(what->moved, turned);
		ret = stat_entry(visit, name, 0, &st);
		if (ret)
			return tell_link(scan, what, ret);
	}
	if (S_ISDIR(st.stx_mode))
		return push(scan, visit->where, name, turned);
	if (S_ISLNK(st.stx_mode))
		return tell_skip(scan, STELE_SKIP_SYMLINK, what, 0);
	if (!S_ISREG(st.stx_mode))
		return tell_skip(scan, STELE_SKIP_SPECIAL, what, 0);
	if (is_avoided(scan->directory, &st))
		return tell_skip(scan, STELE_SKIP_TARGET, what, 0);
	return tell_entry(scan, what, &st);
}

/*
 * A slash at the end is that of a directory's name, and says no more; "./" in front is the
 * source itself, as "/" is.
 */
static bool matches(const char *pattern, const char *path, const char *name)
{
	char text[STELE_PATTERN_SIZE_MAX + 1];
	const size_t size = strlen(pattern);
	const char *from = text;

	memcpy(text, pattern, size + 1);
	if (text[size - 1] == '/')
		text[size - 1] = '\0';
	if (!strchr(text, '/'))
		return !fnmatch(text, name, 0);
	from += from[0] == '.' && from[1] == '/';
	from += from[0] == '/';
	return !fnmatch(from, path, FNM_PATHNAME);
}

static bool is_excluded(const struct stele_directory *directory, const struct pending *what,
			const char *name)
{
	const char *const *exclude = directory->exclude;

	while (exclude && *exclude)
		if (matches(*exclude++, what->path, name))
			return true;
	return false;
}

static int visit_entry(struct visit *visit, const struct dirent *entry)
{
	const char *name = entry->d_name;
	struct pending *what;
	int ret;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return 0;
	what = pending_new(visit->where, name);
	if (!what)
		return -ENOMEM;
	if (is_excluded(visit->scan->directory, what, name))
		ret = tell_skip(visit->scan, STELE_SKIP_EXCLUDED, what, 0);
	else if (entry->d_type == DT_DIR)
		ret = push(visit->scan, visit->where, name, STELE_MOVED_NEVER);
	else if (entry->d_type == DT_LNK && !visit->scan->directory->follow)
		ret = tell_skip(visit->scan, STELE_SKIP_SYMLINK, what, 0);
	else
		ret = visit_stat(visit, name, what);
	free(what);
	return ret;
}

/* Where symlinks are followed: is it above itself? */
static int meet(struct scan *scan, struct pending *where, const struct stat *st)
{
	struct seen *self;

	for (const struct seen *s = where->above; s; s = s->above)
		if (s->dev == st->st_dev && s->inode == st->st_ino)
			return cycle(scan, where, "is a symbolic link to a "
				     "directory that it lies in");
	self = malloc(sizeof(*self));
	if (!self)
		return -ENOMEM;
	*self = (struct seen){.above = where->above, .dev = st->st_dev,
			      .inode = st->st_ino};
	where->self = self;
	pthread_mutex_lock(&scan->lock);
	self->next = scan->seen;
	scan->seen = self;
	pthread_mutex_unlock(&scan->lock);
	return 0;
}

/* What is known of a directory once it is open. */
static int look(struct scan *scan, struct pending *where, int fd)
{
	struct stat st, parent;
	int64_t moved = INT64_MAX; /* for all one knows */

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!fstatat(fd, "..", &parent, AT_NO_AUTOMOUNT))
		moved = parent.st_ctim.tv_sec;
	if (moved > st.st_ctim.tv_sec)
		moved = st.st_ctim.tv_sec;
	where->moved = later(where->moved, moved);
	return scan->directory->follow ? meet(scan, where, &st) : 0;
}

static int visit_directory(struct scan *scan, struct pending *where)
{
	struct visit visit = {.scan = scan, .where = where};
	DIR *dir;
	int ret;

	visit.fd = stele_directory_open_below(scan->directory, where->path,
					      where->size,
					      O_RDONLY | O_DIRECTORY);
	if (visit.fd < 0)
		return tell_failed(scan, where, visit.fd);
	ret = look(scan, where, visit.fd);
	dir = ret ? NULL : fdopendir(visit.fd);
	if (!dir) {
		close(visit.fd);
		return ret ? ret : -ENOMEM;
	}
	while (!ret) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			if (errno)
				ret = tell_failed(scan, where, -errno);
			break;
		}
		ret = visit_entry(&visit, entry);
		if (!ret)
			ret = stopped(scan);
	}
	closedir(dir);
	return ret;
}

static int scan_work(void *user, unsigned int index)
{
	struct scan *scan = user;
	struct pending *where;
	int ret = 0;

	(void)index;
	while (!ret && (where = pop(scan))) {
		ret = visit_directory(scan, where);
		visited(scan, ret);
		free(where);
	}
	return ret;
}

static void scan_tick(void *user)
{
	struct scan *scan = user;
	int ret = scan->sink->tick(scan->sink->user);

	if (!ret)
		return;
	pthread_mutex_lock(&scan->lock);
	if (!scan->stop)
		scan->stop = -ECANCELED;
	pthread_cond_broadcast(&scan->changed);
	pthread_mutex_unlock(&scan->lock);
}

int stele_directory_scan(void *user, const struct stele_source_sink *sink)
{
	struct scan scan = {
		.directory = user,
		.sink = sink,
	};
	int ret;

	pthread_mutex_init(&scan.lock, NULL);
	pthread_mutex_init(&scan.sink_lock, NULL);
	pthread_cond_init(&scan.changed, NULL);
	ret = push(&scan, NULL, "", scan.directory->turned);
	if (!ret)
		ret = stele_workers_run("stele-scan", sink->jobs, scan_work,
					scan_tick, &scan);
	if (!ret)
		ret = scan.stop;
	while (scan.stack) {
		struct pending *p = scan.stack;

		scan.stack = p->next;
		free(p);
	}
	while (scan.seen) {
		struct seen *s = scan.seen;

		scan.seen = s->next;
		free(s);
	}
	pthread_cond_destroy(&scan.changed);
	pthread_mutex_destroy(&scan.sink_lock);
	pthread_mutex_destroy(&scan.lock);
	return ret;
}

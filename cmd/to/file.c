/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - files of an export, and the names of shards
 */
#include "to/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "output.h"
#include "to/environment.h"

static const char *reason(int fd, int error)
{
	if (error == -EEXIST)
		return "it exists (use --force to replace it)";
	return output_why(fd, error);
}

/* What could not be done with the file `name`. */
static void complain(const char *what, const char *name, int error)
{
	const int dir = output_directory(name);

	cmd_message("cannot %s '%s': %s", what, name, reason(dir, error));
	output_hint_place(dir, error, "place");
	if (dir >= 0)
		close(dir);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return: owned; NULL: no memory. */
static char *directory_of(const char *path)
{
	const size_t size = (size_t)(base_of(path) - path);

	return size ? strndup(path, size) : strdup(".");
}

/* ---- names of shards --------------------------------------------------------- */

/* Around its number. */
struct pattern {
	const char *number; /* where the '%' is */
	const char *rest;
	int width;
};

static bool parse_pattern(const char *path, struct pattern *out)
{
	const char *at = strchr(path, '%');

	*out = (struct pattern){.number = at, .width = 1};
	if (!at || strchr(at, '/'))
		return false;
	if (at[1] == '0' && at[2] >= '1' && at[2] <= '9') {
		out->width = at[2] - '0';
		at += 2;
	}
	out->rest = at + 2;
	return at[1] == 'd' && !strchr(out->rest, '%');
}

const char *to_file_pattern(const char *path)
{
	struct pattern pattern;

	return parse_pattern(path, &pattern) ?
		       NULL : "a name with one %d or %0Nd, such as out-%06d.tar";
}

static char *shard_name(const char *path, uint64_t number)
{
	struct pattern p;
	char *name;

	parse_pattern(path, &p);
	return asprintf(&name, "%.*s%0*" PRIu64 "%s", (int)(p.number - path), path, p.width,
			number, p.rest) < 0 ? NULL : name;
}

char *to_file_names(const struct to_file *file, uint64_t count)
{
	struct pattern p;
	char *names;

	if (!file->shard_size)
		return strdup(file->path);
	if (count < 2)
		return shard_name(file->path, 0);
	parse_pattern(file->path, &p);
	return asprintf(&names, "%.*s{%0*d..%0*" PRIu64 "}%s", (int)(p.number - file->path),
			file->path, p.width, 0, p.width, count - 1, p.rest) < 0 ? NULL : names;
}

/* Is this the name of a shard? */
static bool is_shard(const char *path, const char *name, uint64_t *number)
{
	const char *base = base_of(path);
	struct pattern p;
	size_t before;
	char *wanted;
	bool same;

	parse_pattern(path, &p);
	before = (size_t)(p.number - base);
	if (strncmp(name, base, before) != 0 || !isdigit((unsigned char)name[before]))
		return false;
	errno = 0;
	*number = strtoull(name + before, NULL, 10);
	wanted = errno ? NULL : shard_name(base, *number);
	same = wanted && !strcmp(wanted, name);
	free(wanted);
	return same;
}

/* Shards that are there. */
struct present {
	uint64_t count, first, last;
};

/* Those from `from` on; with `spare` none may hold an image. Return: 0; negative errno (said). */
static int find_shards(const char *path, uint64_t from, bool spare, struct present *out)
{
	char *name = directory_of(path);
	DIR *dir = name ? opendir(name) : NULL;
	uint64_t number;
	int error = 0;

	*out = (struct present){.first = UINT64_MAX};
	free(name);
	for (struct dirent *entry; !error && dir && (entry = readdir(dir));) {
		if (!is_shard(path, entry->d_name, &number) || number < from)
			continue;
		name = spare ? shard_name(path, number) : NULL;
		error = name ? output_spare("replace", name) : spare ? -ENOMEM : 0;
		free(name);
		out->count++;
		out->first = number < out->first ? number : out->first;
		out->last = number > out->last ? number : out->last;
	}
	if (dir)
		closedir(dir);
	return error;
}

/* Of what --force replaces, shards from `from` on are another export's. */
static void tell_left(const struct to_file *file, uint64_t from)
{
	struct present left = {0};
	char *first, *last;

	if (!file->shard_size || !file->replace)
		return;
	find_shards(file->path, from, false, &left);
	if (!left.count)
		return;
	first = shard_name(file->path, left.first);
	last = shard_name(file->path, left.last);
	if (first && last && left.count == 1)
		cmd_message("'%s' is left from before, and is no part of this export", first);
	else if (first && last)
		cmd_message("%" PRIu64 " shards, '%s' to '%s', are left from before, and are no "
			    "part of this export", left.count, first, last);
	cmd_hint("remove what is left: a pattern such as '*' would take it, too");
	free(first);
	free(last);
}

/* ---- files ------------------------------------------------------------------- */

/* Renaming over a device, a fifo or a symlink is never what was meant. */
static bool is_strange(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Whoever has an environment open would go on with a file that has no name any more. */
static int enter(struct to_file *file, struct environment *env)
{
	const int error = environment_enter(env, file->name);

	if (!error)
		return 0;
	file->said = true;
	cmd_message("cannot replace '%s': %s", file->name,
		    error == -EBUSY ? "a process has that environment open" :
				      "cannot tell whether a process has that environment open");
	cmd_hint(error == -EBUSY ? "export to another FILE, or again once nobody uses it" :
				   "run it as a user who may write to the lock file beside it");
	return error;
}

/* Before all the work is done. */
static int check_environment(struct to_file *file)
{
	struct environment env;
	const int error = enter(file, &env);

	if (!error)
		environment_leave(&env);
	return error;
}

static int create(struct to_file *file)
{
	const char *base = base_of(file->name);
	char *name = directory_of(file->name);
	int dir = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int error = !name ? -ENOMEM : dir < 0 ? -errno : 0;

	free(name);
	tree_init(&file->tree, dir);
	if (!error && tree_refusal(base, strlen(base)))
		error = -EISDIR;
	if (!error)
		error = tree_part_create(&file->tree, base,
					 file->replace ? TREE_REPLACE : TREE_LOOK, &file->part);
	if (dir >= 0)
		close(dir);
	if (error)
		tree_release(&file->tree);
	file->fd = file->part.fd;
	return error;
}

static int open_file(struct to_file *file)
{
	int error = 0;

	file->name = file->shard_size ? shard_name(file->path, file->number) :
					strdup(file->path);
	/* First what no redirection may overwrite either. */
	if (file->name && output_spare("replace", file->name)) {
		error = -EEXIST;
	} else if (file->name && is_strange(file->name)) {
		cmd_message("'%s' is not a regular file", file->name);
		cmd_hint("give the archive a name in a directory, or export to '-' and redirect "
			 "the output; 'stele extract' writes a directory of files");
		error = -EINVAL;
	} else if (file->name && file->lmdb && file->replace) {
		error = check_environment(file);
	}
	if (!error) {
		error = file->name ? create(file) : -ENOMEM;
		if (error == -ENOENT)
			cmd_no_directory(file->path);
		else if (error)
			complain("create", file->name ? file->name : file->path, error);
	}
	if (!error)
		return 0;
	file->said = true;
	free(file->name);
	file->name = NULL;
	return error;
}

int to_file_open(struct to_file *file)
{
	struct present there = {0};
	char *name;
	int error;

	if (!strcmp(file->path, "-")) {
		file->fd = STDOUT_FILENO;
		if (!isatty(STDOUT_FILENO))
			return 0;
		cmd_message("not writing an archive to a terminal");
		return -EINVAL;
	}
	error = file->shard_size ? find_shards(file->path, 0, true, &there) : 0;
	if (error)
		return error;
	if (file->replace || !there.count)
		return open_file(file);
	name = shard_name(file->path, there.first);
	complain("create", name ? name : file->path, -EEXIST);
	free(name);
	return -EEXIST;
}

static int keep_environment(struct to_file *file)
{
	struct environment env;
	int error = enter(file, &env);

	if (!error)
		error = environment_renew(&env);
	if (error)
		tree_part_drop(&file->part);
	else
		error = tree_part_keep(&file->part);
	environment_leave(&env);
	return error;
}

/*
 * Who may read what is replaced, and nobody else, may read the new file. The owner comes first: a
 * change of it takes away bits of the mode. Where it cannot be changed, the group is another one.
 */
static int adopt(const struct to_file *file)
{
	struct stat was;
	mode_t mode;

	if (!file->replace || lstat(file->name, &was) < 0 || !S_ISREG(was.st_mode))
		return 0;
	mode = was.st_mode & 0777;
	if (fchown(file->fd, was.st_uid, was.st_gid) < 0)
		mode &= ~(mode_t)S_IRWXG;
	return fchmod(file->fd, mode) < 0 ? -errno : 0;
}

/* The name only stands for bytes that would survive a crash. */
static int keep(struct to_file *file)
{
	int error = adopt(file);

	if (!error && fsync(file->fd) < 0)
		error = -errno;

	if (error)
		tree_part_drop(&file->part);
	else if (file->lmdb)
		error = keep_environment(file);
	else
		error = tree_part_keep(&file->part);
	tree_release(&file->tree);
	if (error)
		to_file_complain(file, error);
	file->said |= error != 0;
	free(file->name);
	file->name = NULL;
	return error;
}

int to_file_next(struct to_file *file)
{
	int error = keep(file);

	if (error)
		return error;
	file->number++;
	return open_file(file);
}

int to_file_keep(struct to_file *file)
{
	int error = file->name ? keep(file) : 0;

	if (!error)
		tell_left(file, file->number + 1);
	return error;
}

void to_file_drop(struct to_file *file)
{
	char *names = file->number ? to_file_names(file, file->number) : NULL;

	if (file->name) {
		tree_part_drop(&file->part);
		tree_release(&file->tree);
	}
	free(file->name);
	file->name = NULL;
	if (!names)
		return;
	cmd_message("'%s': complete, and stays", names);
	tell_left(file, file->number);
	free(names);
}

void to_file_complain(const struct to_file *file, int error)
{
	if (file->said)
		return;
	complain("write", file->name ? file->name : file->path, error);
}

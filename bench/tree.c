/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - the peer that everybody uses: one file for each sample
 *
 *	tree [-t THREADS] [-s SECONDS] [-r SEED] DESCRIPTION DIR
 *
 * open, fstat, read, close, through the page cache, as an ImageFolder does it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/content.h"
#include "bench/race.h"

struct tree {
	int root;
	uint64_t size_max;
};

static int64_t read_whole(int fd, const struct tree *tree, char *buffer)
{
	struct stat st;
	int64_t done = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > tree->size_max)
		return -EFBIG;
	while (done < st.st_size) {
		ssize_t got = read(fd, buffer + done, (size_t)(st.st_size - done));

		if (got <= 0)
			return got < 0 ? -errno : -ENODATA;
		done += got;
	}
	return done;
}

static int64_t tree_read(void *context, void *own, uint64_t i, void *buffer)
{
	const struct tree *tree = context;
	char path[CONTENT_PATH_SIZE];
	int64_t ret;
	int fd;

	(void)own;
	content_path(i, path);
	fd = openat(tree->root, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read_whole(fd, tree, buffer);
	close(fd);
	return ret;
}

int main(int argc, char **argv)
{
	struct race race = {.read = tree_read};
	struct content content;
	struct tree tree;

	race_options(argc, argv, "DESCRIPTION DIR", &race);
	if (argc - optind != 2)
		errx(2, "wants a description and a directory");
	content_parse(argv[optind], &content);
	tree.root = open(argv[optind + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree.root < 0)
		err(1, "cannot open '%s'", argv[optind + 1]);
	tree.size_max = content_size_max(&content);
	race.buffer_size = tree.size_max + 8;
	race.count = content.count;
	race.context = &tree;
	race_run(&race);
	close(tree.root);
	return 0;
}

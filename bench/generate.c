/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - writes a set: as a tree of files, or as one archive
 *
 *	generate [-t THREADS] DESCRIPTION tree DIR
 *	generate DESCRIPTION tar FILE
 *
 * A tree is written by several threads, a directory at a time each, so that files of one
 * directory lie together, as copying would have put them. An archive is a plain tar, by one.
 * All is on the device when it ends.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/content.h"
#include "bench/packing.h"
#include "bench/race.h"

#define THREADS_MAX 64u

struct job {
	const struct content *content;
	int root;
	uint64_t size_max;
	_Atomic uint64_t next; /* directory */
};

static void write_all(int fd, const char *data, uint64_t size, const char *path)
{
	while (size > 0) {
		ssize_t done = write(fd, data, size);

		if (done < 0)
			err(1, "cannot write '%s'", path);
		data += done;
		size -= (uint64_t)done;
	}
}

static void write_sample(const struct job *job, uint64_t i, char *buffer)
{
	const uint64_t size = content_size(job->content, i);
	char path[CONTENT_PATH_SIZE];
	int fd;

	content_path(i, path);
	fd = openat(job->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		err(1, "cannot create '%s'", path);
	content_fill(job->content, i, buffer, size);
	write_all(fd, buffer, size, path);
	close(fd);
}

static void *tree_main(void *arg)
{
	struct job *job = arg;
	char *buffer = race_memory(job->size_max + 8);
	uint64_t folder;

	while ((folder = atomic_fetch_add(&job->next, 1)) * CONTENT_FOLDER < job->content->count) {
		const uint64_t first = folder * CONTENT_FOLDER;
		char path[CONTENT_PATH_SIZE];

		content_path(first, path);
		*strchr(path, '/') = 0;
		if (mkdirat(job->root, path, 0755) < 0 && errno != EEXIST)
			err(1, "cannot create '%s'", path);
		for (uint64_t i = first; i < first + CONTENT_FOLDER && i < job->content->count; i++)
			write_sample(job, i, buffer);
	}
	free(buffer);
	return NULL;
}

static void write_tree(struct job *job, const char *path, unsigned int threads)
{
	pthread_t thread[THREADS_MAX];

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		err(1, "cannot create '%s'", path);
	job->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (job->root < 0)
		err(1, "cannot open '%s'", path);
	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, tree_main, job))
			errx(1, "cannot start a thread");
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (syncfs(job->root) < 0)
		err(1, "cannot sync '%s'", path);
	close(job->root);
}

static void write_tar(const struct job *job, const char *path)
{
	char *buffer = race_memory(job->size_max + 1024);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		err(1, "cannot create '%s'", path);
	for (uint64_t i = 0; i < job->content->count; i++) {
		const uint64_t size = content_size(job->content, i);
		const uint64_t whole = packing_round(size);

		packing_header(i, size, buffer);
		content_fill(job->content, i, buffer + PACKING_BLOCK, size);
		memset(buffer + PACKING_BLOCK + size, 0, whole - size);
		write_all(fd, buffer, PACKING_BLOCK + whole, path);
	}
	memset(buffer, 0, 1024);
	write_all(fd, buffer, 1024, path);
	if (fsync(fd) < 0)
		err(1, "cannot sync '%s'", path);
	close(fd);
	free(buffer);
}

int main(int argc, char **argv)
{
	struct content content;
	struct race options = {0};
	struct job job = {.content = &content};

	race_options(argc, argv, "DESCRIPTION tree|tar PATH", &options);
	if (argc - optind != 3)
		errx(2, "wants a description, 'tree' or 'tar', and a path");
	content_parse(argv[optind], &content);
	job.size_max = content_size_max(&content);
	if (strcmp(argv[optind + 1], "tree") == 0)
		write_tree(&job, argv[optind + 2],
			   options.threads > THREADS_MAX ? THREADS_MAX : options.threads);
	else if (strcmp(argv[optind + 1], "tar") == 0)
		write_tar(&job, argv[optind + 2]);
	else
		errx(2, "neither tree nor tar: '%s'", argv[optind + 1]);
	return 0;
}

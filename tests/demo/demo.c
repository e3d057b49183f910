/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo.c - reads a snapshot and its source, for demo.sh
 *
 *	demo compare TARGET SOURCE	every sample against its file, byte by byte
 *	demo stele TARGET		time a pass through the reader
 *	demo files TARGET SOURCE	time a pass through the filesystem
 *
 * One thread, each sample once, in one and the same random order. A pass
 * prints "samples bytes seconds device-reads" on stdout. Only stele.h is used,
 * so this shows too how a program reads.
 */
#include "stele.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64

struct pass {
	struct stele_dataset *ds;
	int source;	/* directory, or -1 */
	uint64_t *ids;	/* in random order */
	char **paths;	/* by id; only for the files pass */
	char *buffer;
	size_t buffer_size;
	uint64_t count, samples, bytes, reads;
};

static void die(int error, const char *what)
{
	fprintf(stderr, "demo: %s: %s\n", what, stele_strerror(error));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Fisher-Yates; the seed is fixed, so that both passes take one order. */
static void shuffle(struct pass *pass)
{
	uint64_t state = 88172645463325252, other;

	pass->ids = calloc(pass->count + 1, sizeof(*pass->ids));
	if (!pass->ids)
		die(-ENOMEM, "ids");
	for (uint64_t i = 0; i < pass->count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		other = state % (i + 1);
		pass->ids[i] = pass->ids[other];
		pass->ids[other] = i;
	}
}

static void grow(struct pass *pass, size_t size)
{
	if (size <= pass->buffer_size)
		return;
	free(pass->buffer);
	pass->buffer = malloc(size);
	pass->buffer_size = size;
	if (!pass->buffer)
		die(-ENOMEM, "buffer");
}

/* A whole file into the buffer, as a loader would. Return: its size. */
static size_t slurp(struct pass *pass, const char *path)
{
	int fd = openat(pass->source, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t done = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(-errno, path);
	grow(pass, (size_t)st.st_size + 1);
	while ((n = read(fd, pass->buffer + done, pass->buffer_size - done)) > 0)
		done += (size_t)n;
	if (n < 0)
		die(-errno, path);
	close(fd);
	return done;
}

static void compare(struct pass *pass, const struct stele_sample *sample)
{
	char path[STELE_KEY_SIZE_MAX + 1];

	memcpy(path, sample->key, sample->key_size);
	path[sample->key_size] = '\0';
	if (slurp(pass, path) == sample->size &&
	    (!sample->size ||
	     memcmp(pass->buffer, sample->data, sample->size) == 0))
		return;
	fprintf(stderr, "demo: '%s' differs from its source\n", path);
	exit(1);
}

static void use(struct pass *pass, struct stele_reader *reader,
		struct stele_sample *sample)
{
	if (sample->status)
		die(sample->status, "a sample");
	if (pass->source >= 0)
		compare(pass, sample);
	pass->samples++;
	pass->bytes += sample->size;
	stele_reader_release(reader, sample);
}

static void read_stele(struct pass *pass)
{
	struct stele_sample samples[BATCH];
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	uint64_t next = 0, left;
	int got = stele_reader_open(pass->ds, NULL, &reader);

	if (got < 0)
		die(got, "reader");
	while (next < pass->count || stele_reader_in_flight(reader)) {
		left = pass->count - next;
		got = !left ? 0
			    : stele_reader_submit(reader, pass->ids + next,
						  NULL,
						  left < BATCH ? (unsigned int)left
							       : BATCH);
		if (got < 0)
			die(got, "submit");
		next += (uint64_t)got;
		got = stele_reader_collect(reader, samples, BATCH, 1);
		if (got < 0)
			die(got, "collect");
		for (int i = 0; i < got; i++)
			use(pass, reader, &samples[i]);
	}
	stele_reader_stats(reader, &stats);
	pass->reads = stats.device_reads;
	stele_reader_close(reader);
}

static void list_paths(struct pass *pass)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int got = stele_cursor_open(pass->ds, NULL, 0, &cursor);

	pass->paths = calloc(pass->count + 1, sizeof(*pass->paths));
	if (got < 0 || !pass->paths)
		die(got < 0 ? got : -ENOMEM, "keys");
	while ((got = stele_cursor_next(cursor, &entry)) > 0)
		pass->paths[entry.id] = strndup(entry.key, entry.key_size);
	if (got < 0)
		die(got, "keys");
	stele_cursor_close(cursor);
}

static void read_files(struct pass *pass)
{
	for (uint64_t i = 0; i < pass->count; i++) {
		pass->bytes += slurp(pass, pass->paths[pass->ids[i]]);
		pass->samples++;
	}
}

static void release(struct pass *pass)
{
	for (uint64_t i = 0; pass->paths && i < pass->count; i++)
		free(pass->paths[i]);
	free(pass->paths);
	free(pass->ids);
	free(pass->buffer);
	stele_dataset_close(pass->ds);
}

int main(int argc, char **argv)
{
	struct pass pass = {.source = -1};
	double began;
	int error;

	if (argc < 3)
		return 2;
	error = stele_dataset_open(argv[2], NULL, &pass.ds);
	if (error)
		die(error, argv[2]);
	if (argc > 3) {
		pass.source = open(argv[3], O_RDONLY | O_DIRECTORY);
		if (pass.source < 0)
			die(-errno, argv[3]);
	}
	pass.count = stele_dataset_count(pass.ds);
	shuffle(&pass);
	if (strcmp(argv[1], "files") == 0)
		list_paths(&pass);
	began = now();
	if (strcmp(argv[1], "files") == 0)
		read_files(&pass);
	else
		read_stele(&pass);
	printf("%" PRIu64 " %" PRIu64 " %.6f %" PRIu64 "\n", pass.samples,
	       pass.bytes, now() - began, pass.reads);
	release(&pass);
	return pass.samples == pass.count ? 0 : 1;
}

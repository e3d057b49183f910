/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iolog.c - the device reads of a run, as a log that fio replays
 *
 * The format is that of fio(1), "Trace file format v3". Times are microseconds since the
 * first read, as fio itself writes them. fio splits lines at white space and takes 256 bytes
 * of a name, without any way to quote it.
 */
#include "iolog.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "output.h"

#define IOLOG_MARK    "fio version 3 iolog"
#define ROOM_FIRST    65536u
#define FIO_NAME_SIZE 256u

struct iolog {
	const struct bench_result *result;
	char path[PATH_MAX]; /* of the target's file */
};

void bench_reads_add(void *user, uint64_t time, uint64_t offset, uint32_t size)
{
	struct bench_reads *list = user;

	if (list->count == list->room && !list->error) {
		size_t room = list->room ? 2 * list->room : ROOM_FIRST;
		void *more = reallocarray(list->reads, room, sizeof(*list->reads));

		if (more) {
			list->reads = more;
			list->room = room;
		}
	}
	if (list->count < list->room)
		list->reads[list->count++] = (struct bench_read){time, offset, size};
	else
		list->error = -ENOMEM;
}

static bool is_one_word(const char *path)
{
	for (const char *c = path; *c; c++)
		if (isspace((unsigned char)*c))
			return false;
	return strlen(path) < FIO_NAME_SIZE;
}

static int find_path(const struct bench_config *config, char path[PATH_MAX])
{
	char file[PATH_MAX];

	if (!bench_machine_file(config->target, file) || !realpath(file, path)) {
		cmd_message("cannot write '%s': '%s' is no file or device that fio can read",
			    config->iolog, config->target);
		return -EOPNOTSUPP;
	}
	if (!is_one_word(path)) {
		cmd_message("cannot write '%s': '%s' is no name for fio, which takes neither "
			    "white space nor more than %u bytes",
			    config->iolog, path, FIO_NAME_SIZE - 1);
		return -EOPNOTSUPP;
	}
	return 0;
}

int bench_iolog_check(const struct bench_config *config)
{
	char path[PATH_MAX];
	int err = find_path(config, path);

	return err ? err : output_check(config->iolog, IOLOG_MARK);
}

/* The earliest of the reads that are left, of readers that each have theirs in order. */
static const struct bench_read *next_read(const struct bench_result *result, size_t *done)
{
	const struct bench_read *first = NULL;
	uint32_t of = 0;

	for (uint32_t i = 0; i < result->part_count; i++) {
		const struct bench_reads *list = &result->parts[i].reads;

		if (done[i] == list->count ||
		    (first && list->reads[done[i]].time >= first->time))
			continue;
		first = &list->reads[done[i]];
		of = i;
	}
	if (first)
		done[of]++;
	return first;
}

static bool put_reads(FILE *to, const struct iolog *log, size_t *done)
{
	const struct bench_read *read;
	uint64_t begin = 0, last = 0;
	bool any = false;

	while ((read = next_read(log->result, done))) {
		if (!any)
			begin = read->time;
		any = true;
		last = (read->time - begin) / 1000;
		fprintf(to, "%" PRIu64 " %s read %" PRIu64 " %" PRIu32 "\n", last, log->path,
			read->offset, read->size);
	}
	return fprintf(to, "%" PRIu64 " %s close\n", last, log->path) >= 0 && !ferror(to);
}

static bool put_log(FILE *to, const void *what)
{
	const struct iolog *log = what;
	size_t *done = calloc(log->result->part_count, sizeof(*done));
	bool written;

	if (!done)
		return false;
	fprintf(to, IOLOG_MARK "\n0 %s add\n0 %s open\n", log->path, log->path);
	written = put_reads(to, log, done);
	free(done);
	return written;
}

int bench_iolog_write(const struct bench_config *config, const struct bench_result *result)
{
	struct iolog log = {.result = result};
	int err = find_path(config, log.path);

	for (uint32_t i = 0; !err && i < result->part_count; i++)
		err = result->parts[i].reads.error;
	if (err == -ENOMEM)
		cmd_error(err, "cannot write '%s'", config->iolog);
	return err ? err : output_write(config->iolog, put_log, &log);
}

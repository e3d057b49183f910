/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.c - the peers that hold all samples in one file, a tar
 *
 *	packed [-t THREADS] [-s SECONDS] [-r SEED] DESCRIPTION FILE
 *	packed -r 0 [-s SECONDS] DESCRIPTION FILE
 *
 * With a seed: pread(2) of each sample by an index in memory, through the page cache without
 * read-ahead. Without one: as WebDataset reads, from the beginning on, header by header.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/content.h"
#include "bench/packing.h"
#include "bench/race.h"

#define STREAM_SIZE (1u << 20) /* of one read(2) of the stream */

struct packed {
	const struct content *content;
	int fd;
	uint64_t *offsets;
	/* The stream: bytes begin ... end of it are in memory. */
	char *stream;
	size_t begin, end;
};

static int64_t pread_all(int fd, char *buffer, uint64_t size, uint64_t offset)
{
	uint64_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, buffer + done, size - done, (off_t)(offset + done));

		if (got <= 0)
			return got < 0 ? -errno : -ENODATA;
		done += (uint64_t)got;
	}
	return (int64_t)done;
}

static int64_t packed_read(void *context, void *own, uint64_t i, void *buffer)
{
	const struct packed *p = context;

	(void)own;
	return pread_all(p->fd, buffer, content_size(p->content, i), p->offsets[i]);
}

/* The next `size` bytes of the stream. */
static int64_t stream_take(struct packed *p, char *buffer, uint64_t size)
{
	uint64_t done = 0;

	while (done < size) {
		uint64_t part = p->end - p->begin;

		if (part == 0) {
			ssize_t got = read(p->fd, p->stream, STREAM_SIZE);

			if (got <= 0)
				return got < 0 ? -errno : -ENODATA;
			p->begin = 0;
			p->end = (size_t)got;
			continue;
		}
		part = part < size - done ? part : size - done;
		memcpy(buffer + done, p->stream + p->begin, part);
		p->begin += part;
		done += part;
	}
	return (int64_t)done;
}

static int64_t stream_read(void *context, void *own, uint64_t i, void *buffer)
{
	struct packed *p = context;
	char header[PACKING_BLOCK];
	uint64_t size;
	int64_t ret = stream_take(p, header, sizeof(header));

	(void)own;
	if (ret < 0)
		return ret;
	size = strtoull(header + 124, NULL, 8);
	if (size != content_size(p->content, i))
		return -EBADMSG;
	ret = stream_take(p, buffer, packing_round(size));
	return ret < 0 ? ret : (int64_t)size;
}

static void make_index(struct packed *p)
{
	uint64_t at = 0;

	p->offsets = race_memory(p->content->count * sizeof(*p->offsets));
	for (uint64_t i = 0; i < p->content->count; i++) {
		p->offsets[i] = at + PACKING_BLOCK;
		at = p->offsets[i] + packing_round(content_size(p->content, i));
	}
}

int main(int argc, char **argv)
{
	struct race race = {.read = packed_read};
	struct content content;
	struct packed p = {.content = &content};

	race_options(argc, argv, "DESCRIPTION FILE", &race);
	if (argc - optind != 2 || (race.seed == 0 && race.threads != 1))
		errx(2, "wants a description and a file; in sequence, one thread");
	content_parse(argv[optind], &content);
	p.fd = open(argv[optind + 1], O_RDONLY | O_CLOEXEC);
	if (p.fd < 0)
		err(1, "cannot open '%s'", argv[optind + 1]);
	make_index(&p);
	p.stream = race_memory(STREAM_SIZE);
	if (race.seed == 0)
		race.read = stream_read;
	posix_fadvise(p.fd, 0, 0, race.seed ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
	race.buffer_size = packing_round(content_size_max(&content)) + 8;
	race.count = content.count;
	race.context = &p;
	race_run(&race);
	free(p.offsets);
	free(p.stream);
	close(p.fd);
	return 0;
}

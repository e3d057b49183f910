/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - a reader that goes on while a writer makes the next snapshot
 *
 *	follow OLD SOURCE GO NEW SOURCE
 *
 * Reads samples of target OLD, all over, and compares each with its file below
 * SOURCE, until the file GO is there; then opens NEW and prints the
 * nanosecond at which its first sample had come. In the end all of both has
 * been compared once more. Exit status 1 on the first wrong byte.
 *
 *	follow OLD SOURCE
 *
 * Reads likewise until OLD is gone, and prints how many samples that were. Exit
 * status 0 when it said so itself (ESTALE), 1 on any other error or wrong byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stele.h"

static void print_line(void *user, enum stele_log_level level, const char *line)
{
	(void)user;
	if (level == STELE_LOG_ERROR)
		fprintf(stderr, "follow: %s\n", line);
}

static struct stele_dataset *open_target(const char *target)
{
	struct stele_dataset *ds;
	int ret = stele_dataset_open(
		target, &STELE_OPTS(stele_open_opts, .log = print_line), &ds);

	if (ret) {
		fprintf(stderr, "follow: '%s': %s\n", target,
			stele_strerror(ret));
		exit(1);
	}
	return ds;
}

/* Exits when it is another one. */
static void compare(const struct stele_sample *sample, const char *source)
{
	char path[8192], *data = malloc(sample->size + 1);
	ssize_t size = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%.*s", source, (int)sample->key_size,
		 sample->key);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && data)
		size = read(fd, data, sample->size + 1);
	if (size < 0 || (uint64_t)size != sample->size ||
	    memcmp(data, sample->data, sample->size) != 0) {
		fprintf(stderr, "follow: '%s' has other bytes\n", path);
		exit(1);
	}
	close(fd);
	free(data);
}

static uint64_t next_id(uint64_t *state, const struct stele_dataset *ds)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % stele_dataset_count(ds);
}

static int read_until_gone(struct stele_dataset *ds, const char *source)
{
	uint64_t state = (uint64_t)getpid(), count = 0;
	struct stele_sample sample;
	int ret;

	while (!(ret = stele_dataset_read(ds, next_id(&state, ds), &sample))) {
		compare(&sample, source);
		stele_sample_release(&sample);
		count++;
	}
	if (ret != -ESTALE)
		fprintf(stderr, "follow: %s\n", stele_strerror(ret));
	printf("%" PRIu64 "\n", count);
	stele_dataset_close(ds);
	return ret != -ESTALE;
}

static void read_one(struct stele_dataset *ds, uint64_t id, const char *source)
{
	struct stele_sample sample;
	int ret = stele_dataset_read(ds, id, &sample);

	if (ret) {
		fprintf(stderr, "follow: sample %" PRIu64 ": %s\n", id,
			stele_strerror(ret));
		exit(1);
	}
	compare(&sample, source);
	stele_sample_release(&sample);
}

static void read_all(struct stele_dataset *ds, const char *source)
{
	for (uint64_t id = 0; id < stele_dataset_count(ds); id++)
		read_one(ds, id, source);
}

int main(int argc, char **argv)
{
	struct stele_dataset *old, *new;
	struct timespec now;
	uint64_t state = (uint64_t)getpid(), count = 0;

	if (argc != 3 && argc != 6)
		return 2;
	old = open_target(argv[1]);
	printf("reads\n");
	fflush(stdout);
	if (argc == 3)
		return read_until_gone(old, argv[2]);
	while (access(argv[3], F_OK)) {
		read_one(old, next_id(&state, old), argv[2]);
		count++;
		usleep(2000);
	}
	new = open_target(argv[4]);
	read_one(new, stele_dataset_count(new) - 1, argv[5]);
	clock_gettime(CLOCK_REALTIME, &now);
	read_all(new, argv[5]);
	read_all(old, argv[2]);
	printf("%lld%09ld %" PRIu64 "\n", (long long)now.tv_sec, now.tv_nsec,
	       count);
	stele_dataset_close(new);
	stele_dataset_close(old);
	return 0;
}

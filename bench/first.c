/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first.c - from exec to the first sample, and what an open dataset costs
 *
 *	first TARGET STRIDE PRESENT RUNS [OTHER]
 *
 * Starts itself RUNS times, each with all caches dropped before (which takes root; else the
 * output says "cold":false) and another one of the samples k * STRIDE, k < PRESENT. This program
 * and its libraries stay in memory, as the parent has them locked. With an OTHER image, that one
 * is opened in between, so that all but the target is warm: what the loader and libraries look
 * for in the system's files. Each run gives one line of JSON: the times since exec, the memory
 * that the open dataset takes (bytes of the heap; resident anonymous pages), and what a look-up
 * takes.
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/content.h"
#include "bench/race.h"
#include "stele.h"

#define LOOKUPS 2000000u

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "cannot %s: %s", what, stele_strerror(ret));
}

/* Bytes of anonymous memory that are resident, exactly: statm may lag. */
static uint64_t resident(void)
{
	char line[256];
	uint64_t kib = 0;
	FILE *in = fopen("/proc/self/smaps_rollup", "re");

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "Anonymous: %" SCNu64, &kib) == 1)
			break;
	if (kib == 0)
		errx(1, "cannot read /proc/self/smaps_rollup");
	fclose(in);
	return kib << 10;
}

static uint64_t heap_size(void)
{
	const struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

static double lookup_ns(const struct stele_dataset *ds)
{
	const uint64_t count = stele_dataset_count(ds), start = race_now();
	struct stele_extent extent = {.size = sizeof(extent)};
	uint64_t sum = 0, x = 1;

	for (unsigned int i = 0; i < LOOKUPS; i++) {
		x = content_mix(x);
		if (stele_dataset_locate(ds, x % count, &extent))
			errx(1, "cannot locate a sample");
		sum += extent.offset;
	}
	if (sum == 1) /* so that nothing is left out */
		errx(1, "impossible");
	return (double)(race_now() - start) / LOOKUPS;
}

static int child(char **argv)
{
	const uint64_t exec = strtoull(argv[4], NULL, 10), id = strtoull(argv[3], NULL, 10);
	const uint64_t start = race_now();
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_sample sample;
	struct stele_dataset *ds;
	uint64_t heap_before, before, begin, opened, between, read;

	resident(); /* once for what stdio allocates */
	heap_before = heap_size();
	before = resident();
	begin = race_now();
	check(stele_dataset_open(argv[2], NULL, &ds), "open");
	opened = race_now();
	const uint64_t heap = heap_size() - heap_before;
	const int64_t grown = (int64_t)(resident() - before);

	between = race_now();
	check(stele_dataset_read(ds, id, &sample), "read a sample");
	read = race_now();
	stele_sample_release(&sample);
	stele_dataset_info(ds, &info);
	printf("{\"started_us\":%.1f,\"open_us\":%.1f,\"sample_us\":%.1f,\"total_us\":%.1f,"
	       "\"heap\":%" PRIu64 ",\"resident\":%" PRId64 ",\"table_size\":%" PRIu64
	       ",\"runs\":%u,\"lookup_ns\":%.1f,\"cold\":%s}\n",
	       (double)(start - exec) / 1e3, (double)(opened - begin) / 1e3,
	       (double)(read - between) / 1e3,
	       (double)(start - exec + opened - begin + read - between) / 1e3, heap, grown,
	       info.table_size, info.run_count, lookup_ns(ds), argv[5]);
	stele_dataset_close(ds);
	return 0;
}

static bool drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	bool dropped;

	sync();
	dropped = fd >= 0 && write(fd, "3\n", 2) == 2;
	if (fd >= 0)
		close(fd);
	return dropped;
}

/* Run this program on one sample; quiet: nobody hears what it says. */
static void launch(const char *target, uint64_t id, const char *cold, bool quiet)
{
	extern char **environ;
	char number[24], now[24];
	char *const args[] = {"first", "--child", (char *)target, number, now, (char *)cold, NULL};
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	snprintf(number, sizeof(number), "%" PRIu64, id);
	snprintf(now, sizeof(now), "%" PRIu64, race_now());
	if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, environ) ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "the child failed");
	posix_spawn_file_actions_destroy(&actions);
}

int main(int argc, char **argv)
{
	uint64_t stride, present, runs;

	if (argc == 6 && strcmp(argv[1], "--child") == 0)
		return child(argv);
	if (argc != 5 && argc != 6)
		errx(2, "usage: %s TARGET STRIDE PRESENT RUNS [OTHER]", argv[0]);
	stride = strtoull(argv[2], NULL, 10);
	present = strtoull(argv[3], NULL, 10);
	runs = strtoull(argv[4], NULL, 10);
	/* Else the children would wait for pages of the program itself, which nobody mapped. */
	if (mlockall(MCL_CURRENT) < 0)
		warn("cannot lock the program in memory");
	for (uint64_t i = 0; i < runs; i++) {
		const char *cold = drop_caches() ? "true" : "false";

		if (argc == 6)
			launch(argv[5], 0, cold, true);
		launch(argv[1], content_mix(i) % present * stride, cold, false);
	}
	return 0;
}

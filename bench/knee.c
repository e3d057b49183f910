/* SPDX-License-Identifier: Apache-2.0 */
/*
 * knee.c - what a reader delivers, how late, and what it has in flight, slice by slice
 *
 *	knee [-c THREADS] [-d DEPTH] [-r SEED] [-s SECONDS] [-w SECONDS] TARGET
 *
 * One reader is kept full, at a fixed depth or the one that it finds (0). Of each 25 ms: bytes
 * delivered, and the window in requests. Latency, from submit to collect, counts once it has
 * run for as long as -w says: until then it is looking for its depth.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/race.h"
#include "stele.h"

#define SLICE_NS   UINT64_C(25000000)
#define SLICES_MAX 4000u
#define BATCH	   64u

struct run {
	struct stele_dataset *ds;
	struct stele_reader *reader;
	struct stele_shuffle *shuffle;
	uint64_t count, position, seed;
	uint64_t ids[BATCH];
	unsigned int next, filled; /* of ids[] */
	uint64_t begin, end, warm; /* ns */
	struct stele_histogram *latency;
	unsigned int slice_count;
	struct {
		uint64_t bytes, samples;
		uint32_t window;
	} slices[SLICES_MAX];
};

static int check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "cannot %s: %s", what, stele_strerror(ret));
	return ret;
}

/* Each sample once, then again in another order. */
static void take_ids(struct run *run)
{
	struct stele_shuffle_opts opts = STELE_OPTS(stele_shuffle_opts, .seed = run->seed);

	for (run->next = run->filled = 0; run->filled < BATCH; run->position++) {
		if (run->position % run->count == 0) {
			stele_shuffle_close(run->shuffle);
			opts.epoch = run->position / run->count;
			check(stele_shuffle_open(run->count, &opts, &run->shuffle), "shuffle");
		}
		run->ids[run->filled++] =
			stele_shuffle_at(run->shuffle, run->position % run->count);
	}
}

static void submit(struct run *run)
{
	uint64_t tags[BATCH];

	do {
		if (run->next == run->filled)
			take_ids(run);
		tags[0] = race_now();
		for (unsigned int i = 1; i < run->filled - run->next; i++)
			tags[i] = tags[0];
		run->next += (unsigned int)check(
			stele_reader_submit(run->reader, run->ids + run->next, tags,
					    run->filled - run->next),
			"submit");
	} while (run->next == run->filled);
}

static void collect(struct run *run)
{
	struct stele_sample samples[BATCH];
	int count = check(stele_reader_collect(run->reader, samples, BATCH, 1), "collect");
	uint64_t now = race_now();

	for (int i = 0; i < count; i++) {
		check(samples[i].status, "read a sample");
		if (now < run->end) {
			run->slices[(now - run->begin) / SLICE_NS].bytes += samples[i].size;
			run->slices[(now - run->begin) / SLICE_NS].samples++;
		}
		if (now >= run->warm)
			stele_histogram_record(run->latency, now - samples[i].tag);
		stele_reader_release(run->reader, &samples[i]);
	}
}

static void read_all(struct run *run)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};

	run->begin = race_now();
	run->end = run->begin + run->slice_count * SLICE_NS;
	run->warm += run->begin;
	for (unsigned int i = 0; i < run->slice_count; i++) {
		while (race_now() < run->begin + (i + 1) * SLICE_NS) {
			submit(run);
			collect(run);
		}
		check(stele_reader_stats(run->reader, &stats), "count");
		run->slices[i].window = stats.window;
	}
}

static void print(const struct run *run)
{
	printf("{\"p50_us\":%.1f,\"p99_us\":%.1f,\"slices\":[",
	       (double)stele_histogram_quantile(run->latency, 0.5) / 1e3,
	       (double)stele_histogram_quantile(run->latency, 0.99) / 1e3);
	for (unsigned int i = 0; i < run->slice_count; i++)
		printf("%s[%" PRIu64 ",%" PRIu64 ",%u]", i ? "," : "", run->slices[i].bytes,
		       run->slices[i].samples, run->slices[i].window);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct stele_reader_opts opts = STELE_OPTS(stele_reader_opts);
	static struct run run;
	double seconds = 3, warm = 1;
	int option;

	while ((option = getopt(argc, argv, "c:d:r:s:w:")) != -1) {
		if (option == 'c')
			opts.check_threads = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'd')
			opts.depth = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'r')
			run.seed = strtoull(optarg, NULL, 10);
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else if (option == 'w')
			warm = strtod(optarg, NULL);
		else
			errx(2, "usage: %s [-c THREADS] [-d DEPTH] [-r SEED] [-s SECONDS] "
				"[-w SECONDS] TARGET", argv[0]);
	}
	run.slice_count = (unsigned int)(seconds * 1e9 / (double)SLICE_NS);
	if (argc - optind != 1 || !(run.slice_count > 0 && run.slice_count <= SLICES_MAX))
		errx(2, "wants a target, and up to 100 seconds");
	run.warm = (uint64_t)(warm * 1e9);
	run.latency = stele_histogram_new();
	if (!run.latency)
		errx(1, "no memory");
	check(stele_dataset_open(argv[optind], NULL, &run.ds), "open the target");
	run.count = stele_dataset_count(run.ds);
	check(stele_reader_open(run.ds, &opts, &run.reader), "open a reader");
	read_all(&run);
	print(&run);
	stele_reader_close(run.reader);
	stele_shuffle_close(run.shuffle);
	stele_dataset_close(run.ds);
	stele_histogram_free(run.latency);
	return 0;
}

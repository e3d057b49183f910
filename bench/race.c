/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race.c - see race.h
 */
#include "bench/race.h"

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/content.h"
#include "stele.h"

#define THREADS_MAX 256u

struct common {
	const struct race *race;
	const uint32_t *order;
	uint64_t deadline;
	_Atomic uint64_t next;
	_Atomic uint64_t ended; /* when the last sample arrived */
};

struct runner {
	struct common *common;
	pthread_t thread;
	void *buffer;
	struct stele_histogram *latency;
	uint64_t samples, bytes;
};

uint64_t race_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void *race_memory(size_t size)
{
	void *memory;

	if (posix_memalign(&memory, 4096, size ? size : 1))
		errx(1, "no memory");
	return memset(memory, 0, size);
}

uint32_t *race_order(uint64_t count, uint64_t seed)
{
	uint32_t *order = malloc((count + 1) * sizeof(*order));

	if (!order || count > UINT32_MAX)
		errx(1, "no memory");
	for (uint64_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (uint64_t i = count; seed && i > 1; i--) {
		uint64_t j = content_mix(seed ^ (i << 20)) % i;
		uint32_t swap = order[i - 1];

		order[i - 1] = order[j];
		order[j] = swap;
	}
	return order;
}

static void later(_Atomic uint64_t *time, uint64_t now)
{
	uint64_t seen = atomic_load(time);

	while (seen < now && !atomic_compare_exchange_weak(time, &seen, now))
		;
}

static void *runner_main(void *arg)
{
	struct runner *r = arg;
	const struct race *race = r->common->race;
	void *own = race->begin ? race->begin(race->context) : NULL;
	uint64_t start, end = race_now();

	while ((start = end) < r->common->deadline) {
		uint64_t at = atomic_fetch_add(&r->common->next, 1);
		int64_t bytes;

		if (at >= race->count)
			break;
		at = r->common->order[at];
		bytes = race->read(race->context, own, at, r->buffer);
		if (bytes < 0)
			errx(1, "cannot read sample %llu: %s", (unsigned long long)at,
			     strerror((int)-bytes));
		end = race_now();
		stele_histogram_record(r->latency, end - start);
		r->samples++;
		r->bytes += (uint64_t)bytes;
	}
	later(&r->common->ended, end);
	if (race->end)
		race->end(own);
	return NULL;
}

static void report(const struct runner *runners, const struct race *race, double seconds)
{
	struct stele_histogram *latency = stele_histogram_new();
	uint64_t samples = 0, bytes = 0;

	if (!latency)
		errx(1, "no memory");
	for (unsigned int i = 0; i < race->threads; i++) {
		samples += runners[i].samples;
		bytes += runners[i].bytes;
		stele_histogram_add(latency, runners[i].latency);
	}
	printf("{\"samples\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"exhausted\":%s,"
	       "\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
	       (unsigned long long)samples, (unsigned long long)bytes, seconds,
	       samples == race->count ? "true" : "false",
	       (double)stele_histogram_quantile(latency, 0.5) / 1e3,
	       (double)stele_histogram_quantile(latency, 0.99) / 1e3);
	stele_histogram_free(latency);
}

void race_run(const struct race *race)
{
	struct common common = {.race = race, .order = race_order(race->count, race->seed)};
	struct runner runners[THREADS_MAX] = {0};
	uint64_t start;

	for (unsigned int i = 0; i < race->threads; i++) {
		runners[i].common = &common;
		runners[i].buffer = race_memory(race->buffer_size);
		runners[i].latency = stele_histogram_new();
		if (!runners[i].latency)
			errx(1, "no memory");
	}
	start = race_now();
	common.deadline = start + (uint64_t)(race->seconds * 1e9);
	for (unsigned int i = 0; i < race->threads; i++)
		if (pthread_create(&runners[i].thread, NULL, runner_main, &runners[i]))
			errx(1, "cannot start a thread");
	for (unsigned int i = 0; i < race->threads; i++)
		pthread_join(runners[i].thread, NULL);
	report(runners, race, (double)(common.ended - start) / 1e9);
	for (unsigned int i = 0; i < race->threads; i++) {
		stele_histogram_free(runners[i].latency);
		free(runners[i].buffer);
	}
	free((void *)common.order);
}

void race_options(int argc, char **argv, const char *usage, struct race *race)
{
	int option;

	race->threads = 1;
	race->seconds = 3;
	race->seed = 1;
	while ((option = getopt(argc, argv, "t:s:r:")) != -1) {
		if (option == 't')
			race->threads = (unsigned int)strtoul(optarg, NULL, 10);
		else if (option == 's')
			race->seconds = strtod(optarg, NULL);
		else if (option == 'r')
			race->seed = strtoull(optarg, NULL, 10);
		else
			errx(2, "usage: %s [-t THREADS] [-s SECONDS] [-r SEED] %s", argv[0], usage);
	}
	if (race->threads == 0 || race->threads > THREADS_MAX)
		errx(2, "threads: 1 to %u", THREADS_MAX);
}

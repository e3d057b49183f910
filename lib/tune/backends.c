/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backends.c - is another way to reach this device worth it?
 *
 * What polls or goes round the block layer is faster on some devices and far
 * slower on others, and none can be told from its name. So those that can be
 * opened are measured, in turn with the default, which has to be beaten by a
 * margin: a choice between equals should not depend on the day.
 */
#include "lib/tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS	      5
#define TIME_SHARE    0.1  /* of all time */
#define CELL_SECONDS  0.02 /* at least */
#define FASTER	      1.05 /* then it is chosen, ... */
#define DEARER	      1.5  /* ... if for no more of the CPU time, ... */
#define AS_FAST	      0.98 /* ... or as fast ... */
#define CHEAPER	      0.80 /* ... for so much of the CPU time */

static const char *const names[] = {"iopoll", "hybrid", "sqpoll",
				    "passthrough"};
#define NAMES (sizeof(names) / sizeof(names[0]))

struct contender {
	const char *name;
	struct stele_device *dev; /* NULL: it is out */
	struct stele_tune_meter meter;
	double rates[ROUNDS], cpus[ROUNDS]; /* of the default's at that time */
};

static void leave(struct contender *contender)
{
	if (!contender->dev)
		return;
	stele_tune_meter_release(&contender->meter);
	stele_device_close(contender->dev);
	contender->dev = NULL;
}

/* By its descriptor: whatever it was opened by, it is the same one. */
static void enter(struct contender *contender, const char *name,
		  const struct stele_tune_sweep *sweep, uint32_t depth)
{
	char path[64];

	contender->name = name;
	snprintf(path, sizeof(path), "/proc/self/fd/%d",
		 stele_device_fd(sweep->ds->image.dev));
	if (stele_device_open(path, NULL, 0, name, NULL, &contender->dev)) {
		contender->dev = NULL;
		return;
	}
	if (stele_tune_meter_init(&contender->meter, contender->dev, sweep->ds,
				  &sweep->space, depth)) {
		stele_device_close(contender->dev);
		contender->dev = NULL;
	}
}

static int measure_round(struct stele_tune_sweep *sweep,
			 struct contender *contenders,
			 const struct stele_tune_cell *cell, int round)
{
	struct stele_tune_result base, result;
	int err = stele_tune_meter_run(&sweep->meter, cell, &sweep->log, &base);

	for (size_t i = 0; !err && i < NAMES; i++) {
		struct contender *one = &contenders[i];

		if (!one->dev)
			continue;
		if (stele_tune_meter_run(&one->meter, cell, NULL, &result)) {
			leave(one);
			continue;
		}
		one->rates[round] = result.point.bytes_per_second /
				    base.point.bytes_per_second;
		one->cpus[round] = base.cpu_seconds > 0 ?
					   result.cpu_seconds / base.cpu_seconds :
					   1;
	}
	return err;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

/* The fastest of those that are worth it; of equals that with the least CPU time. */
static void choose(const struct stele_tune_sweep *sweep,
		   struct contender *contenders)
{
	double best_rate = 0, best_cpu = 0;

	for (size_t i = 0; i < NAMES; i++) {
		struct contender *one = &contenders[i];
		double rate, cpu;

		if (!one->dev)
			continue;
		rate = median(one->rates);
		cpu = median(one->cpus);
		stele_log_info(&sweep->log,
			       "backend '%s': %.2f times the reads of '%s', "
			       "for %.2f times the CPU time",
			       one->name, rate,
			       stele_device_backend(sweep->ds->image.dev), cpu);
		if (!((rate >= FASTER && cpu <= DEARER) ||
		      (rate >= AS_FAST && cpu <= CHEAPER)) ||
		    rate < best_rate * AS_FAST ||
		    (rate < best_rate * FASTER && cpu > best_cpu && best_cpu > 0))
			continue;
		best_rate = rate;
		best_cpu = cpu;
		snprintf(sweep->profile->backend, sizeof(sweep->profile->backend),
			 "%s", one->name);
	}
}

int stele_tune_backends(struct stele_tune_sweep *sweep)
{
	struct stele_tune_cell cell = {.depth = sweep->profile->depth};
	struct contender contenders[NAMES] = {0};
	unsigned int count = 0;
	int err = 0;

	if (stele_device_fd(sweep->ds->image.dev) < 0)
		return 0;
	for (size_t i = 0; i < NAMES; i++) {
		enter(&contenders[i], names[i], sweep, cell.depth);
		count += contenders[i].dev != NULL;
	}
	cell.seconds_min = TIME_SHARE * sweep->time.seconds /
			   (ROUNDS * (count + 1));
	if (cell.seconds_min < CELL_SECONDS)
		cell.seconds_min = CELL_SECONDS;
	cell.seconds_max = cell.seconds_min;
	for (int i = 0; count && !err && i < ROUNDS; i++)
		err = measure_round(sweep, contenders, &cell, i);
	if (count && !err)
		choose(sweep, contenders);
	for (size_t i = 0; i < NAMES; i++)
		leave(&contenders[i]);
	return err;
}

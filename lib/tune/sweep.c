/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - sizes x depths, in the time there is; then other backends, then notes
 *
 * A row (one size; in the last, the image's own mix of sizes) goes through doublings of the
 * depth, until two of them in turn hardly gained and cost latency. Each cell gets its share
 * of the time that is left: rows that end early leave theirs to the others, and a slow device
 * ends in time too, with fewer reads in a cell and more noise.
 *
 * Other backends, which poll or bypass the block layer, are faster on some devices and far
 * slower on others, and none can be told from its name. So those that can be opened are
 * measured, in turn with the default, at the knee of the mix. It has to be beaten by a margin:
 * a choice between equals should not depend on the day.
 *
 * Notes tell only what can be seen: a limit of the kernel's queue, or of a SCSI or network
 * disk; an IOMMU that translates; a rotating disk; an image so small that caches answer.
 */
#include "lib/tune/sweep.h"

#include "lib/device/stack.h"
#include "lib/tune/meter.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 1024u

struct sweep {
	struct stele_dataset *ds;
	struct stele_log log;
	const struct stele_tune_opts *opts; /* the callback */
	struct stele_tune_time time;
	struct stele_tune_space space;
	struct stele_tune_meter meter;
	struct stele_tuning *tuning; /* that is being made */
	double began;
};

/* ---- rows -------------------------------------------------------------------- */

#define SIZES_SHARE	0.7  /* of all time, for reads of one size */
#define MIX_SHARE	0.18 /* for the image's own; the rest is for other backends */
#define MIX_PASSES	3
#define MIX_DEPTH_MIN	64u  /* the row does not end below: readers would start there */
#define GAIN_MIN	1.03 /* of a doubling of the depth */
#define LATENCY_RISE	1.5  /* over two of them */
#define PATIENCE	5.0  /* a noisy cell may take so many times its time */
#define PLACES_MIN	16u  /* of larger reads than the smallest */
#define DISTURBED	0.85 /* of what half the depth gave */
#define REMOTE_DEPTH_MAX 256u

static const uint32_t sizes[] = {
	4u << 10,   16u << 10,	64u << 10, 128u << 10,
	256u << 10, 512u << 10, 1u << 20,  4u << 20,
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static bool is_measurable(const struct sweep *sweep, uint32_t size)
{
	const struct stele_limits *limits = &sweep->ds->image.dev->limits;

	return size <= limits->transfer_max &&
	       size % limits->logical_block == 0 &&
	       (!limits->boundary || size <= limits->boundary) &&
	       stele_tune_space_fits(&sweep->space, size,
				     size == sizes[0] ? 1 : PLACES_MIN);
}

static uint32_t depth_limit(const struct sweep *sweep, uint32_t size)
{
	const struct stele_device *dev = sweep->ds->image.dev;
	uint32_t depth = stele_tune_meter_depth(&sweep->meter, size);

	return dev->limits.boundary && depth > REMOTE_DEPTH_MAX
		       ? REMOTE_DEPTH_MAX
		       : depth;
}

struct row {
	uint32_t size, depth_min, depth_max;
	unsigned int cells;	/* so far */
	unsigned int expected;	/* by the row before */
	unsigned int rows_left; /* behind it */
	unsigned int flat;	/* doublings that hardly gained, in turn */
	double end;		/* of its time */
	struct stele_tune_point *points; /* the first of `cells` */
};

/* Time for the next cell; false: there is none left, and something was measured. */
static bool share_time(const struct sweep *sweep,
		       const struct row *row, struct stele_tune_cell *cell)
{
	double left = row->end - stele_tune_clock();
	unsigned int rest = row->expected > row->cells ?
				    row->expected - row->cells :
				    1;
	double share = fmax(left, 0) / (rest + row->rows_left * row->expected);

	if (left <= 0 && sweep->tuning->point_count)
		return false;
	cell->seconds_min = fmin(share, sweep->time.cell);
	cell->seconds_max = fmin(1.5 * share, PATIENCE * sweep->time.cell);
	cell->reads_min = sweep->time.reads;
	return true;
}

/* To have a depth there and back takes so long; is it worth its time? */
static bool is_too_slow(const struct row *row, const struct stele_tune_cell *cell)
{
	const struct stele_tune_point *last;

	if (!row->cells)
		return false;
	last = &row->points[row->cells - 1];
	return 2 * cell->depth / last->reads_per_second > 4 * cell->seconds_max;
}

static bool is_done(struct row *row)
{
	const struct stele_tune_point *last = &row->points[row->cells - 1];

	if (row->cells < 2)
		return false;
	row->flat = last->bytes_per_second < GAIN_MIN * last[-1].bytes_per_second ?
			    row->flat + 1 :
			    0;
	return last->depth >= row->depth_min && row->cells >= 3 && row->flat >= 2 &&
	       (double)last->p50_ns > LATENCY_RISE * (double)last[-2].p50_ns;
}

/*
 * Something else disturbed a cell that is slower than the one before: it is measured once
 * more, if there is time. Nothing disturbs to the better, so the better one counts.
 */
static int measure_again(struct sweep *sweep, const struct row *row,
			 struct stele_tune_cell *cell,
			 struct stele_tune_result *result)
{
	struct stele_tune_result again;
	int err;

	if (!row->cells ||
	    result->point.bytes_per_second >
		    DISTURBED * row->points[row->cells - 1].bytes_per_second ||
	    !share_time(sweep, row, cell))
		return 0;
	err = stele_tune_meter_run(&sweep->meter, cell, &sweep->log, &again);
	if (!err && again.point.bytes_per_second > result->point.bytes_per_second)
		*result = again;
	return err;
}

static int tell(const struct sweep *sweep,
		const struct stele_tune_point *point)
{
	const struct stele_tune_opts *opts = sweep->opts;
	double done = (stele_tune_clock() - sweep->began) / sweep->time.seconds;

	if (!opts || !opts->point)
		return 0;
	return opts->point(opts->point_user, point, fmin(done, 1)) ?
		       -ECANCELED :
		       0;
}

static unsigned int doublings(uint32_t depth)
{
	unsigned int count = 1;

	while (depth >>= 1)
		count++;
	return count;
}

static int run_row(struct sweep *sweep, struct row *row)
{
	struct stele_tuning *tuning = sweep->tuning;
	struct stele_tune_cell cell = {.size = row->size};
	struct stele_tune_result result;
	int err;

	if (!row->expected) /* the first */
		row->expected = doublings(row->depth_max);
	row->points = &tuning->points[tuning->point_count];
	for (cell.depth = 1; cell.depth <= row->depth_max &&
			     tuning->point_count < STELE_TUNE_POINTS_MAX;
	     cell.depth *= 2) {
		if (!share_time(sweep, row, &cell) || is_too_slow(row, &cell))
			break;
		err = stele_tune_meter_run(&sweep->meter, &cell, &sweep->log,
					   &result);
		if (!err)
			err = measure_again(sweep, row, &cell, &result);
		if (!err)
			err = tell(sweep, &result.point);
		if (err)
			return err;
		tuning->points[tuning->point_count++] = result.point;
		row->cells++;
		if (is_done(row))
			break;
	}
	return 0;
}

/* Each cell of the row once more. Nothing disturbs to the better: the better one counts. */
static int repeat_row(struct sweep *sweep, struct row *row)
{
	struct stele_tune_cell cell = {.size = row->size};
	struct stele_tune_result again;
	int err = 0;

	row->expected = row->cells;
	for (row->cells = 0; row->cells < row->expected; row->cells++) {
		struct stele_tune_point *point = &row->points[row->cells];

		cell.depth = point->depth;
		if (!share_time(sweep, row, &cell))
			break;
		err = stele_tune_meter_run(&sweep->meter, &cell, &sweep->log, &again);
		if (!err && again.point.bytes_per_second > point->bytes_per_second)
			*point = again.point;
		if (!err)
			err = tell(sweep, point);
		if (err)
			break;
	}
	row->cells = row->expected;
	return err;
}

/* The knee of this row is what readers will start with, so it is measured in passes. */
static int run_mix(struct sweep *sweep, double end)
{
	struct row row = {.depth_min = MIX_DEPTH_MIN,
			  .depth_max = depth_limit(sweep, 0)};
	int err = 0;

	for (int left = MIX_PASSES; !err && left; left--) {
		double now = stele_tune_clock();

		row.end = now + (end - now) / left;
		err = left == MIX_PASSES ? run_row(sweep, &row) : repeat_row(sweep, &row);
	}
	return err;
}

static int run_sweep(struct sweep *sweep)
{
	const double all = sweep->time.seconds, sizes_end = sweep->began + SIZES_SHARE * all;
	unsigned int rows = 0;
	struct row row = {0};
	int err = 0;

	for (size_t i = 0; i < SIZES; i++)
		rows += is_measurable(sweep, sizes[i]);
	if (!rows)
		return -ENOENT;
	for (size_t i = 0; !err && i < SIZES; i++) {
		if (!is_measurable(sweep, sizes[i]))
			continue;
		row = (struct row){.size = sizes[i],
				   .rows_left = --rows,
				   .depth_max = depth_limit(sweep, sizes[i]),
				   .expected = row.cells,
				   .end = sizes_end};
		err = run_row(sweep, &row);
	}
	if (err)
		return err;
	return run_mix(sweep, fmax(sizes_end, stele_tune_clock()) + MIX_SHARE * all);
}

/* ---- backends ---------------------------------------------------------------- */

#define ROUNDS	     5
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
		  const struct sweep *sweep, uint32_t depth)
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

static int measure_round(struct sweep *sweep,
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
static void choose(const struct sweep *sweep,
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
		snprintf(sweep->tuning->backend, sizeof(sweep->tuning->backend),
			 "%s", one->name);
	}
}

static int compare_backends(struct sweep *sweep)
{
	struct stele_tune_cell cell = {.depth = sweep->tuning->depth};
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

/* ---- notes ------------------------------------------------------------------- */

#define WORKERS_MAX 8u

/* The block device behind all; false: none that sysfs knows. */
static bool disk_of(const struct stele_device *dev, dev_t *number)
{
	char text[32];
	struct stat st;
	int fd = stele_device_fd(dev);

	if (fd < 0 || fstat(fd, &st))
		return false;
	*number = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	return !stele_stack_text(*number, "size", text, sizeof(text));
}

/* "DMA", "DMA-FQ", "identity", ... of the first above it that has one. */
static bool iommu_type(dev_t number, char *type, size_t size)
{
	char place[PATH_MAX], path[PATH_MAX], *slash;
	bool found = false;
	FILE *file;

	if (stele_stack_place(number, place))
		return false;
	while (!found && (slash = strrchr(place, '/')) &&
	       slash - place > (int)strlen("/sys/devices")) {
		if (snprintf(path, sizeof(path), "%s/iommu_group/type", place) >=
		    (int)sizeof(path))
			break;
		file = fopen(path, "re");
		if (file) {
			found = fgets(type, (int)size, file);
			fclose(file);
		}
		*slash = '\0';
	}
	if (found)
		type[strcspn(type, "\n")] = '\0';
	return found;
}

static void note_queue(dev_t number, const struct stele_log *log)
{
	char requests[32], depth[32];
	bool queue = stele_stack_disk_text(number, "queue/nr_requests",
					   requests, sizeof(requests));
	bool device = stele_stack_disk_text(number, "device/queue_depth", depth,
					    sizeof(depth));

	if (queue && device)
		stele_log_info(log, "the kernel queues up to %s requests "
				    "(nr_requests), the device %s (queue_depth)",
			       requests, depth);
	else if (queue)
		stele_log_info(log, "the kernel queues up to %s requests (nr_requests)",
			       requests);
	if (stele_stack_disk_text(number, "device/cluster_fsid", depth,
				  sizeof(depth)))
		stele_log_info(log, "krbd's queue_depth (128 unless given) is set "
				    "when an image is attached");
}

static void note_disk(dev_t number, const struct stele_log *log)
{
	char text[64];

	note_queue(number, log);
	if (stele_stack_disk_text(number, "queue/rotational", text,
				  sizeof(text)) && !strcmp(text, "1"))
		stele_log_info(log, "the kernel takes this for a rotating disk: a windowed "
				    "order may be far faster to read");
	if (iommu_type(number, text, sizeof(text)) && !strncmp(text, "DMA", 3))
		stele_log_warning(log, "an IOMMU translates for this device (%s), which "
				       "costs reads per second ('iommu.passthrough=1' "
				       "on the kernel's command line turns it off)",
				  text);
}

static void note_all(const struct sweep *sweep)
{
	const struct stele_device *dev = sweep->ds->image.dev;
	const struct stele_log *log = &sweep->log;
	unsigned int workers = stele_device_workers();
	dev_t number;

	if (disk_of(dev, &number))
		note_disk(number, log);
	else
		stele_log_info(log, "up to %u requests are in flight",
			       dev->limits.depth_max);
	if (sweep->tuning->slots_size < STELE_TUNE_SIZE_MIN)
		stele_log_warning(log, "the samples take up only %.1f MiB: "
				       "caches may have answered for the device",
				  (double)sweep->tuning->slots_size / (1 << 20));
	if (workers > WORKERS_MAX)
		stele_log_warning(log, "%u kernel threads (iou-wrk) wait on behalf of "
				       "io_uring, which costs more than the reads",
				  workers);
}

/* ---- all of it ---------------------------------------------------------------- */

static uint64_t slots_size(const struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	stele_dataset_info(ds, &info);
	return info.sample_count ? info.slots_size : 0;
}

static int measure(struct sweep *sweep, bool compare)
{
	struct stele_tuning *tuning = sweep->tuning;
	int err = run_sweep(sweep);

	if (err == -ENOENT)
		stele_log_error(&sweep->log, "the snapshot has too few bytes to measure");
	if (err)
		return err;
	tuning->mean_size = (uint64_t)(stele_tune_meter_mix(&sweep->meter) + 0.5);
	tuning->depth = stele_tuning_depth(tuning, 0);
	strncpy(tuning->backend, stele_device_backend(sweep->ds->image.dev),
		sizeof(tuning->backend) - 1);
	if (compare)
		err = compare_backends(sweep);
	if (!err)
		note_all(sweep);
	return err;
}

static unsigned int depth_max(const struct stele_device *dev)
{
	return dev->limits.depth_max < DEPTH_MAX ? dev->limits.depth_max :
						   DEPTH_MAX;
}

int stele_tune_dataset(struct stele_dataset *ds,
		       const struct stele_tune_opts *opts,
		       const struct stele_tune_time *time, bool compare,
		       struct stele_tuning *out)
{
	struct sweep sweep = {
		.ds = ds,
		.log = {opts->log, opts->log_user},
		.opts = opts,
		.time = *time,
		.tuning = out,
		.began = stele_tune_clock(),
	};
	int err;

	memset(out, 0, sizeof(*out));
	out->slots_size = slots_size(ds);
	err = out->slots_size ? stele_tune_space_init(&sweep.space, ds) : -ENOENT;
	if (err == -ENOENT)
		stele_log_error(&sweep.log, "the snapshot has no samples");
	if (!err)
		err = stele_tune_meter_init(&sweep.meter, ds->image.dev, ds,
					    &sweep.space,
					    depth_max(ds->image.dev));
	if (!err)
		err = measure(&sweep, compare);
	stele_tune_meter_release(&sweep.meter);
	stele_tune_space_release(&sweep.space);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile-open.c - who opens a dataset starts with its device's profile
 *
 * From the state directory or out of a mapping; never one that is outdated or
 * damaged, and never does an open fail because of one.
 */
#include "lib/node/mapping.h"
#include "lib/node/profile.h"
#include "lib/read/dataset.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char image_path[PATH_MAX], file_path[PATH_MAX];
static struct stele_profile_source source;
static struct stele_profile profile = {
	.backend = "uring", .depth = 22, .host = "node7", .target = "/dev/nvme0n1@v 1",
	.time = 1795000000, .slots_size = UINT64_C(5) << 30, .mean_size = 75000,
	.point_count = 3,
	.points = {{4096, 1, 12000, 49152000, 81250, 95000, false},
		   {4096, 2, 22000, 90112000, 83000, 99000, true},
		   {0, 32, 6553.6, 491520000, 182500, 412345, false}},
};
static struct test_log log_;

static void make_image(void)
{
	struct test_sample *samples = test_samples(50, 3000, 1);
	const struct test_segment segment = {.samples = samples, .count = 50};
	struct stele_device *dev = test_image_simple(&segment, NULL, 0, 0);
	uint64_t size;
	int fd;

	snprintf(image_path, sizeof(image_path), "%s/image", test_tmpdir());
	fd = open(image_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || stele_device_size(dev, &size) ||
	    write(fd, stele_device_memory(dev), size) != (ssize_t)size ||
	    fsync(fd))
		sysbail("cannot write '%s'", image_path);
	close(fd);
	stele_device_close(dev);
	free(samples);
}

/* Depth of the profile that it begins with; 0: none; -1: does not open. */
static int depth_of(const char *target, const char *backend, char *used)
{
	struct stele_profile found = {.size = sizeof(found)};
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	int err;

	test_log_init(&log_);
	if (stele_dataset_open(target,
			       &STELE_OPTS(stele_open_opts,
					   .log = log_.log.fn,
					   .log_user = log_.log.user,
					   .backend = backend),
			       &ds))
		return -1;
	stele_dataset_info(ds, &info);
	if (used)
		strcpy(used, info.backend);
	err = stele_dataset_profile(ds, &found);
	stele_dataset_close(ds);
	return err ? 0 : (int)found.depth;
}

/* What a reader would have in flight at first. */
static uint32_t window_of(const char *target)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	struct stele_dataset *ds;

	if (stele_dataset_open(target, NULL, &ds) || stele_reader_open(ds, NULL, &reader))
		bail("cannot open a reader");
	stele_reader_stats(reader, &stats);
	stele_reader_close(reader);
	stele_dataset_close(ds);
	return stats.window;
}

static void save(void)
{
	if (stele_profile_save(&profile, &source, NULL))
		bail("cannot save a profile");
}

static void check_open(void)
{
	struct stele_profile_source other = source;

	is_int(0, depth_of(image_path, NULL, NULL), "no directory: no profile");
	is_uint(8, window_of(image_path), "a reader starts with 8 requests");
	save();
	is_int(22, depth_of(image_path, NULL, NULL), "opens with its profile");
	ok(!log_.size, "without a word");
	is_uint(22, window_of(image_path), "a reader starts with what it says");
	strcpy(other.facts.kernel, "0.99");
	stele_profile_save(&profile, &other, NULL);
	is_int(0, depth_of(image_path, NULL, NULL), "of another kernel: none");
	ok(test_log_has(&log_, "kernel has changed"), "said");
	ok(!truncate(file_path, 100), "cut short");
	is_int(0, depth_of(image_path, NULL, NULL), "damaged: none");
	ok(test_log_has(&log_, "bad profile"), "said");
	ok(!unlink(file_path), "removed");
	is_int(0, depth_of(image_path, NULL, NULL), "gone: none");
}

static void check_backend(void)
{
	char used[32];

	strcpy(profile.backend, "threads");
	save();
	is_int(22, depth_of(image_path, NULL, used), "a backend is preferred");
	is_string("threads", used, "and used");
	if (depth_of(image_path, "uring", used) > 0)
		is_string("uring", used, "unless another is named");
	else
		skip_block(1, "io_uring is forbidden here");
	setenv(STELE_BACKEND_ENV, "threads", 1);
	strcpy(profile.backend, "nonsense");
	save();
	is_int(22, depth_of(image_path, NULL, used),
	       "or the environment names one");
	ok(!log_.size, "nothing else is tried");
	unsetenv(STELE_BACKEND_ENV);
	is_int(22, depth_of(image_path, NULL, used),
	       "one that does not open is not missed");
	ok(test_log_has(&log_, "3 cannot open"), "said as information");
	strcpy(profile.backend, "uring");
}

static void check_mapping(void)
{
	char dir[PATH_MAX];

	save();
	is_int(0, stele_map(image_path, "cats", NULL, NULL), "mapped");
	is_int(22, depth_of("cats", NULL, NULL), "the name has the profile");
	snprintf(dir, sizeof(dir), "%s/none", test_tmpdir());
	setenv(STELE_STATE_DIR_ENV, dir, 1);
	is_int(0, depth_of(image_path, NULL, NULL), "no state directory");
	is_int(0, depth_of("cats", NULL, NULL), "nor for the name");
	snprintf(dir, sizeof(dir), "%s/state", test_tmpdir());
	setenv(STELE_STATE_DIR_ENV, dir, 1);
	is_int(22, depth_of("cats", NULL, NULL), "there again, found");
	stele_unmap("cats", NULL);
}

int main(void)
{
	struct stele_profile_source again;
	struct stele_device *dev;
	char dir[PATH_MAX];

	plan_lazy();
	unsetenv(STELE_BACKEND_ENV);
	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	setenv(STELE_RUN_DIR_ENV, dir, 1);
	snprintf(dir, sizeof(dir), "%s/state", test_tmpdir());
	setenv(STELE_STATE_DIR_ENV, dir, 1);
	make_image();
	is_int(0, stele_profile_source_of_path(image_path, &source),
	       "a file has a source");
	diag("it is '%s'", source.device);
	if (stele_device_open(image_path, NULL, 0, NULL, NULL, &dev))
		bail("cannot open the image");
	is_int(0, stele_profile_source_of_device(dev, &again), "open, too");
	is_blob(&source, &again, sizeof(source), "the same");
	stele_device_close(dev);
	strcpy(profile.device, source.device);
	stele_profile_file(profile.device, file_path, sizeof(file_path));
	check_open();
	check_backend();
	check_mapping();
	return done();
}

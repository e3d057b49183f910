/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-changed.c - files that are not what they were when they were scanned
 *
 * Each fails the build, or is left out of a sound image when told so; nothing
 * of its bytes is left then.
 */
#include "lib/image/snapshot.h"
#include "lib/ops/build.h"
#include "tests/fixture/built.h"
#include "tests/fixture/fake.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_SIZE (UINT64_C(32) << 20)

struct lost {
	const char *what;
	uint64_t size, size_now;
	int open_error, read_error;
	uint64_t read_good;
	int wanted;
	enum stele_skip_reason reason;
};

#define MB (UINT64_C(1) << 20)

static const struct lost all[] = {
	{"vanished", 1000, 1000, -ENOENT, 0, 0, -ENOENT, STELE_SKIP_VANISHED},
	{"unreadable", 1000, 1000, -EACCES, 0, 0, -EACCES,
	 STELE_SKIP_UNREADABLE},
	{"changed when opened", 1000, 1000, -ETXTBSY, 0, 0, -ETXTBSY,
	 STELE_SKIP_CHANGED},
	{"shorter by a byte", 1000, 999, 0, 0, 0, -ETXTBSY, STELE_SKIP_CHANGED},
	{"longer by a byte", 1000, 1001, 0, 0, 0, -ETXTBSY, STELE_SKIP_CHANGED},
	{"empty now", 1000, 0, 0, 0, 0, -ETXTBSY, STELE_SKIP_CHANGED},
	{"no more empty", 0, 1, 0, 0, 0, -ETXTBSY, STELE_SKIP_CHANGED},
	{"bad in its middle", 1000, 1000, 0, -EIO, 500, -EIO,
	 STELE_SKIP_UNREADABLE},
	{"large and cut short", 7 * MB, 5 * MB + 1, 0, 0, 0, -ETXTBSY,
	 STELE_SKIP_CHANGED},
	{"large and longer", 7 * MB, 7 * MB + 1, 0, 0, 0, -ETXTBSY,
	 STELE_SKIP_CHANGED},
	{"large and bad", 7 * MB, 7 * MB, 0, -EIO, 3 * MB, -EIO,
	 STELE_SKIP_UNREADABLE},
};
#define ALL_COUNT (sizeof(all) / sizeof(all[0]))

struct seen {
	enum stele_skip_reason reason;
	char key[64];
	unsigned int count;
	char line[256];
};

static void on_skip(void *user, enum stele_skip_reason reason, const char *key,
		    size_t key_size, int error)
{
	struct seen *seen = user;

	(void)error;
	seen->reason = reason;
	snprintf(seen->key, sizeof(seen->key), "%.*s", (int)key_size, key);
	seen->count++;
}

static void on_log(void *user, enum stele_log_level level, const char *line)
{
	struct seen *seen = user;

	if (level == STELE_LOG_ERROR)
		snprintf(seen->line, sizeof(seen->line), "%s", line);
}

static void add_lost(struct fake *fake, const char *key,
		     const struct lost *lost)
{
	struct fake_file *file = fake_add(fake, key, lost->size);

	file->size_now = lost->size_now;
	file->open_error = lost->open_error;
	file->read_error = lost->read_error;
	file->read_good = lost->read_good;
}

static struct stele_device *old_device(void)
{
	struct stele_device *dev;

	dev = test_memory(DEVICE_SIZE, 512, 0xa5);
	return dev;
}

static void check_fails(struct fake *fake, const struct lost *lost,
			struct stele_build_opts *opts, struct seen *seen)
{
	struct stele_device *dev = old_device();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_image image;

	memset(seen, 0, sizeof(*seen));
	opts->flags = 0;
	is_int(lost->wanted,
	       stele_build_on(dev, &fake->source, "v1", opts, &report),
	       "%s: the build fails", lost->what);
	ok(strstr(seen->line, "'d/lost'") != NULL, "%s: and names it",
	   lost->what);
	is_uint(0, seen->count, "%s: nothing was left out", lost->what);
	is_uint(0, fake->opened, "%s: files are closed", lost->what);
	is_int(-EINPROGRESS, stele_image_load(dev, NULL, &image),
	       "%s: the target is an unfinished image", lost->what);
	stele_device_close(dev);
}

static void check_left_out(struct fake *fake, const struct lost *lost,
			   struct stele_build_opts *opts, struct seen *seen)
{
	static const char *const gone[] = {"d/lost", NULL};
	struct stele_device *dev = old_device();
	struct stele_build_report report = {.size = sizeof(report)};

	memset(seen, 0, sizeof(*seen));
	opts->flags = STELE_BUILD_SKIP_CHANGED;
	is_int(0, stele_build_on(dev, &fake->source, "v1", opts, &report),
	       "%s: left out, when told so", lost->what);
	is_int(lost->reason, seen->reason, "%s: it says why", lost->what);
	is_string("d/lost", seen->key, "%s: and which", lost->what);
	is_uint(1, report.skipped[lost->reason], "%s: counted", lost->what);
	is_uint(fake->count - 1, report.sample_count, "%s: one less",
		lost->what);
	built_check(dev, fake, gone, lost->what);
	stele_device_close(dev);
}

static void test_lost(const struct lost *lost)
{
	struct seen seen;
	struct stele_build_opts opts = {.size = sizeof(opts),
					.skip = on_skip,
					.skip_user = &seen,
					.log = on_log,
					.log_user = &seen,
					.jobs = 3};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "c", 300, 3000);
	add_lost(&fake, "d/lost", lost);
	check_fails(&fake, lost, &opts, &seen);
	check_left_out(&fake, lost, &opts, &seen);
	opts.memory_size = 1 << 20; /* much of a large one is written by then */
	check_left_out(&fake, lost, &opts, &seen);
	fake_release(&fake);
}

/* Not a byte of what was read of it may be left in its slot. */
static void test_wiped(void)
{
	struct stele_build_opts opts = {.size = sizeof(opts),
					.memory_size = 1 << 20,
					.flags = STELE_BUILD_SKIP_CHANGED};
	struct stele_device *dev = old_device();
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;
	const uint8_t *bytes = stele_device_memory(dev);
	uint64_t found = 0;
	uint8_t piece[16];

	fake_init(&fake);
	fake_add(&fake, "whole", 5000000)->size_now = 4999999;
	fake_add(&fake, "small", 5000);
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = fake_byte("whole", 5, 3000000 + i);
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "builds");
	for (uint64_t i = 0; i + sizeof(piece) < report.image_end; i++)
		found += !memcmp(bytes + i, piece, sizeof(piece));
	is_uint(0, found, "no byte of a void sample is left");
	stele_device_close(dev);
	fake_release(&fake);
}

static void test_all_gone(void)
{
	static const char *const gone[] = {"a/1", "a/2", "b/3", NULL};
	struct stele_build_opts opts = {.size = sizeof(opts),
					.flags = STELE_BUILD_SKIP_CHANGED};
	struct stele_device *dev = old_device();
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	for (size_t i = 0; i < 3; i++)
		fake_add(&fake, gone[i], 100 * i)->open_error = -ENOENT;
	is_int(-ENOENT, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "every sample is gone");
	is_uint(0, report.sample_count, "none is left");
	opts.flags |= STELE_BUILD_ALLOW_EMPTY;
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "unless that is allowed");
	is_uint(0, report.sample_count, "none is left");
	built_check(dev, &fake, gone, "all gone");
	stele_device_close(dev);
	fake_release(&fake);
}

/* Voids of many threads: found out of order, listed in order. */
static void test_many_gone(void)
{
	static const char *gone[1001];
	struct stele_build_opts opts = {.size = sizeof(opts),
					.jobs = 8,
					.flags = STELE_BUILD_SKIP_CHANGED};
	struct stele_device *dev = old_device();
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;
	size_t count = 0;

	fake_init(&fake);
	fake_add_many(&fake, "a", 3000, 3000);
	for (size_t i = 0; i < 3000; i += 3) {
		fake.files[i].size_now++;
		gone[count++] = fake.files[i].key;
	}
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "a third of the samples changed");
	is_uint(2000, report.sample_count, "the rest is there");
	built_check(dev, &fake, gone, "a third changed");
	stele_device_close(dev);
	fake_release(&fake);
}

/* It is we who cannot go on: never a reason to leave a sample out. */
static void test_ours(void)
{
	struct stele_build_opts opts = {.size = sizeof(opts),
					.flags = STELE_BUILD_SKIP_CHANGED};
	struct stele_device *dev = old_device();
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	fake_add(&fake, "a/1", 1)->open_error = -EMFILE;
	is_int(-EMFILE, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "no descriptors left");
	stele_device_close(dev);
	fake_release(&fake);
}

int main(void)
{
	plan_lazy();
	for (size_t i = 0; i < ALL_COUNT; i++)
		test_lost(&all[i]);
	test_wiped();
	test_all_gone();
	test_many_gone();
	test_ours();
	return done();
}

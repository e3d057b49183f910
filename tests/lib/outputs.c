/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outputs.c - structs that the library fills are as large as their caller says
 *
 * A program with an older header gets what its struct has room for, and not a byte
 * behind it changes; one with a newer header gets zeros. A size that was not set is
 * refused before anything is done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/options.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define ROOM 16384u /* more than any of them */
#define FILL 0xa5

/* Each is called with a struct of the size that is in it. */
typedef int (*fill_fn)(struct test_dataset *t, void *out);

static int dataset_info(struct test_dataset *t, void *out)
{
	return stele_dataset_info(t->ds, out);
}

static int field(struct test_dataset *t, void *out)
{
	return stele_dataset_field(t->ds, 0, out);
}

static int extent(struct test_dataset *t, void *out)
{
	return stele_dataset_locate(t->ds, 3, out);
}

static int diff(struct test_dataset *t, void *out)
{
	(void)t;
	return stele_diff("outputs.stele@v1", "outputs.stele@v1", NULL, NULL,
			  NULL, out);
}

static int verify(struct test_dataset *t, void *out)
{
	(void)t;
	return stele_verify("outputs.stele", NULL, out);
}

static int gc(struct test_dataset *t, void *out)
{
	(void)t;
	return stele_gc("outputs.stele",
			&STELE_OPTS(stele_txn_opts,
				    .flags = STELE_DRY_RUN),
			NULL, NULL, out);
}

static int resize(struct test_dataset *t, void *out)
{
	(void)t;
	return stele_resize("outputs.stele", 0, NULL, out);
}

static int repair(struct test_dataset *t, void *out)
{
	(void)t;
	return stele_repair("outputs.stele", NULL, out);
}

static int build(struct test_dataset *t, void *out)
{
	(void)t;
	return stele_build("source", NULL,
			   &STELE_OPTS(stele_build_opts,
				       .flags = STELE_DRY_RUN),
			   out);
}

static int stats(struct test_dataset *t, void *out)
{
	struct stele_reader *reader;
	int ret;

	if (stele_reader_open(t->ds, NULL, &reader))
		bail("no reader");
	ret = stele_reader_stats(reader, out);
	stele_reader_close(reader);
	return ret;
}

static int image_info(struct test_dataset *t, void *out)
{
	struct stele_image *image;
	int ret;

	(void)t;
	if (stele_image_open("outputs.stele", NULL, &image))
		bail("no image");
	ret = stele_image_info(image, out);
	stele_image_close(image);
	return ret;
}

static int snapshot_info(struct test_dataset *t, void *out)
{
	struct stele_image *image;
	int ret;

	(void)t;
	if (stele_image_open("outputs.stele", NULL, &image))
		bail("no image");
	ret = stele_image_snapshot(image, 0, out);
	stele_image_close(image);
	return ret;
}

/* With `size` in it, and `given` bytes that it may touch. */
static int call(struct test_dataset *t, fill_fn fn, unsigned char *memory,
		size_t size, size_t given)
{
	size_t wrong = 0;
	int ret;

	memset(memory, FILL, ROOM);
	memcpy(memory, &size, sizeof(size));
	ret = fn(t, memory);
	for (size_t i = given; i < ROOM; i++)
		wrong += memory[i] != FILL;
	is_uint(0, wrong, "size %zu: nothing behind it changes", size);
	ok(!memcmp(memory, &size, sizeof(size)), "size %zu: stays", size);
	return ret;
}

static void test_one(struct test_dataset *t, const char *name, fill_fn fn,
		     size_t known)
{
	unsigned char *memory = malloc(ROOM);
	size_t nonzero = 0;

	is_int(-EINVAL, call(t, fn, memory, 0, sizeof(size_t)), "%s: no size", name);
	ok(strstr(stele_errmsg(), "invalid size 0"), "said so: %s", stele_errmsg());
	is_int(-EINVAL, call(t, fn, memory, sizeof(size_t), sizeof(size_t)),
	       "%s: less than the first version had", name);
	is_int(-EINVAL, call(t, fn, memory, SIZE_MAX / 2, known),
	       "%s: uninitialized memory", name);
	is_int(0, call(t, fn, memory, known, known), "%s: as here", name);
	is_int(0, call(t, fn, memory, known + 64, known + 64),
	       "%s: of a newer header", name);
	for (size_t i = known; i < known + 64; i++)
		nonzero += memory[i] != 0;
	is_uint(0, nonzero, "%s: zeros in what is not known", name);
	free(memory);
}

/* Once the library knows more than a program does. */
static void test_helpers(void)
{
	struct version_two {
		size_t size;
		uint64_t one, two;
	} known = {sizeof(known), 1, 2}, loaded;
	struct version_two out = {offsetof(struct version_two, two), 7, 7};
	const struct stele_log log = {0};

	is_int(0, stele_output_set(&out, &known, one, &log), "an older struct");
	ok(out.one == 1 && out.two == 7, "gets what it has room for");
	is_int(-EINVAL, stele_output_check(&out, two, &log), "too old");
	stele_output_load(&out, &loaded, sizeof(loaded));
	ok(loaded.size == sizeof(loaded) && loaded.one == 1 && loaded.two == 0,
	   "loaded without what it lacks");
	is_int(0, stele_output_set((struct version_two *)NULL, &known, one, &log),
	       "NULL: not wanted");
}

int main(void)
{
	struct test_plan plan = {.samples = 20, .size_max = 4000,
				 .backend = "threads"};
	struct test_dataset t;

	plan_lazy();
	if (chdir(test_tmpdir()) ||
	    system("mkdir source && echo one >source/a && echo two >source/b") ||
	    stele_build("source", "outputs.stele", NULL, NULL))
		bail("no image");
	test_dataset_open(&t, &plan);
	test_helpers();
#define TEST(fn, type) test_one(&t, #fn, fn, sizeof(struct type))
	TEST(dataset_info, stele_dataset_info);
	TEST(field, stele_field);
	TEST(extent, stele_extent);
	TEST(image_info, stele_image_info);
	TEST(snapshot_info, stele_snapshot_info);
	TEST(stats, stele_reader_stats);
	TEST(build, stele_build_report);
	TEST(verify, stele_verify_report);
	TEST(diff, stele_diff_report);
	TEST(gc, stele_gc_report);
	TEST(resize, stele_resize_report);
	TEST(repair, stele_repair_report);
	test_dataset_close(&t);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view-shared.c - a view shows what another machine has published since
 *
 * Two loop devices over one file are two machines on one disk: each has a
 * page cache of its own. What the one cached before the other wrote is old; that it
 * really is, is checked first, as without it this test would show nothing.
 */
#include "tests/fixture/image.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE   (UINT64_C(32) << 20)
#define COUNT  150u
#define PAGE   4096u
#define AHEAD  "8192" /* sectors that the kernel may read ahead */

struct half { /* what one commit brings */
	struct test_sample *samples;
	uint64_t numbers[COUNT];
	struct test_segment segment;
};

static char here[LOOP_NODE_SIZE], there[LOOP_NODE_SIZE];
static struct test_image image;
static struct half halves[2];

static void publish(unsigned int half, const char *name)
{
	struct half *h = &halves[half];

	h->samples = test_samples(COUNT, 60000, half + 1);
	h->segment = (struct test_segment){.samples = h->samples,
					   .count = COUNT,
					   .numbers = h->numbers};
	if (test_image_segment(&image, &h->segment) ||
	    test_image_snapshot(&image, name, NULL, 0) ||
	    test_image_commit(&image))
		bail("cannot publish '%s'", name);
}

static struct stele_dataset *open_here(const char *name)
{
	struct stele_dataset *ds;
	char target[128];

	snprintf(target, sizeof(target), "%s@%s", here, name);
	if (stele_dataset_open(target, NULL, &ds))
		bail("cannot open '%s'", target);
	return ds;
}

static struct stele_view *open_view(struct stele_dataset *ds)
{
	struct stele_view *view;

	if (stele_view_open(ds, NULL, &view))
		bail("no view");
	return view;
}

static bool is_sample(const struct stele_sample *sample, uint64_t half,
		      uint64_t i)
{
	const struct test_sample *wanted = &halves[half].samples[i];

	return !sample->status && sample->size == wanted->size &&
	       !memcmp(sample->data, wanted->data, wanted->size);
}

/* How many samples of a snapshot of so many segments are wrong. */
static unsigned int count_wrong(struct stele_dataset *ds,
				struct stele_view *view, unsigned int segments)
{
	struct stele_sample sample;
	unsigned int wrong = 0;

	for (unsigned int half = 0; half < segments; half++)
		for (uint64_t i = 0; i < COUNT; i++) {
			uint64_t id = half * COUNT + halves[half].numbers[i];

			if (view) {
				stele_view_sample(view, id, &sample);
				wrong += !is_sample(&sample, half, i);
				continue;
			}
			stele_dataset_read(ds, id, &sample);
			wrong += !is_sample(&sample, half, i);
			stele_sample_release(&sample);
		}
	return wrong;
}

static uint64_t used_size(const struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	stele_dataset_info(ds, &info);
	return info.used_size;
}

/* Pages of [offset, SIZE) that this machine has in its cache. */
static unsigned int count_cached(uint64_t offset)
{
	static unsigned char vec[SIZE / PAGE];
	int fd = open(here, O_RDONLY | O_CLOEXEC);
	size_t size = (size_t)(SIZE - offset);
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)offset);
	unsigned int count = 0;

	if (map == MAP_FAILED || mincore(map, size, vec))
		sysbail("mincore");
	for (size_t i = 0; i < size / PAGE; i++)
		count += vec[i] & 1;
	munmap(map, size);
	close(fd);
	return count;
}

/* Through the cache, as blkid, udev or dd read. */
static void read_through(int fd, void *data, uint64_t offset, size_t size)
{
	if (pread(fd, data, size, (off_t)offset) != (ssize_t)size)
		sysbail("read");
}

/* Pages that read otherwise through the cache than past it. */
static unsigned int count_stale(uint64_t offset, uint64_t end)
{
	int cached = open(here, O_RDONLY | O_CLOEXEC);
	int direct = open(here, O_RDONLY | O_CLOEXEC | O_DIRECT);
	char *a = aligned_alloc(PAGE, PAGE), *b = aligned_alloc(PAGE, PAGE);
	unsigned int stale = 0;

	for (; offset + PAGE <= end; offset += PAGE) {
		read_through(cached, a, offset, PAGE);
		read_through(direct, b, offset, PAGE);
		stale += memcmp(a, b, PAGE) != 0;
	}
	free(a);
	free(b);
	close(cached);
	close(direct);
	return stale;
}

static void fill_cache(uint64_t offset, uint64_t size)
{
	int fd = open(here, O_RDONLY | O_CLOEXEC);
	char *data = malloc(size);

	if (!data)
		bail("no memory");
	read_through(fd, data, offset, size);
	free(data);
	close(fd);
}

static void check(void)
{
	struct stele_dataset *first = open_here("v1"), *second;
	struct stele_view *old = open_view(first), *new;
	uint64_t end = (used_size(first) + PAGE - 1) / PAGE * PAGE;

	is_uint(0, count_wrong(first, old, 1), "v1 through a view");
	is_uint(0, count_cached(end), "and nothing is read ahead of it");
	fill_cache(end, SIZE - end);

	publish(1, "v2");
	ok(count_stale(end, SIZE) > 100, "what was cached is old now");
	is_uint(0, count_wrong(first, old, 1), "v1 is what it was");
	second = open_here("v2");
	is_uint(0, count_wrong(second, NULL, 2), "v2 past the cache");
	new = open_view(second);
	is_uint(0, count_wrong(second, new, 2), "v2 through a new view");
	is_uint(0, count_wrong(first, old, 1), "v1 still");
	stele_view_close(new);
	stele_view_close(old);
	stele_dataset_close(second);
	stele_dataset_close(first);
}

int main(void)
{
	struct stele_device *dev;
	char file[512];

	if (!loop_usable())
		skip_all("needs root and loop devices");
	snprintf(file, sizeof(file), "%s", file_new("disk", SIZE));
	if (!loop_attach(file, 512, here) || !loop_attach(file, 512, there))
		skip_all("needs root and loop devices");
	command("blockdev --setra " AHEAD " %s", here);
	/* Nothing in its cache that udev may have looked at, at its end for example. */
	command("! command -v udevadm || udevadm settle; blockdev --flushbufs %s", here);
	if (stele_device_open_file(there, STELE_DEVICE_WRITE, NULL, NULL,
				   &dev) ||
	    test_image_begin(&image, dev, SIZE))
		bail("cannot write '%s'", there);
	plan_lazy();
	publish(0, "v1");
	check();
	stele_device_close(test_image_end(&image));
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-transfer.c - blocking transfers, the same over every backend
 */
#include "tests/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define SIZE (4u << 20)

static void check_round_trip(struct stele_device *dev, const char *name)
{
	/* More than one piece, and not a multiple of one. */
	size_t size = 2 * (size_t)dev->limits.transfer_max + 4096;
	char *wanted = test_data(dev, size, 1);
	char *seen = test_data(dev, size, 2);

	is_int(0, stele_device_write(dev, wanted, 8192, size), "%s: writes",
	       name);
	is_int(0, stele_device_flush(dev), "%s: flushes", name);
	is_int(0, stele_device_read(dev, seen, 8192, size), "%s: reads", name);
	is_blob(wanted, seen, size, "%s: the same bytes", name);

	is_int(0, stele_device_read(dev, seen, 0, 16384), "%s: reads before",
	       name);
	is_blob(wanted, seen + 8192, 8192, "%s: offset counts in bytes", name);
	memset(wanted, 0, 8192);
	is_blob(wanted, seen, 8192, "%s: nothing was written before", name);
	is_int(0, stele_device_read(dev, seen, 4096, 0), "%s: no bytes", name);
	free(wanted);
	free(seen);
}

/* A last piece that is not aligned: then not even the first is written. */
static void check_refused_whole(struct stele_device *dev, const char *name)
{
	size_t size = (size_t)dev->limits.transfer_max + 100;
	char *before = test_data(dev, size, 8), *after = test_data(dev, size, 9);

	stele_device_read(dev, before, 0, dev->limits.transfer_max);
	is_int(-EINVAL, stele_device_write(dev, after, 0, size),
	       "%s: write refuses the end of a long one", name);
	stele_device_read(dev, after, 0, dev->limits.transfer_max);
	is_blob(before, after, dev->limits.transfer_max,
		"%s: nothing was written", name);
	free(before);
	free(after);
}

static void check_refusals(struct stele_device *dev, const char *name)
{
	static const struct {
		unsigned int shift; /* of memory */
		uint64_t offset;
		size_t size;
		const char *what;
	} cases[] = {
		{0, 1, 4096, "offset"},
		{0, 4096, 4095, "size"},
		{0, 4096, 1, "size below a block"},
		{1, 4096, 4096, "memory"},
		{0, INT64_MAX - 511, 4096, "end beyond any file"},
		{0, UINT64_MAX - 511, 4096, "end that overflows"},
	};
	char *data = test_data(dev, 8192, 3), *before = test_data(dev, 8192, 3);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		is_int(-EINVAL,
		       stele_device_read(dev, data + cases[i].shift,
					 cases[i].offset, cases[i].size),
		       "%s: read refuses %s", name, cases[i].what);
		is_int(-EINVAL,
		       stele_device_write(dev, data + cases[i].shift,
					  cases[i].offset, cases[i].size),
		       "%s: write refuses %s", name, cases[i].what);
	}
	is_blob(before, data, 8192, "%s: memory untouched", name);
	check_refused_whole(dev, name);
	is_int(-EINVAL, stele_device_discard(dev, 1, 512),
	       "%s: discard refuses offset", name);
	is_int(-EINVAL, stele_device_discard(dev, 512, 1),
	       "%s: discard refuses size", name);
	free(data);
	free(before);
}

static void check_end(struct stele_device *dev, const char *name)
{
	char *data = test_data(dev, 8192, 4), *seen = test_data(dev, 8192, 5);
	uint64_t size = 0;

	is_int(0, stele_device_size(dev, &size), "%s: size", name);
	is_uint(SIZE, size, "%s: as it was made", name);
	is_int(0, stele_device_write(dev, data, SIZE - 8192, 8192),
	       "%s: writes to the end", name);
	is_int(-ENODATA, stele_device_read(dev, seen, SIZE - 4096, 8192),
	       "%s: reads across the end", name);
	is_int(-ENODATA, stele_device_read(dev, seen, SIZE, 4096),
	       "%s: reads at the end", name);
	is_int(-ENOSPC, stele_device_write(dev, data, SIZE - 4096, 8192),
	       "%s: writes across the end", name);
	is_int(-ENOSPC, stele_device_write(dev, data, SIZE, 4096),
	       "%s: writes at the end", name);
	is_int(0, stele_device_size(dev, &size), "%s: size again", name);
	is_uint(SIZE, size, "%s: has not grown", name);
	free(data);
	free(seen);
}

static void check_discard(struct stele_device *dev, const char *name)
{
	char *data = test_data(dev, 12288, 6), *seen = test_data(dev, 12288, 7);

	is_int(0, stele_device_write(dev, data, 65536, 12288),
	       "%s: writes what is discarded", name);
	is_int(0, stele_device_discard(dev, 65536 + 4096, 4096),
	       "%s: discards", name);
	is_int(0, stele_device_read(dev, seen, 65536, 12288),
	       "%s: reads around it", name);
	memset(data + 4096, 0, 4096);
	/* Ceph passes over what is small. */
	if (strcmp(name, "rbd"))
		is_blob(data, seen, 12288, "%s: a hole of that size there",
			name);
	free(data);
	free(seen);
}

static void check_limits(struct stele_device *dev, const char *name)
{
	const struct stele_limits *limits = &dev->limits;

	ok(limits->logical_block >= 512 && limits->logical_block <= 4096,
	   "%s: block of %u bytes", name, limits->logical_block);
	ok(limits->transfer_max >= 4096 &&
		   limits->transfer_max <= STELE_FILE_TRANSFER_SIZE_MAX &&
		   limits->transfer_max % limits->logical_block == 0 &&
		   limits->transfer_max % limits->memory_align == 0,
	   "%s: transfers of %u bytes", name, limits->transfer_max);
	ok(limits->depth_max >= 1, "%s: depth %u", name, limits->depth_max);
	is_string(name, stele_device_backend(dev), "%s: says its name", name);
}

int main(void)
{
	plan_lazy();
	for (size_t i = 0; i < TEST_BACKENDS; i++) {
		struct stele_device *dev;

		if (!test_backend_usable(test_backends[i]))
			continue;
		dev = test_device_open(test_backends[i], SIZE);
		check_limits(dev, test_backends[i]);
		check_round_trip(dev, test_backends[i]);
		check_refusals(dev, test_backends[i]);
		check_discard(dev, test_backends[i]);
		check_end(dev, test_backends[i]);
		stele_device_close(dev);
	}
	stele_device_close(NULL);
	return done();
}

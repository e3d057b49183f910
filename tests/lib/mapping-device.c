/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping-device.c - opening what was mapped touches no device, reading does
 *
 * A snapshot is opened through a recording device, and again, from what that
 * published, over a device that counts.
 */
#include "lib/node/mapping_file.h"
#include "lib/read/dataset.h"
#include "tests/device/fault.h"
#include "tests/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 300

static const uint64_t deleted[] = {3, 4, 99};
static const char *const classes[] = {"a", "b", "c", "d", NULL};
static struct test_sample *samples;
static const struct stele_target any_snapshot;

/* The same bytes each time. */
static struct stele_device *make_image(void)
{
	const struct test_segment segment = {
		.samples = samples, .count = COUNT, .labels = true,
		.names = classes,
	};

	return test_image_simple(&segment, deleted, 3, 0);
}

static void publish(const char *name)
{
	struct stele_mapping mapping = {.identity = {.inode = 1}};
	struct stele_device *recording;
	struct stele_dataset *ds;

	snprintf(mapping.info.name, sizeof(mapping.info.name), "%s", name);
	strcpy(mapping.info.snapshot, "v1");
	strcpy(mapping.info.via, "file");
	mapping.info.target = "/none";
	if (stele_device_open_recording(make_image(), &recording) ||
	    stele_dataset_create(recording, &any_snapshot, NULL, &ds))
		bail("cannot open the test image");
	is_int(0, stele_mapping_save(&mapping, recording, NULL), "published");
	stele_dataset_close(ds);
}

static int open_mapped(const char *name, struct stele_device **fault,
		       struct stele_dataset **ds)
{
	struct stele_mapping mapping;
	struct stele_device *mapped;

	if (stele_device_open_fault(make_image(), NULL, 0, fault) ||
	    stele_mapping_load(name, NULL, &mapping))
		bail("no mapping");
	if (stele_device_wrap_mapped(*fault, &mapping, &mapped))
		bail("no mapped device");
	is_string(stele_device_backend(*fault), stele_device_backend(mapped),
		  "a mapped device has the name of who serves");
	ok(!mapping.data, "and takes the mapping");
	return stele_dataset_create(mapped, &any_snapshot, NULL, ds);
}

static size_t logged(struct stele_device *fault)
{
	size_t count;

	stele_fault_log(fault, &count);
	return count;
}

static void check_reads(struct stele_dataset *ds, struct stele_device *fault)
{
	struct stele_reader *reader;
	struct stele_sample sample;
	uint64_t ids[8] = {0, 1, 2, 3, 100, 200, 295, 296};
	unsigned int good = 0;

	is_int(0, stele_dataset_read(ds, 5, &sample), "a sample is read");
	stele_sample_release(&sample);
	is_uint(1, logged(fault), "by one device read");
	stele_fault_log_clear(fault);
	if (stele_reader_open(ds, NULL, &reader))
		bail("no reader");
	is_int(8, stele_reader_submit(reader, ids, NULL, 8), "eight submitted");
	for (int i = 0; i < 8; i++) {
		if (stele_reader_collect(reader, &sample, 1, 1) != 1)
			break;
		good += sample.status == 0;
		stele_reader_release(reader, &sample);
	}
	is_uint(8, good, "eight read");
	is_uint(8, logged(fault), "by eight device reads");
	stele_reader_close(reader);
}

static void check_open(void)
{
	struct stele_dataset_info wanted, seen;
	struct stele_dataset *ds, *direct;
	struct stele_device *fault;

	publish("cats");
	is_int(0, open_mapped("cats", &fault, &ds), "opens what was mapped");
	is_uint(0, logged(fault), "without any operation on the device");
	if (stele_dataset_create(make_image(), &any_snapshot, NULL, &direct))
		bail("cannot open the test image");
	stele_dataset_info(direct, &wanted);
	stele_dataset_info(ds, &seen);
	memcpy(seen.backend, wanted.backend, sizeof(seen.backend));
	is_blob(&wanted, &seen, sizeof(seen), "and finds the same snapshot");
	is_uint(COUNT - 3, seen.sample_count, "with its samples");
	check_reads(ds, fault);
	stele_dataset_close(direct);
	stele_dataset_close(ds);
}

/* Blocking reads that begin in, end in, or straddle what was recorded. */
static void check_edges(void)
{
	struct stele_mapping mapping = {
		.info = {.name = "edges", .snapshot = "v1", .via = "file",
			 .target = "/none"},
		.identity = {.inode = 1},
	};
	struct stele_device *dev, *recording, *mapped;
	uint8_t *data, *memory, *wanted;

	if (stele_device_open_memory(65536, 512, &dev) ||
	    stele_device_open_recording(dev, &recording))
		bail("no memory device");
	memory = stele_device_memory(dev);
	memset(memory, 'r', 65536);
	data = stele_device_alloc(dev, 65536);
	if (stele_device_read(recording, data, 4096, 4096) ||
	    stele_device_read(recording, data, 16384, 512) ||
	    stele_mapping_save(&mapping, recording, NULL))
		bail("cannot record");
	stele_device_close(recording);

	if (stele_device_open_memory(65536, 512, &dev) ||
	    stele_mapping_load("edges", NULL, &mapping) ||
	    stele_device_wrap_mapped(dev, &mapping, &mapped))
		bail("no mapped device");
	memset(stele_device_memory(dev), 'd', 65536);
	wanted = malloc(65536);
	memset(wanted, 'd', 65536);
	memset(wanted + 4096, 'r', 4096);
	memset(wanted + 16384, 'r', 512);
	is_int(0, stele_device_read(mapped, data, 4096, 4096), "all of one");
	is_blob(wanted + 4096, data, 4096, "recorded bytes");
	is_int(0, stele_device_read(mapped, data, 4608, 1024), "within one");
	is_blob(wanted + 4608, data, 1024, "recorded bytes");
	is_int(0, stele_device_read(mapped, data, 7680, 4096), "over its end");
	is_blob(wanted + 7680, data, 4096, "recorded bytes, then the device's");
	is_int(0, stele_device_read(mapped, data, 0, 512), "before the first");
	is_blob(wanted, data, 512, "the device's bytes");
	is_int(0, stele_device_read(mapped, data, 16896, 512), "right behind");
	is_blob(wanted + 16896, data, 512, "the device's bytes");
	is_int(-ENODATA, stele_device_read(mapped, data, 65536, 512),
	       "behind the device");
	is_int(-EROFS, stele_device_write(mapped, data, 4096, 512),
	       "no writing");
	stele_device_close(mapped);
	free(wanted);
	free(data);
}

/* What goes through a queue is the device's, and nobody records it. */
static void check_queue(struct stele_device *(*wrap)(struct stele_device *dev),
			const char *what)
{
	struct stele_request request = {.op = STELE_OP_READ, .size = 4096}, *done;
	struct stele_device *memory, *dev;
	struct stele_queue *queue;
	uint8_t wanted[4096];

	memory = test_memory(65536, 512, 'd');
	memset(wanted, 'd', sizeof(wanted));
	dev = wrap(memory);
	request.data = stele_device_alloc(dev, 4096);
	request.offset = 4096;
	is_int(0, stele_queue_open(dev, 1, NULL, 0, &queue), "%s: a queue", what);
	is_int(0, stele_queue_submit(queue, &request), "%s: takes a read", what);
	is_int(1, stele_queue_reap(queue, &done, 1, 1), "%s: ends it", what);
	is_int(0, request.status, "%s: well", what);
	is_blob(wanted, request.data, 4096, "%s: the device's bytes", what);
	stele_queue_close(queue);
	stele_device_close(dev);
	free(request.data);
}

static struct stele_device *wrap_mapped(struct stele_device *dev)
{
	struct stele_mapping mapping;
	struct stele_device *mapped;

	if (stele_mapping_load("edges", NULL, &mapping) ||
	    stele_device_wrap_mapped(dev, &mapping, &mapped))
		bail("no mapped device");
	return mapped;
}

static struct stele_device *wrap_recording(struct stele_device *dev)
{
	struct stele_device *recording;

	if (stele_device_open_recording(dev, &recording))
		bail("no recording device");
	return recording;
}

/* Recorded from blocks of 512, played over blocks of 4096. */
static void check_other_blocks(void)
{
	struct stele_mapping mapping;
	struct stele_device *dev, *mapped;

	if (stele_device_open_memory(65536, 4096, &dev) ||
	    stele_mapping_load("edges", NULL, &mapping))
		bail("no memory device");
	is_int(-EUCLEAN, stele_device_wrap_mapped(dev, &mapping, &mapped),
	       "an extent that ends within a block is refused");
}

int main(void)
{
	char dir[PATH_MAX];

	plan_lazy();
	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	setenv(STELE_RUN_DIR_ENV, dir, 1);
	samples = test_samples(COUNT, 5000, 1);
	check_open();
	check_edges();
	check_queue(wrap_mapped, "mapped");
	check_queue(wrap_recording, "recording");
	check_other_blocks();
	free(samples);
	return done();
}

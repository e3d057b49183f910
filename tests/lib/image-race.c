/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-race.c - an image is opened while others commit
 *
 * A device that, before a catalog is read, lets a writer commit until the space
 * of that catalog has been written over.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/txn/txn.h"
#include "tests/fixture/change.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

struct racing {
	struct stele_device base;
	struct stele_device *inner; /* memory, owned */
	unsigned int times;	    /* that it still happens */
	unsigned int reads;	    /* of catalogs */
	bool damage;		    /* instead: break the catalog */
};

static unsigned int names;
static char last_name[16];

static void commit_once(struct stele_device *dev)
{
	struct stele_txn writer = {0};
	const struct stele_txn_opts change = {.time = 1700000001};

	snprintf(last_name, sizeof(last_name), "n%u", names++);
	if (test_txn_open(&writer, dev, NULL) ||
	    test_change_rename(&writer, &change,
				writer.snapshots[0].info.name, last_name))
		bail("cannot commit");
	test_txn_end(&writer);
}

/* Or its mirror. */
static bool is_catalog(uint64_t offset)
{
	return offset >= STELE_CATALOG_MIRRORS_OFFSET &&
	       offset != stele_superblock_witness(STELE_CATALOG_MIRRORS_OFFSET) &&
	       offset != STELE_DATA_OFFSET - STELE_BLOCK_SIZE;
}

static ssize_t race_transfer(struct stele_device *dev, enum stele_op op,
			     void *data, uint64_t offset, size_t size)
{
	struct racing *racing = (struct racing *)dev;
	uint8_t *memory = stele_device_memory(racing->inner);
	uint8_t before[STELE_BLOCK_SIZE];
	int ret;

	if (op != STELE_OP_READ)
		return -EROFS;
	if (is_catalog(offset))
		racing->reads++;
	if (is_catalog(offset) && racing->damage)
		memory[offset + 100] ^= 1;
	if (offset >= STELE_DATA_OFFSET && racing->times) {
		racing->times--;
		memcpy(before, memory + offset, sizeof(before));
		while (!memcmp(before, memory + offset, sizeof(before)))
			commit_once(racing->inner);
	}
	ret = stele_device_read(racing->inner, data, offset, size);
	return ret ? ret : (ssize_t)size;
}

static int race_size(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct racing *)dev)->inner, size);
}

static int race_queue(struct stele_device *dev, unsigned int depth, void *arena,
		      size_t arena_size, struct stele_queue **queue)
{
	(void)dev;
	(void)depth;
	(void)arena;
	(void)arena_size;
	(void)queue;
	return -EOPNOTSUPP;
}

static void race_close(struct stele_device *dev)
{
	stele_device_close(((struct racing *)dev)->inner);
	free(dev);
}

static const struct stele_device_ops race_ops = {
	.name = "race",
	.transfer = race_transfer,
	.size = race_size,
	.queue_open = race_queue,
	.close = race_close,
};

static struct racing *open_racing(unsigned int times, bool damage)
{
	static const struct test_sample sample = {.key = "k", .data = "d",
						  .size = 1};
	const struct test_segment segment = {.samples = &sample, .count = 1};
	struct racing *racing = calloc(1, sizeof(*racing));

	if (!racing)
		bail("no memory");
	racing->inner = test_image_simple(&segment, NULL, 0, 0);
	racing->base.ops = &race_ops;
	racing->base.limits = racing->inner->limits;
	racing->base.fd = -1;
	racing->times = times;
	racing->damage = damage;
	return racing;
}

static void check(unsigned int times)
{
	struct racing *racing = open_racing(times, false);
	struct stele_catalog_snapshot snapshot;
	struct stele_image image;
	struct test_log log;

	test_log_init(&log);
	is_int(0, stele_image_load(&racing->base, &log.log, &image),
	       "overtaken %u times", times);
	is_string("", log.text, "nothing is said of it");
	stele_catalog_snapshot(&image.catalog, 0, &snapshot);
	is_string(times ? last_name : "v1", snapshot.name,
		  "the newest state is opened");
	stele_image_release(&image);
}

int main(void)
{
	struct racing *racing;
	struct stele_image image;
	struct test_log log;

	plan_lazy();
	check(0);
	check(1);
	check(5);
	racing = open_racing(0, true);
	test_log_init(&log);
	is_int(-EBADMSG, stele_image_load(&racing->base, &log.log, &image),
	       "damage is damage");
	is_uint(2, racing->reads, "catalog and mirror are read, and not again");
	ok(test_log_has(&log, "cannot be used"), "it is said");
	stele_device_close(&racing->base);
	return done();
}

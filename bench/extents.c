/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extents.c - writes what a reader of an image would ask its device for
 *
 *	extents TARGET SEED FILE
 *
 * Each sample once, in an order that is random by the seed, large ones in the pieces that
 * the library reads. What peers of the same target need to know goes to stdout as JSON.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/race.h"
#include "bench/trace.h"
#include "stele.h"

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "cannot %s: %s", what, stele_strerror(ret));
}

static uint64_t *read_sizes(struct stele_dataset *ds)
{
	uint64_t *sizes = race_memory(stele_dataset_count(ds) * sizeof(*sizes));
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int ret;

	check(stele_cursor_open(ds, NULL, 0, &cursor), "walk the keys");
	while ((ret = stele_cursor_next(cursor, &entry)) > 0)
		sizes[entry.id] = entry.size;
	check(ret, "walk the keys");
	stele_cursor_close(cursor);
	return sizes;
}

static uint64_t write_reads(const struct stele_dataset *ds, const struct stele_dataset_info *info,
			    uint64_t id, uint64_t payload, FILE *out)
{
	const uint64_t block = info->logical_block;
	struct stele_extent extent = {.size = sizeof(extent)};
	uint64_t at, end, count = 0;

	check(stele_dataset_locate(ds, id, &extent), "locate a sample");
	at = extent.offset / block * block;
	end = (extent.offset + extent.slot_size + block - 1) / block * block;
	for (; at < end; count++) {
		struct trace_read read = {at, end - at, 0};

		if (read.size > info->transfer_max)
			read.size = info->transfer_max;
		at += read.size;
		read.payload = at == end ? payload : 0;
		if (fwrite(&read, sizeof(read), 1, out) != 1)
			err(1, "cannot write");
	}
	return count;
}

int main(int argc, char **argv)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	uint64_t *sizes, begin = UINT64_MAX, end = 0, reads = 0;
	uint32_t *order;
	FILE *out;

	if (argc != 4)
		errx(2, "usage: %s TARGET SEED FILE", argv[0]);
	check(stele_dataset_open(argv[1], NULL, &ds), "open");
	stele_dataset_info(ds, &info);
	sizes = read_sizes(ds);
	order = race_order(info.sample_count, strtoull(argv[2], NULL, 10));
	out = fopen(argv[3], "we");
	if (!out)
		err(1, "cannot create '%s'", argv[3]);
	for (uint64_t i = 0; i < info.sample_count; i++) {
		struct stele_extent extent = {.size = sizeof(extent)};

		check(stele_dataset_locate(ds, i, &extent), "locate a sample");
		begin = extent.offset < begin ? extent.offset : begin;
		end = extent.offset + extent.slot_size > end ? extent.offset + extent.slot_size :
							       end;
		reads += write_reads(ds, &info, order[i], sizes[order[i]], out);
	}
	if (fclose(out))
		err(1, "cannot write '%s'", argv[3]);
	printf("{\"samples\":%" PRIu64 ",\"payload\":%" PRIu64 ",\"reads\":%" PRIu64
	       ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",\"runs\":%u,\"table_size\":%" PRIu64
	       ",\"granule\":%u,\"logical_block\":%u,\"slots_size\":%" PRIu64 "}\n",
	       info.sample_count, info.payload_size, reads, begin, end, info.run_count,
	       info.table_size, info.granule, info.logical_block, info.slots_size);
	free(order);
	free(sizes);
	stele_dataset_close(ds);
	return 0;
}

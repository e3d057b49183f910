/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-exact.c - a reader issues the predicted reads, and no other
 *
 * One for each sample, of the blocks that its slot touches; more only where a
 * single one would pass the limit. No index is read after open.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define READS 400u

static void check(const struct test_plan *plan, const char *what)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	uint64_t ids[READS], parts = 0, size = 0;
	struct test_dataset t;
	struct test_read reads[64];

	test_dataset_open(&t, plan);
	test_random_ids(&t, ids, READS, 7);
	for (unsigned int i = 0; i < READS; i++) {
		unsigned int n = test_reads_of(&t, ids[i], reads, 64);

		parts += n;
		while (n-- > 0)
			size += reads[n].size;
	}
	if (stele_reader_open(t.ds, NULL, &reader))
		bail("no reader");
	is_uint(0, test_read_all(&t, reader, ids, READS), "%s: bytes", what);
	ok(test_is_issued(&t, ids, READS, true), "%s: reads", what);
	stele_reader_stats(reader, &stats);
	is_uint(parts, stats.device_reads, "%s: counted", what);
	is_uint(size, stats.device_bytes, "%s: and their bytes", what);
	is_uint(READS, stats.samples, "%s: samples", what);
	is_uint(0, stats.failed + stats.reread, "%s: none failed", what);
	if (plan->size_max < 100000)
		is_uint(READS, parts, "%s: one for each", what);
	stele_reader_close(reader);
	test_dataset_close(&t);
}

static void check_all(const char *backend)
{
	static const uint32_t granules[] = {16, 64, 512, 4096};
	static const uint32_t blocks[] = {512, 4096};
	struct test_plan plan = {
		.samples = 150, .size_max = 9000, .backend = backend};
	char what[64];

	for (unsigned int i = 0; i < (backend ? 4 : 8); i++) {
		plan.granule = granules[i % 4];
		plan.logical_block = blocks[i / 4];
		snprintf(what, sizeof(what), "%s, granule %u, blocks of %u",
			 backend ? backend : "memory", plan.granule,
			 plan.logical_block);
		check(&plan, what);
	}
	plan.boundary = 16384;
	plan.granule = 64;
	check(&plan, "boundary");
	plan.segments = 3;
	plan.delete_every = 3;
	check(&plan, "boundary, three segments, deletions");
	plan.boundary = 0;
	plan.logical_block = 512;
	check(&plan, "three segments, deletions");
	plan = (struct test_plan){
		.samples = 15, .size_max = 3000000, .backend = backend};
	check(&plan, "samples of several transfers");
}

int main(void)
{
	plan_lazy();
	check_all(NULL);
	check_all("uring");
	check_all("threads");
	return done();
}

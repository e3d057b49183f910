/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count-ops.c - opens a target, and reads each sample N times through a reader
 *
 *	count-ops TARGET N
 *
 * What an OSD counts meanwhile, less what it counts for N = 0, are the reads.
 */
#include <stdio.h>
#include <stdlib.h>

#include "stele.h"

#define BATCH 64

static int read_all(struct stele_dataset *ds, struct stele_reader *reader)
{
	uint64_t count = stele_dataset_count(ds), next = 0, done = 0;
	struct stele_sample samples[BATCH];

	while (done < count) {
		int got;

		while (next < count &&
		       stele_reader_submit(reader, &next, NULL, 1) == 1)
			next++;
		got = stele_reader_collect(reader, samples, BATCH, 1);
		if (got < 0)
			return got;
		for (int i = 0; i < got; i++) {
			if (samples[i].status)
				return samples[i].status;
			stele_reader_release(reader, &samples[i]);
		}
		done += (uint64_t)got;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct stele_reader *reader;
	struct stele_dataset *ds;
	int ret;

	if (argc != 3)
		return 2;
	ret = stele_dataset_open(argv[1], NULL, &ds);
	if (ret)
		return 1;
	ret = stele_reader_open(ds, NULL, &reader);
	for (int i = 0; !ret && i < atoi(argv[2]); i++)
		ret = read_all(ds, reader);
	if (ret)
		fprintf(stderr, "count-ops: %s\n", stele_strerror(ret));
	stele_reader_close(reader);
	stele_dataset_close(ds);
	return ret ? 1 : 0;
}

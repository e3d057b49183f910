/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costly.c - an image that is dear to who is careless, see tests/fixture/costly.h
 *
 *	costly FILE SEGMENTS SNAPSHOTS SAMPLES DELETED
 */
#include "tests/fixture/costly.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	struct stele_device *dev;
	struct costly how;
	uint64_t size;
	FILE *file;

	if (argc != 6)
		return 2;
	how = (struct costly){
		.segments = number(argv[2]), .snapshots = number(argv[3]),
		.samples = number(argv[4]), .deleted = number(argv[5]),
	};
	dev = costly_make(&how);
	file = fopen(argv[1], "w");
	if (stele_device_size(dev, &size) < 0 || !file ||
	    fwrite(costly_memory(dev), 1, size, file) != size ||
	    fclose(file) != 0)
		sysbail("%s", argv[1]);
	stele_device_close(dev);
	return 0;
}

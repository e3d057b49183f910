/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rich.c - an image whose samples have fields of every type, for compact.t
 *
 *	rich FILE COUNT
 */
#include "lib/ops/build.h"
#include "tests/device/memory.h"
#include "tests/fixture/rich.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>

#define IMAGE_SIZE (UINT64_C(32) << 20)

int main(int argc, char **argv)
{
	const struct stele_build_opts opts = {.size = sizeof(opts),
					      .time = 1700000000};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev;
	struct rich rich;

	if (argc != 3)
		return 2;
	dev = test_memory(IMAGE_SIZE, 512, 0);
	rich_init(&rich, strtoul(argv[2], NULL, 10), 30000);
	if (stele_build_on(dev, &rich.source, "v1", &opts, &report) < 0)
		bail("cannot build");
	test_memory_save(dev, argv[1]);
	stele_device_close(dev);
	return 0;
}

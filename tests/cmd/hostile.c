/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile.c - an image whose keys were made to do harm, for extract.t
 *
 *	hostile FILE KEY...
 *
 * The builder makes keys from a directory, so it cannot make these. Each
 * sample holds its key and a newline.
 */
#include "tests/fixture/image.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_SIZE (UINT64_C(8) << 20)

int main(int argc, char **argv)
{
	struct test_sample *samples = calloc((size_t)argc, sizeof(*samples));
	struct test_segment segment = {.samples = samples};
	struct stele_device *dev;
	FILE *file;
	char *text;

	if (!samples || argc < 2)
		return 2;
	for (int i = 2; i < argc; i++) {
		if (asprintf(&text, "%s\n", argv[i]) < 0)
			return 1;
		samples[segment.count++] = (struct test_sample){
			.key = argv[i], .data = text, .size = strlen(text)};
	}
	dev = test_image_simple(&segment, NULL, 0, IMAGE_SIZE);
	file = fopen(argv[1], "w");
	if (!file || fwrite(stele_device_memory(dev), 1, IMAGE_SIZE, file) !=
			     IMAGE_SIZE || fclose(file) != 0)
		sysbail("%s", argv[1]);
	stele_device_close(dev);
	for (uint64_t i = 0; i < segment.count; i++)
		free((char *)samples[i].data);
	free(samples);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - fuzz target: any bytes as the file of a mapping
 *
 * Bit 0 puts the first line in front. What decodes must encode to the same bytes.
 */
#include <stdio.h>

#include "lib/device/target.h"
#include "lib/node/mapping.h"
#include "lib/stele.h"
#include "tests/fuzz/input.h"

#define HEAD "stele mapping 1\n"

static void use(const struct stele_mapping *m, const char *text, size_t size)
{
	char *again = malloc(STELE_MAPPING_SIZE_MAX);

	input_assert(strlen(m->info.name) <= STELE_NAME_SIZE_MAX);
	input_assert(strlen(m->info.snapshot) <= STELE_NAME_SIZE_MAX);
	input_assert(m->info.target == m->target);
	input_assert(m->target[0] == '/' || stele_path_is_rbd(m->target));
	input_assert(strlen(m->info.via) < sizeof(m->info.via));
	input_assert(again && !stele_mapping_encode(m, again));
	input_assert(strlen(again) == size && !memcmp(again, text, size));
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stele_mapping mapping;
	const char *why = NULL;
	char *text, *bytes = input_bytes(data, &size);
	size_t head;

	if (!bytes)
		return 0;
	head = (data[0] & 1) ? strlen(HEAD) : 0;
	text = malloc(head + size + 1); /* ends where the input does, nearly */
	input_assert(text != NULL);
	memcpy(text, HEAD, head);
	memcpy(text + head, bytes, size);
	free(bytes);
	if (stele_mapping_decode(text, head + size, "cats", &mapping, &why) == 0)
		use(&mapping, text, head + size);
	else
		input_assert(why != NULL && !mapping.target);
	stele_mapping_release(&mapping);
	free(text);
	return 0;
}

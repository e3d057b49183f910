/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - fuzz target: any bytes as the file of a mapping
 *
 * Bit 0 makes magic, version, size and checksum good. What decodes must fill
 * the file to its last byte.
 */
#include "lib/node/mapping_file.h"
#include "lib/stele.h"
#include "tests/fuzz/input.h"

static void seal(uint8_t *file, size_t size)
{
	struct stele_mapping_header *header = (void *)file;

	memcpy(header->magic, STELE_MAPPING_MAGIC, sizeof(header->magic));
	header->version = le32_put(STELE_MAPPING_VERSION);
	header->file_size = le64_put(size);
	header->crc = le32_put(stele_mapping_crc(file, size));
}

static void use(const struct stele_mapping *m, const uint8_t *file, size_t size)
{
	const struct stele_mapping_extent *extents = m->extents;
	const uint8_t *at = m->bytes;

	input_assert(strlen(m->info.name) <= STELE_NAME_SIZE_MAX);
	input_assert(strlen(m->info.snapshot) <= STELE_NAME_SIZE_MAX);
	input_assert(m->info.target[0] == '/' ||
		     stele_path_has_shots(m->info.target));
	input_assert(strlen(m->info.via) < sizeof(m->info.via));
	input_touch(m->info.target, strlen(m->info.target));
	for (uint32_t i = 0; i < m->extent_count; i++) {
		input_touch(at, le64_get(extents[i].size));
		at += le64_get(extents[i].size);
	}
	input_assert(at == file + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stele_mapping mapping;
	const char *why = NULL;
	uint8_t *file = input_bytes(data, &size);

	if (!file)
		return 0;
	if ((data[0] & 1) && size >= sizeof(struct stele_mapping_header))
		seal(file, size);
	if (stele_mapping_decode(file, size, "cats", &mapping, &why) == 0)
		use(&mapping, file, size);
	else
		input_assert(why != NULL);
	free(file);
	return 0;
}

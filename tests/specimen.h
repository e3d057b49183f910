/* SPDX-License-Identifier: Apache-2.0 */
/*
 * specimen.h - one valid example of each structure of the format
 *
 * For tests that damage them and for the seeds of the fuzzers. Each has at
 * least two entries in each table, and uses every feature that there is, so
 * that each field has a value worth damaging.
 */
#ifndef STELE_TESTS_SPECIMEN_H
#define STELE_TESTS_SPECIMEN_H

#include "format/catalog.h"
#include "format/keys.h"
#include "format/record.h"
#include "format/sections.h"
#include "format/segment.h"
#include "format/superblock.h"

#define SPECIMEN_CATALOG_OFFSET UINT64_C(0x3000000)
#define SPECIMEN_SEGMENT_ID     UINT64_C(0x2222)
#define SPECIMEN_NUMBER         UINT64_C(41)
#define SPECIMEN_SLOT_SIZE      1024u
#define SPECIMEN_NAMES          3u

/* What the superblock below refers to; one block. Sealed. */
void specimen_catalog(struct stele_disk_block *block);
/* A ready one, at generation 7; its catalog_crc is right. */
void specimen_superblock(struct stele_superblock *out);
/* One block. Sealed for the copy at the segment's start. */
void specimen_descriptor(struct stele_disk_block *block,
			 struct stele_descriptor *out);
extern const struct stele_record_shape specimen_shape;
/* A slot with its checksum, of SPECIMEN_NUMBER in SPECIMEN_SEGMENT_ID. */
void specimen_record(uint8_t *slot);
/* A page of 5 keys. Sealed, at offset 0x5000. */
void specimen_keys(struct stele_disk_block *block);
/* SPECIMEN_NAMES names. Sealed, at offset 0x6000. Return: stream size. */
uint64_t specimen_names(struct stele_disk_block *block);

#endif

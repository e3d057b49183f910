/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed.c - writes the corpora: tests/fuzz/corpus/TARGET/NAME
 *
 * `make corpus` runs it. Each file begins with the byte that the target takes
 * its choices from, then comes a specimen less the zeros at its end; once as it
 * is (its checksum will not hold where the target lies elsewhere), once to be
 * sealed, and near misses of it, each with a few bytes changed.
 */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/node/mapping.h"
#include "lib/stele.h"
#include "tests/fuzz/input.h"
#include "tests/fixture/specimen.h"

static void write_seed(const char *target, const char *name, uint8_t first,
		       const void *data, size_t size)
{
	const uint8_t *bytes = data;
	char path[256];
	FILE *file;

	while (size > 1 && bytes[size - 1] == 0)
		size--;
	snprintf(path, sizeof(path), "tests/fuzz/corpus/%s", target);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "tests/fuzz/corpus/%s/%s", target, name);
	file = fopen(path, "we");
	if (!file || fputc(first, file) == EOF ||
	    fwrite(data, 1, size, file) != size || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

/* A specimen and its near misses: `step` bytes from one to the next. */
static void write_family(const char *target, uint8_t first, uint8_t *data,
			 size_t size, size_t from, size_t step)
{
	char name[32];

	write_seed(target, "valid", first, data, size);
	for (size_t at = from, i = 0; at < size && i < 24; at += step, i++) {
		data[at] ^= 1;
		snprintf(name, sizeof(name), "near-%02zu", i);
		write_seed(target, name, first, data, size);
		data[at] ^= 1;
	}
}

static void write_superblock(void)
{
	struct stele_disk_superblock disk;
	struct stele_superblock sb;

	specimen_superblock(&sb);
	stele_superblock_encode(&sb, INPUT_OFFSET, &disk);
	write_seed("superblock", "sealed", 0, &disk, sizeof(disk));
	write_family("superblock", 1, (uint8_t *)&disk, 0xd8, 0x20, 8);
	sb = (struct stele_superblock){.image_size = 0x300000,
				       .high_water = 0x200000};
	stele_superblock_encode(&sb, INPUT_OFFSET, &disk);
	write_seed("superblock", "unfinished", 1, &disk, sizeof(disk));
}

/* The last snapshot is deleted; it alone has the last segment. */
static void write_deleted(struct stele_disk_block *block,
			  const struct stele_catalog_counts *counts)
{
	const struct stele_catalog_segment unused = {0x1111, 0x600000, 0x100000,
						     0x1000, 10, 1700000009, 0, 0, 0};
	struct stele_catalog_counts less = *counts;
	struct stele_catalog c = {block, 1, *counts, 0};
	struct stele_catalog_snapshot last;

	less.snapshots--;
	less.deleted++;
	stele_catalog_snapshot(&c, counts->snapshots - 1, &last);
	last.deleted_time = 1700000008;
	stele_catalog_begin(block, &less, 9);
	stele_catalog_put_segment(block, &less, 2, &unused);
	stele_catalog_put_snapshot(block, &less, less.snapshots, &last);
	stele_catalog_end(block, &less, INPUT_OFFSET, INPUT_OWNER);
	write_seed("catalog", "deleted", 14, block, sizeof(*block));
}

/* The target's catalog lies where a segment of the specimen does. */
static void write_catalog(void)
{
	static const struct stele_catalog_counts none = {0};
	const struct stele_catalog_segment moved = {SPECIMEN_SEGMENT_ID,
						    0x500000, 0x100000, 0x2000,
						    2000, 0, 0, 0, 0};
	const struct stele_catalog_counts three = {.segments = 3,
						   .snapshots = 3,
						   .refs = 4,
						   .free = 3,
						   .signatures = 2,
						   .notes_size = 15};
	struct stele_disk_block block = {0};

	stele_catalog_begin(&block, &none, 1);
	stele_catalog_end(&block, &none, INPUT_OFFSET, INPUT_OWNER);
	write_seed("catalog", "empty", 0, &block, sizeof(block));
	specimen_catalog(&block);
	stele_catalog_put_segment(&block, &three, 1, &moved);
	stele_catalog_end(&block, &three, INPUT_OFFSET, INPUT_OWNER);
	write_seed("catalog", "sealed", 6, &block, sizeof(block));
	write_family("catalog", 7, (uint8_t *)&block, 1500, 0x20, 61);
	write_deleted(&block, &three);
	specimen_tree(&block, INPUT_OFFSET, INPUT_OWNER);
	write_seed("catalog", "tree", 24, &block, sizeof(block));
}

static void write_descriptor(void)
{
	struct stele_disk_block block;
	struct stele_descriptor d;
	const struct stele_run aligned = {900, 0x240000, 65536};

	specimen_descriptor(&block, &d);
	write_seed("descriptor", "sealed", 0, &block, sizeof(block));
	write_seed("descriptor", "salvage", 3, &block, sizeof(block));
	write_family("descriptor", 1, (uint8_t *)&block, 1152, 0x20, 47);
	/* Runs that begin anywhere: 177 slots, 292, 31; 12, then 16 each. */
	d.boundary = 0x100000;
	d.slots_size = 0x880000 - d.slots_offset;
	stele_descriptor_put_header(&block, &d);
	stele_descriptor_put_run(&block, &d, 2, &aligned);
	write_seed("descriptor", "boundary", 1, &block, sizeof(block));
}

static void write_record(void)
{
	static const uint64_t zero[16];
	uint8_t slot[SPECIMEN_SLOT_SIZE];
	uint8_t small[64] = {0};
	const struct stele_record_shape one = {1, 0};

	specimen_record(slot);
	write_family("record", 0x23, slot, sizeof(slot), sizeof(slot) - 57, 3);
	write_seed("record", "wrong-shape", 0xf3, slot, sizeof(slot));
	stele_record_put_tail(&one, small + 64, 3, "k", 1, zero, zero, 0);
	small[63] = 0xff; /* of the checksum: zeros at the end are cut */
	write_seed("record", "small", 0x01, small, sizeof(small));
	stele_record_put_tail(&one, small + 64, 0, "", 0, zero, zero,
			      STELE_RECORD_VOID);
	small[63] = 0xff;
	write_seed("record", "void", 0x01, small, sizeof(small));
}

/* Changes of a valid image, see image.c: three bytes of place, kind, value. */
static void write_image(void)
{
	uint8_t changes[1 + 5 * 4] = {0};

	write_seed("image", "valid", 0, changes, 0);
	write_seed("image", "shared", 8, changes, 0);
	for (unsigned int i = 0; i < 48; i++) {
		char name[32];

		for (unsigned int j = 0; j < sizeof(changes); j++)
			changes[j] = (uint8_t)(i * 37 + j * 101 + (i * j) % 7);
		snprintf(name, sizeof(name), "changes-%02u", i);
		write_seed("image", name, (uint8_t)(i & 15), changes,
			   5 * (1 + i % 4));
	}
}

static void write_mapping(void)
{
	struct stele_mapping mapping = {
		.info = {.name = "cats", .snapshot = "v1", .via = "device",
			 .sample_count = 7, .time = 1763812345,
			 .read_only = true},
		.identity = {.rdev = 0x701, .size = 1 << 20, .sequence = 9},
		.was_read_only = true,
		.target = "/dev/none",
	};
	char text[STELE_MAPPING_SIZE_MAX];

	stele_mapping_encode(&mapping, text);
	write_family("mapping", 0, (uint8_t *)text, strlen(text), 16, 17);
	write_seed("mapping", "headless", 1, strchr(text, '\n') + 1,
		   strlen(strchr(text, '\n') + 1));
	mapping.identity.storage = (struct stele_storage_id){
		.cluster = "c1", .pool = 2, .image = "i1", .snap = 3};
	mapping.attached = mapping.info.pinned = true;
	mapping.target = "rbd:p/i?user=u";
	stele_mapping_encode(&mapping, text);
	write_seed("mapping", "krbd", 0, text, strlen(text));
	mapping.identity = (struct stele_identity){.fsdev = 1, .inode = 2};
	mapping.attached = mapping.was_read_only = false;
	mapping.target = "/a\n\\b";
	stele_mapping_encode(&mapping, text);
	write_seed("mapping", "file", 0, text, strlen(text));
}

/* Sources; their first byte is part of the file, except of TFRecords. */
static void write_sources(void)
{
	static char columns[5000]; /* more than there may be */
	static char csv[] = "key,a,label,\"b\"\n1,2.5,cat,\"x, \"\"y\"\"\nz\"\r\n2,,dog,007\n";
	static uint8_t example[] =
		"\x0a\x2e\x0a\x0c\x0a\x01i\x12\x07\x1a\x05\x0a\x03\x01\x96\x01"
		"\x0a\x0f\x0a\x01""f\x12\x0a\x12\x08\x0a\x06\x00\x00\x80\x3f\x00\x00"
		"\x0a\x0d\x0a\x03key\x12\x06\x0a\x04\x0a\x02k1";
	static uint8_t datum[] = "\x08\3\x10\2\x18\2\x22\4abcd\x28\x97\1\x32\4ffff\x35gggg\x38\1";
	static uint8_t rec[] =
		"\x0a\x23\xd7\xce\x20\0\0\0\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\x3f""data\x0a\x23\xd7\xce\x1c\0\0\x20\0\0\0\0"
		"\0\0\0\x40\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0headdata"
		"\x0a\x23\xd7\xce\5\0\0\x60tailx\0\0\0";
	static uint8_t idx[] = "0\t0\n12\t36\n7\t72\n";
	/* The target itself computes the header's checksum. */
	static uint8_t ffr[] = "\0\0\0\0\2\0\0\0\0\0\0\0\xc2\x41\x24\x35\x61\xe1\xc4\x0c"
			       "\x24\0\0\0\0\0\0\0\x27\0\0\0\0\0\0\0abcdef";
	static char json[] =
		"{\"key\": \"a\", \"n\": 1, \"l\": [1, 2.5], \"label\": \"x\", \"o\": {}}\n"
		"{\"key\": \"b\", \"n\": true, \"t\": \"\\u00fc\"}\n";
	static uint8_t tar[2048];
	uint8_t npy[192] = "\x93NUMPY\1\0\x76";
	static const char *const headers[] = {
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }",
		"{'descr': '<U2', 'fortran_order': False, 'shape': (4,), }",
		"{'descr': '<f2', 'fortran_order': False, 'shape': (8,), }"};

	write_family("csv", 'k', (uint8_t *)csv + 1, strlen(csv) - 1, 0, 3);
	memset(columns, ',', sizeof(columns));
	write_seed("csv", "columns", 'k', columns, sizeof(columns));
	write_seed("csv", "copied", 'a', "\n\"b\"\"c\"\n", 9); /* nothing is read again */
	write_family("recordio", rec[0], rec + 1, sizeof(rec) - 2, 3, 5);
	write_family("ffrecord", ffr[0], ffr + 1, sizeof(ffr) - 2, 3, 2);
	write_family("jsonl", '{', (uint8_t *)json + 1, strlen(json) - 1, 0, 5);
	/* The first byte chooses what the file lacks. */
	write_family("recordio_idx", 0, idx, sizeof(idx) - 1, 0, 1);
	write_seed("recordio_idx", "fewer", 1, idx, sizeof(idx) - 1);
	write_seed("recordio_idx", "broken", 2, idx, sizeof(idx) - 1);
	write_family("datum", 8, datum + 1, sizeof(datum) - 2, 0, 1);
	write_family("tfrecord", 1, example, sizeof(example) - 1, 0, 2);
	for (unsigned int i = 0; i < 3; i++) {
		char name[8];

		snprintf((char *)npy + 10, 119, "%-117s\n", headers[i]);
		memset(npy + 128, 'a', 32);
		snprintf(name, sizeof(name), "npy-%u", i);
		write_seed("npy", name, npy[0], npy + 1, 159);
	}
	for (unsigned int i = 0; i < 2; i++) {
		char *head = (char *)tar + 1024 * i;

		strcpy(head, i ? "1.txt" : "1.cls");
		strcpy(head + 100, "0000644");
		strcpy(head + 124, "00000000003");
		memcpy(head + 257, "ustar\00000", 8);
		head[156] = '0';
		strcpy(head + 512, "cat");
	}
	write_family("webdataset", '1', tar + 1, sizeof(tar) - 1, 0, 67);
}

/* "stele" twenty times, and bytes 0 to 39; before them, what the target chooses by. */
static void write_compressed(void)
{
	static uint8_t gz[] =
		"\1\37\213\10\0\0\0\0\0\2\3+.I\315I-\246-\301\300\310\304\314\302\312\306"
		"\316\301\311\305\315\303\313\307/ ($,\42*&.!)%-#+'\257\240\250\244\254\242"
		"\252\246\16\0\277\364\375O\214\0\0\0";
	static uint8_t bzip2[] =
		"\1BZh91AY&SY\252\232\314\30\0\0;\361\200\177\377\377\377\377\200\2\4\14\0 "
		"\0H\204\200i\246\215\15\15\3#@\0304\240\32\0h\0\14\214 \364\220C\24rK1g5\7"
		"\246\244We\251\272\374\25\216Y\351\252\331\266\355\343\236\273\363\347\0"
		"\10\20D\7\204D\7\277\0C\361w$S\205\11\12\251\254\301\200";
	static uint8_t xz[] =
		"\1\3757zXZ\0\0\1i\42\3366\2\0!\1\14\0\0\0\217\230A\234\340\0\213\0002]\09"
		"\235\10\316h\354\337R\351\200s\375\240=N\257\6\350\370\24S\260\362\357\14%"
		"S\3449\276\23\235\240\12\311\205\177\266z\12\230\23\374'\233>w}\31#\0\0\0"
		"\277\364\375O\0\1J\214\1\0\0\0!\307<\241>0\15\213\2\0\0\0\0\1YZ";
	static uint8_t zstd[] =
		"\1(\265/\375\4h\255\1\0\324\2stele\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"
		"\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37 !\42#$%&'\1\0\214\251h\1"
		"\42L\301\216";
	static uint8_t lz4[] =
		"\1\4\42M\30d@\2473\0\0\0_stele\5\0L\360\31\0\1\2\3\4\5\6\7\10\11\12\13\14"
		"\15\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37 !\42#$%&'\0\0\0"
		"\0l\366zm";
	static uint8_t changed[] = "\x50\x20\0\1stele stele stele stele";

	write_family("compressed", 3, gz, sizeof(gz) - 1, 1, 3);
	write_seed("compressed", "bzip2", 3, bzip2, sizeof(bzip2) - 1);
	write_seed("compressed", "xz", 3, xz, sizeof(xz) - 1);
	write_seed("compressed", "zstd", 3, zstd, sizeof(zstd) - 1);
	write_seed("compressed", "lz4", 3, lz4, sizeof(lz4) - 1);
	write_family("gunzip", 0, gz, sizeof(gz) - 1, 1, 3);
	write_family("gunzip", 1, changed, sizeof(changed) - 1, 0, 1);
}

/* A zip with one member that is stored, an array. */
static void write_npz(void)
{
	uint8_t zip[35 + 128 + 32] = "PK\3\4\24";
	uint8_t *npy = zip + 35;
	uint32_t crc;

	memcpy(npy, "\x93NUMPY\1\0\x76", 10);
	snprintf((char *)npy + 10, 119, "%-117s\n",
		 "{'descr': '<i2', 'fortran_order': False, 'shape': (4, 4), }");
	memset(npy + 128, 'a', 32);
	crc = crc32_gzip_refl(0, npy, 160);
	memcpy(zip + 14, &crc, sizeof(crc));
	zip[18] = zip[22] = 160;
	zip[26] = 5;
	memcpy(zip + 30, "a.npy", 5);
	write_family("npz", zip[0], zip + 1, sizeof(zip) - 1, 3, 9);
}

/* One row, in pages of 100 bytes behind a header of 600. */
static void write_mindrecord(void)
{
	static const char header[] =
		"{\"header_size\":600,\"page_size\":100,\"page\":["
		"{\"page_id\":0,\"page_size\":47,\"page_type\":\"BLOB_DATA\"},"
		"{\"page_id\":1,\"page_size\":28,\"page_type\":\"RAW_DATA\"}],"
		"\"schema\":[{\"blob_fields\":[\"d\",\"i\",\"f\"],\"schema\":{"
		"\"d\":{\"type\":\"bytes\"},\"i\":{\"type\":\"int32\",\"shape\":[-1]},"
		"\"f\":{\"type\":\"float32\",\"shape\":[1]},\"l\":{\"type\":\"int32\"},"
		"\"s\":{\"type\":\"string\"},\"r\":{\"type\":\"float64\"}}}]}";
	static const char blob[] = "\47\0\0\0\0\0\0\0" "\0\0\0\0\0\0\0\3" "abc"
				   "\0\0\0\0\0\0\0\10" "\0\0\0\2\20\7\1\2"
				   "\0\0\0\0\0\0\0\4" "\0\0\200\77";
	static const char raw[] = "\24\0\0\0\0\0\0\0" "\203\241l\377\241s\242hi\241r\313"
				  "\77\360\0\0\0\0\0\0";
	uint8_t file[728] = {(uint8_t)(sizeof(header) - 1), (uint8_t)((sizeof(header) - 1) >> 8)};

	memcpy(file + 8, header, sizeof(header) - 1);
	memcpy(file + 600, blob, sizeof(blob) - 1);
	memcpy(file + 700, raw, sizeof(raw) - 1);
	write_family("mindrecord", file[0], file + 1, sizeof(file) - 1, 3, 31);
}

int main(void)
{
	struct stele_disk_block block;

	mkdir("tests/fuzz/corpus", 0777);
	write_superblock();
	write_image();
	write_catalog();
	write_descriptor();
	write_record();
	write_mapping();
	write_sources();
	write_compressed();
	write_npz();
	write_mindrecord();
	specimen_keys(&block);
	write_family("keys", 1, (uint8_t *)&block, 32 + 116, 32, 6);
	stele_block_seal(&block, STELE_BLOCK_KEYS, INPUT_OFFSET, INPUT_OWNER);
	write_seed("keys", "sealed", 0, &block, sizeof(block));
	specimen_names(&block);
	write_family("names", 1, (uint8_t *)&block, 32 + 17, 32, 1);
	return 0;
}

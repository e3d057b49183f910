/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intent.c - what a writer says, there and back, and what is refused
 */
#include "format/intent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "format/superblock.h"
#include "tests/tap.h"

static struct stele_disk_intent disk;
static struct stele_intent_record out;

static void make(void)
{
	struct stele_intent_record in = {
		.generation = 7, .nonce = {1, 2}, .boot = {3},
		.machine = {4}, .namespace = 5, .process = 6, .start = 7,
		.host = "host", .own_count = 1, .other_count = 1, .since = 8,
		.extents = {{STELE_DATA_OFFSET, 4096}, {1u << 30, 8192}},
	};

	stele_intent_encode(&in, STELE_INTENT_OFFSET, &disk);
}

static int decode(const char **why)
{
	struct stele_disk_block *block = (void *)&disk;

	block->crc = le32_put(stele_block_crc(block));
	return stele_intent_decode(&disk, STELE_INTENT_OFFSET, &out, why);
}

/* Bytes at the places that stele-format(5) gives them. */
static const char *golden(void)
{
	static const struct {
		unsigned int at, size;
	} places[] = {
		{0x20, 2}, {0x30, 1}, {0x40, 1}, {0x50, 1}, {0x58, 1}, {0x60, 1},
		{0x68, 4}, {0xa8, 1}, {0xac, 1}, {0xb0, 1}, {0xb8, 3},
	};
	static char text[128];
	size_t length = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		length += (size_t)sprintf(text + length, "%s", i ? " " : "");
		for (unsigned int j = 0; j < places[i].size; j++)
			length += (size_t)sprintf(
				text + length, "%02x",
				((const uint8_t *)&disk)[places[i].at + j]);
	}
	return text;
}

static void refused(const char *wanted)
{
	const char *why = "";

	is_int(-EUCLEAN, decode(&why), "refused");
	is_string(wanted, why, "%s", wanted);
	make();
}

int main(void)
{
	plan_lazy();
	make();
	is_int(0, decode(NULL), "there and back");
	is_uint(7, out.generation, "generation");
	ok(out.nonce[1] == 2 && out.boot[0] == 3 && out.machine[0] == 4,
	   "nonce, boot, machine");
	is_uint(5, out.namespace, "namespace");
	is_uint(6, out.process, "process");
	is_uint(7, out.start, "start");
	is_int(8, out.since, "since");
	is_string("host", out.host, "host");
	is_uint(1, out.other_count, "others");
	is_uint(8192, out.extents[1].size, "extents");
	is_int(-EUCLEAN, stele_intent_decode(&disk, STELE_INTENT_TURN_OFFSET,
					     &out, NULL), "of another place");
	is_string("0102 03 04 05 06 07 686f7374 01 01 08 000020", golden(),
		  "where they lie");
	disk.nonce[0] ^= 1;
	is_int(-EBADMSG, stele_intent_decode(&disk, STELE_INTENT_OFFSET, &out,
					     NULL), "a checksum");
	((struct stele_disk_block *)&disk)->owner = le64_put(0);
	refused("intent: generation out of range");
	memset(disk.host, 'x', sizeof(disk.host));
	refused("intent: host is not text");
	disk.own_count = le32_put(STELE_INTENT_EXTENTS_MAX);
	refused("intent: too many extents");
	disk.other_count = le32_put(UINT32_MAX);
	refused("intent: too many extents");
	disk.since = le64_put(UINT64_MAX);
	refused("intent: time out of range");
	disk.other_count = le32_put(0);
	refused("intent: time out of range");
	disk.extents[1].size = le64_put(0);
	refused("intent: extent out of range");
	disk.extents[0].offset = le64_put(4096);
	refused("intent: extent out of range");
	disk.extents[1].size = le64_put(UINT64_C(1) << 62);
	refused("intent: extent out of range");
	disk.reserved1[71] = 1;
	refused("intent: reserved bytes set");
	return done();
}

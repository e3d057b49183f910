/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intent.h - who is about to write to an image, and where
 *
 * Two blocks: whose turn it is, of which only the nonce counts; and what that one
 * is about to do. A writer fills them in before it writes anything else, and zeroes
 * them when it has ended. No reader looks at them. stele-format(5), "Intent".
 */
#ifndef STELE_FORMAT_INTENT_H
#define STELE_FORMAT_INTENT_H

#include "format/block.h"
#include "format/catalog.h"

#define STELE_INTENT_TURN_OFFSET UINT64_C(0x3000)
#define STELE_INTENT_OFFSET	 UINT64_C(0x4000)
#define STELE_INTENT_EXTENTS_MAX 240u
#define STELE_INTENT_HOST_SIZE	 64u

struct stele_disk_intent {
/*000*/	uint8_t header[STELE_BLOCK_HEADER_SIZE]; /* owner = generation */
/*020*/	uint8_t nonce[16]; /* random: of this one writer; zero: it has ended */
/*030*/	uint8_t boot[16];  /* of its machine, since it was started; zero: not known */
/*040*/	uint8_t machine[16]; /* made of its machine-id(5); zero: not known */
/*050*/	le64 namespace;	   /* that its process id is of */
/*058*/	le64 process;
/*060*/	le64 start;	   /* of the process, by the machine's clock ticks */
/*068*/	uint8_t host[STELE_INTENT_HOST_SIZE]; /* text; zero-padded */
/*0a8*/	le32 own_count;	  /* of the extents below, the first: its own */
/*0ac*/	le32 other_count; /* the others: of writers that were replaced */
/*0b0*/	le64 since;	  /* the last of them was: seconds since 1970; no others: zero */
/*0b8*/	struct stele_disk_free extents[STELE_INTENT_EXTENTS_MAX];
/*fb8*/	uint8_t reserved1[72];
};
STELE_CHECK_SIZE(struct stele_disk_intent, 4096);
STELE_CHECK_OFFSET(struct stele_disk_intent, host, 0x68);
STELE_CHECK_OFFSET(struct stele_disk_intent, extents, 0xb8);
STELE_CHECK_OFFSET(struct stele_disk_intent, reserved1, 0xfb8);

struct stele_intent_record {
	uint64_t generation; /* that it will publish */
	uint8_t nonce[16];
	uint8_t boot[16], machine[16];
	uint64_t namespace, process, start;
	char host[STELE_INTENT_HOST_SIZE];
	uint32_t own_count, other_count;
	int64_t since;
	struct stele_catalog_free extents[STELE_INTENT_EXTENTS_MAX];
};

/* `offset`: of either block. */
void stele_intent_encode(const struct stele_intent_record *record,
			 uint64_t offset, struct stele_disk_intent *out);
/*
 * Checks magic, crc, type, offset; then each field: generation (neither 0 nor the
 * last), host (text), counts and bounds of the extents, since, reserved.
 * Return: 0; -EMEDIUMTYPE, -EBADMSG, -EUCLEAN: nobody says anything there.
 */
int stele_intent_decode(const struct stele_disk_intent *disk, uint64_t offset,
			struct stele_intent_record *out, const char **why);

#endif

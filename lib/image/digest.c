/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.c - what is hashed, in which order; SHA-256 by libcrypto
 *
 * Each kind of thing has its own prefix byte, and each list its count in
 * front, so that no two different things hash the same input.
 *
 * This uses libcrypto's plain functions rather than its EVP, whose first use reads a
 * configuration and sets up all algorithms: that takes a millisecond, and every open
 * hashes a schema and a snapshot. Nor do they fail where a program (TensorFlow) brings
 * BoringSSL, whose functions of the same names are found first: contexts of SHA-256 are
 * the same.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "lib/image/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#define MACHINE_ID_PREFIX "stele machine"

struct stele_hash {
	SHA256_CTX ctx[2];
	unsigned int inner; /* 1: of a digest that goes into the other */
};

int stele_hash_new(struct stele_hash **out)
{
	struct stele_hash *hash = calloc(1, sizeof(*hash));

	*out = NULL;
	if (!hash)
		return -ENOMEM;
	*out = hash;
	return 0;
}

void stele_hash_free(struct stele_hash *hash)
{
	free(hash);
}

void stele_hash_begin(struct stele_hash *hash, uint8_t prefix)
{
	SHA256_Init(&hash->ctx[hash->inner]);
	stele_hash_add(hash, &prefix, sizeof(prefix));
}

void stele_hash_add(struct stele_hash *hash, const void *data, size_t size)
{
	SHA256_Update(&hash->ctx[hash->inner], data, size);
}

void stele_hash_end(struct stele_hash *hash, uint8_t digest[32])
{
	SHA256_Final(digest, &hash->ctx[hash->inner]);
}

static void add_le64(struct stele_hash *hash, uint64_t value)
{
	const le64 v = le64_put(value);

	stele_hash_add(hash, &v, sizeof(v));
}

static void add_le32(struct stele_hash *hash, uint32_t value)
{
	const le32 v = le32_put(value);

	stele_hash_add(hash, &v, sizeof(v));
}

void stele_hash_block(struct stele_hash *hash,
		      const struct stele_disk_block *block, uint8_t digest[32])
{
	stele_hash_begin(hash, STELE_HASH_BLOCK);
	stele_hash_add(hash, block->payload, sizeof(block->payload));
	stele_hash_end(hash, digest);
}

/* Offsets depend on the target's boundary, and a digest must not. */
static void add_section(struct stele_hash *hash,
			const struct stele_section *section)
{
	const struct stele_disk_section disk = {
		.type = le32_put(section->type),
		.field = le32_put(section->field),
		.size = le64_put(section->size),
		.count = le64_put(section->count),
		.stream_size = le64_put(section->stream_size),
	};

	stele_hash_add(hash, &disk, sizeof(disk));
}

void stele_hash_root(struct stele_hash *hash, const struct stele_descriptor *d,
		     const uint8_t top[32], uint8_t root[32])
{
	stele_hash_begin(hash, STELE_HASH_ROOT);
	for (uint32_t i = 0; i < d->section_count; i++) {
		struct stele_section section;

		stele_descriptor_section(d, i, &section);
		if (section.type != STELE_BLOCK_TREE)
			add_section(hash, &section);
	}
	stele_hash_add(hash, top, STELE_DIGEST_SIZE);
	stele_hash_end(hash, root);
}

static void add_names(struct stele_hash *hash,
		      const struct stele_names_stream *names)
{
	uint64_t left = names->stream_size;

	add_le32(hash, names->field);
	add_le64(hash, names->stream_size);
	for (uint64_t i = 0; left > 0 && i < names->block_count; i++) {
		size_t size = left < STELE_BLOCK_PAYLOAD ? left :
							   STELE_BLOCK_PAYLOAD;

		stele_hash_add(hash, names->blocks[i].payload, size);
		left -= size;
	}
}

void stele_hash_schema(struct stele_hash *hash,
		       const struct stele_descriptor_field *fields,
		       uint32_t field_count,
		       const struct stele_names_stream *names,
		       uint32_t names_count, uint8_t digest[32])
{
	stele_hash_begin(hash, STELE_HASH_SCHEMA);
	add_le32(hash, field_count);
	for (uint32_t i = 0; i < field_count; i++) {
		struct stele_disk_field field;

		stele_field_encode(&fields[i], &field);
		stele_hash_add(hash, &field, sizeof(field));
	}
	for (uint32_t i = 0; i < names_count; i++)
		add_names(hash, &names[i]);
	stele_hash_end(hash, digest);
}

static void swap_inner(struct stele_hash *hash)
{
	hash->inner = !hash->inner;
}

#define DELETED_BATCH 256u /* words */

void stele_hash_deleted(struct stele_hash *hash,
			const struct stele_deleted *deleted, uint8_t digest[32])
{
	const uint64_t count = deleted->word_count;

	memset(digest, 0, 32);
	if (count == 0)
		return;
	stele_hash_begin(hash, STELE_HASH_DELETED);
	/* Many at a time: a call for each costs more than the hash. */
	for (uint64_t i = 0; i < count; i += DELETED_BATCH) {
		const uint64_t left = count - i;
		const uint64_t n = left < DELETED_BATCH ? left : DELETED_BATCH;
		struct stele_disk_word batch[DELETED_BATCH];

		for (uint64_t j = 0; j < n; j++)
			batch[j] = (struct stele_disk_word){
				le64_put(deleted->words[i + j].index),
				le64_put(deleted->words[i + j].bits)};
		stele_hash_add(hash, batch, n * sizeof(*batch));
	}
	stele_hash_end(hash, digest);
}

static void add_part(struct stele_hash *hash,
		     const struct stele_digest_part *part)
{
	uint8_t deleted[32];

	if (part->deleted_digest) {
		memcpy(deleted, part->deleted_digest, sizeof(deleted));
	} else {
		swap_inner(hash);
		stele_hash_deleted(hash, &part->deleted, deleted);
		swap_inner(hash);
	}
	stele_hash_add(hash, part->schema_digest, 32);
	add_le64(hash, part->sample_count);
	stele_hash_add(hash, part->tree_root, 32);
	add_le64(hash, part->deleted.count);
	stele_hash_add(hash, deleted, 32);
}

void stele_hash_snapshot(struct stele_hash *hash,
			 const struct stele_digest_part *parts, uint32_t count,
			 uint8_t digest[32])
{
	stele_hash_begin(hash, STELE_HASH_SNAPSHOT);
	add_le64(hash, count);
	for (uint32_t i = 0; i < count; i++)
		add_part(hash, &parts[i]);
	stele_hash_end(hash, digest);
}

uint64_t stele_hash_key(const void *key, size_t size)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	uint64_t first = 0;
	SHA256_CTX ctx;

	SHA256_Init(&ctx);
	SHA256_Update(&ctx, key, size);
	SHA256_Final(digest, &ctx);
	for (unsigned int i = 0; i < sizeof(first); i++)
		first = first << 8 | digest[i];
	return first;
}

void stele_hash_machine_id(const uint8_t secret[16], uint8_t id[16])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA256_CTX ctx;

	SHA256_Init(&ctx);
	SHA256_Update(&ctx, MACHINE_ID_PREFIX, sizeof(MACHINE_ID_PREFIX) - 1);
	SHA256_Update(&ctx, secret, 16);
	SHA256_Final(digest, &ctx);
	memcpy(id, digest, 16);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - SHA-256 of samples, trees, schemas and snapshots (libcrypto)
 *
 * What is hashed, with which prefix, is stele-format(5), "Digests"; constants
 * in format/sections.h. No UUID and no time goes in: same input, same digest.
 */
#ifndef STELE_IMAGE_DIGEST_H
#define STELE_IMAGE_DIGEST_H

#include "format/sections.h"
#include "lib/image/snapshot.h"

/* One hash at a time; reusable; belongs to one thread. */
struct stele_hash;
int stele_hash_new(struct stele_hash **out); /* 0 or -ENOMEM */
void stele_hash_free(struct stele_hash *hash);
/* Begin with the one-byte prefix STELE_HASH_*. */
void stele_hash_begin(struct stele_hash *hash, uint8_t prefix);
void stele_hash_add(struct stele_hash *hash, const void *data, size_t size);
void stele_hash_end(struct stele_hash *hash, uint8_t digest[32]);

/* Hash of a section's block: of its payload. */
void stele_hash_block(struct stele_hash *hash,
		      const struct stele_disk_block *block, uint8_t digest[32]);

/* Root of a segment: its sections, as the descriptor's blocks say, and the tree's top. */
void stele_hash_root(struct stele_hash *hash, const struct stele_descriptor *d,
		     const uint8_t top[32], uint8_t root[32]);

/* Names streams by field, in field order; blocks hold the raw stream. */
struct stele_names_stream {
	uint32_t field;
	uint64_t stream_size;
	const struct stele_disk_block *blocks;
	uint64_t block_count;
};
void stele_hash_schema(struct stele_hash *hash,
		       const struct stele_descriptor_field *fields,
		       uint32_t field_count,
		       const struct stele_names_stream *names,
		       uint32_t names_count, uint8_t digest[32]);

/* Of a key's SHA-256 the first 8 bytes, big-endian. */
uint64_t stele_hash_key(const void *key, size_t size);

/* What may be known of a machine-id(5), which is to be kept on its machine. */
void stele_hash_machine_id(const uint8_t secret[16], uint8_t id[16]);

/* What of one segment goes into the snapshot's digest. */
struct stele_digest_part {
	uint8_t schema_digest[32];
	uint64_t sample_count;
	uint8_t tree_root[32];
	struct stele_deleted deleted; /* not owned */
	const uint8_t *deleted_digest; /* NULL: to be computed */
};
/* The deleted digest, see below. */
void stele_hash_deleted(struct stele_hash *hash,
			const struct stele_deleted *deleted, uint8_t digest[32]);
/*
 * SHA-256(02 || le64 segments || each: schema digest || le64 samples || root
 * || le64 deleted || deleted digest), deleted digest = SHA-256(04 || le64
 * numbers ...), or 32 zero bytes when none.
 */
void stele_hash_snapshot(struct stele_hash *hash,
			 const struct stele_digest_part *parts, uint32_t count,
			 uint8_t digest[32]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - the descriptor of a segment: schema, run table, section table
 *
 *	| descriptor | slots | sections | descriptor |
 *
 * A stream of DESCRIPTOR blocks, stored at the segment's first and at its last
 * blocks, so that a scan can salvage an image without superblock and catalog.
 * Header, then fields, runs, section references and the filter, one after another.
 * Offsets within are from the segment's start. stele-format(5), "Segments".
 *
 * A decoded descriptor is a view into the caller's blocks, checked whole.
 */
#ifndef STELE_FORMAT_SEGMENT_H
#define STELE_FORMAT_SEGMENT_H

#include "format/block.h"
#include "format/record.h"
#include "format/run.h"

#define STELE_FIELD_COUNT_MAX	  64u
#define STELE_FIELD_NAME_SIZE	  64u /* zero-padded, 1 to 63 bytes */
#define STELE_FIELD_RANK_MAX	  8u
#define STELE_SECTION_COUNT_MAX	  1024u
#define STELE_DESCRIPTOR_SIZE_MAX (UINT64_C(512) << 20)
#define STELE_NO_FIELD		  UINT32_MAX

/* Values of stele.h's enum stele_type: see stele_field_is_scalar(). */
enum stele_field_type {
	STELE_FIELD_BYTES = 1,
	STELE_FIELD_UTF8 = 2,
	STELE_FIELD_TENSOR = 3, /* incompat TENSOR */
	STELE_FIELD_I64 = 4,
	STELE_FIELD_F64 = 5,
};

static inline bool stele_field_is_scalar(uint32_t type)
{
	return type == STELE_FIELD_I64 || type == STELE_FIELD_F64;
}

enum stele_slot_order {
	STELE_SLOT_ORDER_SIZE = 0,
	STELE_SLOT_ORDER_SOURCE = 1,
};

struct stele_disk_descriptor {
/*00*/	le64 id;	  /* segment id, never 0 */
/*08*/	le64 stream_size; /* of the descriptor, header included */
/*10*/	le64 offset;	  /* of the segment on the target */
/*18*/	le64 size;	  /* of the segment, whole blocks */
/*20*/	le64 sample_count; /* numbers: 0 ... sample_count - 1 */
/*28*/	le64 payload_size; /* sum over all samples */
/*30*/	le64 records_size; /* payload and tails, without padding */
/*38*/	le64 slots_offset; /* of the first slot, from the segment's start */
/*40*/	le64 slots_size;   /* to the end of the last slot */
/*48*/	le64 boundary;	   /* 0: none; else a power of two, incompat BOUNDARY */
/*50*/	le32 granule;	   /* 16, 64, 512 or 4096 */
/*54*/	le32 order;	   /* enum stele_slot_order */
/*58*/	le32 field_count;
/*5c*/	le32 run_count;
/*60*/	le32 section_count;
/*64*/	le32 filter_size; /* 0: there is none; see format/filter.h */
/*68*/	uint8_t tree_root[32];
/*88*/	uint8_t schema_digest[32];
/*a8*/	uint8_t reserved1[88];
};
STELE_CHECK_SIZE(struct stele_disk_descriptor, 256);
STELE_CHECK_OFFSET(struct stele_disk_descriptor, tree_root, 0x68);

/* Every field has a name of its own. */
struct stele_disk_field {
/*00*/	uint8_t name[STELE_FIELD_NAME_SIZE];
/*40*/	le32 type;  /* enum stele_field_type */
/*44*/	le32 dtype; /* tensors only, else 0; see format/field.h */
/*48*/	le32 rank;  /* tensors only, else 0 */
/*4c*/	le32 reserved0;
/*50*/	le32 dims[STELE_FIELD_RANK_MAX]; /* the first may be 0: from the length */
/*70*/	uint8_t reserved1[16];
};
STELE_CHECK_SIZE(struct stele_disk_field, 128);

/* Ascending by offset; one for each (type, field). */
struct stele_disk_section {
/*00*/	le32 type;   /* enum stele_block_type: KEYS to NAMES */
/*04*/	le32 field;  /* index for COLUMN and NAMES, else STELE_NO_FIELD */
/*08*/	le64 offset; /* from the segment's start, whole blocks */
/*10*/	le64 size;   /* bytes, whole blocks, never 0 */
/*18*/	le64 count;  /* of keys, numbers, digests, hashes (TREE), names */
/*20*/	le64 stream_size; /* NAMES: bytes of the stream; else 0 */
};
STELE_CHECK_SIZE(struct stele_disk_section, 40);

struct stele_descriptor_field {
	char name[STELE_FIELD_NAME_SIZE];
	uint32_t type, dtype, rank;
	uint32_t dims[STELE_FIELD_RANK_MAX];
};

struct stele_section {
	uint32_t type, field;
	uint64_t offset, size, count, stream_size;
};

struct stele_descriptor {
	const struct stele_disk_block *blocks;
	uint64_t block_count;
	uint64_t id;
	uint64_t offset, size; /* of the segment, on the target */
	uint64_t sample_count, payload_size, records_size;
	uint64_t slots_offset, slots_size;
	uint64_t boundary;
	uint32_t granule, order;
	uint32_t field_count, run_count, section_count;
	uint32_t filter_size;
	uint8_t tree_root[32];
	uint8_t schema_digest[32];
};

/*
 * View a descriptor: `size` bytes read at `offset`. `id` may be
 * STELE_OWNER_ANY (salvage). Checks in this order: size, blocks, id, counts,
 * stream size, zeros after it, geometry (place of both copies, slots within the
 * segment, boundary: the segment's offset is its multiple), fields (names,
 * types, shapes, unique), runs (first: 0, then
 * ascending, below sample_count; slot size a class of the granule:
 * stele_slot_size(slot_size) == slot_size; offset: the granule's multiple, no
 * slot that fits a boundary crosses it, at or after the end of the run before,
 * first == slots_offset), end of the last run == slots end, sums, sections
 * (type, field, unique, order, count against sample_count, size against
 * count), size of the filter against sample_count, reserved.
 * run_count is 0 just when sample_count is. There is at least one field.
 * Return: 0; -EMEDIUMTYPE; -EBADMSG; -EUCLEAN.
 */
int stele_descriptor_decode(const void *blocks, uint64_t size, uint64_t offset,
			    uint64_t id, struct stele_descriptor *out,
			    const char **why);

void stele_descriptor_field(const struct stele_descriptor *descriptor,
			    uint32_t index,
			    struct stele_descriptor_field *out);
/* The incompat bits that a segment with these fields needs. */
uint64_t stele_descriptor_features(const struct stele_descriptor *descriptor,
				   const struct stele_descriptor_field *fields);
void stele_descriptor_run(const struct stele_descriptor *descriptor,
			  uint32_t index, struct stele_run *out);
void stele_descriptor_section(const struct stele_descriptor *descriptor,
			      uint32_t index, struct stele_section *out);
/* Fills filter_size bytes. */
void stele_descriptor_filter(const struct stele_descriptor *descriptor,
			     uint8_t *out);
/* Return: 0; -ENOENT. */
int stele_descriptor_find_section(const struct stele_descriptor *descriptor,
				  uint32_t type, uint32_t field,
				  struct stele_section *out);
void stele_descriptor_shape(const struct stele_descriptor *descriptor,
			    struct stele_record_shape *out);
/* Of the space of the slots: what is not a record, with what a boundary leaves. */
static inline uint64_t
stele_descriptor_padding(const struct stele_descriptor *descriptor)
{
	return descriptor->slots_size - descriptor->records_size;
}

/*
 * Count and size of a section that follows from the number of samples: ORDER,
 * COLUMN, DIGESTS. False: of another type, or there is none.
 */
bool stele_section_geometry(uint32_t type, uint64_t sample_count,
			    uint64_t *count, uint64_t *size);
/* Those of TREE, from the number of blocks of all other sections. */
void stele_tree_geometry(uint64_t leaf_blocks, uint64_t *count, uint64_t *size);
/* Index of a section's first block within level 0 of the digest tree. */
uint64_t stele_descriptor_leaf(const struct stele_descriptor *descriptor,
			       const struct stele_section *section);
struct stele_tree_shape;
void stele_descriptor_tree_shape(const struct stele_descriptor *descriptor,
				 struct stele_tree_shape *out);

/* Bytes of the stream with these counts. */
uint64_t stele_descriptor_stream_size(uint32_t field_count, uint32_t run_count,
				      uint32_t section_count,
				      uint32_t filter_size);

/*
 * Encode into zeroed blocks, stele_stream_blocks() of the stream's size: put the
 * header (from *d, its view part ignored), put every entry, then seal for each
 * of the two places.
 */
void stele_descriptor_put_header(struct stele_disk_block *blocks,
				 const struct stele_descriptor *d);
void stele_descriptor_put_field(struct stele_disk_block *blocks,
				const struct stele_descriptor *d,
				uint32_t index,
				const struct stele_descriptor_field *field);
void stele_descriptor_put_run(struct stele_disk_block *blocks,
			      const struct stele_descriptor *d, uint32_t index,
			      const struct stele_run *run);
void stele_descriptor_put_section(struct stele_disk_block *blocks,
				  const struct stele_descriptor *d,
				  uint32_t index,
				  const struct stele_section *section);
void stele_descriptor_put_filter(struct stele_disk_block *blocks,
				 const struct stele_descriptor *d,
				 const uint8_t *filter);
/* `offset` on the target of this copy. */
void stele_descriptor_seal(struct stele_disk_block *blocks,
			   const struct stele_descriptor *d, uint64_t offset);

/* The 128 bytes of a field as stored: what the schema digest hashes. */
void stele_field_encode(const struct stele_descriptor_field *field,
			struct stele_disk_field *out);

#endif

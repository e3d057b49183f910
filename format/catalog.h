/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - what an image holds: segments, snapshots, free space
 *
 * One stream of CATALOG blocks, written anew at each commit, and referenced by
 * the superblock: a header, then six tables of fixed-size entries, one
 * after another, in the order of the structs below, then the notes' text.
 * stele-format(5), "Catalog".
 *
 * A decoded catalog is a view: it points into the caller's blocks, allocates
 * nothing, and has been checked whole, so that the accessors cannot fail.
 */
#ifndef STELE_FORMAT_CATALOG_H
#define STELE_FORMAT_CATALOG_H

#include "format/block.h"
#include "format/superblock.h"

/* The first two bound the stack that proves names and ids unique (32 KiB). */
#define STELE_SEGMENTS_MAX   16384u
#define STELE_SNAPSHOTS_MAX  16384u /* deleted ones included */
#define STELE_REFS_MAX	     (UINT32_C(1) << 20) /* of all snapshots, as if none were shared */
#define STELE_FREE_MAX	     65536u
#define STELE_SIGNATURES_MAX 65536u
#define STELE_NOTES_SIZE_MAX (UINT32_C(1) << 24)
#define STELE_SNAPSHOT_NAME_SIZE 64u /* zero-padded, 1 to 63 bytes */
#define STELE_SIGNATURE_SIZE 112u

struct stele_disk_catalog {
/*00*/	le64 stream_size; /* of the whole catalog, header included */
/*08*/	le32 segment_count;
/*0c*/	le32 snapshot_count;
/*10*/	le32 ref_count;
/*14*/	le32 free_count;
/*18*/	le32 signature_count;
/*1c*/	le32 notes_size;
/*20*/	le64 next_snapshot_id;
/*28*/	le32 deleted_count; /* entries after those of snapshot_count, in the same table */
/*2c*/	uint8_t reserved[20];
};
STELE_CHECK_SIZE(struct stele_disk_catalog, 64);
STELE_CHECK_OFFSET(struct stele_disk_catalog, deleted_count, 0x28);

/* Ascending by offset; ids are unique. */
struct stele_disk_catalog_segment {
/*00*/	le64 id; /* never 0 */
/*08*/	le64 offset;
/*10*/	le64 size;	      /* bytes, whole blocks */
/*18*/	le64 descriptor_size; /* bytes of one copy, whole blocks; 0: a part of a tree */
/*20*/	le64 count;	      /* of samples; of a part: of inodes */
/*28*/	le64 unused_since; /* two's complement; 0 while a snapshot or block 0 refers to it */
/*30*/	le64 of;   /* of a part: id of the segment or snapshot; else 0 */
/*38*/	le32 part; /* enum stele_catalog_part */
/*3c*/	uint8_t reserved[4];
};
STELE_CHECK_SIZE(struct stele_disk_catalog_segment, 64);
STELE_CHECK_OFFSET(struct stele_disk_catalog_segment, unused_since, 0x28);
STELE_CHECK_OFFSET(struct stele_disk_catalog_segment, part, 0x38);

/*
 * Ascending by id; names are unique. After them the deleted ones, ascending by id, too, with
 * any names: only with the incompat feature UNDELETE.
 */
struct stele_disk_snapshot {
/*00*/	uint8_t name[STELE_SNAPSHOT_NAME_SIZE];
/*40*/	le64 id;     /* never 0, never reused */
/*48*/	le64 parent; /* an id below its own, perhaps gone since; or 0 */
/*50*/	le64 time;   /* seconds since 1970, two's complement */
/*58*/	le64 sample_count; /* live ones of all segments */
/*60*/	uint8_t digest[32];
/* Notes and signatures lie in the snapshots' order, without gaps; refs may be shared. */
/*80*/	le32 first_ref;
/*84*/	le32 ref_count;
/*88*/	le32 note_offset; /* into the notes' text */
/*8c*/	le32 note_size;
/*90*/	le32 first_signature;
/*94*/	le32 signature_count;
/*98*/	le64 source_time; /* seconds since 1970, two's complement; 0: not known */
/*a0*/	le64 payload_size; /* sum of its live samples' payloads */
/*a8*/	le64 deleted_time; /* seconds since 1970, at least 1; 0: not deleted */
/*b0*/	uint8_t reserved[16];
};
STELE_CHECK_SIZE(struct stele_disk_snapshot, 192);
STELE_CHECK_OFFSET(struct stele_disk_snapshot, digest, 0x60);
STELE_CHECK_OFFSET(struct stele_disk_snapshot, deleted_time, 0xa8);

/* A deleted list: DELETED blocks on the target; or three zeros. */
struct stele_disk_list {
/*00*/	le64 offset;
/*08*/	le64 count; /* of words */
/*10*/	le64 owner; /* generation that wrote it */
};
STELE_CHECK_SIZE(struct stele_disk_list, 24);

/* What was deleted first; and a second list with what was deleted since, if any was. */
#define STELE_REF_LISTS 2u
/* Second lists of one first list: so all snapshots together take time that is bounded. */
#define STELE_SECOND_LISTS_MAX 64u

/* A segment of one snapshot or of several; those of one stand in the order of its ids. */
struct stele_disk_ref {
/*00*/	le32 segment; /* index into the segments */
/*04*/	le32 reserved;
/*08*/	le64 deleted_count; /* samples, in both lists */
/*10*/	struct stele_disk_list lists[STELE_REF_LISTS];
};
STELE_CHECK_SIZE(struct stele_disk_ref, 64);

/* Ascending, not touching each other. */
struct stele_disk_free {
/*00*/	le64 offset;
/*08*/	le64 size;
};
STELE_CHECK_SIZE(struct stele_disk_free, 16);

/* Reserved: only with the compat feature SIGNATURES; carried, not read. */
struct stele_disk_signature {
/*00*/	uint8_t key_id[32];
/*20*/	le64 sequence;
/*28*/	uint8_t reserved[8];
/*30*/	uint8_t signature[64];
};
STELE_CHECK_SIZE(struct stele_disk_signature, STELE_SIGNATURE_SIZE);

/* Of a tree of files, see erofs.h: what a segment without samples has. */
enum stele_catalog_part {
	STELE_PART_NONE,	/* samples */
	STELE_PART_FILES,	/* inodes of a segment's samples */
	STELE_PART_DIRECTORIES, /* of a snapshot */
	STELE_PART_ROOT,	/* what leads to them, of all */
};

struct stele_catalog_segment {
	uint64_t id, offset, size, descriptor_size, sample_count;
	int64_t unused_since; /* seconds since 1970; 0: in use */
	/* Of a part, which has neither descriptor nor samples. */
	enum stele_catalog_part part;
	uint64_t of; /* id of the segment or snapshot; 0: of all */
	uint64_t inode_count;
};

/* It is none of samples, but a part of a tree. */
static inline bool stele_catalog_is_tree(const struct stele_catalog_segment *segment)
{
	return !segment->descriptor_size;
}

struct stele_catalog_snapshot {
	char name[STELE_SNAPSHOT_NAME_SIZE];
	uint64_t id, parent;
	int64_t time, source_time;
	uint64_t sample_count, payload_size; /* of live ones */
	uint8_t digest[32];
	uint32_t first_ref, ref_count;
	uint32_t note_offset, note_size;
	uint32_t first_signature, signature_count;
	int64_t deleted_time; /* 0: it is not deleted */
};

struct stele_catalog_list {
	uint64_t offset, count, owner; /* count: of words */
};

struct stele_catalog_ref {
	uint32_t segment;
	uint64_t deleted_count; /* samples; 0: no list */
	struct stele_catalog_list lists[STELE_REF_LISTS];
};

struct stele_catalog_free {
	uint64_t offset, size;
};

struct stele_catalog_counts {
	uint32_t segments, snapshots, refs, free, signatures;
	uint32_t notes_size;
	uint32_t deleted; /* snapshots; their indices follow those of the others */
};

struct stele_catalog {
	const struct stele_disk_block *blocks;
	uint64_t block_count;
	struct stele_catalog_counts counts;
	uint64_t next_snapshot_id;
};

/*
 * View the `size` bytes that the superblock `sb` refers to, a ready one.
 * Checks in this order: size, crc of the whole (sb->catalog_crc), each block,
 * counts, stream size, zeros after it, then each table: bounds in DATA_OFFSET
 * to high_water, order, overlap (segments, the catalog, free extents; deleted
 * lists with these, but not with each other: that is lib/image/lists.h), names
 * (stele_name_ok, unique), references, sums, reserved fields; a segment has a
 * time since which it is unused just when no snapshot refers to it, deleted ones
 * aside. Parts in use are a whole tree: one of each segment in use, one of each snapshot, one
 * root; or there is none. Deleted lists and deleted snapshots need the superblock's feature bits.
 * Return: 0; -EBADMSG; -EMEDIUMTYPE; -EUCLEAN.
 */
int stele_catalog_decode(const void *blocks, uint64_t size,
			 const struct stele_superblock *sb,
			 struct stele_catalog *out, const char **why);

void stele_catalog_segment(const struct stele_catalog *catalog, uint32_t index,
			   struct stele_catalog_segment *out);
void stele_catalog_snapshot(const struct stele_catalog *catalog, uint32_t index,
			    struct stele_catalog_snapshot *out);
/* Snapshots ascend by id. False: it has none of this id. */
bool stele_catalog_find_snapshot(const struct stele_catalog *catalog, uint64_t id,
				 struct stele_catalog_snapshot *out);
void stele_catalog_ref(const struct stele_catalog *catalog, uint32_t index,
		       struct stele_catalog_ref *out);
void stele_catalog_free(const struct stele_catalog *catalog, uint32_t index,
			struct stele_catalog_free *out);
/* `text` gets the note_size bytes of a snapshot's note, not terminated. */
void stele_catalog_note(const struct stele_catalog *catalog, uint32_t index,
			char *text);
/* `data` gets all signatures of a snapshot, as they are stored. */
void stele_catalog_signatures(const struct stele_catalog *catalog,
			      uint32_t index, void *data);

/* Bytes of the stream for these counts; whole blocks: stele_stream_blocks(). */
uint64_t stele_catalog_stream_size(const struct stele_catalog_counts *counts);

/*
 * Encode into zeroed blocks, enough for the stream: begin, put every entry of
 * every table, end (which seals). After end, crc32c over the blocks is what the
 * superblock wants.
 */
void stele_catalog_begin(struct stele_disk_block *blocks,
			 const struct stele_catalog_counts *counts,
			 uint64_t next_snapshot_id);
void stele_catalog_put_segment(struct stele_disk_block *blocks,
			       const struct stele_catalog_counts *counts,
			       uint32_t index,
			       const struct stele_catalog_segment *segment);
void stele_catalog_put_snapshot(struct stele_disk_block *blocks,
				const struct stele_catalog_counts *counts,
				uint32_t index,
				const struct stele_catalog_snapshot *snapshot);
void stele_catalog_put_ref(struct stele_disk_block *blocks,
			   const struct stele_catalog_counts *counts,
			   uint32_t index, const struct stele_catalog_ref *ref);
void stele_catalog_put_free(struct stele_disk_block *blocks,
			    const struct stele_catalog_counts *counts,
			    uint32_t index,
			    const struct stele_catalog_free *extent);
void stele_catalog_put_notes(struct stele_disk_block *blocks,
			     const struct stele_catalog_counts *counts,
			     const char *text);
/* All of them, as they are stored. */
void stele_catalog_put_signatures(struct stele_disk_block *blocks,
				  const struct stele_catalog_counts *counts,
				  const void *data);
void stele_catalog_end(struct stele_disk_block *blocks,
		       const struct stele_catalog_counts *counts,
		       uint64_t offset, uint64_t generation);

/*
 * May this name a snapshot (or mapping, or field)? 1 to 63 bytes of
 * [A-Za-z0-9._-], the first one not '.' or '-'.
 */
bool stele_name_ok(const char *name, size_t size);
/* The same in words. */
#define STELE_NAME_RULE \
	"1 to 63 letters, digits, '.', '_' and '-', the first no '.' or '-'"
/*
 * What a snapshot's name may not begin with, for a writer: RBD snapshots that
 * are kept for their readers alone are named so. Who reads takes what is there.
 */
#define STELE_NAME_RESERVED "stele-tombstone-"

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping_file.h - a mapping as a file: header, target, extents, their bytes
 *
 * All integers little-endian. Private to lib/node/: files live no longer than
 * the machine is up, and a library refuses those of another version.
 *
 *	header | target, terminated | profile, as text, if any |
 *	extents, ascending, apart | bytes of each
 */
#ifndef STELE_NODE_MAPPING_FILE_H
#define STELE_NODE_MAPPING_FILE_H

#include "format/checked.h"
#include "format/le.h"
#include "lib/node/mapping.h"

#define STELE_MAPPING_MAGIC	 "\x93STELEMP"
#define STELE_MAPPING_VERSION	 3u
#define STELE_MAPPING_SIZE_MAX	 (UINT64_C(1) << 30)
#define STELE_MAPPING_TARGET_MAX 4096u	     /* PATH_MAX, terminator included */
#define STELE_MAPPING_EXTENTS_MAX (1u << 20)
#define STELE_MAPPING_EXTENT_ALIGN 512u	     /* the smallest logical block */

enum stele_mapping_file_flags {
	STELE_MAPPING_READ_ONLY = 1 << 0,
	STELE_MAPPING_WAS_READ_ONLY = 1 << 1, /* only with READ_ONLY */
	STELE_MAPPING_ATTACHED = 1 << 2, /* only of RBD with rdev set */
	STELE_MAPPING_PINNED = 1 << 3,
};
#define STELE_MAPPING_FLAGS_ALL 15u

struct stele_mapping_header {
/*000*/	uint8_t magic[8];
/*008*/	le32 version;
/*00c*/	le32 crc; /* crc32c of the whole file with this field zero */
/*010*/	le64 file_size;
/*018*/	le64 rdev;
/*020*/	le64 fsdev;
/*028*/	le64 inode;
/*030*/	le64 device_size;
/*038*/	le64 sequence;
/*040*/	le64 generation;
/*048*/	le64 sample_count;
/*050*/	le64 time;
/*058*/	le32 flags;
/*05c*/	le32 target_size; /* terminator included */
/*060*/	le32 extent_count;
/*064*/	le32 profile_size; /* 0: none */
/*068*/	uint8_t uuid[STELE_UUID_SIZE];
/*078*/	uint8_t digest[STELE_DIGEST_SIZE];
/*098*/	uint8_t name[STELE_NAME_SIZE_MAX + 1]; /* zero-padded, as below */
/*0d8*/	uint8_t snapshot[STELE_NAME_SIZE_MAX + 1];
/*118*/	uint8_t via[16];
/*128*/	uint8_t cluster[40]; /* with what follows: RBD, else zeros */
/*150*/	uint8_t image[64];
/*190*/	le64 pool;
/*198*/	le64 shot;
};
STELE_CHECK_SIZE(struct stele_mapping_header, 0x1a0);
STELE_CHECK_OFFSET(struct stele_mapping_header, via, 0x118);
STELE_CHECK_OFFSET(struct stele_mapping_header, generation, 0x40);
STELE_CHECK_OFFSET(struct stele_mapping_header, uuid, 0x68);
STELE_CHECK_OFFSET(struct stele_mapping_header, snapshot, 0xd8);

struct stele_mapping_extent {
/*00*/	le64 offset; /* on the target */
/*08*/	le64 size;
};
STELE_CHECK_SIZE(struct stele_mapping_extent, 16);

uint32_t stele_mapping_crc(const void *data, size_t size);

/*
 * View data[0..size) as the mapping `name`. Checks in this order: length,
 * magic, crc, version, then each field, then what lies behind the header.
 * Sets all of *out but data and data_size. `why` names the step that failed.
 * Return: 0; -EBADMSG; -EOPNOTSUPP; -EUCLEAN.
 */
int stele_mapping_decode(const void *data, size_t size, const char *name,
			 struct stele_mapping *out, const char **why);

/* What a recording device saw, sorted, merged, in whole blocks. */
struct stele_recorded {
	struct stele_mapping_extent *extents;
	uint8_t *bytes;
	uint32_t extent_count;
	uint64_t bytes_size;
};

/* Return: 0; -ESTALE; -EFBIG; -ENOMEM. */
int stele_recording_take(struct stele_device *recording,
			 struct stele_recorded *out);
void stele_recorded_release(struct stele_recorded *recorded);

#endif

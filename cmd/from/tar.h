/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - the regular files in a tar archive, one after the other
 */
#ifndef STELE_CMD_FROM_TAR_H
#define STELE_CMD_FROM_TAR_H

#include "from/scan.h"

struct tar_member {
	const char *path; /* terminated; without "./" and "/" in front */
	size_t path_size;
	uint64_t offset; /* of the header, for messages */
	uint64_t size;
	uint64_t place; /* 0: its bytes can only be read now */
	bool sparse;
	enum stele_skip_reason skip; /* it is no regular file; 0: it is */
	bool lost;	/* they could not be, and that was reported */
};

/* The path is gone after it. Return: 0; negative errno (said). */
typedef int (*tar_member_fn)(struct from_scan *scan, struct tar_member *member);

bool from_tar_detect(const uint8_t *data, size_t size);
/* All members of a shard. Return: 0; what `fn` returned; negative errno (said). */
int from_tar_members(struct from_scan *scan, tar_member_fn fn);
/* Copy it to the store: texts only if they are UTF-8. Return: as tar_member_keep(). */
int tar_member_copy(struct from_scan *scan, struct tar_member *member, bool text);
/* Have its bytes at member->place. Return: 0, also if it is lost; negative errno (said). */
int tar_member_keep(struct from_scan *scan, struct tar_member *member);
/* Its first bytes, as many as fit. Return: their count; 0 if it is lost; as above. */
int64_t tar_member_read(struct from_scan *scan, struct tar_member *member,
			void *data, size_t size);

#endif

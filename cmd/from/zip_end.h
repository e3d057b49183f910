/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip_end.h - what a zip says of its members at its end
 *
 * A zip that is read as it comes has but the header in front of each member: one that is damaged
 * is passed over, or has another name. The directory at the end has them all once more. So the
 * last bytes are kept, and looked at when there are no more.
 */
#ifndef STELE_CMD_FROM_ZIP_END_H
#define STELE_CMD_FROM_ZIP_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest comment, and a directory of 64 arrays with the longest names there are, twice. */
#define ZIP_TAIL_SIZE ((size_t)128 << 10)
#define ZIP_WHY_SIZE  128

/* Zeroed at first. */
struct zip_end {
	uint8_t tail[ZIP_TAIL_SIZE]; /* the last bytes so far, at its end */
	size_t size;		     /* of them */
	uint64_t names;		     /* sum of the members' hashes */
	uint32_t members;
};

/* The next bytes of the file. */
void zip_end_take(struct zip_end *end, const uint8_t *data, size_t size);
/* A member that was found in front of its data. */
void zip_end_add(struct zip_end *end, const char *name);
/*
 * All bytes were taken: are the members those of the directory? Names are not looked at if it
 * is too large to be kept. False: `why`.
 */
bool zip_end_check(const struct zip_end *end, char why[ZIP_WHY_SIZE]);

#endif

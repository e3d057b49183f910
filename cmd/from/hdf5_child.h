/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_child.h - what a process that reads an HDF5 file says through a pipe
 *
 * Frames, each a header and so many bytes. An array is followed by its data, unless that is where
 * the file has it, and by damage if it is not complete.
 */
#ifndef STELE_CMD_FROM_HDF5_CHILD_H
#define STELE_CMD_FROM_HDF5_CHILD_H

#include "from/npy.h"
#include "text.h"

#include <stdbool.h>

#define HDF5_FRAME_MAX ((size_t)256 << 10)
/*
 * Processor time for a link, or for what is read at once, and, of the latter, bytes of its chunks
 * that are decoded in a second more. Then SIGPROF ends it: it finds no end.
 */
#define HDF5_SILENCE_S 10
#define HDF5_DECODED   (UINT64_C(16) << 20)

enum hdf5_kind {
	HDF5_ARRAY,  /* struct hdf5_array */
	HDF5_DATA,   /* bytes of the array, up to HDF5_FRAME_MAX */
	HDF5_DAMAGE, /* text: of the array, or of the file if there was none */
	HDF5_WARNING,
	HDF5_END, /* struct hdf5_end */
};

struct hdf5_frame {
	uint32_t kind, size;
};

struct hdf5_array {
	char name[STELE_NAME_SIZE_MAX + 1];
	struct npy npy;
	uint64_t offset; /* in the file, if `placed` */
	bool varies, placed;
};

struct hdf5_end {
	uint64_t chosen; /* the names of --arrays that were found: a bit each */
	char names[TEXT_LIST_SIZE]; /* as of struct arrays */
};

/* All of the file, or what `chosen`, of --arrays, takes. The library is loaded. */
void hdf5_child(const char *path, const char *chosen, int pipe);

#endif

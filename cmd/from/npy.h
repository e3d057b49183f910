/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - what the header of an .npy file says about its array
 */
#ifndef STELE_CMD_FROM_NPY_H
#define STELE_CMD_FROM_NPY_H

#include "stele.h"

#include <stdbool.h>

#define NPY_FIRST_SIZE	12u /* magic, version, size of the header */
#define NPY_HEADER_MAX	65536u
#define NPY_RANK_MAX	(STELE_RANK_MAX + 1)

enum npy_text {
	NPY_NUMBERS,
	NPY_BYTES, /* filled up with zeros */
	NPY_UCS4,  /* the same, code points of 4 bytes */
	NPY_UTF8,  /* the same; not NumPy's */
};

struct npy {
	uint32_t dtype; /* enum stele_dtype; of text 0 */
	enum npy_text text;
	uint32_t rank; /* 1 at least */
	uint64_t dims[NPY_RANK_MAX];
	uint64_t row_size;  /* bytes; text: of one */
	uint64_t data_size; /* of all rows */
};

bool npy_detect(const uint8_t *data, size_t size);
/* Of NPY_FIRST_SIZE bytes: how many the header has from the start of the file; 0: bad. */
uint64_t npy_header_size(const uint8_t *data);
/* All of the header. Return: NULL; what is wrong, static. */
const char *npy_parse(const uint8_t *data, size_t size, struct npy *out);

/* Where row_size is that of an element: set both sizes. Return: as npy_parse(). */
const char *npy_check(struct npy *npy, bool fortran);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - the header of an .npy file with a tensor
 */
#ifndef STELE_CMD_TO_NPY_H
#define STELE_CMD_TO_NPY_H

#include <stdbool.h>

#include "stele.h"

#define TO_NPY_HEAD_MAX 320u

/* Has NumPy its dtype? */
bool to_npy_has(const struct stele_field *field);
/* Of a tensor of `size` bytes, which follow. Return: how many bytes. */
size_t to_npy_head(const struct stele_field *field, uint64_t size, char out[TO_NPY_HEAD_MAX]);

#endif

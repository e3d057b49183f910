/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.h - CRC-32C (Castagnoli; RFC 3720 appendix B.4) by isa-l
 *
 * The usual convention: reflected, initial value and final xor of all ones,
 * and stele_crc32c(stele_crc32c(0, a), b) == stele_crc32c(0, a || b).
 */
#ifndef STELE_FORMAT_CRC32C_H
#define STELE_FORMAT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t stele_crc32c(uint32_t crc, const void *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.h - the checksum of TFRecord: CRC-32C, masked
 */
#ifndef STELE_CMD_FROM_TFRECORD_H
#define STELE_CMD_FROM_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

uint32_t tfrecord_crc(const void *data, size_t size);

#endif

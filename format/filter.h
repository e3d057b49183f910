/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - a few bits that tell that a small segment does not have a key
 *
 * A Bloom filter in the descriptor, over all keys of the section KEYS: who looks for a
 * key in hundreds of segments reads pages of those that may have it. Nothing proves it,
 * so a reader that proves what it reads does without. stele-format(5), "Keys".
 */
#ifndef STELE_FORMAT_FILTER_H
#define STELE_FORMAT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STELE_FILTER_SIZE_MAX 4064u /* more keys have none */

/* Bytes of a filter over so many keys; 0: there is none. */
uint32_t stele_filter_size(uint64_t key_count);
uint64_t stele_filter_hash(const char *key, size_t size);
/* `filter`: `size` bytes, zeroed at first; size not 0. */
void stele_filter_add(uint8_t *filter, uint32_t size, uint64_t hash);
/* False: no such key was added. True: perhaps. */
bool stele_filter_may_have(const uint8_t *filter, uint32_t size, uint64_t hash);

#endif

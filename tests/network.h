/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - a permutation as stele-format(5) writes it, one round after the other
 */
#ifndef STELE_TESTS_NETWORK_H
#define STELE_TESTS_NETWORK_H

#include <stdint.h>

/* The id at position x of `count`. The page says how many rounds there are, an even number. */
uint64_t test_network(uint64_t count, uint64_t stream, uint32_t rounds, uint64_t x);

#endif

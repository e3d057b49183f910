/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - see network.h
 */
#include "tests/network.h"

#include "format/permutation.h"

static uint64_t part(uint64_t half, uint64_t key, uint64_t n)
{
	uint64_t x = (half ^ key) * UINT64_C(0xbf58476d1ce4e5b9);

	x = (x ^ (x >> 32)) * UINT64_C(0x94d049bb133111eb);
	return stele_scale(x, n);
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t test_network(uint64_t count, uint64_t stream, uint32_t rounds, uint64_t x)
{
	const uint64_t gamma = UINT64_C(0x9e3779b97f4a7c15);
	const uint64_t start = mixed((stream ^ count) + gamma);
	uint64_t columns = 2, rows, row, column;

	while (columns * columns * 2 < count)
		columns *= 2;
	rows = (count + columns - 1) / columns;
	do {
		row = x / columns;
		column = x % columns;
		for (uint32_t r = 0; r < rounds; r += 2) {
			row += part(column, mixed(start + (r + 1) * gamma), rows);
			row %= rows;
			column += part(row, mixed(start + (r + 2) * gamma), columns);
			column %= columns;
		}
		x = row * columns + column;
	} while (x >= count);
	return x;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pivots.h - searching the pages of a segment's keys, past those that were read before
 *
 * A binary search asks for the same few pages first. The first key of each that a search
 * has read and checked is kept, for its upper levels, so that later ones go on from there:
 * one read instead of 13 among 1 M keys. A pivot is published once and never changes, so
 * threads need no lock. Before the first search they take no memory.
 */
#ifndef STELE_IMAGE_PIVOTS_H
#define STELE_IMAGE_PIVOTS_H

#include <stddef.h>
#include <stdint.h>

struct stele_pivots;

/* Return: NULL: no memory, so nothing is kept; every call here takes that. */
struct stele_pivots *stele_pivots_open(uint64_t pages);
void stele_pivots_close(struct stele_pivots *pivots);

/* The key, if there is one, is in [low, high). Begin with all pages, and `node` 1. */
struct stele_pivot_search {
	uint64_t low, high;
	uint64_t node;
};

/* The page to read next: the only one, or the middle, which halves what is left. */
uint64_t stele_pivots_page(const struct stele_pivot_search *search);
/* As far as pivots lead. */
void stele_pivots_follow(const struct stele_pivots *pivots, struct stele_pivot_search *search,
			 const char *key, size_t key_size);
/* The middle one was read, and begins with `first`. */
void stele_pivots_halve(struct stele_pivots *pivots, struct stele_pivot_search *search,
			const char *first, size_t first_size, const char *key, size_t key_size);

#endif

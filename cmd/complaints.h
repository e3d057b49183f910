/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complaints.h - samples that failed, each named, unless there are many of a kind
 */
#ifndef STELE_CMD_COMPLAINTS_H
#define STELE_CMD_COMPLAINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPLAINTS_KINDS     16u /* others are all named */
#define COMPLAINTS_KIND_SIZE 128u
#define COMPLAINTS_NAMED     10u /* of a kind; others are counted */

/* Zero is none yet. */
struct complaints {
	struct {
		char text[COMPLAINTS_KIND_SIZE]; /* "cannot write: it exists" */
		uint64_t count;
	} kinds[COMPLAINTS_KINDS];
};

/* Count one. Return: is it to be named? */
bool complaints_count(struct complaints *complaints, const char *what, const char *reason);
/* Count it, and name it: "cannot write 'KEY': it exists". `key` need not be text. */
void complaints_add(struct complaints *complaints, const char *what, const char *key,
		    size_t key_size, const char *reason);
/* How many more there were of each kind. */
void complaints_sum(const struct complaints *complaints);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.h - "did you mean": the known word closest to one that was mistyped
 */
#ifndef STELE_CMD_SUGGEST_H
#define STELE_CMD_SUGGEST_H

#include <stddef.h>

#define SUGGEST_SIZE 128

/* Zero except `word`; offer words, then read `best`, which is "" if none is close. */
struct suggest {
	const char *word;
	char best[SUGGEST_SIZE];
	size_t distance; /* of best */
};

void suggest_offer(struct suggest *suggest, const char *candidate, size_t size);
/* Print a hint if there is a best one; `prefix` stands before it: "--", "cats@". */
void suggest_print(const struct suggest *suggest, const char *prefix);

#endif

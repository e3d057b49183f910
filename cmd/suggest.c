/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.c - "did you mean": the known word closest to one that was mistyped
 *
 * Distance is the number of insertions, deletions, replacements and swaps of
 * neighbours. A third of the word may be wrong; of several closest words the first wins.
 */
#include "suggest.h"

#include <ctype.h>
#include <string.h>

#include "cmd.h"

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Case does not count. Both are shorter than SUGGEST_SIZE. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	unsigned char row[3][SUGGEST_SIZE + 1];

	for (size_t j = 0; j <= b_size; j++)
		row[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= a_size; i++) {
		unsigned char *now = row[i % 3], *last = row[(i + 2) % 3];
		const unsigned char *before = row[(i + 1) % 3];

		now[0] = (unsigned char)i;
		for (size_t j = 1; j <= b_size; j++) {
			const int x = tolower((unsigned char)a[i - 1]);
			const int y = tolower((unsigned char)b[j - 1]);
			size_t best = least(last[j - 1] + (size_t)(x != y),
					    last[j] + 1u, now[j - 1] + 1u);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && before[j - 2] + 1u < best)
				best = before[j - 2] + 1u;
			now[j] = (unsigned char)best;
		}
	}
	return row[a_size % 3][b_size];
}

void suggest_offer(struct suggest *suggest, const char *candidate, size_t size)
{
	const size_t length = strlen(suggest->word);
	size_t found;

	if (!size || size >= SUGGEST_SIZE || !length || length >= SUGGEST_SIZE)
		return;
	if (length == size && !memcmp(suggest->word, candidate, size))
		return;
	found = distance(suggest->word, length, candidate, size);
	if (found > (length + 1) / 3 || found >= size ||
	    (*suggest->best && found >= suggest->distance))
		return;
	memcpy(suggest->best, candidate, size);
	suggest->best[size] = '\0';
	suggest->distance = found;
}

void suggest_print(const struct suggest *suggest, const char *prefix)
{
	if (*suggest->best)
		cmd_hint("did you mean '%s%s'?", prefix, suggest->best);
}

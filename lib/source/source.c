/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - what all kinds of sources share
 */
#include "lib/source/source.h"

#include <stdio.h>
#include <string.h>

void stele_source_close(struct stele_source *source)
{
	if (source)
		source->ops->release(source);
}

char *stele_source_quote(const char *key, size_t key_size,
			 char text[STELE_QUOTE_SIZE])
{
	static const char more[] = "...";
	const size_t room = STELE_QUOTE_SIZE - sizeof(more);
	size_t at = 0;

	for (size_t i = 0; i < key_size; i++) {
		unsigned char c = (unsigned char)key[i];
		bool plain = c >= 0x20 && c != 0x7f && c != '\\' && c != '\'';
		size_t size = plain ? 1 : 4;

		if (at + size > room) {
			memcpy(text + at, more, sizeof(more));
			return text;
		}
		if (plain)
			text[at] = (char)c;
		else
			snprintf(text + at, 5, "\\x%02x", c);
		at += size;
	}
	text[at] = '\0';
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complaints.c - what went wrong with samples, without a line for each of millions
 */
#include "complaints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "text.h"

bool complaints_count(struct complaints *complaints, const char *what, const char *reason)
{
	char text[COMPLAINTS_KIND_SIZE];

	snprintf(text, sizeof(text), "%s: %s", what, reason);
	for (size_t i = 0; i < COMPLAINTS_KINDS; i++) {
		if (!complaints->kinds[i].count)
			memcpy(complaints->kinds[i].text, text, sizeof(text));
		if (!strcmp(complaints->kinds[i].text, text))
			return ++complaints->kinds[i].count <= COMPLAINTS_NAMED;
	}
	return true;
}

void complaints_add(struct complaints *complaints, const char *what, const char *key,
		    size_t key_size, const char *reason)
{
	char *name;

	if (!complaints_count(complaints, what, reason))
		return;
	name = text_escape(key, key_size);
	cmd_message("%s '%s': %s", what, name ? name : "?", reason);
	free(name);
}

void complaints_sum(const struct complaints *complaints)
{
	char count[TEXT_SIZE];

	for (size_t i = 0; i < COMPLAINTS_KINDS; i++)
		if (complaints->kinds[i].count > COMPLAINTS_NAMED)
			cmd_message("%s more: %s", text_count(count, complaints->kinds[i].count -
							     COMPLAINTS_NAMED),
				    complaints->kinds[i].text);
}

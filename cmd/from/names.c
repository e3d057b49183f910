/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - expand braces, the leftmost first
 */
#include "from/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 18u

int names_add(struct names *names, const char *name)
{
	char *copy;

	if (names->count >= NAMES_MAX)
		return -E2BIG;
	if ((names->count & (names->count - 1)) == 0) {
		const size_t room = names->count ? 2 * names->count : 1;
		char **list = realloc(names->list, room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		names->list = list;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	names->list[names->count++] = copy;
	return 0;
}

void names_release(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct names){0};
}

/* What one pair of braces stands for. */
struct braces {
	const char *begin, *end; /* '{' and '}' */
	bool range;
	unsigned long long from, to;
	int width;
};

static size_t digits(const char *at)
{
	return strspn(at, "0123456789");
}

static bool is_range(struct braces *b)
{
	const char *at = b->begin + 1;
	const size_t first = digits(at), second = digits(at + first + 2);

	if (!first || !second || first > DIGITS_MAX || second > DIGITS_MAX ||
	    strncmp(at + first, "..", 2) != 0 ||
	    at + first + 2 + second != b->end)
		return false;
	b->from = strtoull(at, NULL, 10);
	b->to = strtoull(at + first + 2, NULL, 10);
	b->width = *at == '0' ? (int)first : 0;
	return b->range = true;
}

/* The first braces that mean something. They do not nest. */
static bool find(const char *text, struct braces *b)
{
	for (; (text = strchr(text, '{')); text++) {
		*b = (struct braces){.begin = text, .end = strchr(text, '}')};
		if (!b->end)
			return false;
		if (memchr(text + 1, '{', (size_t)(b->end - text - 1)))
			return false;
		if (is_range(b) || memchr(text, ',', (size_t)(b->end - text)))
			return true;
	}
	return false;
}

/* The pattern with `word` in the place of the braces, expanded further. */
static int with(struct names *names, const char *pattern, const struct braces *b,
		const char *word, size_t size)
{
	char *text;
	int ret;

	if (asprintf(&text, "%.*s%.*s%s", (int)(b->begin - pattern), pattern,
		     (int)size, word, b->end + 1) < 0)
		return -ENOMEM;
	ret = names_expand(names, text);
	free(text);
	return ret;
}

static int expand_range(struct names *names, const char *pattern,
			const struct braces *b)
{
	int ret = 0;

	for (unsigned long long i = b->from; !ret; i += b->from < b->to ? 1 : -1ULL) {
		char word[32];
		int size = snprintf(word, sizeof(word), "%0*llu", b->width, i);

		ret = with(names, pattern, b, word, (size_t)size);
		if (i == b->to)
			break;
	}
	return ret;
}

static int expand_list(struct names *names, const char *pattern,
		       const struct braces *b)
{
	const char *at = b->begin + 1;
	int ret = 0;

	while (!ret) {
		const size_t size = strcspn(at, ",}");

		ret = with(names, pattern, b, at, size);
		at += size;
		if (*at++ == '}')
			break;
	}
	return ret;
}

int names_expand(struct names *names, const char *pattern)
{
	struct braces b;

	if (!find(pattern, &b))
		return names_add(names, pattern);
	return b.range ? expand_range(names, pattern, &b) :
			 expand_list(names, pattern, &b);
}

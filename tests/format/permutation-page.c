/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation-page.c - orders are those that stele-format(5) prints
 *
 * The page's vectors are read from the page itself. A line names a function and its
 * arguments, those below it, indented, are ids from position 0 on. They were made
 * by a program that was written from the text, as tests/cmd/orders.pl was, which works
 * them out again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/epoch.h"
#include "tests/tap.h"

#define PAGE          "man/stele-format.5"
#define ARGUMENTS_MAX 6

static struct stele_epoch order; /* of the line that names one */
static char line[256];
static uint64_t position, wrong, ids;

/* The arguments behind `name`. Return: whether the line is one of those. */
static bool call(const char *name, unsigned int count, uint64_t *arguments)
{
	size_t size = strlen(name);
	char *at = line + size;

	if (strncmp(line, name, size) || *at != '(')
		return false;
	for (unsigned int i = 0; i < count; i++) {
		errno = 0;
		arguments[i] = strtoull(at + 1, &at, 10);
		if (errno || *at != (i + 1 < count ? ',' : ')'))
			return false;
	}
	return true;
}

static bool names_stream(void)
{
	uint64_t a[ARGUMENTS_MAX], wanted;
	const char *is;

	if (!call("stream", 3, a) || !(is = strstr(line, ") = 0x")))
		return false;
	wanted = strtoull(is + 4, NULL, 16);
	is_hex(wanted, stele_permutation_stream(a[0], a[1], a[2]), "%.*s",
	       (int)(is + 1 - line), line);
	return true;
}

/* It depends on count as well. */
static bool names_key(void)
{
	const char *is = strstr(line, "key[0] is 0x");
	struct stele_permutation p;

	if (!is)
		return false;
	stele_permutation_init(&p, 1000, 0, 0, 0);
	is_hex(strtoull(is + 10, NULL, 16), p.keys[0], "%.80s", line);
	return true;
}

static bool names_order(void)
{
	struct stele_epoch_shape shape = {.kind = STELE_EPOCH_FULL};
	uint64_t a[ARGUMENTS_MAX];

	if (call("permutation", 4, a)) {
		stele_epoch_init(&order, &shape, a[0], a[1], a[2], a[3]);
	} else if (call("windowed", 6, a)) {
		shape = (struct stele_epoch_shape){
			.kind = STELE_EPOCH_WINDOWED,
			.block_size = a[1],
			.block_count = (uint32_t)a[2],
		};
		stele_epoch_init(&order, &shape, a[0], a[3], a[4], a[5]);
	} else {
		return false;
	}
	return true;
}

static void check_ids(void)
{
	char *at = line, *end;

	for (;; at = end) {
		uint64_t id = strtoull(at, &end, 10);

		if (end == at)
			return;
		wrong += position >= order.count ||
			 stele_epoch_at(&order, position) != id ||
			 stele_epoch_position(&order, id) != position;
		position++;
		ids++;
	}
}

static void end_order(const char *name)
{
	uint64_t least = order.count < 16 ? order.count : 16;

	if (*name)
		ok(wrong == 0 && position >= least, "%s: %" PRIu64 " ids", name,
		   position);
	position = wrong = 0;
}

int main(void)
{
	FILE *page = fopen(PAGE, "re");
	char name[sizeof(line)] = "";
	bool inside = false;
	unsigned int keys = 0;

	plan_lazy();
	if (!page)
		sysbail("cannot open '%s'", PAGE);
	while (fgets(line, sizeof(line), page)) {
		line[strcspn(line, "\n")] = '\0';
		if (inside && strncmp(line, "    ", 4) == 0) {
			check_ids();
			continue;
		}
		if (inside)
			end_order(name);
		keys += names_key();
		inside = !names_stream() && names_order();
		memcpy(name, line, sizeof(name));
	}
	fclose(page);
	ok(keys == 1, "the page has an example of a key");
	ok(ids > 500, "the page has %" PRIu64 " ids", ids);
	return done();
}

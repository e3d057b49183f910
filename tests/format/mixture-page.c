/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture-page.c - mixtures are those that stele-format(5) prints
 *
 * The page's vectors are read from the page itself, or from another file of that form that
 * is named as an argument. A line names a mixture, those below it, indented, are
 * its first draws, then source:sample. They were made by tests/cmd/orders.pl, which
 * was written from the text, and shares nothing with this library.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/epoch.h"
#include "format/mixture.h"
#include "tests/tap.h"

#define PAGE      "man/stele-format.5"
#define DRAWS     "    draws "
#define DRAWS_MAX 8u

static struct stele_mixture mixture; /* of the line that names one */
static uint64_t samples[STELE_MIXTURE_SOURCES_MAX];
static uint64_t seed, epoch, position, seen, wrong;
static char line[16384];

static bool names_mixture(void)
{
	double weights[STELE_MIXTURE_SOURCES_MAX];
	uint64_t size;
	uint32_t count = 0;
	int end;

	if (sscanf(line,
		   "mixture(%" SCNu64 ", %" SCNu64 ", %" SCNu64 ", %" SCNu64
		   ") of%n",
		   &size, &seed, &epoch, &position, &end) < 4)
		return false;
	for (char *at = line + end; *at; count++) {
		if (count == STELE_MIXTURE_SOURCES_MAX)
			bail("too many sources: %.60s", line);
		samples[count] = strtoull(at, &at, 10);
		if (*at != '*')
			bail("no weight: %.60s", line);
		weights[count] = strtod(at + 1, &at);
	}
	stele_mixture_init(&mixture, samples, weights, count, size);
	seen = wrong = 0;
	return true;
}

static void check_draws(void)
{
	char *at = line + strlen(DRAWS);
	uint32_t count = mixture.count;

	for (uint32_t i = 0; i < count && i < DRAWS_MAX; i++)
		wrong += strtoull(at, &at, 10) !=
			 stele_mixture_draws(&mixture, i);
	wrong += *at != '\0';
}

static void check_samples(void)
{
	static const struct stele_epoch_shape full = {.kind = STELE_EPOCH_FULL};
	uint64_t source, sample, draw, pass, place;
	struct stele_epoch order;
	uint32_t found;
	int size;

	for (const char *at = line; sscanf(at, "%" SCNu64 ":%" SCNu64 "%n",
					   &source, &sample, &size) == 2;
	     at += size, seen++, position++) {
		if (position >= mixture.size)
			bail("behind the end");
		stele_mixture_at(&mixture, seed, epoch, position, &found,
				 &draw);
		stele_mixture_pass(&mixture, found, samples[found], epoch, draw,
				   &pass, &place);
		stele_epoch_init(&order, &full, samples[found], seed, pass,
				 STELE_PURPOSE_SAMPLES + found);
		wrong += found != source ||
			 stele_epoch_at(&order, place) != sample;
	}
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : PAGE;
	FILE *page = fopen(path, "re");
	bool more, inside = false;
	unsigned int mixtures = 0;
	char name[80];

	plan_lazy();
	if (!page)
		sysbail("cannot open '%s'", path);
	do {
		more = fgets(line, sizeof(line), page);
		line[strcspn(line, "\n")] = '\0';
		if (more && inside && !strncmp(line, DRAWS, strlen(DRAWS))) {
			check_draws();
			continue;
		}
		if (more && inside && !strncmp(line, "    ", 4)) {
			check_samples();
			continue;
		}
		if (inside)
			ok(wrong == 0 && seen > 0, "%s: %" PRIu64 " samples",
			   name, seen);
		inside = more && names_mixture();
		mixtures += inside;
		snprintf(name, sizeof(name), "%.79s", line);
	} while (more);
	fclose(page);
	ok(mixtures >= 10, "there are %u mixtures", mixtures);
	return done();
}

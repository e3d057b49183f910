/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the smallest window that delivers what a device can, found among noisy rates
 *
 * Told the rate of each round (depth.h), it says which window to try in the next:
 *
 *	STARTUP		from a few requests on twice as much, until that gains little (ladder.h)
 *	DRAIN		the same windows again, until it is clear which is enough; where that is
 *			the lowest, half as much, while it loses nothing
 *	CRUISE		hold; now and then try a little more (PROBE_UP), or less
 *
 * One rate beside another proves little where others share device and
 * processor. So from then on each step is a *trial*: rounds of the one
 * window and of the other alternate, each of the other is set against those
 * before and after it, and bounded scores are added up until they say enough. They
 * begin with what the latency says (mostly queueing: less will do), or with what the last
 * trial found; where they stay in doubt, the smaller window wins: on a plateau nothing
 * else would hold a window that noise can push either way.
 * The measure of gain is the elasticity, d ln(rate) / d ln(window): more in
 * flight for its own sake is latency for nothing.
 */
#ifndef STELE_READ_SEARCH_H
#define STELE_READ_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/read/ladder.h"
#include "lib/read/measure.h"

/* The highest value of the last 10 to 20 s; 0: none. */
struct stele_recent {
	double now, before;
	uint64_t since; /* ns */
};
void stele_recent_add(struct stele_recent *recent, double value, uint64_t time);
double stele_recent_max(const struct stele_recent *recent);

struct stele_search {
	double window;	   /* of the round that runs, in cost */
	uint32_t phase;	   /* enum stele_depth_phase, of the round that runs */
	uint64_t round_ns; /* that a round should last at least ... */
	uint32_t round_count; /* ... and completions that it should have */

	enum stele_rate by;	   /* the rate that decides */
	double last[STELE_RATES];  /* of the last round of the same base; 0: none */
	double noise[STELE_RATES]; /* |ln| of one of these to the next, smoothed */

	struct stele_ladder ladder; /* STARTUP and DRAIN */

	/* A trial: of `other` against `base`. */
	bool trial, on_other, down;
	double base, other;
	double base_rate, other_rate; /* of the last round of each; 0: none yet */
	double score, gain; /* gain: sum of ln(other_rate / base_rate) */
	uint32_t pairs;
	bool known[2];	  /* [down]: the window was tried against another before ... */
	double scores[2]; /* ... with that result */

	/* CRUISE */
	uint32_t wait, interval; /* rounds to the next trial */
	uint32_t hold;	   /* rounds in which it may not grow */
	double rate;	   /* smoothed; 0: none yet */
	uint32_t strange;  /* rounds in a row whose rate is another one */
	struct stele_recent best; /* smoothed rates */
	uint64_t random;
};

void stele_search_init(struct stele_search *search, uint64_t seed);
/* What a round brought; sets window, phase and round_ns of the next. */
void stele_search_round(struct stele_search *search,
			const struct stele_measure *measure);
/* The transport failed. */
void stele_search_fail(struct stele_search *search, double mean);

#endif

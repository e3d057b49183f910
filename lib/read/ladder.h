/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ladder.h - where to begin: which of a few windows, each twice the one below, is the knee?
 *
 * One round says little of a window where others share device and processor. So once the
 * ladder was climbed it is gone over again and again, down and up in turn, and each rung's
 * rate is set against the mean of its pass: what drifts cancels out, and what is left is
 * averaged. Rungs that cannot be the knee are left out. Where the highest is it, the climb,
 * which believed single rounds, ended too early and goes on. It ends when the knee is clear,
 * or the time is over; then the smaller one of those that might be it wins.
 */
#ifndef STELE_READ_LADDER_H
#define STELE_READ_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/read/measure.h"

#define STELE_LADDER_RUNGS 16u

struct stele_ladder {
	struct stele_rung {
		double window;	       /* in cost */
		double now[STELE_RATES]; /* ln(rate), in this pass */
		double sum[STELE_RATES]; /* of the same in all, less the mean of its pass */
	} rungs[STELE_LADDER_RUNGS];
	uint32_t count;
	uint32_t reference;  /* the last that was clearly better than those below */
	bool climbed;	     /* all rungs are known */
	uint32_t first, end; /* those that may be the knee, or tell */
	uint32_t at, passes;
	double squares[STELE_RATES]; /* of what rungs differ by from one pass to another ... */
	uint32_t degrees;	     /* ... of freedom, in each */
	uint64_t begun, pass_begun;  /* ns */

	/* Once it is over: the result. */
	double knee;	      /* window */
	bool lowest;	      /* it is the lowest: perhaps less is enough */
	enum stele_rate by;   /* the rate that differed least from pass to pass */
};

/*
 * What a round of `window` brought. Begins with a zeroed ladder and any window. Return: the
 * window of the next round; 0: it is over.
 */
double stele_ladder_round(struct stele_ladder *ladder, const struct stele_measure *measure,
			  double window);

#endif

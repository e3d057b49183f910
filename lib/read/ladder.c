/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ladder.c - climb, then passes over the rungs
 *
 * Constants are what the simulated devices of tests/lib/depth-*.c settle by.
 */
#include "lib/read/ladder.h"

#include <math.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

/* The climb ends when so many doublings together gained less than this. */
#define GROWTH 1.15
#define FLAT   3u
/* Or where the window cannot grow by this much any more. */
#define ROOM 1.05

/* The knee is the smallest window that delivers this much less than the best: ln. */
#define LOSS 0.03
/* Error of a mean: as if so many differences of so much (ln) were known before the first. */
#define PRIOR_DEGREES 2
#define PRIOR_NOISE   0.1
/* So many errors below the knee's a rung is of no interest. */
#define FAR 3
/* What the highest rung must gain (ln) to be tried again. */
#define GAIN 0.01
/* Rungs below the top that tell, too, where the climb goes on. */
#define BELOW 4u

#define PASSES_MIN 2u
#define PASSES_MAX 16u
#define TIME_MAX   (600 * NS_PER_MS) /* unless the climb alone takes as long */

/* ---- climb ------------------------------------------------------------------- */

static void note(struct stele_rung *rung, const struct stele_measure *m)
{
	for (enum stele_rate i = 0; i < STELE_RATES; i++)
		rung->now[i] = log(m->rates[i]);
}

/* By the rate that grew least. */
static bool has_grown(const struct stele_rung *rung, const struct stele_rung *below)
{
	double least = INFINITY;

	for (enum stele_rate i = 0; i < STELE_RATES; i++)
		least = fmin(least, rung->now[i] - below->now[i]);
	return least > log(GROWTH);
}

/* Return: the next rung's window; 0: this was the last. */
static double climb(struct stele_ladder *l, const struct stele_measure *m, double window)
{
	struct stele_rung *rung = &l->rungs[l->count];
	double next = fmin(2 * window, m->most);

	if (!l->count)
		l->begun = l->pass_begun = m->time;
	rung->window = window;
	note(rung, m);
	if (has_grown(rung, &l->rungs[l->reference]))
		l->reference = l->count;
	l->count++;
	if (l->count - 1 < l->reference + FLAT && next > ROOM * window &&
	    l->count < STELE_LADDER_RUNGS)
		return next;
	l->climbed = true;
	l->end = l->count;
	return 0;
}

/* ---- what passes say ---------------------------------------------------------- */

static void add_pass(struct stele_ladder *l)
{
	uint32_t count = l->end - l->first;

	for (enum stele_rate k = 0; k < STELE_RATES; k++) {
		double mean = 0;

		for (uint32_t i = l->first; i < l->end; i++)
			mean += l->rungs[i].now[k] / count;
		for (uint32_t i = l->first; i < l->end; i++) {
			double x = l->rungs[i].now[k] - mean;

			if (l->passes) { /* Welford, by the mean of the passes before */
				double d = x - l->rungs[i].sum[k] / l->passes;

				l->squares[k] += d * d * l->passes / (l->passes + 1);
			}
			l->rungs[i].sum[k] += x;
		}
	}
	if (l->passes)
		l->degrees += count - 1;
	l->passes++;
}

static enum stele_rate calmest(const struct stele_ladder *l)
{
	enum stele_rate best = l->by;

	for (enum stele_rate k = 0; k < STELE_RATES; k++)
		if (l->squares[k] < l->squares[best])
			best = k;
	return best;
}

static double error_of_means(const struct stele_ladder *l)
{
	double squares = l->squares[l->by] + PRIOR_DEGREES * PRIOR_NOISE * PRIOR_NOISE;

	return sqrt(squares / (l->degrees + PRIOR_DEGREES) / l->passes);
}

/*
 * The means of `first` to `end`, made not to fall (pool adjacent violators): a deeper queue
 * delivers no less. Where it does, both are as good, and the smaller wins.
 */
static void rising_means(const struct stele_ladder *l, double *means)
{
	double values[STELE_LADDER_RUNGS];
	uint32_t sizes[STELE_LADDER_RUNGS], blocks = 0, at = l->first;

	for (uint32_t i = l->first; i < l->end; i++) {
		values[blocks] = l->rungs[i].sum[l->by] / l->passes;
		sizes[blocks++] = 1;
		for (; blocks > 1 && values[blocks - 2] > values[blocks - 1]; blocks--) {
			uint32_t a = sizes[blocks - 2], b = sizes[blocks - 1];

			values[blocks - 2] = (a * values[blocks - 2] + b * values[blocks - 1]) /
					     (a + b);
			sizes[blocks - 2] = a + b;
		}
	}
	for (uint32_t i = 0; i < blocks; i++)
		while (sizes[i]--)
			means[at++] = values[i];
}

/* ---- the knee ------------------------------------------------------------------- */

static uint32_t first_above(const struct stele_ladder *l, const double *means, double bar)
{
	uint32_t i = l->first;

	while (i + 1 < l->end && !(means[i] >= bar))
		i++;
	return i;
}

/* Where the curve passes the bar: on it, or between it and the rung below. */
static void set_knee(struct stele_ladder *l, const double *means, double bar)
{
	uint32_t i = first_above(l, means, bar);
	double window = l->rungs[i].window, below, share;

	if (i > l->first) {
		below = l->rungs[i - 1].window;
		share = (bar - means[i - 1]) / (means[i] - means[i - 1]);
		window = below * pow(window / below, fmax(0, fmin(1, share)));
	}
	l->knee = window;
	l->lowest = !i;
}

/* What is far below the knee need not be tried again, nor what gains nothing beyond it. */
static void narrow(struct stele_ladder *l, const double *means, uint32_t knee, double error)
{
	const struct stele_rung *last = &l->rungs[l->end - 1];

	while (l->first + 1 < knee && means[l->first] < means[knee] - FAR * error)
		l->first++;
	if (l->passes >= PASSES_MIN && l->end > knee + 2 &&
	    last->sum[l->by] < last[-1].sum[l->by] + GAIN * l->passes)
		l->end--;
}

static bool is_top(const struct stele_ladder *l, uint32_t rung, double most)
{
	return rung + 1 == l->count && l->count < STELE_LADDER_RUNGS &&
	       ROOM * l->rungs[rung].window < most;
}

/* From the top, and then all passes again over what is not far below it. */
static void climb_on(struct stele_ladder *l)
{
	l->reference = l->count - 1;
	l->first = l->count > BELOW ? l->count - 1 - BELOW : 0;
	l->climbed = false;
	l->passes = l->degrees = 0;
	memset(l->squares, 0, sizeof(l->squares));
	for (uint32_t i = 0; i < l->count; i++)
		memset(l->rungs[i].sum, 0, sizeof(l->rungs[i].sum));
}

/* Is one more pass worth it? If not, the knee is set. */
static bool goes_on(struct stele_ladder *l, uint64_t time, double most)
{
	double means[STELE_LADDER_RUNGS], error, bar;
	uint64_t expected = time - l->begun + (time - l->pass_begun);
	uint32_t knee;
	bool clear;

	l->by = calmest(l);
	error = error_of_means(l);
	rising_means(l, means);
	bar = means[l->end - 1] - LOSS;
	knee = first_above(l, means, bar);
	clear = means[knee] > bar + error &&
		(knee == l->first || means[knee - 1] < bar - error);
	if (l->passes >= PASSES_MIN && expected < TIME_MAX && is_top(l, knee, most)) {
		climb_on(l);
		return true;
	}
	if (l->passes < PASSES_MIN ||
	    (!clear && l->passes < PASSES_MAX && expected < TIME_MAX)) {
		narrow(l, means, knee, error);
		return true;
	}
	set_knee(l, means, clear ? bar : bar - error / 2);
	return false;
}

double stele_ladder_round(struct stele_ladder *l, const struct stele_measure *m, double window)
{
	bool up = l->passes % 2 == 0; /* the climb was the first */

	if (!l->climbed) {
		double next = climb(l, m, window);

		if (next > 0)
			return next;
	} else {
		note(&l->rungs[l->at], m);
		if (up ? l->at + 1 < l->end : l->at > l->first) {
			up ? l->at++ : l->at--;
			return l->rungs[l->at].window;
		}
	}
	add_pass(l);
	if (!goes_on(l, m->time, m->most))
		return 0;
	l->pass_begun = m->time;
	if (!l->climbed)
		return fmin(2 * l->rungs[l->count - 1].window, m->most);
	l->at = l->passes % 2 ? l->end - 1 : l->first;
	return l->rungs[l->at].window;
}

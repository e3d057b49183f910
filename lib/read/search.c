/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - up and down the ladder, then trials
 *
 * Constants are what the simulated devices of tests/lib/depth-*.c settle by.
 */
#include "lib/read/search.h"

#include <math.h>

#include "lib/base/random.h"
#include "lib/stele.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define NS_PER_MS     UINT64_C(1000000)

/*
 * Elasticity that makes more worth its latency, and less not worth its loss. Where
 * throughput at depth q goes like (q^-p + 1)^(-1/p), a depth whose double gains 2 % (0.03)
 * delivers 0.961 (p = 1) to 0.979 (p = 4) of the best.
 */
#define UP_ELASTICITY	0.03
#define DOWN_ELASTICITY 0.025
/* What a pair of rounds may add to the score, and the score that decides. */
#define UNIT_MIN   0.01 /* of score: as much as rates differ by themselves */
#define UNIT_MAX   0.1
#define SCORE_MAX  1.5
#define SCORE_ENDS 2.9
#define PAIRS_MAX  10u
/* Mean latency by the quickest round's: at the knee, and the most that more of it says. */
#define SLOWDOWN_FAIR 2.0
#define PRIOR_MAX     2.4
/* For more it must be clear at last, for less it may be in doubt. */
#define DOUBT 0.5
/* Of what the last trial of the same window has found. */
#define REMEMBERED 0.7
/* Rates of the base before and after, the lower by the higher. */
#define BASES_AGREE 0.8
/* A gain of this share of what the window grew: the knee is not near. */
#define STEEP 0.5

/* Not worth a second look, unless rates differ so much by themselves. */
#define CLEAR_LOSS 0.15
#define LOUD 4

#define DRAIN_FACTOR 0.5
#define DOWN_FACTOR  0.75
#define UP_FACTOR    1.33
#define LEAP_FACTOR  2.0
/* Where rounds differ so much by themselves, only large steps can be told from chance. */
#define LEAP_NOISE 0.06

/* Rounds between trials: more and more, while nothing changes, up to some seconds. */
#define INTERVAL_MIN 4u
#define INTERVAL_MAX 64u
#define INTERVAL_NS  (4 * NS_PER_SECOND)

/* So far from the smoothed rate, so often in a row: the device is another one. */
#define STRANGE_DEVIATION 0.15
#define STRANGE_ROUNDS	  3u
#define SMOOTHING	  4
/* Below this share of the best rate of late somebody else is busy: do not give way. */
#define UNDISTURBED 0.9
#define SLOWDOWN_MAX 4.0

#define FAIL_FACTOR 0.7
#define FAIL_HOLD   10u

/* Short while it starts, and then as long, and of as many requests, as noise demands. */
#define STARTUP_NS     (4 * NS_PER_MS)
#define STARTUP_COUNT  48u
#define DRAIN_NS       (6 * NS_PER_MS)
#define ROUND_COUNT    64u
#define COUNT_MIN      32u
#define COUNT_MAX      512u
#define ROUND_MIN      (10 * NS_PER_MS)
#define ROUND_MAX      (320 * NS_PER_MS)
#define NOISE_LENGTHEN 0.05
#define NOISE_SHORTEN  0.02
/* One jump, of a device that changed, is no noise yet; and averaging helps by itself. */
#define NOISE_MAX  0.15
#define NOISE_FIRST 0.1 /* until it has been heard */
#define NOISE_ROOT 0.7
/* Another rate decides when it is so much calmer. */
#define CALMER 0.7

#define RECENT_NS (10 * NS_PER_SECOND)

void stele_recent_add(struct stele_recent *r, double value, uint64_t time)
{
	if (time - r->since >= RECENT_NS) {
		r->before = r->now;
		r->now = 0;
		r->since = time;
	}
	if (value > r->now)
		r->now = value;
}

double stele_recent_max(const struct stele_recent *r)
{
	return r->now > r->before ? r->now : r->before;
}

void stele_search_init(struct stele_search *s, uint64_t seed)
{
	*s = (struct stele_search){
		.phase = STELE_DEPTH_STARTUP,
		.round_ns = STARTUP_NS,
		.round_count = STARTUP_COUNT,
		.interval = INTERVAL_MIN,
		.noise = {NOISE_FIRST, NOISE_FIRST, NOISE_FIRST},
		.random = seed | 1,
	};
}

/* ---- trials ------------------------------------------------------------- */

/* Another window than this one, by at least one request; 0: there is none. */
static double other_window(const struct stele_measure *m, double base,
			   double factor)
{
	double requests = base / m->mean, other;

	if (factor > 1)
		other = fmax(floor(requests * factor + 0.5),
			     floor(requests) + 1);
	else
		other = fmin(floor(requests * factor + 0.5),
			     ceil(requests) - 1);
	if (other < 1)
		return 0;
	other *= m->mean;
	if (other > m->most)
		other = m->most;
	return factor > 1 && other <= base ? 0 : other;
}

/*
 * What the latency says before any rate does: far above that of the quickest round it is
 * queueing, and more of that gains nothing.
 */
static double prior(const struct stele_measure *m, bool down)
{
	double queueing = m->slowdown > 0 ? log2(m->slowdown / SLOWDOWN_FAIR) : 0;
	double score = fmax(0, fmin(PRIOR_MAX, queueing));

	return down ? score : -score / 2;
}

/* `rate`: of a round of the present window that has just ended; 0: none. */
static bool begin_trial(struct stele_search *s, const struct stele_measure *m,
			double factor, double rate)
{
	double other = other_window(m, s->window, factor);

	if (!(other > 0) || !(s->window > 0))
		return false;
	s->trial = true;
	s->down = factor < 1;
	s->base = s->window;
	s->other = other;
	s->base_rate = rate;
	s->other_rate = 0;
	s->score = s->known[s->down] ? REMEMBERED * s->scores[s->down]
				     : prior(m, s->down);
	s->gain = 0;
	s->pairs = 0;
	s->on_other = rate > 0;
	return true;
}

static void forget(struct stele_search *s)
{
	s->known[false] = s->known[true] = false;
}

/* What speaks for and against one that was rejected is where the next begins. */
static void end_trial(struct stele_search *s, bool accepted)
{
	s->window = accepted ? s->other : s->base;
	s->trial = s->on_other = false;
	if (accepted) {
		s->last[0] = s->last[1] = s->last[2] = 0;
		forget(s);
	} else {
		s->scores[s->down] = s->score;
		s->known[s->down] = s->pairs > 0;
	}
}

/*
 * What the base delivers: between the round before and the one after. Where they
 * disagree something stood still during one of them, which proves nothing.
 */
static double base_rate(double before, double after)
{
	double least = fmin(before, after), most = fmax(before, after);

	return least < BASES_AGREE * most ? most : sqrt(before * after);
}

static void add_pair(struct stele_search *s, double rate)
{
	double gain = log(s->other_rate / base_rate(s->base_rate, rate));
	double wanted = log(s->other / s->base) *
			(s->down ? DOWN_ELASTICITY : UP_ELASTICITY);
	double unit = fmax(UNIT_MIN, fmin(UNIT_MAX, s->noise[s->by]));
	double score = (gain - wanted) / unit;

	if (!isfinite(score))
		return;
	s->gain += gain;
	if (gain < -fmax(CLEAR_LOSS, LOUD * s->noise[s->by]))
		s->score = -SCORE_ENDS;
	else
		s->score += fmax(-SCORE_MAX, fmin(SCORE_MAX, score));
}

/* Return: 1 the other one is better; -1 it is not; 0 not known yet. */
static int trial_round(struct stele_search *s, double rate)
{
	if (s->on_other) {
		s->other_rate = rate;
		s->on_other = false;
		return 0;
	}
	if (s->other_rate > 0) {
		add_pair(s, rate);
		s->pairs++;
	}
	s->base_rate = rate;
	s->other_rate = 0;
	if (fabs(s->score) >= SCORE_ENDS || s->pairs >= PAIRS_MAX)
		return s->score > (s->down ? -DOUBT : DOUBT) ? 1 : -1;
	s->on_other = true;
	return 0;
}

/* ---- phases ------------------------------------------------------------- */

/* One in four more or less than that, so that readers do not probe in step. */
static uint32_t jittered(struct stele_search *s, uint32_t rounds)
{
	return rounds - rounds / 4 +
	       (uint32_t)(stele_random_next(&s->random) % (rounds / 2 + 1));
}

static void cruise(struct stele_search *s)
{
	s->phase = STELE_DEPTH_CRUISE;
	s->round_ns = ROUND_MIN;
	s->round_count = ROUND_COUNT;
	s->interval = INTERVAL_MIN;
	s->wait = 0;
	s->rate = s->base_rate = 0;
}

/* What is clear by now; else trials say whether more is better, or less as good. */
static void begin_cruise(struct stele_search *s, const struct stele_measure *m)
{
	s->window = s->ladder.knee;
	s->by = s->ladder.by;
	cruise(s);
	if (s->ladder.lowest && begin_trial(s, m, DRAIN_FACTOR, 0))
		s->phase = STELE_DEPTH_DRAIN;
	s->down = true; /* next */
}

static void ladder_round(struct stele_search *s, const struct stele_measure *m)
{
	double next = stele_ladder_round(&s->ladder, m, s->window);

	if (!(next > 0)) {
		begin_cruise(s, m);
		return;
	}
	s->window = next;
	if (s->ladder.climbed) {
		s->phase = STELE_DEPTH_DRAIN;
		s->round_ns = DRAIN_NS;
	}
}

static void drain_round(struct stele_search *s, const struct stele_measure *m,
			double rate)
{
	int verdict = trial_round(s, rate);

	if (!verdict)
		return;
	end_trial(s, verdict > 0);
	if (verdict < 0 || !begin_trial(s, m, DRAIN_FACTOR, 0))
		cruise(s);
}

static void smooth(struct stele_search *s, double rate, uint64_t time)
{
	double deviation = s->rate > 0 ? log(rate / s->rate) : 0;

	if (!(s->rate > 0))
		s->rate = rate;
	if (!(fabs(deviation) > STRANGE_DEVIATION)) {
		s->rate += (rate - s->rate) / SMOOTHING;
		s->strange = 0;
	} else if (++s->strange >= STRANGE_ROUNDS) {
		s->rate = rate;
		s->strange = 0;
		s->interval = INTERVAL_MIN;
		s->wait = 0;
		if (s->trial) /* of another device */
			end_trial(s, false);
		forget(s);
		s->down = deviation < 0;
	}
	stele_recent_add(&s->best, s->rate, time);
}

static double step(const struct stele_search *s, bool down)
{
	bool leap = s->noise[s->by] > LEAP_NOISE;

	if (down)
		return leap ? DRAIN_FACTOR : DOWN_FACTOR;
	return leap ? LEAP_FACTOR : UP_FACTOR;
}

static void try_next(struct stele_search *s, const struct stele_measure *m,
		     double rate)
{
	bool may_shrink = s->rate >= UNDISTURBED * stele_recent_max(&s->best);
	bool may_grow = !s->hold;
	bool down = s->down;

	if (down && !may_shrink)
		down = false;
	else if (!down && !may_grow)
		down = may_shrink;
	if (!(down || may_grow) ||
	    !begin_trial(s, m, step(s, down), rate)) {
		s->wait = jittered(s, s->interval);
		s->down = !down;
	}
}

static void end_probe(struct stele_search *s, const struct stele_measure *m,
		      bool accepted)
{
	double share = s->gain / s->pairs / log(s->other / s->base);
	double factor = share > STEEP && !s->down ? LEAP_FACTOR : step(s, s->down);

	end_trial(s, accepted);
	if (accepted) {
		s->interval = INTERVAL_MIN;
		s->rate = 0;
		if (begin_trial(s, m, factor, 0))
			return;
	} else if (s->interval < INTERVAL_MAX &&
		   s->interval * s->round_ns < INTERVAL_NS) {
		s->interval *= 2;
	}
	s->wait = jittered(s, s->interval);
	/* Long queues for no gain: see at once whether less is enough. */
	if (!s->down && !accepted && m->slowdown > SLOWDOWN_MAX)
		s->wait = 0;
	s->down = !s->down;
}

static void cruise_round(struct stele_search *s, const struct stele_measure *m,
			 double rate)
{
	if (!s->on_other)
		smooth(s, rate, m->time);
	if (s->trial) {
		int verdict = trial_round(s, rate);

		if (verdict)
			end_probe(s, m, verdict > 0);
	} else {
		s->base_rate = rate;
		if (s->wait)
			s->wait--;
		else
			try_next(s, m, rate);
	}
}

/* Between two trials, lest one rate be set against another. */
static void choose_rate(struct stele_search *s)
{
	enum stele_rate best = s->by;

	for (enum stele_rate i = 0; i < STELE_RATES; i++)
		if (s->noise[i] < CALMER * s->noise[best])
			best = i;
	if (best == s->by || (s->trial && (s->pairs || s->base_rate > 0)))
		return;
	s->by = best;
	s->rate = s->base_rate = 0;
	s->best = (struct stele_recent){.since = s->best.since};
}

/* Longer rounds where rates jump about, shorter ones where they are steady. */
static void fit_round(struct stele_search *s)
{
	double noise = s->noise[s->by], factor = 1;

	if (noise > NOISE_LENGTHEN && s->round_ns < ROUND_MAX) {
		s->round_ns *= 2;
		if (s->round_count < COUNT_MAX)
			s->round_count *= 2;
		factor = NOISE_ROOT;
	} else if (noise < NOISE_SHORTEN &&
		   (s->round_ns > ROUND_MIN || s->round_count > COUNT_MIN)) {
		if (s->round_ns > ROUND_MIN)
			s->round_ns /= 2;
		if (s->round_count > COUNT_MIN)
			s->round_count /= 2;
		factor = 1 / NOISE_ROOT;
	}
	for (enum stele_rate i = 0; i < STELE_RATES; i++)
		s->noise[i] *= factor;
}

/* Each window another one than that before. */
static bool on_ladder(const struct stele_search *s)
{
	return s->phase == STELE_DEPTH_STARTUP ||
	       (s->phase == STELE_DEPTH_DRAIN && !s->trial);
}

/* Of rounds of one base alone: between others something has changed. */
static void listen(struct stele_search *s, const struct stele_measure *m)
{
	if (on_ladder(s) || s->on_other)
		return;
	for (enum stele_rate i = 0; i < STELE_RATES; i++) {
		double noise = fabs(log(m->rates[i] / s->last[i]));

		if (!(noise < NOISE_MAX))
			noise = NOISE_MAX;
		if (s->last[i] > 0)
			s->noise[i] += (noise - s->noise[i]) / SMOOTHING;
		s->last[i] = m->rates[i];
	}
	choose_rate(s);
	fit_round(s);
}

static void keep_within(struct stele_search *s, const struct stele_measure *m)
{
	s->window = fmax(m->mean, fmin(m->most, s->window));
}

static void stop_trial(struct stele_search *s)
{
	if (s->trial)
		end_trial(s, false);
	if (s->phase == STELE_DEPTH_DRAIN)
		cruise(s);
	else if (s->phase != STELE_DEPTH_STARTUP)
		s->phase = STELE_DEPTH_CRUISE;
}

void stele_search_round(struct stele_search *s, const struct stele_measure *m)
{
	double rate = m->rates[s->by];

	if (s->hold)
		s->hold--;
	if (m->starved || !(isfinite(rate) && rate > 0)) {
		stop_trial(s);
		keep_within(s, m);
		return;
	}
	listen(s, m);
	rate = m->rates[s->by];
	if (on_ladder(s))
		ladder_round(s, m);
	else if (s->phase == STELE_DEPTH_DRAIN)
		drain_round(s, m, rate);
	else
		cruise_round(s, m, rate);
	if (s->trial)
		s->window = s->on_other ? s->other : s->base;
	if (s->phase != STELE_DEPTH_STARTUP && s->phase != STELE_DEPTH_DRAIN)
		s->phase = !s->on_other ? STELE_DEPTH_CRUISE
			   : s->down   ? STELE_DEPTH_PROBE_DOWN
				       : STELE_DEPTH_PROBE_UP;
	keep_within(s, m);
}

void stele_search_fail(struct stele_search *s, double mean)
{
	if (s->trial)
		end_trial(s, false);
	forget(s);
	cruise(s);
	s->window = fmax(mean, s->window * FAIL_FACTOR);
	s->hold = s->wait = FAIL_HOLD;
	s->down = false;
}

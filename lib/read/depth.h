/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.h - how much to have in flight: the controller of one reader
 *
 * No I/O, no clock, no allocation: it is told what is issued and what came back
 * when, and says whether another request may be issued now. The window is kept in
 * cost (model.h), or in bytes with a constant per request while no model is known,
 * so that large and small samples share it fairly.
 *
 * Delivery rate decides, latency guards: rounds of max(50 ms, 256 completions, 4 mean
 * latencies); doubling while the rate grows, then the knee, then rare probes
 * up and down; shrink on latency without gain and on transport errors; frozen
 * while the caller asks for less than the window. The constants stand in depth.c.
 *
 * Belongs to one thread. Times are nanoseconds of any one monotonic clock.
 */
#ifndef STELE_READ_DEPTH_H
#define STELE_READ_DEPTH_H

#include "lib/read/model.h"
#include "lib/stele.h"

#define STELE_DEPTH_HISTORY 256u

struct stele_depth_config {
	const struct stele_model *model; /* copied; NULL: none is known */
	uint32_t pinned;    /* requests, kept whatever happens; 0: automatic */
	uint32_t depth_max; /* requests, at least 1: never more in flight */
	uint64_t bytes_max; /* never more in flight, but one request always may be */
	uint64_t now;
};

struct stele_depth {
	struct stele_depth_config config;
	struct stele_model model;
	uint32_t in_flight;	  /* requests */
	uint64_t bytes_in_flight;
	uint32_t window;	  /* requests; the stub's only state */
};

/* Automatic and without a profile: where it begins, if depth_max allows. */
#define STELE_DEPTH_DEFAULT 64u

void stele_depth_init(struct stele_depth *depth,
		      const struct stele_depth_config *config);
/* May one more request of this size be issued? Always, when none is in flight. */
bool stele_depth_admits(const struct stele_depth *depth, uint32_t size);
void stele_depth_issued(struct stele_depth *depth, uint32_t size, uint64_t now);
/* `starved`: the caller has nothing more to issue (it asks for less than the window). */
void stele_depth_completed(struct stele_depth *depth, uint32_t size,
			   uint64_t issued, uint64_t now, int status,
			   bool starved);
/* The window in requests of the mean size of late; at least 1. */
uint32_t stele_depth_window(const struct stele_depth *depth);
/* The last rounds, oldest first, up to `max` of them. Return: count. */
unsigned int stele_depth_history(const struct stele_depth *depth,
				 struct stele_depth_round *out,
				 unsigned int max);

#endif

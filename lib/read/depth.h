/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.h - how much to have in flight: the controller of one reader
 *
 * No I/O, no clock, no allocation: it is told what is issued and what came back
 * when, and says whether another request may be issued now. The window is kept in
 * cost, written as bytes: the size, and a constant for the request itself. So large and
 * small samples share it fairly.
 *
 * This file's part is to count: what is in flight, and *rounds*, stretches that are
 * long enough for their rate to mean something. A round begins when nearly all that was
 * issued under the window before it has come back: not as many, but the very same, or
 * a slow server's share of them would pass for what the new window gained. Where the
 * window grew, the burst that it let in must have come back as well: a virtual disk takes
 * milliseconds for one, and completes little else meanwhile. What the rounds say about
 * the window is for search.h to judge. Rates are of the time in which requests waited for
 * the window: of a caller who pauses, nothing is learnt while it does.
 *
 * Belongs to one thread. Times are nanoseconds of any one monotonic clock.
 */
#ifndef STELE_READ_DEPTH_H
#define STELE_READ_DEPTH_H

#include "lib/read/search.h"
#include "lib/stele.h"

#define STELE_DEPTH_HISTORY 256u

struct stele_depth_config {
	uint32_t start;	    /* requests, to begin with; 0: STELE_DEPTH_DEFAULT */
	uint32_t pinned;    /* requests, kept whatever happens; 0: automatic */
	uint32_t depth_max; /* requests, at least 1: never more in flight */
	/* Never more in flight, but one request always may be, and a pinned depth. */
	uint64_t bytes_max;
	uint64_t now;
};

/* What has come back since a round began. */
struct stele_depth_sum {
	uint64_t start;	     /* ns */
	uint64_t count, bytes;
	uint64_t latency;    /* ns, of all together */
	uint64_t busy;	     /* ns in which requests waited for the window ... */
	uint64_t busy_count, busy_bytes; /* ... and what came back then */
	bool failed;	     /* the transport did; nothing of it counts */
};

struct stele_depth {
	struct stele_depth_config config;
	uint32_t in_flight;	  /* requests */
	uint64_t bytes_in_flight;
	uint64_t limit;		  /* of cost in flight: the window */
	uint64_t last;		  /* ns: of the last completion */
	bool seeding;		  /* the first round: the mean size is not known yet */
	bool settling;		  /* what is in flight was issued under another window ... */
	uint32_t unsettled;	  /* ... that many ... */
	uint32_t tolerated;	  /* ... of which so many may stay out */
	bool grown;		  /* the window did: settle twice, its first burst, too */
	uint64_t switched;	  /* ns: when the window changed */
	struct stele_depth_sum sum;
	double mean_size;	  /* of late */
	struct stele_search search;

	struct stele_recent quickest; /* 1/ns: the lowest mean latency of a round of late */

	struct stele_depth_round rounds[STELE_DEPTH_HISTORY];
	uint64_t round_count; /* ever */
};

/* Where it begins, if depth_max allows and nothing else is known. */
#define STELE_DEPTH_DEFAULT 8u

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

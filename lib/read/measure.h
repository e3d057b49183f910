/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - one round, as those see it who look for the window
 *
 * Cost is in bytes: the size of a request, and a constant for the request itself (depth.h).
 */
#ifndef STELE_READ_MEASURE_H
#define STELE_READ_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where sizes differ much, so do rounds: bytes/s where a device counts requests, requests/s
 * where it counts bytes. The rate that goes by is the one that varies least.
 */
enum stele_rate {
	STELE_RATE_COST,
	STELE_RATE_READS,
	STELE_RATE_BYTES,
	STELE_RATES
};

struct stele_measure {
	uint64_t time;	  /* ns: its end */
	double rates[STELE_RATES]; /* per second */
	double slowdown;  /* mean latency, as a multiple of the quickest round's of late */
	double mean;	  /* cost of a request */
	double most;	  /* the window may be: at least `mean` */
	bool starved;	  /* the window was not what held requests back */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated.h - a device in simulated time, read through the controller of depth
 *
 * Requests pass a throttle and a link, one behind the other (1 / iops + size /
 * bandwidth each), then one of `channels`: of all, or of those of the server that the
 * request falls to; first come first served. Latency varies by a generator with a
 * seed: the same run each time, whatever the machine. A caller who always wants more,
 * or `outstanding` at most, reaps what is done each time it looks, and is busy for a
 * while with each.
 */
#ifndef STELE_TESTS_DEVICE_SIMULATED_H
#define STELE_TESTS_DEVICE_SIMULATED_H

#include "lib/read/depth.h"

#define SIMULATED_MAX 4096u /* in flight */
#define MS	      UINT64_C(1000000) /* ns */
#define SECOND	      UINT64_C(1000000000)

struct simulated_device {
	uint32_t channels;
	double latency;	    /* seconds of a channel, for each request ... */
	double stream_rate; /* ... and bytes/s of it; 0: no matter */
	double iops_max;    /* of the link; 0: no matter */
	double bytes_max;   /* bytes/s of the link; 0: no matter */
	double noise;	    /* latency varies by a factor of 1 +- this, 1 in 100 by 5 */
	double sorting;	    /* of a disk: quicker by this with each doubling of depth */
	double stall;	    /* seconds that all stands still, now and then */
	double slow_share, slow_factor; /* of requests take so many times as long */
	uint32_t servers;   /* share the channels; 0: one */
	uint32_t slow_servers; /* of these are slower by slow_factor, instead */
	double bucket_rate; /* requests/s that a throttle lets pass; 0: all ... */
	double bucket_size; /* ... but so many at once after a rest */
	double writes;	    /* share of the link that somebody's bursts of writes take */
	double wander;	    /* all takes longer by a factor of 1 +- this, drawn each 8 and 256 ms */
	double burst;	    /* seconds that all stands still, for each above 8 issued at once */
};

#define SIMULATED_LATENCIES 512u

struct simulated_caller {
	uint32_t size_min, size_max; /* log-uniform */
	uint32_t outstanding;	     /* 0: always more */
	uint64_t work;		     /* ns with each sample */
	uint64_t pause;		     /* ns after each 256 samples */
};

struct simulated {
	struct simulated_device device;
	struct simulated_caller caller;
	struct stele_depth depth;
	uint64_t now, random;
	uint64_t link_free, channel_free[1024], next_stall;
	double throttle; /* ns: when the bucket would be full again */
	struct simulated_request {
		uint64_t issued, done;
		uint32_t size;
	} heap[SIMULATED_MAX]; /* by `done` */
	uint32_t count;	 /* in flight */
	uint32_t next_size;
	int status;	 /* of all that completes */
	uint64_t served; /* requests */
	double bytes, latency; /* bytes, and seconds of all served */
	uint32_t latencies[SIMULATED_LATENCIES]; /* served, by latency */
	uint32_t peak;		 /* requests in flight */
	uint64_t bytes_in_flight, bytes_peak;
};

/* config->now is set to a time that is not 0. */
void simulated_open(struct simulated *s, const struct simulated_device *device,
		    const struct simulated_caller *caller,
		    const struct stele_depth_config *config);
/* On to that many ns from now; counters begin anew. */
void simulated_run(struct simulated *s, uint64_t ns);
/* Seconds, to 7 %, that this share (0 to 1) of what was served stayed below. */
double simulated_quantile(const struct simulated *s, double share);
/* Bytes/s of the best pinned depth from 1 to depth_max, each run for `ns`. */
double simulated_best(const struct simulated_device *device,
		      const struct simulated_caller *caller, uint32_t depth_max,
		      uint64_t bytes_max, uint64_t ns, uint32_t *depth);

#endif

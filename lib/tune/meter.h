/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - measure reads of one size, so many in flight at a time
 *
 * A closed loop over the device seam: what comes back is replaced by another
 * read at a place by chance. After a lead the time is cut into windows, and it
 * goes on until their mean is known well enough or the time is up. All reads
 * are in memory that is made and registered as a reader's is.
 */
#ifndef STELE_TUNE_METER_H
#define STELE_TUNE_METER_H

#include "lib/read/arena.h"
#include "lib/tune/space.h"

#define STELE_TUNE_MEMORY_SIZE (UINT64_C(128) << 20)

struct stele_tune_read;

struct stele_tune_meter {
	const struct stele_dataset *ds;	/* for its mix of sizes */
	const struct stele_tune_space *space;
	struct stele_arena arena;
	struct stele_device *dev;
	struct stele_queue *queue;
	unsigned int depth_max;
	struct stele_tune_read *reads;
	struct stele_request **done;
	uint64_t random;
	uint64_t offset, rest; /* of a sample that takes several reads */
};

struct stele_tune_cell {
	uint32_t size; /* bytes; 0: the image's own mix */
	uint32_t depth;
	double seconds_min, seconds_max; /* the lead included */
	uint64_t reads_min; /* unless the time is up */
};

struct stele_tune_result {
	struct stele_tune_point point;
	double cpu_seconds; /* of this process, per read */
	double error;	    /* of the rate: half of its 95 % interval, a share */
};

/*
 * On `dev`, which may be another than the dataset's. Return: 0; -ENOMEM; errors
 * of stele_queue_open().
 */
int stele_tune_meter_init(struct stele_tune_meter *meter,
			  struct stele_device *dev,
			  const struct stele_dataset *ds,
			  const struct stele_tune_space *space,
			  unsigned int depth_max);
/* Waits for what is in flight. Idempotent. */
void stele_tune_meter_release(struct stele_tune_meter *meter);
/* Largest depth for reads of that size (0: any): what there is memory for. */
uint32_t stele_tune_meter_depth(const struct stele_tune_meter *meter,
				uint32_t size);

/* Return: 0; -EINVAL (too deep); errno of a read that failed, or of the queue (logged). */
int stele_tune_meter_run(struct stele_tune_meter *meter,
			 const struct stele_tune_cell *cell,
			 const struct stele_log *log,
			 struct stele_tune_result *out);

/* Mean bytes of the reads of the mix. */
double stele_tune_meter_mix(struct stele_tune_meter *meter);

/* Seconds of a monotonic clock. */
double stele_tune_clock(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - a device that wraps another one, and logs or breaks what passes
 *
 * For tests. Operations (blocking or queued, retries included) are numbered
 * from 0 in the order in which they are started. A plan is a list of rules; the first
 * that matches an operation is applied. Everything that passes is logged, with the data of writes,
 * so that a crash test can rebuild any state that the device might have been left in.
 *
 * Operations are what the seam issues: pieces of at most transfer_max, each
 * retry and each continuation for itself. SHORTEN and TEAR cut at any byte, of
 * reads and writes, and of writes. A delayed completion comes early when a
 * reap waits for it and nothing else is in flight; likewise for a queue whose
 * stele_queue_fd() has been asked for: else its owner would wait for ever.
 */
#ifndef STELE_TESTS_DEVICE_FAULT_H
#define STELE_TESTS_DEVICE_FAULT_H

#include "lib/device/device.h"

enum stele_fault_kind {
	STELE_FAULT_FAIL,      /* do nothing, return -error */
	STELE_FAULT_SHORTEN,   /* transfer only `arg` bytes, say so */
	STELE_FAULT_TEAR,      /* write only the first `arg` bytes, claim all */
	STELE_FAULT_DELAY,     /* queued: complete after `arg` later operations */
	STELE_FAULT_LOSE,      /* claim success, do nothing */
	STELE_FAULT_MISDIRECT, /* go to offset + arg instead */
	STELE_FAULT_FLIP,      /* reads: invert bit `arg` of the data */
	STELE_FAULT_BREAK,     /* queued: from then on the queue hands nothing out */
};

struct stele_fault_rule {
	enum stele_fault_kind kind;
	unsigned int ops;    /* bit set of 1 << enum stele_op; 0: all */
	uint64_t first;	     /* number of the first operation hit */
	uint64_t count;	     /* how many matching ones are hit; 0: all later */
	uint64_t offset, size; /* size > 0: only operations touching this range */
	int error;	     /* for FAIL, positive errno */
	uint64_t arg;
};

struct stele_fault_entry {
	uint64_t number;
	enum stele_op op;
	uint64_t offset;
	uint64_t size;
	bool queued;  /* through a queue, not blocking */
	void *data;   /* of writes: a copy */
	const void *memory; /* where the bytes came from, or were to go */
	int fault;    /* enum stele_fault_kind, or -1 */
};

/* Takes ownership of `inner`, also when it fails. Rules are copied. */
int stele_device_open_fault(struct stele_device *inner,
			    const struct stele_fault_rule *rules, size_t count,
			    struct stele_device **out);
/* Replace the rules; numbering goes on. */
int stele_fault_set_rules(struct stele_device *dev,
			  const struct stele_fault_rule *rules, size_t count);
/* The log since the last clear; valid until the next operation. */
const struct stele_fault_entry *stele_fault_log(struct stele_device *dev,
						size_t *count);
void stele_fault_log_clear(struct stele_device *dev);
/* Keep copies of what is written (off by default: it costs memory). */
void stele_fault_keep_data(struct stele_device *dev, bool keep);
/* Operations started so far. */
uint64_t stele_fault_count(struct stele_device *dev);

#endif

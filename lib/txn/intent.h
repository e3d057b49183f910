/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intent.h - a writer says on the target that it writes, and notices another one
 *
 * For writers that no lock keeps apart: on two machines, or on a file and on a loop
 * device over it. A block says who writes, where, and of which generation; another one
 * whose turn it is. Whoever finds one that has not ended refuses, if it is a process
 * of this machine that runs; forgets it, if that is gone, or the machine was started
 * again; and from any other machine, which it cannot see, takes the turn: it keeps off
 * the space named there, and publishes a generation above, so that what the other one
 * may still have in flight hits nothing. Who was replaced learns it before his next
 * write: this is the device's permit. It is detection, no fence: stele-format(5),
 * "Commit".
 *
 * The order makes it sound: first the turn is taken, then it is read what the other one
 * said; and what one says himself is written before he looks whose turn it is. So of two,
 * one is seen to have the turn by the other, or his space is.
 *
 * Nothing of it where the storage keeps other writers out (RBD), nor of a device
 * that none was begun for: all functions then do nothing.
 */
#ifndef STELE_TXN_INTENT_H
#define STELE_TXN_INTENT_H

#include "lib/device/device.h"
#include "lib/txn/space.h"

/* Writes that follow a look at the turn within this time do without another. */
#define STELE_INTENT_INTERVAL_NS INT64_C(100000000)
/*
 * What a writer had handed to its kernel when he was replaced has arrived after that
 * time, or never will: before a target is made larger, what he may have written to is used.
 */
#define STELE_INTENT_AVOID_SECONDS 3600

/*
 * Before the first write; `generation`: the highest that is there. Return: 0;
 * -EBUSY (a process of this machine is writing; logged); -ENOMEM; errno.
 */
int stele_intent_begin(struct stele_device *dev, const struct stele_log *log,
		       uint64_t generation);
/* Is it ours still, by a look at it now? 0; -ESTALE (logged); errno. */
int stele_intent_confirm(struct stele_device *dev);
/* For who has not begun: does nobody say that he writes? 0; -EBUSY; errno. */
int stele_intent_silent(struct stele_device *dev);
/* Space that will be written to or discarded, and the generation that is to be published. */
int stele_intent_reserve(struct stele_device *dev, uint64_t generation,
			 uint64_t offset, uint64_t size);
/* Committed, or given up: what was reserved is no more. */
void stele_intent_settle(struct stele_device *dev);
/* Before the device is closed. Idempotent. */
void stele_intent_end(struct stele_device *dev);
/* The same in a child of the process that goes on writing: the target keeps it. */
void stele_intent_forget(struct stele_device *dev);

/* No generation up to this one may be published; 0: any. */
uint64_t stele_intent_floor(const struct stele_device *dev);
/* Where another writer may still write; what we have reserved. NULL: nowhere. */
const struct stele_extents *stele_intent_avoided(const struct stele_device *dev);
const struct stele_extents *stele_intent_reserved(const struct stele_device *dev);
/*
 * There is no other space, but for what a larger target would have: use that, too.
 * False: there was nothing to avoid, or it is too early for it.
 */
bool stele_intent_stop_avoiding(struct stele_device *dev);

/*
 * For tests: this thread writes as if on another machine of that number (0: on
 * this one, and looks no more often than any other), since it was started so often.
 */
void stele_intent_pose(unsigned int machine, unsigned int boot);

#endif

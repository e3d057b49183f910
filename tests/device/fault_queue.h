/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_queue.h - queued operations of a fault device
 *
 * Private to the fault device: fault.c and fault_queue.c.
 */
#ifndef STELE_TESTS_DEVICE_FAULT_QUEUE_H
#define STELE_TESTS_DEVICE_FAULT_QUEUE_H

#include "tests/device/fault_plan.h"

/* One operation with its fault, blocking; as transfer() of a device. */
ssize_t stele_fault_perform(struct stele_device *inner,
			    const struct stele_passage *passage);
/* What is to happen to data that has arrived. Return: res. */
ssize_t stele_fault_finish(const struct stele_passage *passage, ssize_t res);

int stele_fault_open_queue(struct stele_device *inner,
			   struct stele_fault_plan *plan, unsigned int depth,
			   void *arena, size_t arena_size,
			   struct stele_queue **out);

#endif

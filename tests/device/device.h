/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - devices for tests of the seam: each backend, on one footing
 *
 * What cannot be made ends the test: these are preconditions, not checks.
 */
#ifndef STELE_TESTS_DEVICE_DEVICE_H
#define STELE_TESTS_DEVICE_DEVICE_H

#include "lib/device/device.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/fixture/log.h"

#define TEST_BACKENDS 6
/* "memory", "uring", "sqpoll", "threads", "rbd", and "fault" (over memory). */
extern const char *const test_backends[TEST_BACKENDS];
/* False, with a visible skip: io_uring is forbidden here, or no Ceph. */
bool test_backend_usable(const char *backend);

/* Zeroed and writable; a file has no name any more. Of RBD up to 16. */
struct stele_device *test_device_open(const char *backend, uint64_t size);
/* The same behind a fault device that has this one rule, or none. */
struct stele_device *test_fault_open(const char *backend, uint64_t size,
				     const struct stele_fault_rule *rule);
/* From stele_device_alloc(), filled; never the same for two seeds. */
void *test_data(const struct stele_device *dev, size_t size, uint64_t seed);

#endif

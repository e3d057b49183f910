/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a mutex that a forked child can take, whoever had it in the parent
 *
 * The library's devices have none on the way of a read; those of the tests do.
 */
#ifndef STELE_TESTS_DEVICE_LOCK_H
#define STELE_TESTS_DEVICE_LOCK_H

#include <pthread.h>

#include "lib/device/device.h"

struct test_lock {
	pthread_mutex_t mutex;
	unsigned int fork_count; /* of the process whose threads take it */
};

static inline void test_lock_init(struct test_lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->fork_count = stele_fork_count();
}

static inline void test_lock_take(struct test_lock *lock)
{
	if (lock->fork_count != stele_fork_count())
		test_lock_init(lock); /* a child begins with one thread */
	pthread_mutex_lock(&lock->mutex);
}

static inline void test_lock_drop(struct test_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

static inline void test_lock_destroy(struct test_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

#endif

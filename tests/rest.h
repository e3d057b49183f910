/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h - wait for threads, not for time
 */
#ifndef STELE_TESTS_REST_H
#define STELE_TESTS_REST_H

/*
 * Returns when each other thread of this process has been seen to sleep. A thread that
 * was left running, and is known to sleep only once it has done its work, has done it.
 */
void test_others_rest(void);

#endif

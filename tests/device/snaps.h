/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snaps.h - a storage in memory that keeps RBD snapshots of a device, as Ceph does
 *
 * An RBD snapshot is a copy of all bytes when it was made. As there: making one that is
 * there is -EEXIST; to protect what is protected -EBUSY, to unprotect what is
 * not -EINVAL; removing a protected one -EBUSY; ids are never used again;
 * nobody sees readers. Every operation on RBD snapshots can be made to fail. The storage
 * outlives the devices that are opened on it, one at a time.
 */
#ifndef STELE_TESTS_DEVICE_SNAPS_H
#define STELE_TESTS_DEVICE_SNAPS_H

#include "lib/device/snaps.h"

#define TEST_SNAPS_MAX 256u /* ever made */

struct test_storage;

/* Owns `head`. Bails rather than fail. */
struct test_storage *test_storage_new(struct stele_device *head);
void test_storage_free(struct test_storage *storage);
/* Its head, for writing; closing it leaves the storage as it is. */
struct stele_device *test_storage_open(struct test_storage *storage);
/* A copy of an RBD snapshot; NULL: none of that name. */
struct stele_device *test_storage_read(struct test_storage *storage,
				       const char *name);

/* "v1+ v2-": names in the order of their making, + protected, - not. */
const char *test_storage_list(struct test_storage *storage);
/* The n-th change of RBD snapshots from now on (1: the next) fails; 0: none. */
void test_storage_fail(struct test_storage *storage, unsigned int n,
		       int error);
/* Changes of RBD snapshots that were tried so far. */
unsigned int test_storage_changes(const struct test_storage *storage);
/* As if somebody else did it. */
void test_storage_make(struct test_storage *storage, const char *name,
		       bool is_protected);

#endif

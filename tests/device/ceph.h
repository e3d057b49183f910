/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph.h - a throw-away Ceph and RBD images in it, for C tests
 *
 * `make check` and `make check-unit` start the cluster (tests/ceph/run.sh) and
 * name its ceph.conf in STELE_TEST_CEPH; a test that is run by hand without
 * one skips. Images are removed when the test exits.
 */
#ifndef STELE_TESTS_DEVICE_CEPH_H
#define STELE_TESTS_DEVICE_CEPH_H

#include <stdbool.h>
#include <stdint.h>

/* Path of ceph.conf; NULL: there is no cluster (the caller skips). */
const char *ceph_conf(void);
/* Skips the whole test where there is no cluster, or no librbd in this build. */
void requires_ceph(void);

/*
 * "rbd:rbd/IMAGE?conf=...", of a name that nobody has. Static, of one test's
 * first 16. Size 0: the image is not made, only removed in the end if it is there.
 */
const char *rbd_new(uint64_t size);
/* The same with @SNAPSHOT behind the image. Static. */
const char *rbd_at(const char *target, const char *snapshot);
/* POOL/IMAGE, as rbd(8) wants it. Static. */
const char *rbd_spec(const char *target);

/* Runs `rbd ARGS` (or `ceph`, `rados`) on the test's cluster; did it succeed? */
bool ceph_command(const char *program, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif

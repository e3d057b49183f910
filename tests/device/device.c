/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - see device.h
 */
#include "tests/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/random.h"
#include "lib/device/backend.h"
#include "tests/device/ceph.h"
#include "tests/tap.h"

const char *const test_backends[TEST_BACKENDS] = {"memory",  "uring", "sqpoll",
						  "threads", "rbd",   "fault"};

bool test_backend_usable(const char *backend)
{
	if (!strcmp(backend, "rbd")) {
#ifdef HAVE_LIBRBD
		if (ceph_conf())
			return true;
#endif
		skip_block(1, "no Ceph here");
		return false;
	}
	if ((strcmp(backend, STELE_BACKEND_URING) != 0 &&
	     strcmp(backend, "sqpoll") != 0) ||
	    !stele_uring_probe())
		return true;
	skip_block(1, "no io_uring here");
	return false;
}

static int open_file(const char *backend, uint64_t size,
		     struct stele_device **out)
{
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/device", test_tmpdir());
	rc = stele_device_open_file(path,
				    STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				    backend, NULL, out);
	if (rc)
		return rc;
	unlink(path);
	(*out)->named = false; /* it is not missed */
	return stele_device_resize(*out, size);
}

/* Of many objects, small ones. */
static int open_rbd(uint64_t size, struct stele_device **out)
{
	const char *path = rbd_new(0);

	if (!ceph_command("rbd", "create --object-size 512K --size %juB %s",
			  (uintmax_t)size, rbd_spec(path)))
		bail("cannot create '%s'", path);
	return stele_device_open(path, NULL, STELE_DEVICE_WRITE, NULL, NULL,
				 out);
}

struct stele_device *test_device_open(const char *backend, uint64_t size)
{
	struct stele_device *dev;
	int rc;

	if (!strcmp(backend, "fault"))
		return test_fault_open("memory", size, NULL);
	if (!strcmp(backend, "memory"))
		rc = stele_device_open_memory(size, 512, &dev);
	else if (!strcmp(backend, "rbd"))
		rc = open_rbd(size, &dev);
	else
		rc = open_file(backend, size, &dev);
	if (rc)
		bail("no device by %s: %s", backend, strerror(-rc));
	return dev;
}

struct stele_device *test_fault_open(const char *backend, uint64_t size,
				     const struct stele_fault_rule *rule)
{
	struct stele_device *dev;
	int rc;

	rc = stele_device_open_fault(test_device_open(backend, size), rule,
				     rule ? 1 : 0, &dev);
	if (rc)
		bail("no fault device over %s: %s", backend, strerror(-rc));
	return dev;
}

void *test_data(const struct stele_device *dev, size_t size, uint64_t seed)
{
	uint8_t *data = stele_device_alloc(dev, size);

	if (!data)
		bail("no memory");
	seed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(stele_random_next(&seed) >> 32);
	return data;
}

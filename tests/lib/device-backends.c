/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-backends.c - backends that serve only by name, or say why they don't
 */
#include "tests/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define SIZE  (1u << 20)
#define PIECE 65536u
#define DEPTH (SIZE / PIECE)

static char path[4096];

struct test_case {
	const char *name;
	bool reads_only;
	const char *polls; /* why a file may not be polled; NULL: it may */
};

static const struct test_case cases[] = {
	{"sqpoll", false, NULL},
	{"iopoll", true, ""},
	{"hybrid", true, ""},
	{"passthrough", true, "no namespace of NVMe"},
};

/* The whole file by one batch. */
static void check_reads(struct stele_device *dev, const char *name,
			const char *wanted)
{
	struct stele_request requests[DEPTH], *done[DEPTH];
	char *data = test_data(dev, SIZE, 2), text[128];
	struct stele_queue *queue;
	unsigned int good = 0;
	int n;

	is_string(name, stele_device_backend(dev), "%s: serves", name);
	if (stele_queue_open(dev, DEPTH, data, SIZE, &queue))
		bail("no queue by %s", name);
	for (unsigned int i = 0; i < DEPTH; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_READ,
						     .data = data + i * PIECE,
						     .offset = i * PIECE,
						     .size = PIECE};
		stele_queue_submit(queue, &requests[i]);
	}
	n = stele_queue_reap(queue, done, DEPTH, DEPTH);
	for (int i = 0; i < n; i++)
		good += !done[i]->status;
	is_uint(DEPTH, good, "%s: reads", name);
	is_blob(wanted, data, SIZE, "%s: the bytes", name);
	stele_queue_describe(queue, text, sizeof(text));
	ok(strstr(text, name) == text, "%s: says who it is: %s", name, text);
	stele_queue_close(queue);
	free(data);
}

static void check_case(const struct test_case *c, const char *wanted)
{
	struct test_log seen;
	struct stele_log log = test_log_to(&seen);
	struct stele_device *dev;
	int rc = stele_device_open_file(path, 0, c->name, &log, &dev);

	if (rc) {
		is_int(-EOPNOTSUPP, rc, "%s: refused", c->name);
		is_uint(1, seen.errors, "%s: in one line", c->name);
		ok(c->polls && strstr(seen.last, c->name) &&
			   strstr(seen.last, path) &&
			   strstr(seen.last, c->polls),
		   "%s: that says why: %s", c->name, seen.last);
	} else {
		check_reads(dev, c->name, wanted);
		stele_device_close(dev);
	}
	rc = stele_device_open_file(path, STELE_DEVICE_WRITE, c->name, &log,
				    &dev);
	is_int(c->reads_only ? -EOPNOTSUPP : 0, rc, "%s: to write", c->name);
	if (rc)
		ok(strstr(seen.last, "only reads") != NULL, "%s: says: %s",
		   c->name, seen.last);
	else
		stele_device_close(dev);
}

int main(void)
{
	struct stele_device *dev;
	char *wanted;

	plan_lazy();
	unsetenv(STELE_BACKEND_ENV);
	if (!test_backend_usable("uring"))
		return done();
	snprintf(path, sizeof(path), "%s/target", test_tmpdir());
	if (stele_device_open_file(path,
				   STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				   NULL, NULL, &dev) ||
	    stele_device_resize(dev, SIZE))
		bail("no target");
	wanted = test_data(dev, SIZE, 1);
	if (stele_device_write(dev, wanted, 0, SIZE))
		bail("cannot write");
	stele_device_close(dev);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(&cases[i], wanted);
	is_int(-EINVAL, stele_device_open_file(path, 0, "nothing", NULL, &dev),
	       "no such backend");
	free(wanted);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph.c - see ceph.h
 */
#include "tests/device/ceph.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/device/loop.h"
#include "tests/tap.h"

#define IMAGES_MAX 16
#define TEXT_SIZE  (PATH_MAX + 256)

static char images[IMAGES_MAX][TEXT_SIZE];
static unsigned int image_count;
static pid_t owner;

const char *ceph_conf(void)
{
	const char *path = getenv("STELE_TEST_CEPH");

	return path && *path && access(path, R_OK) == 0 ? path : NULL;
}

void requires_ceph(void)
{
#ifndef HAVE_LIBRBD
	skip_all("built without librbd");
#endif
	if (!ceph_conf())
		skip_all("needs Ceph: tests/ceph/run.sh starts one");
}

bool ceph_command(const char *program, const char *format, ...)
{
	char args[TEXT_SIZE];
	va_list list;

	va_start(list, format);
	vsnprintf(args, sizeof(args), format, list);
	va_end(list);
	return command("%s --conf '%s' %s", program, ceph_conf(), args);
}

static void remove_images(void)
{
	if (owner != getpid())
		return;
	for (unsigned int i = 0; i < image_count; i++) {
		const char *spec = rbd_spec(images[i]);

		command("rbd='rbd --no-progress --conf %s'; $rbd info %s || exit 0; "
			"for s in $($rbd snap ls --format json %s | "
			"grep -o '\"name\":\"[^\"]*' | cut -d'\"' -f4); do "
			"$rbd snap unprotect %s@$s; done; "
			"$rbd snap purge %s; $rbd rm %s",
			ceph_conf(), spec, spec, spec, spec, spec);
	}
}

const char *rbd_new(uint64_t size)
{
	char *text = images[image_count];

	if (image_count == IMAGES_MAX)
		bail("more than %d images", IMAGES_MAX);
	if (!owner) {
		owner = getpid();
		srandom((unsigned int)owner);
		atexit(remove_images);
	}
	snprintf(text, TEXT_SIZE, "rbd:rbd/test.%d.%ld?conf=%s", (int)owner,
		 random(), ceph_conf());
	image_count++;
	if (size && !ceph_command("rbd", "create --size %" PRIu64 "B %s", size,
				  rbd_spec(text)))
		bail("cannot create '%s'", text);
	return text;
}

const char *rbd_at(const char *target, const char *snapshot)
{
	static char text[TEXT_SIZE + 64];
	const char *options = strchr(target, '?');

	snprintf(text, sizeof(text), "%.*s@%s%s", (int)(options - target),
		 target, snapshot, options);
	return text;
}

const char *rbd_spec(const char *target)
{
	static char text[TEXT_SIZE];

	snprintf(text, sizeof(text), "%.*s",
		 (int)(strcspn(target, "?") - strlen("rbd:")),
		 target + strlen("rbd:"));
	return text;
}

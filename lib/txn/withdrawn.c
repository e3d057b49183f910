/* SPDX-License-Identifier: Apache-2.0 */
/*
 * withdrawn.c - see withdrawn.h
 */
#include "lib/txn/withdrawn.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one name, withdrawn until the same second. */
#define ATTEMPTS_MAX 100

bool stele_withdrawn_parse(const char *shot, int64_t *until, const char **name)
{
	const char *digits = shot + strlen(STELE_WITHDRAWN_PREFIX);
	char *end;
	long long value;

	if (strncmp(shot, STELE_WITHDRAWN_PREFIX,
		    strlen(STELE_WITHDRAWN_PREFIX)) != 0 ||
	    !isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	value = strtoll(digits, &end, 10);
	if (errno || *end != '-' || !end[1])
		return false;
	*until = value;
	if (name)
		*name = end + 1;
	return true;
}

int stele_withdrawn_make(struct stele_device *dev, const struct stele_log *log,
			 const char *name, int64_t until)
{
	const struct stele_shot_ops *shots = stele_device_shots(dev);
	char to[STELE_WITHDRAWN_NAME_SIZE];
	int ret = -EEXIST;

	for (int i = 0; i < ATTEMPTS_MAX && ret == -EEXIST; i++) {
		snprintf(to, sizeof(to), STELE_WITHDRAWN_PREFIX "%" PRId64 "-%s",
			 until + i, name);
		ret = shots->rename(dev, name, to);
	}
	if (ret < 0 && ret != -ENOENT)
		stele_log_error(log, "cannot withdraw '%s': %s", name,
				stele_strerror(ret));
	return ret == -ENOENT ? 0 : ret;
}

int stele_withdrawn_remove(struct stele_device *dev,
			   const struct stele_log *log, const char *shot)
{
	const struct stele_shot_ops *shots = stele_device_shots(dev);
	int ret = shots->protect(dev, shot, false);

	if (ret == -ENOENT)
		return 0;
	if (ret == 0 || ret == -EINVAL) /* it was not protected */
		ret = shots->remove(dev, shot);
	if (ret < 0 && ret != -ENOENT) {
		stele_log_error(log, "cannot remove '%s': %s", shot,
				stele_strerror(ret));
		shots->protect(dev, shot, true);
	}
	return ret == -ENOENT ? 0 : ret;
}

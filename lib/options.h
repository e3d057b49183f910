/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - options structs that may grow (after libbpf's LIBBPF_OPTS)
 *
 * An old program passes a short struct: fields behind it take their default,
 * zero. A new program on an old library is refused (-E2BIG) only if it sets
 * something that the library does not know.
 */
#ifndef STELE_LIB_OPTIONS_H
#define STELE_LIB_OPTIONS_H

#include <errno.h>
#include <string.h>

#include "lib/log.h"

/*
 * Copy the caller's options (may be NULL) of user->size bytes into `known`, of `known_size`
 * bytes. Both begin with a size_t size. Return: 0; -EINVAL (size < sizeof(size_t)); -E2BIG.
 */
static inline int stele_options_get(const void *user, void *known,
				    size_t known_size)
{
	const unsigned char *bytes = user;
	size_t size;

	memset(known, 0, known_size);
	if (!user)
		return 0;
	memcpy(&size, user, sizeof(size));
	if (size < sizeof(size))
		return -EINVAL;
	for (size_t i = known_size; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(known, user, size < known_size ? size : known_size);
	return 0;
}

/*
 * The time of a change: what was given, unless 0; else $SOURCE_DATE_EPOCH; else
 * now. Return: 0; -EINVAL (that is no number; logged).
 */
int stele_options_time(int64_t given, const struct stele_log *log,
		       int64_t *out);

#endif

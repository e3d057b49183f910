/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - options structs that may grow (after libbpf's LIBBPF_OPTS)
 *
 * An old program passes a short struct: fields behind it take their default,
 * zero. A new program on an old library is refused (-E2BIG) only if it sets
 * something that the library does not know.
 */
#ifndef STELE_BASE_OPTIONS_H
#define STELE_BASE_OPTIONS_H

#include "lib/base/log.h"

/*
 * Copy the caller's options (may be NULL) of user->size bytes into `known`, of
 * `known_size` bytes. Both begin with a size_t size. Return: 0; -EINVAL (size <
 * sizeof(size_t)); -E2BIG; both logged.
 */
int stele_options_copy(const void *user, void *known, size_t known_size,
		       const struct stele_log *log);
/*
 * The same of options that have a log and its user behind their size: *log is
 * that, or empty.
 */
int stele_options_get(const void *user, void *known, size_t known_size,
		      struct stele_log *log);

struct stele_option {
	const char *name;
	uint64_t value, max;
};
/* Return: 0; -EINVAL (the first that is above its maximum: logged). */
int stele_options_check(const struct stele_option *options, size_t count,
			const struct stele_log *log);
/* Return: 0; -EINVAL (bits of `flags` that are not `known`: logged). */
int stele_options_flags(uint32_t flags, uint32_t known,
			const struct stele_log *log);

/*
 * The time of a change: what was given, unless 0; else $SOURCE_DATE_EPOCH; else
 * now. Return: 0; -EINVAL (that is no number; logged).
 */
int stele_options_time(int64_t given, const struct stele_log *log,
		       int64_t *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - public structs that may grow (after libbpf's LIBBPF_OPTS)
 *
 * They begin with a size_t size, set by the program. Options: an old program passes a
 * short struct: what it lacks takes its default, zero. A new program on an old library is
 * refused (-E2BIG) only if it sets something that the library does not know. Outputs: a
 * short struct gets what it has room for; what is longer than known ends in zeros.
 */
#ifndef STELE_BASE_OPTIONS_H
#define STELE_BASE_OPTIONS_H

#include <errno.h>

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

/* Larger ones are refused: nobody has set their size. */
#define STELE_OUTPUT_SIZE_MAX (UINT64_C(64) << 10)

/*
 * Can `out` (NULL: not wanted) be filled? `last`: the last member that its first version
 * had. Return: 0; -EINVAL (logged).
 */
#define stele_output_check(out, last, log)                                    \
	stele_output_check_size((out),                                        \
				offsetof(__typeof__(*(out)), last) +          \
					sizeof((out)->last),                  \
				(log))
int stele_output_check_size(const void *out, size_t first_size,
			    const struct stele_log *log);
/* Fill it, unless its size is invalid: all of `known` that it has room for, but the size. */
void stele_output_fill(void *out, const void *known, size_t known_size);
/* Both, from *known, of the same type. Return: 0; -EINVAL (logged). */
#define stele_output_set(out, known, last, log)                               \
	(stele_output_check((out), last, (log)) ?                             \
		 -EINVAL :                                                    \
		 (stele_output_fill((out), (known), sizeof(*(known))), 0))
/* What was filled before, back into `known`; its size is known_size. */
void stele_output_load(const void *out, void *known, size_t known_size);

/*
 * The time of a change: what was given, unless 0; else $SOURCE_DATE_EPOCH; else
 * now. Return: 0; -EINVAL (that is no number; logged).
 */
int stele_options_time(int64_t given, const struct stele_log *log,
		       int64_t *out);

#endif

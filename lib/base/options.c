/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - options as they were given, and what one stands for that was not
 */
#include "lib/base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIME_ENV "SOURCE_DATE_EPOCH"

/* How all begin that have a log. */
struct head {
	size_t size;
	stele_log_fn log;
	void *log_user;
};

int stele_options_copy(const void *user, void *known, size_t known_size,
		       const struct stele_log *log)
{
	const unsigned char *bytes = user;
	size_t size;

	memset(known, 0, known_size);
	if (!user)
		return 0;
	memcpy(&size, user, sizeof(size));
	if (size < sizeof(size)) {
		stele_log_error(log, "option 'size' is %zu: must be the size of "
				"the options, %zu here", size, known_size);
		return -EINVAL;
	}
	for (size_t i = known_size; i < size; i++) {
		if (!bytes[i])
			continue;
		stele_log_error(log, "option at byte %zu is set, but this "
				"version knows only %zu bytes of options", i,
				known_size);
		return -E2BIG;
	}
	memcpy(known, user, size < known_size ? size : known_size);
	return 0;
}

int stele_options_get(const void *user, void *known, size_t known_size,
		      struct stele_log *log)
{
	struct head head = {0};

	if (user)
		memcpy(&head.size, user, sizeof(head.size));
	if (head.size >= sizeof(head))
		memcpy(&head, user, sizeof(head));
	*log = (struct stele_log){head.log, head.log_user};
	return stele_options_copy(user, known, known_size, log);
}

int stele_options_check(const struct stele_option *options, size_t count,
			const struct stele_log *log)
{
	for (size_t i = 0; i < count; i++) {
		if (options[i].value <= options[i].max)
			continue;
		stele_log_error(log, "option '%s' is %" PRIu64 ": must be at most %"
				PRIu64, options[i].name,
				options[i].value, options[i].max);
		return -EINVAL;
	}
	return 0;
}

int stele_options_flags(uint32_t flags, uint32_t known,
			const struct stele_log *log)
{
	if (!(flags & ~known))
		return 0;
	stele_log_error(log, "unknown flags 0x%" PRIx32, flags & ~known);
	return -EINVAL;
}

static size_t size_of(const void *out)
{
	size_t size;

	memcpy(&size, out, sizeof(size));
	return size < sizeof(size) || size > STELE_OUTPUT_SIZE_MAX ? 0 : size;
}

int stele_output_check_size(const void *out, size_t first_size,
			    const struct stele_log *log)
{
	size_t size;

	if (!out || size_of(out) >= first_size)
		return 0;
	memcpy(&size, out, sizeof(size));
	stele_log_error(log, "invalid size %zu of the struct to fill: must be "
			"its sizeof, at least %zu", size, first_size);
	return -EINVAL;
}

static void copy_members(void *to, size_t to_size, const void *from, size_t from_size)
{
	const size_t head = sizeof(size_t);
	const size_t size = to_size < from_size ? to_size : from_size;

	memcpy((char *)to + head, (const char *)from + head, size - head);
	memset((char *)to + size, 0, to_size - size);
}

void stele_output_fill(void *out, const void *known, size_t known_size)
{
	if (out && size_of(out))
		copy_members(out, size_of(out), known, known_size);
}

void stele_output_load(const void *out, void *known, size_t known_size)
{
	memset(known, 0, known_size);
	memcpy(known, &known_size, sizeof(known_size));
	if (out && size_of(out))
		copy_members(known, known_size, out, size_of(out));
}

int stele_options_time(int64_t given, const struct stele_log *log, int64_t *out)
{
	const char *text = getenv(TIME_ENV);
	bool digits;
	char *end;

	*out = given;
	if (given)
		return 0;
	if (!text || !*text) {
		*out = time(NULL);
		return 0;
	}
	errno = 0;
	digits = *text >= '0' && *text <= '9';
	*out = strtoll(text, &end, 10);
	if (errno || *end || !digits) {
		stele_log_error(log, "$" TIME_ENV " is '%s', not a number of seconds "
				"since 1970", text);
		return -EINVAL;
	}
	return 0;
}

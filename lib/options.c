/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - what an option stands for that was not given
 */
#include "lib/options.h"

#include <stdlib.h>
#include <time.h>

#define TIME_ENV "SOURCE_DATE_EPOCH"

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
		stele_log_error(log, "$" TIME_ENV " is '%s', and no seconds "
				"since 1970", text);
		return -EINVAL;
	}
	return 0;
}

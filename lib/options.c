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
	char *end;

	*out = given;
	if (given)
		return 0;
	if (!text || !*text) {
		*out = time(NULL);
		return 0;
	}
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (errno || *end) {
		stele_log_error(log, "$" TIME_ENV " is not a number");
		return -EINVAL;
	}
	return 0;
}

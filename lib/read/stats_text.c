/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_text.c - a reader's stats in the text format of Prometheus
 */
#include <errno.h>

#include "lib/stele.h"

int stele_stats_prometheus(const struct stele_reader_stats *stats,
			   const char *labels, char *text, size_t size)
{
	(void)stats, (void)labels;
	if (size)
		*text = '\0';
	return -EOPNOTSUPP;
}

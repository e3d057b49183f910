/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - a log that keeps and counts what a handle says
 *
 * Any thread may log; look at it when none does.
 */
#ifndef STELE_TESTS_LOG_H
#define STELE_TESTS_LOG_H

#include "lib/base/log.h"

struct test_log {
	unsigned int errors, warnings, infos;
	char last[256];
	char text[16384]; /* "LEVEL message\n" each, as many as fit */
	size_t size;
	struct stele_log log; /* for the handle */
};

void test_log_init(struct test_log *log);
/* The same. Return: log->log. */
struct stele_log test_log_to(struct test_log *log);
bool test_log_has(const struct test_log *log, const char *text);

#endif

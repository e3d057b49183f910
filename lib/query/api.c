/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - loads SQLite, once
 */
#include "lib/query/api.h"

#include <pthread.h>
#include <stdbool.h>

#include "lib/base/ondemand.h"

#define LIBRARY "libsqlite3.so.0"

struct stele_sqlite stele_sqlite;

static const struct stele_ondemand_call calls[] = {
#define CALL(call) {"sqlite3_" #call, offsetof(struct stele_sqlite, call)},
	STELE_SQLITE_CALLS(CALL)
#undef CALL
};

int stele_sqlite_load(const struct stele_log *log)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool loaded;
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!loaded)
		ret = stele_ondemand_load(LIBRARY, calls, sizeof(calls) / sizeof(calls[0]),
					  &stele_sqlite, log);
	loaded = !ret;
	pthread_mutex_unlock(&lock);
	return ret;
}

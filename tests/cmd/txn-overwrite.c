/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-overwrite.c - TARGET STEP...: a new image by force, as far as these steps
 *
 * one, twice, large (100 MiB): put such samples; flush; posix; commit, as v1. Prints the name
 * of each, and its result if that is none; closes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stele.h"

#define LARGE (UINT64_C(100) << 20)

static void show(void *user, enum stele_log_level level, const char *line)
{
	(void)user;
	if (level <= STELE_LOG_WARNING)
		fprintf(stderr, "%s\n", line);
}

static int put(struct stele_txn *txn, const char *key, uint64_t size)
{
	void *data = calloc(1, size);
	const struct stele_txn_value value = {.data = data, .size = size};
	int ret = data ? stele_txn_put(txn, key, strlen(key), &value, 1) : -ENOMEM;

	free(data);
	return ret;
}

static int step(struct stele_txn *txn, const char *name)
{
	int ret;

	if (!strcmp(name, "one"))
		return put(txn, "a", 1000);
	if (!strcmp(name, "large"))
		return put(txn, "large", LARGE);
	if (!strcmp(name, "flush"))
		return stele_txn_flush(txn, NULL);
	if (!strcmp(name, "posix"))
		return stele_txn_posix(txn, true);
	if (!strcmp(name, "twice")) {
		ret = put(txn, "b", 1);
		return ret ? ret : put(txn, "b", 2);
	}
	ret = stele_txn_snapshot(txn, "v1", NULL, NULL);
	return ret ? ret : stele_txn_commit(txn);
}

int main(int argc, char **argv)
{
	const struct stele_create_opts opts = STELE_OPTS(
		stele_create_opts, .log = show, .flags = STELE_FORCE, .label = "new");
	const struct stele_field field = STELE_OPTS(
		stele_field, .name = "data", .type = STELE_TYPE_BYTES);
	const struct stele_schema schema = STELE_OPTS(
		stele_schema, .fields = &field, .count = 1);
	struct stele_txn *txn;
	int ret;

	if (argc < 2 || stele_txn_create(argv[1], &opts, &txn))
		return 2;
	ret = stele_txn_schema(txn, &schema, NULL);
	for (int i = 2; i < argc && !ret; i++) {
		ret = step(txn, argv[i]);
		printf("%s%s%s\n", argv[i], ret ? ": " : "", ret ? strerrorname_np(-ret) : "");
	}
	stele_txn_close(txn);
	return 0;
}

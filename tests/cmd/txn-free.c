/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-free.c - TARGET: free all that is unused in a transaction; prints what preview and commit say
 */
#include <stdio.h>
#include <time.h>

#include "stele.h"

static void show(void *user, enum stele_log_level level, const char *line)
{
	(void)user, (void)level;
	fprintf(stderr, "%s\n", line);
}

int main(int argc, char **argv)
{
	const struct stele_txn_opts opts = {
		.size = sizeof(opts),
		.log = show,
		.time = time(NULL),
		.flags = STELE_FORCE,
	};
	struct stele_txn_preview preview = {.size = sizeof(preview)};
	struct stele_txn *txn;
	int ret;

	if (argc != 2 || stele_txn_open(argv[1], &opts, &txn))
		return 2;
	ret = stele_txn_free(txn, NULL, NULL, NULL);
	if (!ret) {
		ret = stele_txn_preview(txn, &preview);
		printf("%d %d\n", ret, stele_txn_commit(txn));
	}
	stele_txn_close(txn);
	return 0;
}

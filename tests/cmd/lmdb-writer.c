/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lmdb-writer.c - writes all values of an LMDB environment again and again, for from-lmdb.t
 *
 *	lmdb-writer DIR KEYS SIZE TRANSACTIONS
 *
 * Each transaction gives all keys values of SIZE bytes that are its number.
 */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check(int error)
{
	if (error) {
		fprintf(stderr, "lmdb-writer: %s\n", mdb_strerror(error));
		exit(1);
	}
	return error;
}

int main(int argc, char **argv)
{
	const int keys = argc == 5 ? atoi(argv[2]) : 0;
	const size_t size = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	const long count = argc == 5 ? atol(argv[4]) : 0;
	char *value = malloc(size + 1), name[16];
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;

	if (argc != 5 || !value)
		return 2;
	check(mdb_env_create(&env));
	check(mdb_env_set_mapsize(env, (size_t)4 << 30));
	check(mdb_env_open(env, argv[1], MDB_NOSYNC, 0644));
	for (long i = 0; i < count; i++) {
		memset(value, 'a' + (int)(i % 26), size);
		check(mdb_txn_begin(env, NULL, 0, &txn));
		check(mdb_dbi_open(txn, NULL, 0, &dbi));
		for (int k = 0; k < keys; k++) {
			MDB_val key = {(size_t)sprintf(name, "k%06d", k), name};
			MDB_val data = {size, value};

			check(mdb_put(txn, dbi, &key, &data, 0));
		}
		check(mdb_txn_commit(txn));
		usleep(1000); /* a reader keeps pages from being taken again: the file grows */
	}
	mdb_env_close(env);
	free(value);
	return 0;
}

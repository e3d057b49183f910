/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lmdb.c - the peer of Caffe and others: a memory-mapped B+ tree
 *
 *	lmdb build DESCRIPTION DIR
 *	lmdb [-t THREADS] [-s SECONDS] [-r SEED] DESCRIPTION DIR
 *
 * Keys are the samples' numbers. Read without read-ahead (MDB_NORDAHEAD), as LMDB's authors
 * advise for what is larger than memory; values are copied out, for only then they are read.
 */
#include <err.h>
#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/content.h"
#include "bench/race.h"

#define BATCH 1000u /* samples of one transaction of the build */

struct database {
	MDB_env *env;
	MDB_dbi dbi;
	uint64_t size_max;
};

static void check(int ret, const char *what)
{
	if (ret)
		errx(1, "cannot %s: %s", what, mdb_strerror(ret));
}

static void put_key(uint64_t i, unsigned char key[8])
{
	for (unsigned int at = 0; at < 8; at++)
		key[at] = (unsigned char)(i >> (56 - 8 * at));
}

static void database_open(struct database *db, const struct content *content, const char *path,
			  unsigned int flags)
{
	MDB_txn *txn;
	uint64_t size = UINT64_C(64) << 20;

	for (uint64_t i = 0; i < content->count; i++)
		size += content_size(content, i) + 8192;
	db->size_max = content_size_max(content);
	check(mdb_env_create(&db->env), "make an environment");
	check(mdb_env_set_mapsize(db->env, size / 4096 * 4096), "set the size");
	check(mdb_env_open(db->env, path, flags, 0644), "open the environment");
	check(mdb_txn_begin(db->env, NULL, flags & MDB_RDONLY, &txn), "begin");
	check(mdb_dbi_open(txn, NULL, 0, &db->dbi), "open the database");
	check(mdb_txn_commit(txn), "commit");
}

static void put_sample(const struct database *db, const struct content *content, MDB_txn *txn,
		       uint64_t i)
{
	unsigned char bytes[8];
	MDB_val key = {sizeof(bytes), bytes};
	MDB_val value = {content_size(content, i), NULL};
	char *room;

	put_key(i, bytes);
	value.mv_size += 8; /* content_fill() rounds up */
	check(mdb_put(txn, db->dbi, &key, &value, MDB_APPEND | MDB_RESERVE), "put");
	room = value.mv_data;
	content_fill(content, i, room, value.mv_size - 8);
}

static void build(const struct content *content, const char *path)
{
	struct database db;
	MDB_txn *txn = NULL;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		err(1, "cannot create '%s'", path);
	database_open(&db, content, path, MDB_NOSYNC | MDB_WRITEMAP);
	for (uint64_t i = 0; i < content->count; i++) {
		if (i % BATCH == 0)
			check(mdb_txn_begin(db.env, NULL, 0, &txn), "begin");
		put_sample(&db, content, txn, i);
		if (i % BATCH == BATCH - 1 || i + 1 == content->count)
			check(mdb_txn_commit(txn), "commit");
	}
	check(mdb_env_sync(db.env, 1), "sync");
	mdb_env_close(db.env);
}

static void *reader_begin(void *context)
{
	const struct database *db = context;
	MDB_txn *txn;

	check(mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn), "begin");
	return txn;
}

static void reader_end(void *own)
{
	mdb_txn_abort(own);
}

static int64_t reader_read(void *context, void *own, uint64_t i, void *buffer)
{
	const struct database *db = context;
	unsigned char bytes[8];
	MDB_val key = {sizeof(bytes), bytes}, value;

	put_key(i, bytes);
	if (mdb_get(own, db->dbi, &key, &value))
		return -ENOENT;
	if (value.mv_size < 8 || value.mv_size - 8 > db->size_max)
		return -EBADMSG;
	memcpy(buffer, value.mv_data, value.mv_size - 8);
	return (int64_t)value.mv_size - 8;
}

int main(int argc, char **argv)
{
	struct race race = {.read = reader_read, .begin = reader_begin, .end = reader_end};
	struct content content;
	struct database db;

	if (argc == 4 && strcmp(argv[1], "build") == 0) {
		content_parse(argv[2], &content);
		build(&content, argv[3]);
		return 0;
	}
	race_options(argc, argv, "DESCRIPTION DIR", &race);
	if (argc - optind != 2)
		errx(2, "wants a description and a directory");
	content_parse(argv[optind], &content);
	database_open(&db, &content, argv[optind + 1],
		      MDB_RDONLY | MDB_NORDAHEAD | MDB_NOTLS | MDB_NOLOCK);
	race.buffer_size = db.size_max + 8;
	race.count = content.count;
	race.context = &db;
	race_run(&race);
	mdb_env_close(db.env);
	return 0;
}

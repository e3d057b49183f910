/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liblmdb.h - the parts of LMDB that we use, loaded on demand
 */
#ifndef STELE_CMD_LIBLMDB_H
#define STELE_CMD_LIBLMDB_H

#include <lmdb.h>
#include <stdbool.h>

#define LIBLMDB_CALLS(X) \
	X(mdb_cursor_close) \
	X(mdb_cursor_get) \
	X(mdb_cursor_open) \
	X(mdb_dbi_close) \
	X(mdb_dbi_flags) \
	X(mdb_dbi_open) \
	X(mdb_env_close) \
	X(mdb_env_create) \
	X(mdb_env_get_maxkeysize) \
	X(mdb_env_info) \
	X(mdb_env_open) \
	X(mdb_env_set_assert) \
	X(mdb_env_set_mapsize) \
	X(mdb_env_set_maxdbs) \
	X(mdb_env_stat) \
	X(mdb_put) \
	X(mdb_stat) \
	X(mdb_strerror) \
	X(mdb_txn_abort) \
	X(mdb_txn_begin) \
	X(mdb_txn_commit) \
	X(mdb_txn_id)

struct liblmdb {
#define LIBLMDB_CALL(name) __typeof__(name) *name;
	LIBLMDB_CALLS(LIBLMDB_CALL)
#undef LIBLMDB_CALL
};
extern struct liblmdb liblmdb;

/* Before any call. False: missing or incomplete; printed. */
bool liblmdb_load(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lmdb.c - samples as entries of an LMDB environment: one file, and its database without a name
 *
 * It is written through the descriptor of a file that gets its name when it is whole, and is
 * synced then. Keys come sorted and are appended, in transactions of BATCH_SIZE, which LMDB
 * holds in memory. The map has to be as large as the environment becomes, so the keys are gone
 * through beforehand, and those that LMDB cannot have are found.
 */
#include "to/format.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "liblmdb.h"
#include "output.h"
#include "stop.h"
#include "text.h"

#define BATCH_SIZE     (32u << 20)
#define WRITE_SIZE_MAX INT_MAX /* of one write(2) on Linux, in whole pages: MAX_RW_COUNT */
#define PAGE_HEAD      16u
#define NODE_HEAD      8u
#define NODE_INDEX     2u
#define NODE_NUMBER    8u /* in the place of a value that has pages of its own */
#define BATCH_PAGES    32u /* that a transaction copies at most: ways to leaves, free lists */
#define SPARE_PAGES    256u
#define PAGES_TRIED    1024u /* after a write that was cut short */

struct to_lmdb {
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	int fd; /* of its file */
	uint64_t held; /* bytes in this transaction */
};

/* What the environment becomes at most. */
struct measure {
	uint64_t page;
	uint64_t values; /* pages of large ones */
	uint64_t nodes;	 /* bytes in leaves */
	uint64_t bytes;	 /* of keys and values */
};

static int failed(int error)
{
	if (error == MDB_KEYEXIST) /* appended behind a greater one */
		return -EUCLEAN;
	return error > 0 ? -error : error ? -EIO : 0;
}

/* ---- before anything is written ----------------------------------------------- */

static void measure_add(struct measure *m, uint64_t key, uint64_t value)
{
	const uint64_t inside = m->page / 2 - PAGE_HEAD - NODE_INDEX;
	uint64_t node = NODE_HEAD + key + value;

	m->bytes += key + value;
	if (node > inside) { /* a bit early, which only makes it more */
		m->values += (PAGE_HEAD + value + m->page - 1) / m->page;
		node = NODE_HEAD + key + NODE_NUMBER;
	}
	m->nodes += node + node % 2 + NODE_INDEX;
}

/* No node is larger than half a page, so that a page that has no room for the next is half full;
 * branches have at least four nodes. */
static uint64_t measure_size(const struct measure *m)
{
	const uint64_t leaves = 2 * m->nodes / (m->page - PAGE_HEAD) + 1;
	const uint64_t batches = m->bytes / BATCH_SIZE + 1;

	return (m->values + leaves + leaves / 2 + batches * BATCH_PAGES + SPARE_PAGES) * m->page;
}

static int refuse(const struct stele_cursor_entry *entry, const char *why)
{
	char *name = text_escape(entry->key, entry->key_size);

	cmd_message("'%s' %s", name ? name : "?", why);
	free(name);
	return -EOPNOTSUPP;
}

/* LMDB writes the pages of a large value at once, and fails if that is cut short. */
static uint64_t value_size_max(void)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return WRITE_SIZE_MAX / page * page - PAGE_HEAD;
}

static int check(const struct to *to, const struct stele_cursor_entry *entry, size_t key_max)
{
	const uint64_t size_max = value_size_max();
	char why[100];

	if (entry->size > size_max) {
		snprintf(why, sizeof(why), "has %" PRIu64 " bytes, values of LMDB have %" PRIu64
			 " at most", entry->size, size_max);
		return refuse(entry, why);
	}
	if (!entry->key_size || memchr(entry->key, '\0', entry->key_size))
		return refuse(entry, "is a key that is empty, or has a NUL byte");
	if (strlen(to->prefix) + entry->key_size <= key_max)
		return 0;
	snprintf(why, sizeof(why), "has a key of %zu bytes, those of LMDB have %zu at most",
		 strlen(to->prefix) + entry->key_size, key_max);
	return refuse(entry, why);
}

static int measure(const struct to *to, struct stele_dataset *ds, size_t key_max,
		   uint64_t *size)
{
	struct measure m = {.page = (uint64_t)sysconf(_SC_PAGESIZE)};
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int got = stele_cursor_open(ds, NULL, 0, &cursor), refused = 0;

	if (!got)
		while (!refused && (got = stele_cursor_next(cursor, &entry)) > 0) {
			measure_add(&m, strlen(to->prefix) + entry.key_size, entry.size);
			refused = check(to, &entry, key_max);
			if (!refused && stop_requested())
				refused = -EINTR;
		}
	stele_cursor_close(cursor);
	if (got < 0)
		cmd_error(got, "cannot read the keys");
	*size = measure_size(&m);
	return got < 0 ? got : refused;
}

/* ---- transactions ------------------------------------------------------------- */

static int begin(struct to_lmdb *lmdb)
{
	int error = liblmdb.mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->txn);

	lmdb->held = 0;
	if (!error)
		error = liblmdb.mdb_dbi_open(lmdb->txn, NULL, 0, &lmdb->dbi);
	return failed(error);
}

/*
 * Of a write that was cut short LMDB says EIO: a next one says why, though a page or some may
 * still find room. The file is lost anyway.
 */
static int write_failed(const struct to_lmdb *lmdb)
{
	const char page[4096] = "";
	off_t end = lseek(lmdb->fd, 0, SEEK_END);
	unsigned int i = 0;

	for (; end >= 0 && i < PAGES_TRIED; i++, end += (off_t)sizeof(page))
		if (pwrite(lmdb->fd, page, sizeof(page), end) < 0)
			return -errno;
	return i && fsync(lmdb->fd) < 0 ? -errno : -EIO;
}

static int commit(struct to_lmdb *lmdb)
{
	MDB_txn *txn = lmdb->txn;
	int error;

	lmdb->txn = NULL; /* gone, whatever comes of it */
	error = failed(liblmdb.mdb_txn_commit(txn));
	return error == -EIO ? write_failed(lmdb) : error;
}

static int open_environment(struct to_lmdb *lmdb, int fd, uint64_t size)
{
	char path[32];
	int error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = liblmdb.mdb_env_set_mapsize(lmdb->env, (size_t)size);
	if (!error)
		error = liblmdb.mdb_env_open(lmdb->env, path,
					     MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0666);
	if (error) {
		cmd_message("cannot make an LMDB environment: %s", liblmdb.mdb_strerror(error));
		output_hint_place(fd, failed(error), "place");
	}
	return failed(error);
}

int lmdb_begin(struct to *to, struct stele_dataset *ds)
{
	struct to_lmdb *lmdb = calloc(1, sizeof(*lmdb));
	uint64_t size;
	int error = -ENOMEM;

	to->lmdb = lmdb;
	if (lmdb)
		lmdb->fd = to->fd;
	if (lmdb && !liblmdb_load())
		return -ENOSYS;
	if (lmdb)
		error = failed(liblmdb.mdb_env_create(&lmdb->env));
	if (error)
		cmd_error(error, "cannot make an LMDB environment");
	else
		error = measure(to, ds, (size_t)liblmdb.mdb_env_get_maxkeysize(lmdb->env), &size);
	if (!error)
		error = open_environment(lmdb, to->fd, size);
	if (error)
		return error;
	error = begin(lmdb);
	if (error)
		cmd_error(error, "cannot make an LMDB environment");
	return error;
}

int lmdb_put(struct to_lmdb *lmdb, const struct to *to, const struct to_sample *sample)
{
	uint64_t size;
	const uint8_t *data = to_bytes(to, sample, &size);
	MDB_val key = {strlen(sample->path), (void *)sample->path};
	MDB_val value = {(size_t)size, (void *)data};
	int error = 0;

	if (stop_requested())
		return -EINTR;
	if (lmdb->held >= BATCH_SIZE)
		error = commit(lmdb);
	if (!error && !lmdb->txn)
		error = begin(lmdb);
	if (!error)
		error = failed(liblmdb.mdb_put(lmdb->txn, lmdb->dbi, &key, &value, MDB_APPEND));
	lmdb->held += NODE_HEAD + key.mv_size + size;
	return error;
}

int lmdb_end(struct to_lmdb *lmdb)
{
	return commit(lmdb);
}

void lmdb_drop(struct to_lmdb *lmdb)
{
	if (lmdb && lmdb->txn)
		liblmdb.mdb_txn_abort(lmdb->txn);
	if (lmdb && lmdb->env)
		liblmdb.mdb_env_close(lmdb->env);
	free(lmdb);
}

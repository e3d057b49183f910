/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lmdb.c - keys and values of an LMDB environment
 *
 * LMDB finds values, and says where they are in its map of the data file, which is where they
 * are read from later, without LMDB. A read transaction keeps them there meanwhile: as a reader
 * in the lock file, if there is one. Nothing is created; without a lock file nobody writes, and
 * if somebody begins to, that shows in the number of the last transaction.
 *
 * LMDB believes what is in the file. On one that is damaged it runs into memory that is not
 * there: such a signal, and a failed assertion, end the call that they occur in.
 */
#include "from/lmdb.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "from/datum.h"
#include "liblmdb.h"
#include "text.h"

#define DATA_NAME   "data.mdb"
#define META_OFFSET 16u /* of the header of a page */
#define META_MAGIC  0xbeefc0deu
#define META_FLAG   8u
#define META_COUNT  2u /* of pages, which transactions write by turns */
#define META_SIZE   (META_OFFSET + 136u)
#define META_TXNID  (META_OFFSET + 128u) /* of the transaction that wrote it */
#define META_PAGE   (META_OFFSET + 24u)  /* the size of pages */
#define PAGE_SIZE_MIN 256u
#define PAGE_SIZE_MAX 65536u
#define DATABASES_LOOK 10000u /* entries */
#define FREE_DBI 0u /* the database of free pages */
#define DATABASE_SIZE 48u /* of a value that is a named database */

struct lmdb {
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	bool locks; /* is a reader in the lock file */
	const char *database; /* NULL: the one without a name */
	unsigned int flags;   /* of it */
	const uint8_t *map;   /* NULL: not known yet */
	uint64_t left;	      /* entries */
	MDB_envinfo info;
	MDB_stat stat; /* info and stat: as of the snapshot */
	size_t pages, free; /* that the file has; of those that it lacks */
	MDB_val key, value;
};

/* ---- names ------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool detect(const uint8_t *data, size_t size)
{
	return size >= META_OFFSET + 8 && get32(data + META_OFFSET) == META_MAGIC &&
	       data[10] & META_FLAG;
}

char *lmdb_data_file(const char *directory)
{
	uint8_t head[META_OFFSET + 8];
	FILE *file = NULL;
	char *path;

	if (asprintf(&path, "%s/" DATA_NAME, directory) < 0)
		return NULL;
	file = fopen(path, "re");
	if (!file || fread(head, 1, sizeof(head), file) != sizeof(head) ||
	    !detect(head, sizeof(head))) {
		free(path);
		path = NULL;
	}
	if (file)
		fclose(file);
	return path;
}

/* What LMDB calls the environment whose data file this is, and its lock file. */
static int environment(const char *path, char **name, char **lock, unsigned int *flags)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const int size = (int)(base - path);
	int done;

	*lock = NULL;
	if (!strcmp(base, DATA_NAME)) {
		done = asprintf(name, "%.*s.", size, path);
		if (done >= 0)
			done = asprintf(lock, "%.*slock.mdb", size, path);
	} else {
		*flags |= MDB_NOSUBDIR;
		done = asprintf(name, "%s", path);
		if (done >= 0)
			done = asprintf(lock, "%s-lock", path);
	}
	return done < 0 ? -ENOMEM : 0;
}

/* ---- calls that may fail hard ------------------------------------------------- */

typedef int (*lmdb_fn)(struct lmdb *lmdb);

static __thread sigjmp_buf *way_out; /* of the call that is running */

static void on_signal(int number)
{
	if (way_out)
		siglongjmp(*way_out, 1);
	signal(number, SIG_DFL);
}

static void on_assert(MDB_env *env, const char *text)
{
	(void)env;
	(void)text;
	if (way_out)
		siglongjmp(*way_out, 1);
}

static const int signals[] = {SIGSEGV, SIGBUS};
#define SIGNALS (sizeof(signals) / sizeof(*signals))

static void catch_signals(struct sigaction before[SIGNALS])
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};

	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &action, &before[i]);
}

static void restore_signals(const struct sigaction before[SIGNALS])
{
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
}

/* Return: as fn(); MDB_CORRUPTED. */
static int guarded(struct lmdb *lmdb, lmdb_fn fn)
{
	sigjmp_buf here;
	int ret;

	if (sigsetjmp(here, 0)) {
		way_out = NULL;
		return MDB_CORRUPTED;
	}
	way_out = &here;
	ret = fn(lmdb);
	way_out = NULL;
	return ret;
}

/* What failed, if it is a return of LMDB. Return: 0: skipped; negative errno (said). */
static int failed(struct from_scan *scan, uint64_t offset, int error)
{
	if (error > 0 && error != EINVAL)
		return from_cannot_read(scan, -error);
	if (error == EINVAL) /* of a map whose size was read */
		error = MDB_INVALID;
	return from_damaged(scan, offset, "%s: what follows is lost",
			    liblmdb.mdb_strerror(error));
}

/* ---- a snapshot --------------------------------------------------------------- */

/* Where the data file is mapped, which LMDB does not say. */
static int find_map(struct lmdb *lmdb, const void *inside)
{
	const uintptr_t wanted = (uintptr_t)inside;
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end, offset;
	char line[512];

	while (maps && !lmdb->map && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx r%*3s %lx", &begin, &end, &offset) == 3 &&
		    wanted >= begin && wanted < end && !offset &&
		    end - begin >= META_OFFSET + 8 && detect((const uint8_t *)begin, 64))
			lmdb->map = (const uint8_t *)begin;
	if (maps)
		fclose(maps);
	return lmdb->map ? 0 : MDB_CORRUPTED;
}

static int create(struct lmdb *lmdb)
{
	int ret = liblmdb.mdb_env_create(&lmdb->env);

	if (!ret)
		ret = liblmdb.mdb_env_set_maxdbs(lmdb->env, 1);
	if (!ret)
		ret = liblmdb.mdb_env_set_assert(lmdb->env, on_assert);
	return ret;
}

static int open_with(struct lmdb *lmdb, const char *name, unsigned int flags)
{
	int ret = create(lmdb);

	if (!ret)
		ret = liblmdb.mdb_env_open(lmdb->env, name, flags, 0644);
	if (!ret)
		return 0;
	liblmdb.mdb_env_close(lmdb->env);
	lmdb->env = NULL;
	return ret;
}

/* A lock file that may not be written is as none. */
static int open_environment(struct lmdb *lmdb, const char *path)
{
	unsigned int flags = MDB_RDONLY | MDB_NOTLS;
	char *name = NULL, *lock = NULL;
	int ret = environment(path, &name, &lock, &flags) ? ENOMEM : 0;

	lmdb->locks = !ret && access(lock, R_OK | W_OK) == 0;
	if (lmdb->locks)
		ret = open_with(lmdb, name, flags);
	else if (!ret)
		ret = open_with(lmdb, name, flags | MDB_NOLOCK);
	free(name);
	free(lock);
	return ret;
}

static int begin(struct lmdb *lmdb)
{
	int ret = liblmdb.mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &lmdb->txn);

	if (!ret)
		ret = liblmdb.mdb_env_info(lmdb->env, &lmdb->info);
	return ret ? ret : liblmdb.mdb_env_stat(lmdb->env, &lmdb->stat);
}

/* LMDB divides by it. Return: 1; 0: damage that is skipped; negative errno (said). */
static int check_page_size(struct from_scan *scan)
{
	uint8_t meta[META_SIZE];
	uint32_t first = 0;

	for (unsigned int i = 0; i < META_COUNT; i++) {
		const uint64_t offset = (uint64_t)i * first;
		uint32_t size;

		if (pread(scan->input.fd, meta, sizeof(meta), (off_t)offset) !=
			    (ssize_t)sizeof(meta) || !detect(meta, sizeof(meta)))
			return 1; /* which it finds out */
		size = get32(meta + META_PAGE);
		first = i ? first : size;
		if (size != first || size < PAGE_SIZE_MIN || size > PAGE_SIZE_MAX ||
		    size & (size - 1))
			return from_damaged(scan, offset + META_PAGE, "pages of %" PRIu32
					    " bytes, which LMDB does not have: what follows is "
					    "lost", size);
	}
	return 1;
}

/* How many of the pages that the file lacks are free? It may end with such as nobody wrote. */
static int count_free(struct lmdb *lmdb)
{
	MDB_cursor *cursor;
	MDB_val transaction, list; /* how many, and their numbers */
	size_t count, page;
	int ret = liblmdb.mdb_cursor_open(lmdb->txn, FREE_DBI, &cursor);

	if (ret)
		return ret;
	while (!(ret = liblmdb.mdb_cursor_get(cursor, &transaction, &list, MDB_NEXT)))
		for (size_t at = 0; (at + 1) * sizeof(page) <= list.mv_size; at++) {
			memcpy(&page, (const char *)list.mv_data + at * sizeof(page), sizeof(page));
			if (at == 0)
				count = page;
			else if (at <= count)
				lmdb->free += page >= lmdb->pages &&
					      page <= lmdb->info.me_last_pgno;
		}
	liblmdb.mdb_cursor_close(cursor);
	return ret == MDB_NOTFOUND ? 0 : ret;
}

/* Whole pages that the file lacks would be found by signal only. */
static int check_size(struct from_scan *scan, struct lmdb *lmdb)
{
	struct from_shard *shard = &scan->from->shards[scan->index];
	const size_t last = lmdb->info.me_last_pgno;
	struct stat st;

	if (fstat(scan->input.fd, &st) < 0)
		return from_cannot_read(scan, -errno);
	from_shard_seen(shard, &st); /* again, as of the snapshot */
	if (shard->size > PLACE_OFFSET_MAX)
		return from_cannot_read(scan, -EFBIG);
	lmdb->pages = shard->size / lmdb->stat.ms_psize;
	if (last < lmdb->pages ||
	    (!guarded(lmdb, count_free) && lmdb->free == last + 1 - lmdb->pages))
		return 1;
	return from_damaged(scan, shard->size, "cut short: the environment has %zu pages of "
			    "%u bytes", last + 1, lmdb->stat.ms_psize);
}

static int open_cursor(struct lmdb *lmdb)
{
	MDB_stat stat;
	int ret = liblmdb.mdb_dbi_open(lmdb->txn, lmdb->database, 0, &lmdb->dbi);

	if (!ret)
		ret = liblmdb.mdb_stat(lmdb->txn, lmdb->dbi, &stat);
	if (!ret)
		ret = liblmdb.mdb_dbi_flags(lmdb->txn, lmdb->dbi, &lmdb->flags);
	lmdb->left = ret ? 0 : stat.ms_entries;
	return ret ? ret : liblmdb.mdb_cursor_open(lmdb->txn, lmdb->dbi, &lmdb->cursor);
}

static int next(struct lmdb *lmdb)
{
	return liblmdb.mdb_cursor_get(lmdb->cursor, &lmdb->key, &lmdb->value, MDB_NEXT);
}

void lmdb_release(struct lmdb *lmdb)
{
	if (!lmdb)
		return;
	if (lmdb->txn)
		liblmdb.mdb_txn_abort(lmdb->txn);
	if (lmdb->env)
		liblmdb.mdb_env_close(lmdb->env);
	free(lmdb);
}

/* Of the last transaction, by the file: in the map a page may be gone, which is a signal. */
static bool find_newest(const struct lmdb *lmdb, int fd, uint64_t *newest)
{
	uint8_t meta[META_SIZE];

	*newest = 0;
	for (unsigned int i = 0; i < META_COUNT; i++) {
		const off_t offset = (off_t)i * lmdb->stat.ms_psize;
		uint64_t id;

		if (pread(fd, meta, sizeof(meta), offset) != (ssize_t)sizeof(meta) ||
		    !detect(meta, sizeof(meta)))
			return false;
		memcpy(&id, meta + META_TXNID, sizeof(id)); /* in this machine's order */
		*newest = id > *newest ? id : *newest;
	}
	return true;
}

/*
 * Where no lock file tells of the snapshot, its pages are taken again by the third transaction
 * after it, which times need not show: it may write through a map. A file of fewer ones is another.
 */
bool lmdb_holds(const struct lmdb *lmdb, int fd, bool same)
{
	uint64_t id, newest;

	if (!lmdb->txn || (lmdb->locks && same))
		return true;
	id = liblmdb.mdb_txn_id(lmdb->txn);
	return find_newest(lmdb, fd, &newest) && newest >= id &&
	       (lmdb->locks || newest <= id + 1);
}

/* ---- entries ------------------------------------------------------------------ */

/* The offset of what LMDB found in the file. Return: false: it is not there. */
static bool locate(const struct from_scan *scan, const struct lmdb *lmdb, const MDB_val *found,
		   uint64_t *offset)
{
	const uintptr_t at = (uintptr_t)found->mv_data, map = (uintptr_t)lmdb->map;
	const uint64_t size = scan->shard->size;

	*offset = at - map;
	return at >= map && *offset <= size && found->mv_size <= size - *offset;
}

static int open_named(struct lmdb *lmdb)
{
	MDB_dbi dbi;
	int ret = liblmdb.mdb_dbi_open(lmdb->txn, lmdb->database, 0, &dbi);

	if (!ret)
		liblmdb.mdb_dbi_close(lmdb->env, dbi);
	return ret;
}

/* Values of the unnamed database may be others, by their names. */
static bool names_database(struct lmdb *lmdb, char name[STELE_KEY_SIZE_MAX + 1])
{
	int ret;

	if (lmdb->database || lmdb->value.mv_size != DATABASE_SIZE ||
	    lmdb->key.mv_size > STELE_KEY_SIZE_MAX)
		return false;
	memcpy(name, lmdb->key.mv_data, lmdb->key.mv_size);
	name[lmdb->key.mv_size] = '\0';
	lmdb->database = name;
	ret = guarded(lmdb, open_named);
	lmdb->database = NULL;
	return !ret;
}

static bool is_database(struct from_scan *scan, struct lmdb *lmdb, uint64_t offset)
{
	char name[STELE_KEY_SIZE_MAX + 1], text[STELE_KEY_SIZE_MAX + 100];

	if (!names_database(lmdb, name))
		return false;
	snprintf(text, sizeof(text), "the database '%s' is left out (--database takes it)", name);
	from_warn(scan, offset, text);
	return true;
}

static int take_value(struct from_scan *scan, struct lmdb *lmdb, const char *key, size_t size,
		      uint64_t offset)
{
	struct row row = {.scan = scan};
	int ret;

	if (!scan->from->opts.datum) {
		if (!scan->reported && datum_guess(lmdb->value.mv_data, lmdb->value.mv_size))
			scan->from->parser = "--datum";
		return from_sample(scan, key, size, lmdb->value.mv_size, from_place(scan, offset));
	}
	row_begin(&row, offset);
	row_key(&row, key, size);
	ret = datum_take(&row, lmdb->value.mv_data, lmdb->value.mv_size, from_place(scan, offset));
	return ret ? ret : row_end(&row);
}

static int take_entry(struct from_scan *scan, struct lmdb *lmdb)
{
	const char *key = lmdb->key.mv_data;
	size_t size = lmdb->key.mv_size;
	uint64_t at, offset, number = 0;
	char text[32];
	int ret;

	if (!locate(scan, lmdb, &lmdb->key, &at) || !locate(scan, lmdb, &lmdb->value, &offset))
		return failed(scan, 0, MDB_CORRUPTED);
	if (is_database(scan, lmdb, offset))
		return 0;
	if (lmdb->flags & MDB_INTEGERKEY && size <= sizeof(number)) {
		memcpy(&number, key, size);
		size = (size_t)snprintf(text, sizeof(text), "%010" PRIu64, number);
		key = text;
	}
	ret = from_check_key(scan, offset, key, size);
	return ret <= 0 ? ret : take_value(scan, lmdb, key, size, offset);
}

/* There are as many as the environment says, or it is damaged. */
static int take_entries(struct from_scan *scan, struct lmdb *lmdb)
{
	uint64_t offset = 0; /* the last that is known */
	int error, ret = 0;

	while (!ret && (error = guarded(lmdb, next)) == 0 && lmdb->left) {
		lmdb->left--;
		error = lmdb->map ? 0 : find_map(lmdb, lmdb->value.mv_data);
		if (error)
			return failed(scan, 0, error);
		ret = take_entry(scan, lmdb);
		locate(scan, lmdb, &lmdb->key, &offset);
	}
	if (ret || (error == MDB_NOTFOUND && !lmdb->left))
		return ret;
	return failed(scan, offset, error && error != MDB_NOTFOUND ? error : MDB_CORRUPTED);
}

/* ---- shards ------------------------------------------------------------------- */

/* What there is instead, among the first of the entries: there may be millions. */
static int no_database(struct from_scan *scan, struct lmdb *lmdb)
{
	char list[TEXT_LIST_SIZE] = "", name[STELE_KEY_SIZE_MAX + 1];
	const char *wanted = lmdb->database;
	unsigned int left = DATABASES_LOOK;
	int error;

	lmdb->database = NULL;
	error = guarded(lmdb, open_cursor);
	while (!error && left-- && !(error = guarded(lmdb, next)))
		if (names_database(lmdb, name))
			text_list(list, name);
	if (!*list && error == MDB_NOTFOUND)
		return from_refused(scan->from, -EINVAL, "no database '%s' in '%s' (there is only "
				    "the one without a name)", wanted, scan->shard->name);
	return from_refused(scan->from, -EINVAL, "no database '%s' in '%s'%s%s%s", wanted,
			    scan->shard->name, *list ? " (there are " : "", list, *list ? ")" : "");
}

static int scan_snapshot(struct from_scan *scan, struct lmdb *lmdb)
{
	int error = guarded(lmdb, begin);
	int ret;

	if (error)
		return failed(scan, 0, error);
	ret = check_size(scan, lmdb);
	if (ret <= 0)
		return ret;
	lmdb->database = scan->from->opts.database;
	error = guarded(lmdb, open_cursor);
	/* INCOMPATIBLE: a key of that name has another value. */
	if (lmdb->database && (error == MDB_NOTFOUND || error == MDB_INCOMPATIBLE))
		return no_database(scan, lmdb);
	return error ? failed(scan, 0, error) : take_entries(scan, lmdb);
}

/* LMDB opens it by a name. */
static const char *path_of(const struct from_shard *shard)
{
	return strcmp(shard->path, "-") ? shard->path : "/dev/stdin";
}

static int scan_with(struct from_scan *scan, struct lmdb *lmdb)
{
	struct sigaction before[SIGNALS];
	int ret = check_page_size(scan);
	int error;

	if (ret <= 0)
		return ret;
	error = scan->shard->size ? open_environment(lmdb, path_of(scan->shard)) :
				    MDB_INVALID;
	if (error)
		return failed(scan, 0, error);
	catch_signals(before);
	ret = scan_snapshot(scan, lmdb);
	restore_signals(before);
	if (lmdb->cursor)
		liblmdb.mdb_cursor_close(lmdb->cursor);
	return ret;
}

static int lmdb_scan(struct from_scan *scan)
{
	struct lmdb *lmdb;

	if (!from_is_plain(scan))
		return from_failed(scan->from, -EOPNOTSUPP, "cannot read an LMDB environment that "
				   "is compressed or comes through a pipe");
	if (!liblmdb_load()) {
		scan->from->complained = true;
		return -ENOSYS;
	}
	lmdb = calloc(1, sizeof(*lmdb));
	if (!lmdb)
		return -ENOMEM;
	scan->from->shards[scan->index].lmdb = lmdb;
	return scan_with(scan, lmdb);
}

const struct from_format from_lmdb = {
	.name = "lmdb",
	.detect = detect,
	.scan = lmdb_scan,
	.kind = FROM_BLOBS,
	.options = FROM_DATABASE,
};

/* The same, with fields. */
const struct from_format from_datum = {
	.name = "lmdb",
	.scan = lmdb_scan,
	.kind = FROM_RECORDS,
	.options = FROM_DATABASE | FROM_DATUM,
};

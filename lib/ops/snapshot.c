/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - snapshots are made from others, get other names, and go
 *
 * A base is loaded as a reader would, so what is made of it stands on a digest that
 * was proven. All keys are found before anything is written.
 */
#include "lib/ops/change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/device/stack.h"
#include "lib/image/key_list.h"
#include "lib/image/key_search.h"
#include "lib/node/mapping.h"
#include "lib/ops/put.h"
#include "lib/source/spool.h"
#include "lib/txn/addition.h"

#define KEYS_NAMED_MAX 5u /* of those that are not there */

/* ---- what stands against it ------------------------------------------------ */

struct mapped {
	const struct stele_txn *txn;
	struct stele_identity target;
	const char *snapshot;
	char name[STELE_NAME_SIZE_MAX + 1]; /* found */
};

/* Not by path: a file may have several, and one that is another one's elsewhere. */
static int find_mapped(void *user, const struct stele_mapping *mapping)
{
	struct mapped *mapped = user;
	const struct stele_mapping_info *info = &mapping->info;

	if (strcmp(info->snapshot, mapped->snapshot) != 0 ||
	    memcmp(info->uuid, mapped->txn->image->sb.uuid,
		   sizeof(info->uuid)) != 0 ||
	    !stele_mapping_is_on(mapping, &mapped->target))
		return 0;
	snprintf(mapped->name, sizeof(mapped->name), "%s", info->name);
	return 1;
}

/* Refuse what is mapped on this machine: its name would be dead. */
static int check_mapped(const struct stele_txn *txn, const char *snapshot)
{
	const char *path = txn->target.path;
	struct mapped mapped = {.txn = txn, .snapshot = snapshot};
	int ret;

	/* A transaction without a name works on what nobody can have mapped. */
	if (!path)
		return 0;
	ret = stele_identity_of_device(txn->image->dev, &mapped.target);
	if (ret == 0)
		ret = stele_mapping_each(find_mapped, &mapped, NULL);
	if (ret <= 0)
		return ret;
	stele_log_error(&txn->log,
			"snapshot '%s' of '%s' is mapped as '%s' on this "
			"machine (unmap it first)",
			snapshot, path, mapped.name);
	return -EBUSY;
}

/* Where the storage keeps RBD snapshots, they have readers that cannot be seen. */
static int check_readers(const struct stele_txn *txn, const char *snapshot)
{
	if (!stele_device_snaps(txn->image->dev) || txn->grace || txn->revoke)
		return 0;
	stele_log_error(&txn->log,
			"snapshot '%s' may still have readers on other "
			"machines",
			snapshot);
	return -EBUSY;
}

/* ---- delete, rename ------------------------------------------------------------ */

/* For messages; a transaction on a device that was handed in has no path. */
static const char *path_of(const struct stele_txn *txn)
{
	return txn->target.path ? txn->target.path : "the image";
}

/* Of a name that the transaction has no more, or never had. */
static int no_snapshot(const struct stele_txn *txn, const char *name)
{
	uint32_t index;

	if (!name || stele_snapshot_find(txn->image, name, NULL, &index) < 0)
		return stele_snapshot_log_choice(txn->image, -ENOENT);
	stele_log_error(&txn->log, "this transaction has deleted or renamed it");
	return -ENOENT;
}

static int txn_drop(struct stele_txn *txn, const char *name)
{
	int ret;

	if (!name || !stele_txn_find(txn, name))
		return no_snapshot(txn, name);
	ret = check_mapped(txn, name);
	if (ret == 0)
		ret = check_readers(txn, name);
	return ret < 0 ? ret : stele_txn_remove_snapshot(txn, name);
}

int stele_txn_drop(struct stele_txn *txn, const char *name)
{
	return STELE_TXN_CALL(txn, txn_drop(txn, name),
			  "cannot delete snapshot '%s' of '%s'", name ? name : "",
			  path_of(txn));
}

static int txn_rename(struct stele_txn *txn, const char *from, const char *to)
{
	int ret;

	if (!from || !stele_txn_find(txn, from))
		return no_snapshot(txn, from);
	if (!to)
		return -EINVAL;
	if (!strcmp(from, to))
		return 0;
	ret = stele_txn_check_new_name(txn, to);
	if (ret == 0)
		ret = check_mapped(txn, from);
	if (ret == 0)
		ret = check_readers(txn, from);
	return ret < 0 ? ret : stele_txn_rename_snapshot(txn, from, to);
}

int stele_txn_rename(struct stele_txn *txn, const char *from, const char *to)
{
	return STELE_TXN_CALL(txn, txn_rename(txn, from, to),
			  "cannot rename snapshot '%s' of '%s'", from ? from : "",
			  path_of(txn));
}

static int txn_undelete(struct stele_txn *txn, const char *name, const char *as)
{
	int ret = name ? stele_txn_undelete_snapshot(txn, name, as) : -EINVAL;
	uint32_t index;

	if (ret == -ENOENT)
		stele_log_error(&txn->log,
				stele_snapshot_find(txn->image, name, NULL, &index) < 0 ?
					"no deleted snapshot has this name, or gc freed it" :
					"it is there, and is not deleted");
	return ret;
}

int stele_txn_undelete(struct stele_txn *txn, const char *name, const char *as)
{
	return STELE_TXN_CALL(txn, txn_undelete(txn, name, as),
			  "cannot undelete snapshot '%s' of '%s'", name ? name : "",
			  path_of(txn));
}

/* ---- the one that is put together ------------------------------------------------ */

/* Where there is no snapshot, the first one starts from nothing. */
static int begin_from(struct stele_txn *txn, const char *name)
{
	const struct stele_txn_snapshot *base = stele_txn_find(txn, name);

	if (!base && name)
		return no_snapshot(txn, name);
	return stele_addition_begin(txn, base);
}

int stele_txn_start(struct stele_txn *txn)
{
	if (!txn->work)
		return begin_from(txn, NULL);
	if (!txn->work->torn)
		return 0;
	stele_log_error(&txn->log, "the snapshot that is put together is incomplete since an "
				   "earlier call failed, and has to be begun anew");
	return -EINVAL;
}

int stele_txn_changed(struct stele_txn *txn, int ret)
{
	if (txn->work && (ret == -ENOMEM || ret == -EUCLEAN))
		txn->work->torn = true;
	return ret;
}

static int txn_base(struct stele_txn *txn, const char *name)
{
	int ret = begin_from(txn, name);

	if (ret == 0 && txn->spool)
		stele_spool_empty(txn->spool);
	return ret;
}

static const char *base_name(struct stele_txn *txn, const char *name)
{
	const struct stele_txn_snapshot *newest = name ? NULL : stele_txn_find(txn, NULL);

	return newest ? newest->info.name : name ? name : "";
}

int stele_txn_base(struct stele_txn *txn, const char *name)
{
	return STELE_TXN_CALL(txn, txn_base(txn, name),
			  "cannot start from '%s'", base_name(txn, name));
}

struct search {
	struct stele_txn *txn;
	struct stele_key_place *places; /* by key, each once */
	size_t count;
	uint64_t *numbers; /* room for all that one segment loses */
};

static int sort_keys(struct search *c, const struct stele_key_ref *keys,
		     size_t count)
{
	c->places = calloc(count + 1, sizeof(*c->places));
	c->numbers = calloc(count + 1, sizeof(*c->numbers));
	if (!c->places || !c->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		c->places[i].key = keys[i].data;
		c->places[i].key_size = keys[i].size;
	}
	qsort(c->places, count, sizeof(*c->places), stele_key_place_compare);
	for (size_t i = 0; i < count; i++)
		if (!i || stele_key_place_compare(&c->places[i],
						  &c->places[c->count - 1]))
			c->places[c->count++] = c->places[i];
	return 0;
}

static int find_keys(struct search *c)
{
	const struct stele_log *log = &c->txn->log;
	const char *name = c->txn->work->snapshot.info.name; /* "": a new image */
	size_t missing = 0;
	int ret = stele_snapshot_find_keys(c->txn->image, &c->txn->work->snapshot,
					   c->places, c->count);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < c->count; i++) {
		const struct stele_key_place *place = &c->places[i];

		if (place->found || missing++ >= KEYS_NAMED_MAX)
			continue;
		if (!*name)
			stele_log_error(log, "'%.*s' was not put",
					(int)place->key_size, place->key);
		else
			stele_log_error(log, "'%.*s' is not in snapshot '%s'",
					(int)place->key_size, place->key, name);
	}
	if (missing > KEYS_NAMED_MAX)
		stele_log_error(log, "nor are %zu more",
				missing - KEYS_NAMED_MAX);
	return missing ? -ENOENT : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct stele_key_place *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* What a segment loses: the places from `first` on, so many. */
static int delete_from(struct search *c, size_t first, size_t lost)
{
	uint64_t payload_size = 0;

	for (size_t i = 0; i < lost; i++) {
		c->numbers[i] = c->places[first + i].number;
		payload_size += c->places[first + i].size;
	}
	return stele_addition_delete(c->txn->work, c->places[first].segment,
				     c->numbers, lost, payload_size);
}

static int delete_samples(struct search *c)
{
	int ret = 0;
	size_t next;

	qsort(c->places, c->count, sizeof(*c->places), by_place);
	for (size_t i = 0; i < c->count && ret == 0; i = next) {
		next = i + 1;
		while (next < c->count &&
		       c->places[next].segment == c->places[i].segment)
			next++;
		ret = delete_from(c, i, next - i);
	}
	return ret;
}

/* What was put can be left out, too. */
static int begin_delete(struct stele_txn *txn, const void *list, size_t count)
{
	int ret = count && !list ? -EINVAL : stele_put_flush(txn);

	if (ret == 0)
		ret = stele_txn_start(txn);
	return ret ? ret : stele_addition_load(txn->work);
}

static int txn_delete(struct stele_txn *txn, const struct stele_key_ref *keys,
		      size_t count)
{
	struct search c = {.txn = txn};
	int ret = begin_delete(txn, keys, count);

	if (ret == 0)
		ret = sort_keys(&c, keys, count);
	if (ret == 0)
		ret = find_keys(&c);
	if (ret == 0)
		ret = delete_samples(&c);
	free(c.numbers);
	free(c.places);
	return ret;
}

int stele_txn_delete(struct stele_txn *txn, const struct stele_key_ref *keys,
		     size_t count)
{
	return STELE_TXN_CALL(txn, stele_txn_changed(txn, txn_delete(txn, keys, count)),
			  "cannot delete samples");
}

/* ---- by id ----------------------------------------------------------------------- */

struct by_id {
	struct stele_txn *txn;
	uint64_t *numbers; /* at first ids; ascending in each segment */
	size_t count;
	size_t *ends; /* by segment: of its own */
	uint64_t *payload_sizes; /* by segment */
	bool again; /* samples that are deleted already are passed over */
};

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* They often are in order, and sorting takes as much memory again. */
static int sort_ids(struct by_id *c, const uint64_t *ids, size_t count)
{
	const uint32_t segment_count = c->txn->work->snapshot.segment_count;
	bool sorted = true;

	c->numbers = calloc(count + 1, sizeof(*c->numbers));
	c->ends = calloc(segment_count + 1, sizeof(*c->ends));
	c->payload_sizes = calloc(segment_count + 1, sizeof(*c->payload_sizes));
	if (!c->numbers || !c->ends || !c->payload_sizes)
		return -ENOMEM;
	c->count = count;
	for (size_t i = 0; i < count; i++) {
		c->numbers[i] = ids[i];
		sorted &= !i || ids[i - 1] <= ids[i];
	}
	if (!sorted)
		qsort(c->numbers, count, sizeof(*c->numbers), by_number);
	for (size_t i = 1; i < count; i++) {
		if (c->numbers[i] != c->numbers[i - 1])
			continue;
		stele_log_error(&c->txn->log, "id %" PRIu64 " is given twice", c->numbers[i]);
		return -EINVAL;
	}
	return 0;
}

static int log_id(const struct by_id *c, uint64_t id, int error)
{
	const struct stele_catalog_snapshot *base = &c->txn->work->snapshot.info;

	if (error == -ERANGE && !base->sample_count)
		stele_log_error(&c->txn->log, "there is no id %" PRIu64 ": there are no samples",
				id);
	else if (error == -ERANGE)
		stele_log_error(&c->txn->log,
				"there is no id %" PRIu64
				": the last one of snapshot '%s' is %" PRIu64,
				id, base->name, base->sample_count - 1);
	else
		stele_log_error(&c->txn->log,
				"the sample of id %" PRIu64
				" in snapshot '%s' was deleted already", id, base->name);
	return error;
}

static int locate_ids(struct by_id *c)
{
	const uint32_t segment_count = c->txn->work->snapshot.segment_count;
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++) {
		const uint64_t id = c->numbers[i];
		uint32_t segment;
		int ret = stele_addition_locate(c->txn->work, id, &segment, &c->numbers[kept]);

		if (ret == -ENOENT && c->again)
			continue;
		if (ret < 0)
			return log_id(c, id, ret);
		c->ends[segment] = ++kept;
	}
	for (uint32_t i = 1; i < segment_count; i++)
		if (!c->ends[i])
			c->ends[i] = c->ends[i - 1];
	return 0;
}

/* Nothing is deleted before all is known. */
static int find_payload(struct by_id *c)
{
	const struct stele_snapshot *snapshot = &c->txn->work->snapshot;
	size_t from = 0;
	int ret = 0;

	for (uint32_t i = 0; i < snapshot->segment_count && ret == 0; i++) {
		if (c->ends[i] > from)
			ret = stele_key_list_payload(c->txn->image, &snapshot->segments[i],
						     c->numbers + from, c->ends[i] - from,
						     &c->payload_sizes[i]);
		from = c->ends[i];
	}
	return ret;
}

static int delete_numbers(struct by_id *c)
{
	struct stele_addition *work = c->txn->work;
	size_t from = 0;
	int ret = 0;

	for (uint32_t i = 0; i < work->snapshot.segment_count && ret == 0; i++) {
		ret = stele_addition_delete(work, i, c->numbers + from, c->ends[i] - from,
					    c->payload_sizes[i]);
		from = c->ends[i];
	}
	return ret;
}

static int txn_delete_ids(struct stele_txn *txn, const uint64_t *ids, size_t count, bool again)
{
	struct by_id c = {.txn = txn, .again = again};
	int ret = begin_delete(txn, ids, count);

	if (ret == 0)
		ret = sort_ids(&c, ids, count);
	if (ret == 0)
		ret = locate_ids(&c);
	if (ret == 0)
		ret = find_payload(&c);
	if (ret == 0)
		ret = delete_numbers(&c);
	free(c.payload_sizes);
	free(c.ends);
	free(c.numbers);
	return ret;
}

static int call_delete_ids(struct stele_txn *txn, const uint64_t *ids, size_t count, bool again)
{
	return STELE_TXN_CALL(txn, stele_txn_changed(txn, txn_delete_ids(txn, ids, count, again)),
			  "cannot delete samples");
}

int stele_txn_delete_ids(struct stele_txn *txn, const uint64_t *ids, size_t count)
{
	return call_delete_ids(txn, ids, count, false);
}

static int set_note(struct stele_txn *txn, const char *note)
{
	const size_t size = note ? strlen(note) : 0;

	if (size > STELE_NOTES_SIZE_MAX) {
		stele_log_error(&txn->log, "the note is too long");
		return -EOVERFLOW;
	}
	txn->work->note = note;
	txn->work->note_size = (uint32_t)size;
	return 0;
}

static int txn_snapshot(struct stele_txn *txn, const char *name,
			const char *note, struct stele_snapshot_info *out)
{
	struct stele_snapshot_info made;
	int ret = stele_output_check(out, deleted_time, &txn->log);

	if (ret == 0)
		ret = name ? stele_txn_check_new_name(txn, name) : -EINVAL;
	if (ret == 0)
		ret = stele_put_flush(txn);
	if (ret == 0)
		ret = stele_txn_start(txn);
	if (ret == 0 && !txn->work->snapshot.segment_count) {
		stele_log_error(&txn->log, "there is nothing to make a snapshot of");
		ret = -ENOENT;
	}
	if (ret == 0)
		ret = set_note(txn, note);
	if (ret < 0)
		return ret;
	txn->work->time = txn->time;
	ret = stele_addition_end(txn->work, name);
	if (ret == 0) {
		stele_snapshot_describe(&stele_txn_find(txn, name)->info, &made);
		if (txn->dry)
			memset(made.digest, 0, sizeof(made.digest));
		stele_output_fill(out, &made, sizeof(made));
		stele_addition_free(txn);
	}
	return ret;
}

int stele_txn_snapshot(struct stele_txn *txn, const char *name,
		       const char *note, struct stele_snapshot_info *out)
{
	return STELE_TXN_CALL(txn, stele_txn_changed(txn, txn_snapshot(txn, name, note, out)),
			  "cannot make snapshot '%s'", name ? name : "");
}

/* ---- from the outside ------------------------------------------------------------- */

/* Ids mean nothing in another snapshot, which may have got the name of the base meanwhile. */
static int check_digest(const struct stele_txn *txn, const uint8_t *digest)
{
	const struct stele_catalog_snapshot *base = &txn->work->snapshot.info;

	if (!digest || !memcmp(digest, base->digest, STELE_DIGEST_SIZE))
		return 0;
	stele_log_error(&txn->log, "snapshot '%s' is another one by now (try again)", base->name);
	return -ESTALE;
}

/* Where the id of a sample is deleted already, a key has named it. */
static int delete_all(struct stele_txn *txn, const struct stele_deletions *deleted)
{
	struct stele_deletions known;
	int ret = stele_options_copy(deleted, &known, sizeof(known), &txn->log);

	if (ret == 0)
		ret = check_digest(txn, known.base_digest);
	if (ret == 0)
		ret = stele_txn_delete(txn, known.keys, known.key_count);
	return ret == 0 ? call_delete_ids(txn, known.ids, known.id_count, true) : ret;
}

static int snapshot_create(const char *target, const char *base,
			   const struct stele_deletions *deleted, const char *note,
			   const struct stele_txn_opts *opts,
			   struct stele_snapshot_info *out)
{
	struct stele_txn txn;
	int ret = stele_change_begin(&txn, target, STELE_CHANGE_OF_SNAPSHOT, opts,
				     STELE_CHANGE_ADDS, 0);

	if (ret == 0)
		ret = stele_txn_check_new_name(&txn, txn.target.snapshot);
	if (ret == 0)
		ret = stele_txn_base(&txn, base);
	if (ret == 0)
		ret = delete_all(&txn, deleted);
	if (ret == 0)
		ret = stele_txn_snapshot(&txn, txn.target.snapshot, note,
					 out);
	return stele_change_end(&txn, ret);
}

int stele_snapshot_create(const char *target, const char *base,
			  const struct stele_deletions *deleted, const char *note,
			  const struct stele_txn_opts *opts,
			  struct stele_snapshot_info *out)
{
	return STELE_CALL(snapshot_create(target, base, deleted, note, opts, out),
			  "cannot create snapshot '%s'", target);
}

static int snapshot_rename(const char *target, const char *name,
			   const struct stele_txn_opts *opts)
{
	struct stele_txn txn;
	int ret = stele_change_begin(&txn, target, STELE_CHANGE_OF_SNAPSHOT, opts,
				     STELE_CHANGE_GOES, STELE_FORCE);

	if (ret == 0)
		ret = stele_txn_rename(&txn, txn.target.snapshot, name);
	return stele_change_end(&txn, ret);
}

int stele_snapshot_rename(const char *target, const char *name,
			  const struct stele_txn_opts *opts)
{
	return STELE_CALL(snapshot_rename(target, name, opts),
			  "cannot rename snapshot '%s'", target);
}

static int snapshot_undelete(const char *target, const char *name,
			     const struct stele_txn_opts *opts)
{
	struct stele_txn txn;
	int ret = stele_change_begin(&txn, target, STELE_CHANGE_OF_SNAPSHOT, opts,
				     STELE_CHANGE_GOES, 0);

	if (ret == 0)
		ret = stele_txn_undelete(&txn, txn.target.snapshot, name);
	return stele_change_end(&txn, ret);
}

int stele_snapshot_undelete(const char *target, const char *name,
			    const struct stele_txn_opts *opts)
{
	return STELE_CALL(snapshot_undelete(target, name, opts),
			  "cannot undelete snapshot '%s'", target);
}

/* By the word that led there, which may be mapped, or by another one for the same file. */
static bool is_of_image(const struct stele_txn *txn, const char *first, const char *path)
{
	struct stat a, b;

	if (!strcmp(path, txn->target.path) || !strcmp(path, first))
		return true;
	return !stele_path_is_rbd(txn->target.path) && !stat(txn->target.path, &a) &&
	       !stat(path, &b) && stele_stack_same(&a, &b);
}

/* Another one of the image that is open: PATH@NAME again. `first`: as that was opened. */
static int drop_by_target(struct stele_txn *txn, const char *first, const char *text)
{
	struct stele_target target = {0}, opened = {0};
	int ret = text ? stele_target_parse(text, &txn->log, &target) : -EINVAL;

	if (ret == 0)
		ret = stele_target_parse(first, &txn->log, &opened);
	if (ret < 0)
		goto out;
	if (!target.snapshot && stele_txn_find(txn, target.path)) {
		stele_log_error(&txn->log, "'%s' is not a target: write '%s@%s'", text,
				txn->target.path, target.path);
		ret = -EINVAL;
	} else if (!target.snapshot || !is_of_image(txn, opened.path, target.path)) {
		stele_log_error(&txn->log, "'%s' is not a snapshot of '%s'",
				text, txn->target.path);
		ret = -EINVAL;
	}
	if (ret == 0)
		ret = stele_txn_drop(txn, target.snapshot);
out:
	stele_target_release(&target);
	stele_target_release(&opened);
	return ret;
}

static int check_once(const struct stele_txn *txn, const char *const *targets,
		      size_t index)
{
	for (size_t i = 0; i < index && targets[index]; i++) {
		if (strcmp(targets[i], targets[index]) != 0)
			continue;
		stele_log_error(&txn->log, "'%s' is given twice", targets[index]);
		return -EINVAL;
	}
	return 0;
}

static int snapshot_delete(const char *const *targets, size_t count,
			   const struct stele_txn_opts *opts)
{
	struct stele_txn txn;
	int ret;

	if (!targets || !count)
		return -EINVAL;
	ret = stele_change_begin(&txn, targets[0], STELE_CHANGE_OF_SNAPSHOT, opts,
				 STELE_CHANGE_GOES, STELE_FORCE);
	if (ret == 0)
		ret = stele_txn_drop(&txn, txn.target.snapshot);
	for (size_t i = 1; i < count && ret == 0; i++) {
		ret = check_once(&txn, targets, i);
		if (ret == 0)
			ret = drop_by_target(&txn, targets[0], targets[i]);
	}
	return stele_change_end(&txn, ret);
}

int stele_snapshot_delete(const char *const *targets, size_t count,
			  const struct stele_txn_opts *opts)
{
	return STELE_CALL(snapshot_delete(targets, count, opts),
			  count == 1 ? "cannot delete snapshot '%s'" :
				       "cannot delete snapshots '%s', ...",
			  targets && count ? targets[0] : "");
}

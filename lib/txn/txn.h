/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn.h - a transaction: the only way to change an image
 *
 * It holds the catalog as the next commit shall have it, hands out space for what
 * that refers to, and publishes it. One at a time on an image. One that is released
 * without a commit has done nothing but write to bytes that nobody refers to; a
 * target that it made larger has its old size again, and of a file what it allocated
 * is given back.
 *
 * Invariants of the commit:
 *  1. What a superblock leads to is durable, and has been read back, before that
 *     superblock is written (commit.c: write_catalog).
 *  2. New blocks go only where no superblock copy leads to, the copies of the older
 *     slot included (space.h), and where no other writer may still write (intent.h);
 *     but for the mirror of a catalog, which is no part of the protocol (catalog.h), and the
 *     witness beside it.
 *  3. Space is handed out once. What a commit stops using is written over after
 *     the next commit at the earliest (stele_txn_refresh).
 *  4. A superblock is written as a witness first, where that of the image is not; from then on
 *     recovery finds the new generation. Once it is durable, it goes over the slot that recovery
 *     would not select, its mirror after that is durable; then both are read back (commit.c:
 *     publish). So in each slot one copy decodes whatever a crash leaves, and where none does,
 *     it was lost: then the witness stands in (copies.h).
 *  5. Before each of them is written, all are read again, and the turn is
 *     confirmed: who finds another writer's superblock writes none (check_turn).
 *  6. A catalog that recovery would refuse is never published (make_catalog).
 *  7. Nobody is told of a commit before it is durable. After an error while
 *     publishing, the old or the new generation is there, whole: the transaction
 *     touches nothing any more, and can only be released (stele_txn_give_back).
 *  8. Generations only grow, and never below what another writer has announced.
 *  9. A commit that takes space leaves room for the catalog of a next one that
 *     gives some back: a full image, or one on a full filesystem, can still be deleted
 *     from (leave_room). It may be where only the older generation leads to, which is
 *     given up then (find_place). A deleted snapshot keeps its entry until gc, and that
 *     entry is no larger than it was.
 * 10. Of a snapshot that goes, the RBD snapshot goes before the commit; of one that
 *     comes, it is made after it: cut short, the next writer finds each snapshot of
 *     the catalog, and completes its RBD snapshot (rbd.h).
 * 11. Block 0, if it shows an EROFS of the image's, shows the tree of the selected generation
 *     or of the one before. Both are led to, so what is read through it is whole, whatever a
 *     crash leaves: its parts are durable before the commit, block 0 is written after it in
 *     one sector, and put right before a writer writes anything else (posix.h). Parts are
 *     never written over while a catalog has them: one that is not used any more stays, like
 *     a segment, until gc.
 *
 * States, and the functions that lead from one to the next:
 *
 *	CLOSED     -> CLEAN       stele_txn_begin, _on_device, _attach
 *	CLEAN      -> DIRTY       whatever changes the catalog in memory
 *	CLEAN      -> CLEAN       stele_txn_refresh
 *	DIRTY      -> CLEAN       stele_txn_restart (all changes are given up)
 *	any of two -> PUBLISHING  stele_txn_publish
 *	PUBLISHING -> CLEAN       stele_txn_publish: durable; it may go on from there
 *	PUBLISHING -> FAILED      stele_txn_publish: an error
 *	any        -> CLOSED      stele_txn_release
 *
 * stele_txn_rehearse makes a second transaction of one, in the same state: its commit shows
 * what that of the first would do, and changes nothing.
 */
#ifndef STELE_TXN_TXN_H
#define STELE_TXN_TXN_H

#include "lib/device/snaps.h"
#include "lib/device/target.h"
#include "lib/image/image.h"
#include "lib/txn/space.h"

enum stele_txn_state {
	STELE_TXN_CLOSED,
	STELE_TXN_CLEAN,
	STELE_TXN_DIRTY,
	STELE_TXN_PUBLISHING,
	STELE_TXN_FAILED,
};

/* Of `at`, the index of the segment is the commit's to know: segments come and go. */
struct stele_txn_ref {
	uint64_t segment_id;
	struct stele_catalog_ref at;
};

/*
 * Of `info`, where refs and note lie in the catalog is the commit's to know. The
 * id is 0 until it is added.
 */
struct stele_txn_snapshot {
	struct stele_catalog_snapshot info;
	struct stele_txn_ref *refs; /* owned: info.ref_count */
	char *note; /* owned: info.note_size bytes, not terminated */
};

struct stele_addition;
struct stele_deleted;

struct stele_txn {
	enum stele_txn_state state;
	struct stele_target target; /* snapshot: what stood behind the '@' */
	struct stele_log log;
	struct stele_image *image; /* `own`, or the caller's */
	struct stele_image own;
	bool borrowed; /* its device is the caller's */
	unsigned int fork_count; /* of the process that has it, once there is an image */
	uint32_t branch; /* of a fork; 0: it is refused */
	int64_t time;  /* of what it does, seconds since 1970 */
	bool force;    /* its last snapshot may go, too */
	bool revoke;   /* whoever reads what is deleted, and cannot be seen, is not waited for */
	bool discard; /* what is freed, on the device */
	stele_progress_fn progress; /* of what takes long; may be NULL */
	void *progress_user;
	uint64_t grace; /* seconds that they get; 0: not given */
	bool dry;      /* on a device that keeps what is written to itself, see rehearsal.h */
	bool looks;    /* and it does not matter who else is writing */

	struct stele_catalog_segment *segments; /* ascending by offset */
	uint32_t segment_count;
	struct stele_txn_snapshot *snapshots; /* ascending by id; then the deleted ones */
	uint32_t snapshot_count;	      /* without these */
	uint32_t deleted_count;		      /* whose time is 0 if the next commit deletes them */
	uint64_t next_snapshot_id;
	/*
	 * Features that the superblock shall have from now on. DELETED comes by
	 * itself; BOUNDARY and TENSOR of a segment are for who adds it to set.
	 */
	uint64_t feature_incompat;
	/* See posix.h. */
	bool posix;	 /* the next generation shall be an EROFS, too */
	bool renew;	 /* no part of its tree stays */
	uint64_t *parts; /* owned: ids of those of its tree; of this generation's until publish */
	uint32_t part_count;

	struct stele_addition *work; /* owned: the snapshot that is put together, see addition.h */
	struct stele_spool *spool;   /* owned: samples for it that are not written yet */
	struct stele_build_opts put_opts; /* how they will be */

	struct stele_claim *claim; /* owned: a new image, until it is whole; its device's owner */
	struct stele_device *trial; /* owned: see stele_txn_on_claim(); NULL: on the target */
	bool reproducible;	   /* ids of segments follow from what they hold */

	/* Of gc: what is to be done behind the commit. */
	bool frees;
	uint64_t freed_size;		 /* of segments that it drops */
	struct stele_rbd_snaps tombstones; /* their time has come */

	struct stele_extents used; /* by any superblock copy, or handed out */
	uint64_t image_size;	   /* grows with the target, see grow */
	bool sized;		   /* no commit of a new image makes it larger than was asked for */
	uint64_t old_target_size;  /* before we made it grow; 0: we did not */
	bool stale;		   /* `used` is of before a commit */
	bool reserved;		   /* blocks of a file, see stele_txn_give_back() */
	bool takes;		   /* the next generation has more than this one */
	uint64_t written_size; /* bytes since it began, metadata too: as of the last commit */
};

/* Is the target made larger where there is no room? */
static inline bool stele_txn_is_elastic(const struct stele_txn *txn)
{
	const struct stele_image *image = txn->image;

	return image->dev->resizable &&
	       !(txn->sized && image->sb.state != STELE_STATE_READY);
}

/*
 * Open for writing what `text` names: PATH, PATH@NAME or a mapped name, whose
 * snapshot stands for a NAME that is not given. Readers go on, a second writer is
 * refused. What an interrupted writer left is finished or undone. Dry: what would be
 * refused is refused, with the same message; then the target is only read, and hinders
 * nobody. Every failure is logged. Release in any case, here and below.
 * Return: 0; -EBUSY (mounted or held; another writer, logged by name);
 * -EACCES, -EROFS, -EPERM (read-only, logged); errors of stele_image_open().
 */
int stele_txn_begin(struct stele_txn *txn, const char *text, bool dry,
		    const char *backend, const struct stele_log *log);
/*
 * The same of a fork (see fork.h): that branch, from 1. 0: as above. What is no fork is opened
 * whatever the branch.
 */
int stele_txn_begin_branch(struct stele_txn *txn, const char *text, uint32_t branch,
			 bool dry, const char *backend, const struct stele_log *log);
/* A dry one that asks for no more than to read: nothing that it shows is refused. */
int stele_txn_look(struct stele_txn *txn, const char *text, const char *backend,
		   const struct stele_log *log);
/* The same with an opened device, which is the transaction's from here on. */
int stele_txn_on_device(struct stele_txn *txn, struct stele_device *dev,
			const struct stele_log *log);
/*
 * Can the image be read still, but no longer has the target `path` to itself? Whoever changes
 * it asks. Return: 0; -EEXIST (logged).
 */
int stele_txn_check_overlaid(struct stele_image *image, const char *path,
			     const struct stele_log *log);
/*
 * A new image, that holds nothing, on a device that stays the caller's, and of which an
 * older one is lost from here on: see stele_image_begin(). Whole with the first commit.
 */
struct stele_new_image {
	const uint8_t *uuid; /* NULL: random */
	const char *label;
	const char *lost; /* what it replaces, in words, until it has a snapshot; NULL: nothing */
	uint64_t size; /* bytes of the device that it may use, whole blocks */
	int64_t time;
};
int stele_txn_on_new(struct stele_txn *txn, struct stele_device *dev,
		     const struct stele_new_image *what,
		     const struct stele_log *log);
/*
 * The same on the device of an open claim, which is the transaction's from here on, whatever
 * comes of it. A device that was there keeps what it holds for now: the image is begun
 * on a rehearsal over it (`trial`). `what`: size and lost are the claim's to know. Return: as
 * above; errors of stele_claim_take().
 */
int stele_txn_on_claim(struct stele_txn *txn, struct stele_claim *claim,
		       const struct stele_new_image *what, const struct stele_log *log);
/*
 * Leave that, if it is there, for the target, where what it held is lost from here on.
 * Whoever is about to write calls it, once all is known that may stand against it. Nothing was
 * allocated or added before. Return: as above; after an error the transaction has failed.
 */
int stele_txn_overwrite(struct stele_txn *txn);
/* RFC 9562, version 4. 0; errno of getrandom(2). */
int stele_uuid_random(uint8_t uuid[STELE_UUID_SIZE]);
/*
 * Begin with what the image holds; an unfinished image (stele_image_begin())
 * holds nothing. The image stays the caller's, and is released after it. Reads all
 * superblock copies, and the catalogs that they lead to. What was found is flushed:
 * who wrote it may have been killed before that.
 * Return: 0; -EOPNOTSUPP (a ro_compat feature; logged); -ESTALE (the device
 * holds another generation by now); -ENOMEM; errno of the device (also: one of
 * the superblock copies cannot be read; logged).
 */
int stele_txn_attach(struct stele_image *image, struct stele_txn *txn);
/* What is used, when that is of before a commit. Return: as of attach. */
int stele_txn_refresh(struct stele_txn *txn);
/* Give all changes up, and begin again. Return: as of attach. */
int stele_txn_restart(struct stele_txn *txn);
/* Is it that of the process which this one is a child of? Then it can only be released. */
bool stele_txn_is_forked(const struct stele_txn *txn);
/* Idempotent on a zeroed struct. In a forked child only memory goes. */
void stele_txn_release(struct stele_txn *txn);

/*
 * Space for `size` bytes (whole blocks, not 0) at a multiple of `align` (0: a
 * block; else a power of two of at least that) that nothing leads to. First fit;
 * handed out once, until the commit after the next if it is not referred to by then.
 * A target that can be resized (file, RBD) is made larger when need be, and the
 * image with it. On others the last bytes are not handed out, nor are they there for
 * a snapshot that is added: the catalog of a next generation, which something was
 * removed from, always has room.
 * Return: 0; -ENOSPC (logged: how much, and what to do); -EINVAL; errno of the device.
 */
int stele_txn_allocate(struct stele_txn *txn, uint64_t size, uint64_t align,
			uint64_t *offset);
/*
 * The same for what follows from the rest: for a generation that only gives back it needs no
 * more room. One that takes space leaves `next` bytes for what the next one has anew.
 */
int stele_txn_allocate_again(struct stele_txn *txn, uint64_t size, uint64_t next,
			     uint64_t *offset);
/*
 * Make the target so large, if it is smaller; the image stays. Return: 0; errno of
 * the device.
 */
int stele_txn_enlarge(struct stele_txn *txn, uint64_t target_size);
/* Target and what was allocated shall stay as they are, whatever becomes of this. */
void stele_txn_keep_space(struct stele_txn *txn);
/*
 * Let the image have so many bytes (whole blocks, no fewer than now), which its
 * target has. Return: 0; -EINVAL; errno of the device.
 */
int stele_txn_grow(struct stele_txn *txn, uint64_t image_size);

/*
 * For a segment that the next generation writes. It seeds all checksums, so it must be
 * of this attempt alone: random. Return: 0; errno of getrandom(2).
 */
int stele_txn_segment_id(const struct stele_txn *txn, uint64_t *id);
/*
 * A segment that lies in space that was handed out; unused_since is set by the
 * commit. Return: 0; -EEXIST (that id is there); -EOVERFLOW (too many; logged);
 * -ENOMEM.
 */
int stele_txn_add_segment(struct stele_txn *txn,
			   const struct stele_catalog_segment *segment);
/* NULL: none of that id. */
const struct stele_catalog_segment *
stele_txn_segment(const struct stele_txn *txn, uint64_t id);
/* Is it one that the device's catalog has? */
bool stele_txn_is_committed(const struct stele_txn *txn, uint64_t segment_id);
/*
 * Which ones are parts of its tree, or does a snapshot refer to that is not deleted? By index,
 * malloced.
 * 0; -ENOMEM; -EINVAL.
 */
int stele_txn_find_used(const struct stele_txn *txn, bool **used);
/* Likewise, is it one? */
bool stele_txn_in_use(const struct stele_txn *txn, uint64_t segment_id);
/* Likewise, does one that may be deleted? */
bool stele_txn_was_used(const struct stele_txn *txn, uint64_t segment_id);
/*
 * Forget a segment that neither a snapshot nor `work` uses, and the deleted snapshots
 * that refer to it: the commit lists its space as free, the one after the next may
 * write there.
 * Return: 0; -ENOENT; -EBUSY.
 */
int stele_txn_drop_segment(struct stele_txn *txn, uint64_t id);

/*
 * Write what is deleted of a segment (it may be nothing) for the next generation, and have
 * `ref` refer to it; its segment stays. The lists of `ref`, if it has any, must be those of
 * a snapshot that is there: mostly only what they lack is written. Snapshots may share
 * lists: copy the ref. Return: 0; -EINVAL; -ENOSPC; -ENOMEM; errno; as
 * stele_deleted_load_list() (logged).
 */
int stele_txn_write_deleted(struct stele_txn *txn, struct stele_txn_ref *ref,
			    const struct stele_deleted *all);

/*
 * NULL: none of that name. NULL as name: the newest. Good until a snapshot is
 * added or removed; note, time, refs may be changed in place by who keeps them
 * malloced.
 */
struct stele_txn_snapshot *stele_txn_find(struct stele_txn *txn,
						const char *name);
/* May a snapshot have this name at all? Return: 0; -EINVAL (logged). */
int stele_txn_check_name(const char *name, const struct stele_log *log);
/* May one of this image get it? As above; -EEXIST (logged); errno of the storage. */
int stele_txn_check_new_name(struct stele_txn *txn, const char *name);
/*
 * Add one; refs and note are copied, an id is given out. `parent` is an id,
 * or 0; digest, sample_count and payload_size are the caller's to know. Return: 0; -EEXIST
 * (the name; logged); -EINVAL (name (logged), parent; a ref to no segment, or to one twice);
 * -EOVERFLOW (too many snapshots, refs or notes; logged); -ENOMEM.
 */
int stele_txn_add_snapshot(struct stele_txn *txn,
			    const struct stele_txn_snapshot *snapshot);
/* Return: 0 (also: that is its name); -ENOENT; -EEXIST, -EINVAL (logged). */
int stele_txn_rename_snapshot(struct stele_txn *txn, const char *name,
			       const char *to);
/* It is deleted, and can be undeleted until gc; one that was not committed is forgotten. */
int stele_txn_remove_snapshot(struct stele_txn *txn, const char *name);
/*
 * The one of this name that was deleted last is back, as `as` (NULL: by its own name).
 * Return: 0; -ENOENT; -EEXIST, -EINVAL (logged); errno of the storage.
 */
int stele_txn_undelete_snapshot(struct stele_txn *txn, const char *name, const char *as);
/* For good: the deleted one at `index`, from snapshot_count on. */
void stele_txn_forget_snapshot(struct stele_txn *txn, uint32_t index);

/*
 * Bytes that the catalog of a commit now would take, at most. Return: 0;
 * -ENOMEM.
 */
int stele_txn_commit_size(const struct stele_txn *txn, uint64_t *size);
/*
 * RBD takes space of its pool when something is written there, and a pool that is
 * full has none for the catalog of a delete. So on storage with RBD snapshots a commit
 * writes to the place where the next catalogs will go, unless they go where older
 * ones were, and a discard leaves it: the first that `used` leaves free.
 * Return: 0; -ENOSPC; -ENOMEM.
 */
int stele_txn_next_place(const struct stele_txn *txn,
			  const struct stele_extents *used, uint64_t *offset,
			  uint64_t *size);
/*
 * Commit: free extents, high-water mark and unused_since follow from what is used; a
 * `time` before that of the last commit counts as that. What was handed out and is not
 * referred to is free again. On storage with RBD snapshots each snapshot then gets its
 * own: when the error is one of that, the commit has been made, and the log says what is
 * missing; a new name that somebody else's RBD snapshot has is refused before (-EEXIST).
 * Afterwards it stands for the new state, and may go on.
 * Return: 0; -EINVAL (recovery would refuse it; logged); -ENOSPC, -EOVERFLOW
 * (logged); -ENOMEM; -EIO (read back something else); errno of the device.
 */
int stele_txn_publish(struct stele_txn *txn, int64_t time);

/*
 * What this one would commit now is `out`'s to commit, on a device that keeps writes from
 * the target (see rehearsal.h), and reads through this one's: release it before.
 * Return: 0; -EINVAL (it failed); -ENOMEM; errno of the device.
 */
int stele_txn_rehearse(struct stele_txn *txn, struct stele_txn *out);

/* ---- between txn.c, catalog.c, allocate.c, full.c, next.c and places.c ----------------- */

/* From the image's catalog, into a transaction without one. 0; -ENOMEM. */
int stele_txn_load_catalog(struct stele_txn *txn);
void stele_txn_release_catalog(struct stele_txn *txn);
/* Is it one of the tree's? */
bool stele_txn_has_part(const struct stele_txn *txn, uint64_t segment_id);
/* Room for those of this generation, and of the next one as it is now. 0; -ENOMEM. */
int stele_txn_room_for_parts(struct stele_txn *txn);
/* Within that. */
void stele_txn_add_part(struct stele_txn *txn, uint64_t segment_id);
/* Those of the device's catalog that are in use, in place of its own. Within that, too. */
void stele_txn_load_parts(struct stele_txn *txn);
/* In place of its own. 0; -ENOMEM. */
int stele_txn_copy_catalog(const struct stele_txn *from, struct stele_txn *to);
/*
 * On a device, which it takes, over that of another transaction on the image `as`.
 * Return: as of on_device.
 */
int stele_txn_reload(struct stele_txn *txn, struct stele_device *dev,
		     const struct stele_image *as);
/* Indices of the segments by id, malloced: to look many up. 0; -ENOMEM. */
int stele_txn_sort_ids(const struct stele_txn *txn, uint32_t **by_id);
/* False: there is none of this id. */
bool stele_txn_index_of(const struct stele_txn *txn, const uint32_t *by_id,
			uint64_t id, uint32_t *index);

/* Where the refs of each snapshot go in the table of the next catalog, see places.c. */
struct stele_txn_places {
	uint32_t *first; /* by snapshot */
	bool *whole;	 /* all refs from there on until the next place are its */
	uint32_t count;	 /* of the table */
};
/* Release in any case. 0; -ENOMEM. */
int stele_txn_place_refs(const struct stele_txn *txn,
			 struct stele_txn_places *places);
void stele_txn_places_release(struct stele_txn_places *places);

/*
 * All space is looked for by this: `look` returns 0; -ENOSPC; another error. Where what
 * is free will not do, what was only avoided may (see intent.h), and it looks once more.
 */
int stele_txn_search(struct stele_txn *txn,
		      int (*look)(struct stele_txn *txn, void *user),
		      void *user);
/* Room for `size` more bytes behind all that is used. */
int stele_txn_make_larger(struct stele_txn *txn, uint64_t size,
			   uint64_t align);
/* It is used from now on: whoever looks knows, and a filesystem allocates it. 0; errno. */
int stele_txn_reserve(struct stele_txn *txn, uint64_t offset, uint64_t size);
/* The second half of that: nobody is told, and it may be in use. 0; errno (logged). */
int stele_txn_reserve_blocks(struct stele_txn *txn, uint64_t offset, uint64_t size);
/* Undo what was done to the target, unless a commit may have been made. */
void stele_txn_give_back(struct stele_txn *txn);
/* Say how much, and what would help, see full.c. Return: -ENOSPC. */
int stele_txn_log_no_space(const struct stele_txn *txn, uint64_t size);

#endif

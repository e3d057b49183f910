/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn.c - guard, open, recover; and the end
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/device/device.h"
#include "lib/device/guard.h"
#include "lib/device/name.h"
#include "lib/device/rehearsal.h"
#include "lib/image/fork.h"
#include "lib/image/proof.h"
#include "lib/node/open.h"
#include "lib/source/spool.h"
#include "lib/txn/addition.h"
#include "lib/txn/claim.h"
#include "lib/txn/intent.h"
#include "lib/txn/posix.h"
#include "lib/txn/rbd.h"

/* ---- open ------------------------------------------------------------------ */

static int log_refused(const struct stele_txn *txn, int error)
{
	const char *path = txn->target.path;
	char by[64];

	if (error == -EBUSY && stele_guard_writer(path, by, sizeof(by)))
		stele_log_error(&txn->log,
				"cannot change '%s': %s is writing to it", path,
				by);
	else if ((error == -EROFS || error == -EACCES || error == -EPERM) &&
		 stele_path_is_read_only(path) > 0)
		stele_log_error(&txn->log,
				"cannot change '%s': the device is set "
				"read-only, as 'stele map --read-only' does",
				path);
	else if (error == -EOPNOTSUPP && !stele_path_is_rbd(path))
		return error; /* a backend says itself why */
	else if (error == -ENOENT && !stele_path_is_rbd(path))
		stele_log_error(&txn->log, "no such file, device or mapping");
	else if (error == -ENOTBLK)
		stele_log_error(&txn->log,
				"'%s' is neither a block device nor a regular "
				"file",
				path);
	else
		stele_log_error(&txn->log, "cannot open '%s': %s", path,
				stele_strerror(error));
	return error;
}

static int resolve(struct stele_txn *txn, const char *text)
{
	int ret = text ? stele_target_parse(text, &txn->log, &txn->target) : -EINVAL;

	if (!text)
		stele_log_error(&txn->log, "no target to write to");
	return ret < 0 ? ret : stele_target_resolve_image(&txn->target, &txn->log);
}

static int open_device(struct stele_txn *txn, const char *backend,
		       struct stele_device **dev)
{
	const char *path = txn->target.path;
	int ret = 0;

	if (!stele_path_is_rbd(path))
		ret = stele_guard_claimed(path, &txn->log);
	if (ret < 0)
		return ret;
	ret = stele_device_open_patiently(path,
					  STELE_DEVICE_WRITE |
						  STELE_DEVICE_SOLE,
					  backend, &txn->log, dev);
	return ret < 0 ? log_refused(txn, ret) : 0;
}

static int load(struct stele_txn *txn, struct stele_device *dev)
{
	int ret;

	txn->image = &txn->own;
	txn->fork_count = stele_fork_count();
	ret = stele_image_load(dev, &txn->log, &txn->own);
	if (ret == 0)
		return 0;
	stele_device_close(dev);
	return ret;
}

/* Of an image that is loaded. */
static int start(struct stele_txn *txn)
{
	struct stele_image *image = txn->image;
	int ret = stele_image_check_writable(image);

	txn->dry = image->dev->dry;
	txn->feature_incompat = image->sb.feature_incompat;
	txn->image_size = image->sb.image_size;
	txn->stale = true;
	if (ret == 0)
		ret = stele_device_flush(image->dev);
	stele_intent_settle(image->dev); /* one before us was given up */
	if (ret == 0 && image->sb.state == STELE_STATE_READY)
		ret = stele_txn_show_tree(txn);
	if (ret == 0)
		ret = stele_txn_load_catalog(txn);
	if (ret == 0)
		ret = stele_txn_refresh(txn);
	if (ret == 0)
		txn->state = STELE_TXN_CLEAN;
	return ret;
}

/* For writing: what an interrupted writer left is put right. */
static int take_over(struct stele_txn *txn)
{
	int ret = txn->looks ? 0 : stele_image_announce(txn->image);

	if (ret == 0)
		ret = stele_image_heal(txn->image);
	if (ret == 0)
		ret = start(txn);
	return ret < 0 ? ret : stele_rbd_complete(txn);
}

int stele_txn_attach(struct stele_image *image, struct stele_txn *txn)
{
	int ret = stele_image_heal(image);

	*txn = (struct stele_txn){.image = image, .log = image->log,
				  .fork_count = stele_fork_count()};
	return ret < 0 ? ret : start(txn);
}

/* Nobody is told, and nothing put right: another transaction has done so. */
int stele_txn_reload(struct stele_txn *txn, struct stele_device *dev,
		     const struct stele_image *as)
{
	int ret = 0;

	if (as->sb.state == STELE_STATE_READY) {
		ret = load(txn, dev);
	} else { /* it holds nothing, and cannot be loaded */
		txn->image = &txn->own;
		txn->fork_count = stele_fork_count();
		txn->own = *as;
		txn->own.dev = dev;
		txn->own.catalog_blocks = NULL;
		txn->own.fork = NULL;
		txn->own.prover = NULL;
	}
	return ret < 0 ? ret : start(txn);
}

int stele_txn_check_overlaid(struct stele_image *image, const char *path,
			     const struct stele_log *log)
{
	int ret = stele_guard_overlaid(image->dev, STELE_DATA_OFFSET, image->sb.uuid, log);

	if (ret == -EEXIST)
		stele_log_error(log,
				"cannot change '%s': something else was written over "
				"its image", path);
	return ret;
}

int stele_txn_on_device(struct stele_txn *txn, struct stele_device *dev,
			const struct stele_log *log)
{
	int ret;

	if (log)
		txn->log = *log;
	ret = load(txn, dev);
	if (ret == 0 && txn->target.path)
		ret = stele_txn_check_overlaid(txn->image, txn->target.path, &txn->log);
	if (ret == 0 && txn->branch && txn->own.fork) {
		ret = stele_fork_choose(&txn->own, txn->branch - 1);
		if (ret < 0)
			stele_log_error(&txn->log, "branch %u cannot be chosen: its catalog "
						   "is damaged", txn->branch);
	}
	/* What a writer takes from sections goes into digests that vouch for it. */
	if (ret == 0)
		ret = stele_prover_new(&txn->own, &txn->own.prover);
	if (ret < 0)
		return ret;
	return take_over(txn);
}

int stele_uuid_random(uint8_t uuid[STELE_UUID_SIZE])
{
	if (getrandom(uuid, STELE_UUID_SIZE, 0) != STELE_UUID_SIZE)
		return errno ? -errno : -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

/* Into a transaction without an image. */
static int begin_image(struct stele_txn *txn, struct stele_device *dev,
		       const struct stele_new_image *what)
{
	struct stele_superblock sb = {
		.image_size = what->size,
		.create_time = what->time,
	};
	int ret = 0;

	if (what->uuid)
		memcpy(sb.uuid, what->uuid, sizeof(sb.uuid));
	else
		ret = stele_uuid_random(sb.uuid);
	if (what->lost)
		snprintf(sb.label, sizeof(sb.label), "%s", what->lost);
	if (ret == 0)
		ret = stele_image_begin(dev, &txn->log, &sb, &txn->own);
	if (ret < 0)
		return ret;
	snprintf(txn->own.sb.lost, sizeof(txn->own.sb.lost), "%s", sb.label);
	snprintf(txn->own.sb.label, sizeof(txn->own.sb.label), "%s", what->label);
	txn->image = &txn->own;
	txn->fork_count = stele_fork_count();
	txn->borrowed = true;
	return start(txn);
}

int stele_txn_on_new(struct stele_txn *txn, struct stele_device *dev,
		     const struct stele_new_image *what,
		     const struct stele_log *log)
{
	*txn = (struct stele_txn){.log = *log, .time = what->time};
	return begin_image(txn, dev, what);
}

/* ---- on a target that may hold something else -------------------------------- */

/* A file keeps what it holds by itself, and of what was created nothing is lost. */
static bool needs_trial(const struct stele_claim *claim)
{
	return !claim->dry && !claim->created && !claim->regular;
}

static int open_trial(struct stele_txn *txn)
{
	int ret = stele_rehearsal_over(txn->claim->dev, &txn->trial);

	if (ret == 0 && txn->claim->size < txn->claim->image_size)
		ret = stele_device_resize(txn->trial, txn->claim->image_size);
	return ret ? ret : stele_claim_remove_snaps(txn->claim, txn->trial);
}

static int begin_on_claim(struct stele_txn *txn, struct stele_device *dev,
			  const struct stele_new_image *what)
{
	struct stele_new_image known = *what;
	int ret;

	known.size = txn->claim->image_size;
	known.lost = txn->claim->lost;
	ret = begin_image(txn, dev, &known);
	return ret ? ret : stele_prover_new(&txn->own, &txn->own.prover);
}

int stele_txn_on_claim(struct stele_txn *txn, struct stele_claim *claim,
		       const struct stele_new_image *what, const struct stele_log *log)
{
	int ret;

	*txn = (struct stele_txn){.log = *log, .time = what->time, .claim = claim};
	if (!needs_trial(claim)) {
		ret = stele_claim_take(claim);
		return ret ? ret : begin_on_claim(txn, claim->dev, what);
	}
	ret = open_trial(txn);
	if (ret == 0)
		ret = begin_on_claim(txn, txn->trial, what);
	txn->dry = false;
	return ret;
}

static void close_trial(struct stele_txn *txn)
{
	stele_device_close(txn->trial);
	txn->trial = NULL;
}

/* Whatever was tried there, such as to make it larger, is forgotten with it. */
static void leave_trial(struct stele_txn *txn)
{
	stele_txn_release_catalog(txn);
	stele_extents_release(&txn->used);
	txn->old_target_size = 0;
	txn->reserved = false;
	txn->own.dev = NULL;
	stele_image_release(&txn->own);
	close_trial(txn);
	txn->own.dev = txn->claim->dev;
}

int stele_txn_overwrite(struct stele_txn *txn)
{
	const struct stele_superblock sb = txn->own.sb;
	const struct stele_new_image what = {
		.uuid = sb.uuid, .label = sb.label, .time = sb.create_time};
	const enum stele_txn_state state = txn->state;
	const bool posix = txn->posix;
	int ret;

	if (!txn->trial)
		return 0;
	leave_trial(txn);
	ret = stele_claim_take(txn->claim);
	if (ret == 0)
		ret = begin_on_claim(txn, txn->claim->dev, &what);
	txn->posix = posix;
	txn->state = ret ? STELE_TXN_FAILED : state;
	return ret;
}

/* Who may write has been asked: from here on it is read, and hinders nobody. */
static int open_rehearsal(const char *text, const char *backend,
			  const struct stele_log *log, struct stele_device **dev)
{
	struct stele_target unused = {0};
	int ret = stele_target_open(text, true, backend, log, &unused, dev);

	stele_target_release(&unused);
	return ret < 0 ? ret : stele_rehearsal_open(*dev, dev);
}

static int begin(struct stele_txn *txn, const char *text, uint32_t branch,
		 bool dry, const char *backend, const struct stele_log *log)
{
	struct stele_device *dev;
	int ret;

	memset(txn, 0, sizeof(*txn));
	txn->branch = branch;
	if (log)
		txn->log = *log;
	ret = resolve(txn, text);
	if (ret == 0)
		ret = open_device(txn, backend, &dev);
	if (ret == 0 && dry) {
		stele_device_close(dev);
		ret = open_rehearsal(text, backend, log, &dev);
	}
	return ret < 0 ? ret : stele_txn_on_device(txn, dev, log);
}

int stele_txn_begin(struct stele_txn *txn, const char *text, bool dry,
		    const char *backend, const struct stele_log *log)
{
	return begin(txn, text, 0, dry, backend, log);
}

int stele_txn_begin_branch(struct stele_txn *txn, const char *text, uint32_t branch,
			 bool dry, const char *backend, const struct stele_log *log)
{
	return begin(txn, text, branch, dry, backend, log);
}

int stele_txn_look(struct stele_txn *txn, const char *text, const char *backend,
		   const struct stele_log *log)
{
	struct stele_device *dev;
	int ret;

	*txn = (struct stele_txn){.log = *log, .looks = true};
	ret = resolve(txn, text);
	if (ret == 0)
		ret = open_rehearsal(text, backend, log, &dev);
	return ret < 0 ? ret : stele_txn_on_device(txn, dev, log);
}

static void drop_changes(struct stele_txn *txn)
{
	stele_addition_free(txn);
	stele_spool_free(txn->spool);
	txn->spool = NULL;
	stele_rbd_snaps_release(&txn->tombstones);
	stele_txn_release_catalog(txn);
	stele_extents_release(&txn->used);
	if (txn->image && txn->image->dev)
		stele_txn_give_back(txn);
	txn->freed_size = txn->old_target_size = 0;
	txn->reserved = txn->takes = false;
}

int stele_txn_restart(struct stele_txn *txn)
{
	drop_changes(txn);
	return start(txn);
}

bool stele_txn_is_forked(const struct stele_txn *txn)
{
	return txn->image && txn->fork_count != stele_fork_count();
}

/* What it has on the target is of use to the process that it belongs to. */
static void leave_target(struct stele_txn *txn)
{
	stele_intent_forget(txn->image->dev);
	txn->old_target_size = 0;
	txn->reserved = false;
}

void stele_txn_release(struct stele_txn *txn)
{
	const bool forked = stele_txn_is_forked(txn);
	const bool whole = txn->image && txn->image->sb.state == STELE_STATE_READY;

	if (forked)
		leave_target(txn);
	drop_changes(txn);
	if (txn->borrowed)
		txn->own.dev = NULL;
	if (txn->image == &txn->own) {
		stele_intent_end(txn->own.dev);
		stele_image_release(&txn->own);
	}
	close_trial(txn);
	if (txn->claim)
		stele_claim_drop(txn->claim,
				 !forked && (!whole || txn->claim->beside));
	free(txn->claim);
	stele_target_release(&txn->target);
	memset(txn, 0, sizeof(*txn));
}

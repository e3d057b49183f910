/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.c - ask, open, and look: nothing is overwritten yet
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/block.h"
#include "lib/base/error.h"
#include "lib/device/backends.h"
#include "lib/device/guard.h"
#include "lib/device/name.h"
#include "lib/device/rehearsal.h"
#include "lib/device/target.h"
#include "lib/image/image.h"
#include "lib/node/mapping.h"

#define OPEN_TRIES 4 /* while others create the target, and remove it */

int stele_claim_check_mapped(const struct stele_claim *claim)
{
	char name[STELE_NAME_SIZE_MAX + 1];
	struct stele_mapping mapping;
	int ret = stele_mapping_of(claim->path, name);

	if (ret > 0) {
		stele_log_error(&claim->log,
				"'%s' is mapped as '%s'; unmap it first",
				claim->path, name);
		return -EBUSY;
	}
	if (ret < 0 || strchr(claim->path, '/'))
		return ret;
	if (stele_mapping_load(claim->path, NULL, &mapping) < 0)
		return 0;
	stele_log_error(&claim->log,
			"'%s' is a mapping of '%s'; a file of that name is './%s'",
			claim->path, mapping.info.target, claim->path);
	stele_mapping_release(&mapping);
	return -EBUSY;
}

/* A path may lead elsewhere than a moment ago. */
static int check_same(const struct stele_claim *claim, const struct stat *now,
		      const struct stat *asked)
{
	if (claim->created ||
	    (now->st_dev == asked->st_dev && now->st_ino == asked->st_ino &&
	     now->st_rdev == asked->st_rdev))
		return 0;
	stele_log_error(&claim->log,
			"'%s' has become another file or device meanwhile",
			claim->path);
	return -EBUSY;
}

/* To what is not there, as the caller knows. */
static bool is_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

/* Some filesystems, such as that of /proc, have directories where no file can be made. */
static void log_no_directory(const struct stele_claim *claim)
{
	const char *slash = strrchr(claim->path, '/');
	const int size = !slash ? 1 : slash > claim->path ? (int)(slash - claim->path) : 1;
	char *dir = strndup(slash ? claim->path : ".", (size_t)size);

	stele_log_error(&claim->log, "cannot create '%s': %s '%.*s'", claim->path,
			dir && access(dir, F_OK) == 0 ? "no file can be made in" :
							"no directory",
			size, slash ? claim->path : ".");
	free(dir);
}

/*
 * `asked`: what was there when the guard was asked; zeros: nothing. Return: as stele_claim_open();
 * -EEXIST (somebody else was faster to create it, or to lock it; not logged).
 */
static int open_file(struct stele_claim *claim, const char *backend,
		     const struct stat *asked)
{
	const unsigned int flags = STELE_DEVICE_WRITE | STELE_DEVICE_EXCL;
	int ret = stele_device_open_patiently(claim->path, flags, backend,
					      &claim->log, &claim->dev);
	const char *verb = "open";
	struct stat st;

	if (ret == -ENOENT && is_link(claim->path)) {
		stele_log_error(&claim->log, "cannot create '%s': it is a symbolic "
				"link to what does not exist", claim->path);
		return ret;
	}
	if (ret == -ENOENT && claim->dry) {
		ret = stele_backend_check(backend, &claim->log);
		if (!ret)
			ret = stele_rehearsal_create(claim->path, 0, 0, &claim->log,
						     &claim->dev);
		claim->created = claim->regular = !ret;
		if (ret != -ENODEV)
			verb = "create";
	} else if (ret == -ENOENT) {
		ret = stele_device_open_file(claim->path,
					     flags | STELE_DEVICE_CREATE,
					     backend, &claim->log, &claim->dev);
		claim->created = !ret;
		if (ret == -EEXIST || ret == -EBUSY)
			return -EEXIST;
		if (ret != -ENODEV)
			verb = "create";
	}
	if (ret == -ENOENT) {
		log_no_directory(claim);
		return ret;
	}
	if (ret == -EBUSY && stele_file_is_open_here(claim->path)) {
		stele_log_error(&claim->log, "'%s' is in use: this process has it open; "
				"close that dataset or writer first",
				claim->path);
		return ret;
	}
	/* Who looks for a backend says why, and which ones there are. */
	if (ret == -EOPNOTSUPP || ret == -EINVAL)
		return ret;
	if (ret < 0) {
		stele_log_error(&claim->log, "cannot %s '%s': %s", verb,
				claim->path,
				ret == -ENODEV ? "no such device" :
						 stele_error_describe(ret));
		return ret;
	}
	if (claim->dev->dry)
		return 0;
	if (fstat(stele_device_fd(claim->dev), &st) < 0)
		return -errno;
	if (!asked->st_ino && !claim->created) {
		stele_device_close(claim->dev);
		claim->dev = NULL;
		return -EEXIST;
	}
	ret = check_same(claim, &st, asked);
	if (ret < 0)
		return ret;
	claim->regular = S_ISREG(st.st_mode);
	return stele_device_size(claim->dev, &claim->size);
}

/* As open_file(), of what is in nobody's use. */
static int open_unused(struct stele_claim *claim, const char *backend)
{
	struct stat asked;
	int ret;

	if (stat(claim->path, &asked) < 0)
		memset(&asked, 0, sizeof(asked));
	ret = stele_guard_in_use(claim->path, &claim->log);
	if (!ret)
		ret = stele_claim_check_mapped(claim);
	return ret ? ret : open_file(claim, backend, &asked);
}

/*
 * Of an image that is open here alone it is to be said first that it is one: to close it would
 * not help. Return: 0; -EEXIST (logged).
 */
static int check_open_here(struct stele_claim *claim, const char *backend)
{
	struct stele_device *dev;
	struct stele_image image;
	int ret = 0;

	if (claim->force || claim->copy_of || !stele_file_is_open_here(claim->path) ||
	    stele_guard_in_use(claim->path, NULL) ||
	    stele_device_open(claim->path, NULL, 0, backend, NULL, &dev) < 0)
		return 0;
	if (!stele_image_probe(dev, NULL, true, &image)) {
		ret = stele_claim_refuse_image(claim, &image);
		image.dev = NULL; /* closed below */
		stele_image_release(&image);
	}
	stele_device_close(dev);
	return ret;
}

static int open_target(struct stele_claim *claim,
		       const struct stele_claim_opts *opts)
{
	int ret = claim->rbd ? stele_claim_check_mapped(claim) :
			       check_open_here(claim, opts->backend);

	if (ret || claim->rbd)
		return ret ? ret : stele_claim_open_rbd(claim, opts);
	ret = -EEXIST;
	/* What somebody else has just created is looked at like all that was there before. */
	for (int i = 0; i < OPEN_TRIES && ret == -EEXIST; i++)
		ret = open_unused(claim, opts->backend);
	if (ret != -EEXIST)
		return ret;
	stele_log_error(&claim->log, "'%s' is in use: it comes and goes", claim->path);
	return -EBUSY;
}

/* By who came no further: it is lost all the same. */
static void inherit_lost(struct stele_claim *claim)
{
	const char *lost = stele_copies_lost(&claim->seen);

	if (lost)
		snprintf(claim->lost, sizeof(claim->lost), "%s", lost);
}

static void refuse_damaged(const struct stele_claim *claim, int error)
{
	stele_log_emit(&claim->log,
		       claim->force ? STELE_LOG_WARNING : STELE_LOG_ERROR,
		       "'%s' holds %s%s: %s", claim->path,
		       stele_copies_elsewhere(&claim->seen) ?
			       "what is left of a Stele image that begins elsewhere" :
			       "a Stele image that cannot be opened",
		       claim->force ? ", and would be overwritten" : "",
		       stele_strerror(error));
}

static void refuse_cut_short(const struct stele_claim *claim)
{
	stele_log_emit(&claim->log,
		       claim->force ? STELE_LOG_WARNING : STELE_LOG_ERROR,
		       "'%s' holds a Stele image that is larger than it%s: at its full "
		       "size it may be sound",
		       claim->path, claim->force ? ", and would be overwritten" : "");
}

static void refuse_unfinished(const struct stele_claim *claim)
{
	if (!claim->force)
		stele_log_error(&claim->log,
				"'%s' holds an unfinished image, of a build or copy that "
				"was interrupted; nothing of it can be read", claim->path);
}

/* Erased on purpose, or damaged? Who may have been told to restore it is asked. */
static int check_remains(const struct stele_claim *claim)
{
	if (claim->force && !claim->dry)
		return 0;
	if (stele_copies_missing(&claim->seen, claim->size))
		refuse_cut_short(claim);
	else if (stele_image_is_begun(claim->dev))
		refuse_unfinished(claim);
	else if (stele_image_remains(claim->dev))
		stele_log_emit(&claim->log,
			       claim->force ? STELE_LOG_WARNING : STELE_LOG_ERROR,
			       "'%s' seems to hold a Stele image that has lost its "
			       "superblocks%s", claim->path,
			       claim->force ? ", and would be overwritten" : "");
	else
		return 0;
	return claim->force ? 0 : -EEXIST;
}

/* Return: 1 ours; 0 not ours; -EEXIST; errno of the device. */
static int check_image(struct stele_claim *claim)
{
	struct stele_image image;
	int ret = stele_image_probe(claim->dev, claim->force ? NULL : &claim->log, true, &image);

	switch (ret) {
	case 0:
		claim->old = image.sb;
		if (image.catalog.counts.snapshots)
			stele_claim_tell_lost(claim, &image);
		else
			inherit_lost(claim);
		if (claim->copy_of && !claim->force)
			ret = -EEXIST; /* made since the copy looked: it goes on with it */
		else if (!claim->force || claim->dry)
			ret = stele_claim_refuse_image(claim, &image);
		image.dev = NULL; /* the claim's */
		stele_image_release(&image);
		return ret < 0 ? ret : 1;
	case -EMEDIUMTYPE:
		return 0;
	case -ENODATA:
		if (!claim->force || claim->dry)
			refuse_cut_short(claim);
		return claim->force ? 1 : -EEXIST;
	case -EINPROGRESS:
		inherit_lost(claim);
		refuse_unfinished(claim);
		return claim->force ? 1 : -EEXIST;
	case -ENOTUNIQ:
	case -EBADMSG:
	case -EUCLEAN:
	case -EOPNOTSUPP:
		if (!claim->force || claim->dry)
			refuse_damaged(claim, ret);
		return claim->force ? 1 : -EEXIST;
	default:
		stele_log_error(&claim->log, "cannot read '%s': %s",
				claim->path, stele_strerror(ret));
		return ret;
	}
}

static void warn(void *user, enum stele_log_level level, const char *line)
{
	const struct stele_claim *claim = user;

	(void)level;
	stele_log_warning(&claim->log, "'%s' would be overwritten: %s",
			  claim->path, line);
}

/*
 * What force erases; a dry run says so. What libblkid cannot read it cannot erase, either,
 * and would say so when the old image is gone: it is asked before anything is written.
 */
static int check_erasable(struct stele_claim *claim)
{
	const struct stele_log log = {.fn = warn, .user = claim};
	char table[STELE_GUARD_TABLE_SIZE];
	uint64_t begin;
	int ret = stele_guard_signatures(claim->dev, claim->old.uuid, NULL);

	if (ret == -EEXIST && claim->dry && !claim->ours) {
		stele_guard_signatures(claim->dev, NULL, &log);
		if (stele_image_on_partition(claim->dev, &begin, table))
			stele_log_warning(&claim->log, "'%s' would be overwritten: a Stele image "
					  "is in the partition that begins at byte %" PRIu64,
					  claim->path, begin);
	}
	if (ret >= 0 || ret == -EEXIST || claim->rbd || stele_claim_wants_beside(claim))
		return 0;
	stele_log_error(&claim->log, "cannot tell what '%s' carries: %s", claim->path,
			stele_strerror(ret));
	return ret;
}

/*
 * Force answers for what the target held, not for a sample, also one that it is a loop device
 * over. A file that is all hole is none.
 */
static int check_source(const struct stele_claim *claim)
{
	int ret;

	if (!claim->of_source || claim->ours)
		return 0;
	ret = stele_guard_signatures(claim->dev, NULL, NULL);
	if (ret != -EEXIST && claim->regular)
		return 0;
	stele_log_error(&claim->log, "'%s' %s a file of the source, which the image would %s",
			claim->path, claim->regular ? "is" : "shares bytes with",
			claim->regular ? "replace" : "overwrite");
	return -EINVAL;
}

/*
 * Swap space or a partition table leaves most of an older image alone, so a
 * device that seems to hold one is asked for signatures, too: they are newer.
 */
static int check_content(struct stele_claim *claim)
{
	int ret = stele_copies_read(claim->dev, &claim->seen), found;

	if (ret < 0 || claim->size == 0)
		return ret;
	if (claim->created && claim->dry)
		return 0;
	/* Too small for the last superblock copy: none of ours. */
	if (!ret && claim->size >= STELE_DATA_OFFSET)
		ret = check_image(claim);
	claim->ours = ret > 0;
	if (!ret)
		ret = check_remains(claim);
	if (ret < 0 && (claim->force || ret != -EEXIST || claim->regular))
		return ret;
	found = check_source(claim);
	if (found)
		return found;
	if (claim->force)
		return check_erasable(claim);
	found = stele_guard_signatures(claim->dev, claim->old.uuid, &claim->log);
	return !ret || (found < 0 && found != -EEXIST) ? found : ret;
}

static int check_size(struct stele_claim *claim, uint64_t needed,
		      uint64_t file_size)
{
	uint64_t size = claim->size;

	if (file_size && !claim->regular && !claim->rbd) {
		stele_log_error(&claim->log,
				"'%s' is a device: its size is not ours to set",
				claim->path);
		return -EINVAL;
	}
	if (!is_aligned(file_size, STELE_BLOCK_SIZE)) {
		stele_log_error(&claim->log,
				"file size %" PRIu64 " is no multiple of %u",
				file_size, STELE_BLOCK_SIZE);
		return -EINVAL;
	}
	if (claim->regular)
		size = file_size ? file_size : needed;
	else if (file_size)
		size = file_size;
	if (size > STELE_IMAGE_SIZE_MAX)
		size = STELE_IMAGE_SIZE_MAX;
	claim->image_size = round_down(size, STELE_BLOCK_SIZE);
	if (claim->image_size >= needed)
		return 0;
	stele_log_error(&claim->log,
			"'%s' %s %" PRIu64 " bytes, the image needs %" PRIu64,
			claim->path, file_size ? "would have" : "has", claim->image_size, needed);
	return -ENOSPC;
}

/* All has been asked: from here on it is read, and hinders nobody. */
static int rehearse(struct stele_claim *claim, const char *backend)
{
	int ret;

	if (claim->dev->dry)
		return 0;
	if (stele_claim_wants_beside(claim)) {
		ret = stele_claim_begin_beside(claim);
		stele_device_close(claim->replaced);
		claim->replaced = NULL;
		return ret;
	}
	stele_device_close(claim->dev);
	claim->dev = NULL;
	ret = stele_device_open(claim->path, NULL, 0, backend, &claim->log,
				&claim->dev);
	return ret < 0 ? ret : stele_rehearsal_open(claim->dev, &claim->dev);
}

int stele_claim_open(struct stele_claim *claim, const char *path,
		     const struct stele_claim_opts *opts,
		     const struct stele_log *log)
{
	int ret;

	*claim = (struct stele_claim){.path = path,
				      .log = *log,
				      .rbd = stele_path_is_rbd(path),
				      .needed = opts->needed,
				      .dry = opts->dry,
				      .backend = opts->backend,
				      .replace = opts->replace,
				      .of_source = opts->of_source,
				      .copy_of = opts->copy_of,
				      .copy_from = opts->copy_from,
				      .force = opts->force};
	ret = open_target(claim, opts);
	if (!ret && !claim->created)
		ret = stele_file_check_sources(claim->dev, path, opts->sources, log);
	if (!ret)
		ret = check_content(claim);
	if (!ret && claim->rbd)
		ret = stele_claim_check_snaps(claim, opts->snapshot);
	if (!ret)
		ret = check_size(claim, opts->needed, opts->file_size);
	return ret || !claim->dry ? ret : rehearse(claim, opts->backend);
}

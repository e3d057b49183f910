/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - recovery: which superblock and which catalog are the image
 *
 * Nothing is written here. A copy left by an older or newer Stele is judged
 * only by its contents; among the ready ones, and the witnesses of what has no copy, the
 * highest generation whose catalog decodes wins. An unfinished copy only says that nothing is
 * there yet.
 */
#include "lib/image/image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/decode.h"
#include "lib/device/guard.h"
#include "lib/image/catalog.h"
#include "lib/image/copies.h"
#include "lib/image/fork.h"
#include "lib/image/machine.h"
#include "lib/image/proof.h"

/* The most specific of several reasons; 4: not about the contents. */
static int error_rank(int error)
{
	switch (error) {
	case -EMEDIUMTYPE:
		return 1;
	case -EBADMSG:
		return 2;
	case -EUCLEAN:
		return 3;
	case -EOPNOTSUPP:
		return 5;
	default:
		return error ? 4 : 0;
	}
}

static int worse(int a, int b)
{
	return error_rank(a) >= error_rank(b) ? a : b;
}

static void log_copies(const struct stele_copies *copies, bool refused,
		       const struct stele_log *log)
{
	enum stele_log_level level = refused ? STELE_LOG_ERROR :
					       STELE_LOG_WARNING;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (i < STELE_SUPERBLOCK_COPIES ? copy->error < 0 : copy->error == -EOPNOTSUPP)
			stele_log_emit(log, level,
				       "superblock copy %u at byte %" PRIu64
				       " cannot be used%s: %s", i, copy->offset,
				       refused || !copies->good ? "" : ", others can",
				       copy->why);
	}
}

static bool is_device_error(int error)
{
	return error_rank(error) == 4;
}

/* The best ready superblock with a generation below `limit`, or -1. */
static int best_below(const struct stele_copies *copies, uint64_t limit)
{
	uint64_t best = 0;
	int index = -1;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (copy->error == 0 && copy->sb.generation > best &&
		    copy->sb.generation < limit) {
			best = copy->sb.generation;
			index = (int)i;
		}
	}
	return index;
}

/*
 * Return: 0 if one of them may be used. A damaged slot may result from a crash;
 * one that the device cannot read, or that a newer Stele wrote, may hold
 * the newest generation, so that an older one would be wrong.
 */
static int judge_copies(const struct stele_copies *copies,
			const struct stele_log *log)
{
	const struct stele_copy *copy = copies->copy;
	bool unreadable = false;
	int error = 0;

	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++)
		if (i < STELE_SUPERBLOCK_COPIES || copy[i].error == -EOPNOTSUPP)
			error = worse(error, copy[i].error);
	for (unsigned int slot = 0; slot < 2; slot++)
		unreadable |= is_device_error(copy[slot].error) &&
			      is_device_error(copy[slot + 2].error);
	if ((copies->good || stele_copies_has_witness(copies)) && !unreadable &&
	    error != -EOPNOTSUPP)
		error = 0;
	/* Of an image that is still being made some are not there yet. */
	if (error != -EMEDIUMTYPE &&
	    (error || copies->doubt || best_below(copies, UINT64_MAX) >= 0))
		log_copies(copies, error < 0, log);
	if (error == -EUCLEAN && stele_copies_elsewhere(copies))
		stele_log_error(log, "these are blocks of a Stele image that begins elsewhere: on "
				     "the whole disk, if this is a partition of it");
	else if (error == -EBADMSG || error == -EUCLEAN)
		stele_log_error(log, "all superblocks of the Stele image are damaged");
	return error;
}

static bool is_fork(const struct stele_copies *copies, uint64_t generation,
		    const struct stele_log *log)
{
	unsigned int a, b;

	if (!stele_copies_fork(copies, generation, &a, &b))
		return false;
	stele_log_warning(log,
			  "superblock copies %u at %" PRIu64 " and %u at %" PRIu64
			  " have the same generation %" PRIu64 " but differ: two "
			  "writers published at once; only what both branches "
			  "share can be read ('stele repair' shows them)",
			  a, copies->copy[a].offset, b, copies->copy[b].offset,
			  generation);
	return true;
}

/* `held`: for what counts only if no other generation can be used. */
static int read_catalog(struct stele_device *dev, const struct stele_log *log,
			const struct stele_log *held, const struct stele_superblock *sb,
			struct stele_image *image)
{
	const char *why;
	int ret = stele_catalog_load(dev, sb, &image->catalog_blocks, &image->catalog, &why);

	image->mirrored = ret == 0 && why;
	if (image->mirrored)
		stele_log_warning(log,
				  "catalog of generation %" PRIu64 " at byte %" PRIu64
				  " cannot be used: %s; its mirror at byte %" PRIu64 " can",
				  sb->generation, sb->catalog_offset, why, sb->mirror_offset);
	else if (ret < 0)
		stele_log_error(held,
				"catalog of generation %" PRIu64 " at byte %" PRIu64
				" cannot be used: %s",
				sb->generation, sb->catalog_offset, why);
	/* The superblock has our magic: this is a damaged image of ours. */
	return ret == -EMEDIUMTYPE ? -EBADMSG : ret;
}

/* Where the newest generation is damaged, nobody may take the one before for it unawares. */
static int load_fork(struct stele_device *dev, const struct stele_log *log,
		     const struct stele_copies *copies, uint64_t generation,
		     struct stele_image *image)
{
	int ret;

	free(image->catalog_blocks);
	image->catalog_blocks = NULL;
	ret = stele_fork_load(dev, log, copies, generation, image);
	if (ret == 0 && image->fork->lost)
		stele_log_warning(log,
				  "generation %" PRIu64 " %s: falling back to generation %" PRIu64
				  "; snapshots made since%s are missing ('stele repair' shows %s)",
				  image->fork->lost, stele_fork_fate(image->fork), generation,
				  image->fork->doubt ? ", if any," : "",
				  image->fork->doubt ? "what is left" : "both");
	return ret;
}

/* Of every generation that was published. */
static void log_no_catalog(int error, const struct stele_log *log)
{
	if (error == -EBADMSG || error == -EUCLEAN)
		stele_log_error(log, "the Stele image has no sound catalog left");
}

static int check_size(const struct stele_superblock *sb, uint64_t target_size,
		      const struct stele_log *log)
{
	if (sb->image_size <= target_size)
		return 0;
	stele_log_error(log,
			"image has %" PRIu64 " bytes, but its target only %" PRIu64,
			sb->image_size, target_size);
	return -ENODATA;
}

/* Who said on the target that it writes, and has not ended? */
static bool read_writer(struct stele_device *dev, uint64_t offset,
			struct stele_intent_record *out)
{
	void *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	bool found = block &&
		     !stele_device_read(dev, block, offset, STELE_BLOCK_SIZE) &&
		     !stele_intent_decode(block, offset, out, NULL) &&
		     !bytes_zero(out->nonce, sizeof(out->nonce));

	free(block);
	return found;
}

static void log_lost(const struct stele_copies *copies, const char *what,
		     enum stele_log_level level, const struct stele_log *log)
{
	const char *lost = stele_copies_lost(copies);

	if (lost)
		stele_log_emit(log, level, "%s: it has overwritten %s", what, lost);
}

/*
 * What became of who was writing the image, which is `what`; `otherwise`: nobody is known, or
 * he is gone, and that (`over`) explains nothing.
 */
static void log_writer(struct stele_device *dev, const char *what, const char *otherwise,
		       bool over, enum stele_log_level level, const struct stele_log *log)
{
	struct stele_intent_record *writer = calloc(1, sizeof(*writer));
	char by[STELE_MACHINE_TEXT_SIZE];

	if (writer && (read_writer(dev, STELE_INTENT_OFFSET, writer) ||
		       read_writer(dev, STELE_INTENT_TURN_OFFSET, writer))) {
		stele_machine_describe(writer, by, sizeof(by));
		switch (stele_machine_runs(writer)) {
		case STELE_RUNNING_YES:
			stele_log_emit(log, level, "%s: being written by %s", what, by);
			break;
		case STELE_RUNNING_UNKNOWN:
			stele_log_emit(log, level, "%s: %s may still be writing it", what, by);
			break;
		default:
			if (over)
				stele_log_emit(log, level, "%s: %s", what, otherwise);
			else
				stele_log_emit(log, level, "%s: %s was interrupted", what, by);
		}
	} else {
		stele_log_emit(log, level, "%s: %s", what, otherwise);
	}
	free(writer);
}

/*
 * There is no image yet; or -ENODATA: what a slot beyond the end said of it is cut off; or
 * -EBADMSG: what it said is damaged.
 */
static int refuse_unfinished(struct stele_device *dev,
			     const struct stele_copies *copies,
			     uint64_t target_size, const struct stele_log *log)
{
	static const char what[] = "unfinished image";

	/* Where all four say so, a build has cut the file to what it needs itself. */
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		if (copies->good < STELE_SUPERBLOCK_COPIES && !copies->copy[i].error &&
		    check_size(&copies->copy[i].sb, target_size, log))
			return -ENODATA;
	if (copies->doubt) {
		stele_log_error(log, "both superblocks in slot 1 are damaged: whether a build was "
				     "interrupted or an image is lost cannot be told");
		return -EBADMSG;
	}
	log_lost(copies, what, STELE_LOG_ERROR, log);
	log_writer(dev, what, "its build was interrupted", false, STELE_LOG_ERROR, log);
	return -EINPROGRESS;
}

void stele_image_log_empty(const struct stele_image *image, enum stele_log_level level,
			   const struct stele_log *log)
{
	static const char what[] = "empty image";
	const bool deleted = image->catalog.counts.deleted;
	const char *none = deleted ? "it has no snapshots but those that can be undeleted" :
				     "it has no snapshots";

	log_lost(&image->copies, what, level, log);
	if (image->dev->writable) /* the writer is this one */
		stele_log_emit(log, level, "%s: %s", what, none);
	else
		log_writer(image->dev, what, none, deleted, level, log);
}

/*
 * Use the best ready superblock whose catalog decodes. *passed: why a better one was
 * skipped or may be lost, or 0. That one was published: its catalog was durable before any
 * superblock was written.
 */
static int select_copy(struct stele_device *dev, const struct stele_log *log,
		       const struct stele_copies *copies,
		       struct stele_image *image, int *passed)
{
	struct stele_log_held held;
	uint64_t target_size;
	int error = 0;
	int ret, i;

	ret = stele_device_size(dev, &target_size);
	if (ret < 0)
		return ret;
	if (copies->doubt)
		*passed = -EBADMSG;
	stele_log_hold(&held, log);
	for (i = best_below(copies, UINT64_MAX); i >= 0;
	     i = best_below(copies, copies->copy[i].sb.generation)) {
		const struct stele_superblock *sb = &copies->copy[i].sb;

		ret = is_fork(copies, sb->generation, log) ? -ENOTUNIQ :
							     check_size(sb, target_size, log);
		if (ret == 0)
			ret = read_catalog(dev, log, &held.log, sb, image);
		image->sb = *sb;
		image->slot = stele_copies_slot(copies, (unsigned int)i);
		if (ret == -ENOTUNIQ || (ret == 0 && *passed))
			ret = load_fork(dev, log, copies, sb->generation, image);
		if (ret == 0 || is_device_error(ret))
			break;
		*passed = error = worse(error, ret);
	}
	stele_log_end(&held, i < 0 || ret < 0);
	if (i >= 0)
		return ret;
	if (!error)
		return refuse_unfinished(dev, copies, target_size, log);
	log_no_catalog(error, log);
	return error;
}

/* ---- an image that changes meanwhile --------------------------------------- */

/* Has somebody committed since these were read? */
static bool has_changed(struct stele_device *dev,
			const struct stele_copies *copies)
{
	struct stele_copies now;

	if (stele_copies_read(dev, &now) < 0)
		return false;
	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++)
		if (now.copy[i].error != copies->copy[i].error ||
		    now.copy[i].sb.generation != copies->copy[i].sb.generation ||
		    now.copy[i].sb.catalog_crc != copies->copy[i].sb.catalog_crc)
			return true;
	return false;
}

bool stele_image_changed(const struct stele_image *image)
{
	struct stele_copies copies;

	return stele_copies_read(image->dev, &copies) == 0 &&
	       copies.generation_max != image->generation_max;
}

/*
 * `alone`: a witness will do where no copy is left. Return: as load; -EAGAIN: the data read
 * mixes two states of the image.
 */
static int load_once(struct stele_device *dev, const struct stele_log *log, bool alone,
		     struct stele_image *out)
{
	struct stele_copies copies;
	int passed = 0;
	int ret;

	ret = stele_copies_read(dev, &copies);
	if (ret < 0)
		return ret;
	if (!copies.good && !alone)
		stele_copies_forget_witnesses(&copies);
	ret = judge_copies(&copies, log);
	if (ret == 0)
		ret = select_copy(dev, log, &copies, out, &passed);
	if ((passed || out->fork || out->mirrored) && has_changed(dev, &copies)) {
		free(out->catalog_blocks);
		stele_fork_free(out->fork);
		ret = -EAGAIN;
	}
	if (ret < 0)
		return ret;
	out->copies = copies;
	out->generation_max = copies.generation_max;
	out->copies_good = copies.good;
	return 0;
}

/*
 * A catalog is not overwritten while a superblock refers to it. But a reader
 * with a superblock may be so late that two commits have passed.
 */
static int recover(struct stele_device *dev, const struct stele_log *log, bool alone,
		   struct stele_image *out)
{
	int ret = -EAGAIN;

	for (unsigned int i = 1; i <= STELE_LOAD_TRIES && ret == -EAGAIN; i++) {
		struct stele_log_held held;

		memset(out, 0, sizeof(*out));
		stele_log_hold(&held, log);
		ret = load_once(dev, &held.log, alone, out);
		stele_log_end(&held, ret != -EAGAIN || i == STELE_LOAD_TRIES);
	}
	if (ret == -EAGAIN)
		ret = -EBUSY;
	if (ret < 0) {
		memset(out, 0, sizeof(*out));
		return ret;
	}
	out->dev = dev;
	if (log)
		out->log = *log;
	return 0;
}

int stele_image_probe(struct stele_device *dev, const struct stele_log *log, bool alone,
		      struct stele_image *out)
{
	return recover(dev, log, alone, out);
}

static bool is_ours(struct stele_device *dev, void *block, uint64_t offset)
{
	const struct stele_disk_block *header = block;

	return !stele_device_read(dev, block, offset, STELE_BLOCK_SIZE) &&
	       !memcmp(header->magic, STELE_BLOCK_MAGIC, sizeof(header->magic)) &&
	       le64_get(header->offset) == offset &&
	       le32_get(header->crc) == stele_block_crc(header);
}

uint64_t stele_image_remains(struct stele_device *dev)
{
	static const uint64_t places[] = {STELE_INTENT_TURN_OFFSET, STELE_INTENT_OFFSET,
					  STELE_DATA_OFFSET};
	static const uint64_t catalogs[] = STELE_CATALOG_MIRRORS;
	const size_t count = sizeof(places) / sizeof(places[0]);
	void *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	uint64_t found = 0;

	for (size_t i = 0; block && !found && i < count + STELE_WITNESSES; i++) {
		const uint64_t at = i < count ? places[i] : catalogs[i - count];

		if (is_ours(dev, block, at))
			found = at;
	}
	free(block);
	return found;
}

bool stele_image_is_begun(struct stele_device *dev)
{
	static const uint64_t places[] = {STELE_INTENT_OFFSET, STELE_INTENT_TURN_OFFSET};
	struct stele_intent_record *writer = calloc(1, sizeof(*writer));
	void *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	bool found = false;

	for (size_t i = 0; writer && block && !found && i < 2; i++)
		found = read_writer(dev, places[i], writer) && writer->generation == 1;
	found = found && !is_ours(dev, block, STELE_DATA_OFFSET);
	free(block);
	free(writer);
	return found;
}

bool stele_image_on_partition(struct stele_device *dev, uint64_t *begin,
			      char table[STELE_GUARD_TABLE_SIZE])
{
	uint64_t begins[STELE_PARTITIONS_MAX];
	unsigned int count = stele_guard_partitions(dev, begins, STELE_PARTITIONS_MAX, table);
	const unsigned int found = stele_copies_find_partition(dev, begins, count);

	if (found < count)
		*begin = begins[found];
	return found < count;
}

/* A table that the image may be behind. */
static void log_partitions(struct stele_device *dev, const struct stele_log *log)
{
	char table[STELE_GUARD_TABLE_SIZE];
	uint64_t begin;

	if (!log) /* nobody would hear of them */
		return;
	if (stele_image_on_partition(dev, &begin, table))
		stele_log_error(log, "no Stele image there, but a partition table (%s), and "
				"an image in the partition that begins at byte %" PRIu64
				": name that", table, begin);
	else if (*table)
		stele_log_error(log, "no Stele image there, but a partition table (%s): name the "
				"partition that the image is on", table);
}

int stele_image_load(struct stele_device *dev, const struct stele_log *log,
		     struct stele_image *out)
{
	int ret = recover(dev, log, true, out);
	uint64_t left = ret == -EMEDIUMTYPE ? stele_image_remains(dev) : 0;

	if (ret == -EMEDIUMTYPE && !left)
		log_partitions(dev, log);
	if (!left)
		return ret;
	if (stele_image_is_begun(dev)) {
		log_writer(dev, "unfinished image", "its build was interrupted",
			   false, STELE_LOG_ERROR, log);
		return -EINPROGRESS;
	}
	stele_log_error(log,
			"all four superblocks of a Stele image are gone, but its block "
			"at %" PRIu64 " is left", left);
	return -EBADMSG;
}

void stele_image_release(struct stele_image *image)
{
	stele_prover_free(image->prover);
	stele_device_close(image->dev);
	free(image->catalog_blocks);
	stele_fork_free(image->fork);
	memset(image, 0, sizeof(*image));
}

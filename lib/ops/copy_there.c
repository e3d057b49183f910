/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_there.c - a segment that the target of a copy has: is it this one, and can it be used?
 *
 * What a snapshot there has is that snapshot's to keep sound. What none has was checked when
 * it was sent, and has lain about since: it is read again before one uses it, be it a whole
 * segment or samples of one that are deleted in all of them.
 */
#include "lib/ops/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"
#include "lib/image/key_list.h"
#include "lib/image/section.h"
#include "lib/segment/segment_copy.h"

#define NAME_SIZE  256 /* of a sample in a message; keys may be longer */
#define USERS_SIZE 512 /* of names of snapshots in a message */

/* But for their places: is one descriptor what the other one is? */
static bool same_descriptor(const struct stele_segment *a,
			    const struct stele_segment *b)
{
	const size_t place = offsetof(struct stele_disk_descriptor, offset);
	const struct stele_descriptor *x = &a->descriptor, *y = &b->descriptor;

	if (x->block_count != y->block_count)
		return false;
	for (uint64_t i = 0; i < x->block_count; i++) {
		struct stele_disk_block one = x->blocks[i];
		struct stele_disk_block other = y->blocks[i];

		if (i == 0) {
			memset(one.payload + place, 0, sizeof(le64));
			memset(other.payload + place, 0, sizeof(le64));
		}
		if (memcmp(one.payload, other.payload, sizeof(one.payload)))
			return false;
	}
	return true;
}

static const struct stele_txn_ref *find_ref(const struct stele_txn_snapshot *snapshot,
					    uint64_t id)
{
	for (uint32_t i = 0; i < snapshot->info.ref_count; i++)
		if (snapshot->refs[i].segment_id == id)
			return &snapshot->refs[i];
	return NULL;
}

/* "'v1', 'v2' (deleted)": the target's snapshots that use a segment, if there is room. */
static void name_users(const struct stele_txn *txn, uint64_t id, char text[USERS_SIZE])
{
	const uint32_t count = txn->snapshot_count + txn->deleted_count;
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		const char *name = txn->snapshots[i].info.name;

		if (!find_ref(&txn->snapshots[i], id))
			continue;
		if (at + strlen(name) + sizeof(", '' (deleted), ...") > USERS_SIZE) {
			memcpy(text + at, ", ...", sizeof(", ..."));
			return;
		}
		at += (size_t)sprintf(text + at, "%s'%s'%s", at ? ", " : "", name,
				      i < txn->snapshot_count ? "" : " (deleted)");
	}
}

/* The target has a segment of this id. Is it this one? */
static int check_present(struct stele_copier *c,
			 const struct stele_segment *segment,
			 const struct stele_catalog_segment *where)
{
	const uint64_t id = segment->descriptor.id;
	struct stele_segment there;
	char users[USERS_SIZE];
	int ret = stele_segment_load_bare(c->txn->image, where, &there);

	if (ret < 0)
		return ret;
	if (!same_descriptor(segment, &there)) {
		name_users(c->txn, id, users);
		stele_log_error(&c->txn->image->log,
				"the target has another segment of the id %016" PRIx64 ": delete "
				"those that use it (%s), and free it with gc", id, users);
		ret = -EEXIST;
	}
	stele_segment_release(&there);
	return ret;
}

static int look(struct stele_copier *c, const struct stele_segment *segment,
		const struct stele_deleted *only, struct stele_segment_copy *out)
{
	*out = (struct stele_segment_copy){
		.image = c->image,
		.segment = segment,
		.to = c->txn->image->dev,
		.to_offset = stele_txn_segment(c->txn, segment->descriptor.id)->offset,
		.jobs = c->jobs,
		.only_look = true,
		.only = only,
		.progress = stele_copier_progress,
		.progress_user = c,
	};
	return stele_segment_copy(out);
}

/* No snapshot has it. */
static int check_left(struct stele_copier *c, const struct stele_segment *segment)
{
	struct stele_segment_copy seen;
	int ret = look(c, segment, NULL, &seen);

	if (ret == 0)
		c->report->resumed_size += seen.resumed_size;
	if (ret != -ENODATA || !c->staged)
		return ret;
	stele_log_error(&c->txn->image->log,
			"segment %016" PRIx64 " of an interrupted copy is damaged: free it with gc",
			segment->descriptor.id);
	return -EBADMSG;
}

/* ---- deleted in all snapshots ---------------------------------------------- */

/* What of *all is deleted there, too; of the first one, all that is. */
static int narrow(const struct stele_copier *c, const struct stele_txn_ref *ref,
		  uint64_t sample_count, bool first, struct stele_deleted *all)
{
	struct stele_deleted there, both = {0};
	const char *why = "no memory";
	int ret = stele_deleted_load(c->txn->image, &ref->at, sample_count, &there, &why);

	if (ret < 0) {
		stele_log_error(&c->txn->image->log,
				"a deleted list of the target, of segment %016" PRIx64 ": %s",
				ref->segment_id, why);
		stele_deleted_release(&there);
		return ret;
	}
	if (first) {
		*all = there;
		return 0;
	}
	ret = stele_deleted_combine(all, &there, STELE_DELETED_AND, &both);
	stele_deleted_release(&there);
	if (ret < 0)
		return ret;
	stele_deleted_release(all);
	*all = both;
	return 0;
}

/* One that has no list leaves nothing: then none is read. */
static bool has_whole(const struct stele_txn *txn, uint64_t id)
{
	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++) {
		const struct stele_txn_ref *ref = find_ref(&txn->snapshots[i], id);

		if (ref && !ref->at.deleted_count)
			return true;
	}
	return false;
}

/* Those that the copy has, and no snapshot of the target. Release in any case. */
static int find_unused(const struct stele_copier *c, const struct stele_segment *segment,
		       struct stele_deleted *out)
{
	const struct stele_txn *txn = c->txn;
	const uint64_t count = segment->descriptor.sample_count;
	const struct stele_txn_ref *last = NULL;
	struct stele_deleted all = {0};
	int ret = 0;

	if (has_whole(txn, segment->descriptor.id))
		return 0;
	for (uint32_t i = 0; ret == 0 && i < txn->snapshot_count + txn->deleted_count; i++) {
		const struct stele_txn_ref *ref = find_ref(&txn->snapshots[i],
							   segment->descriptor.id);

		if (!ref || (last && !memcmp(last->at.lists, ref->at.lists,
					     sizeof(ref->at.lists))))
			continue;
		ret = narrow(c, ref, count, !last, &all);
		last = ref;
	}
	if (ret == 0)
		ret = stele_deleted_combine(&all, &segment->deleted, STELE_DELETED_ANDNOT, out);
	stele_deleted_release(&all);
	return ret;
}

/* Over a segment that snapshots use nothing is written, so it cannot be sent again. */
static int refuse_damaged(const struct stele_copier *c, const struct stele_segment *segment,
			  uint64_t number)
{
	struct stele_key_list keys = {0};
	char what[NAME_SIZE], users[USERS_SIZE];

	snprintf(what, sizeof(what), "sample #%" PRIu64, number);
	if (!stele_key_list_load(c->image, segment, &number, 1, &keys) && keys.count)
		snprintf(what, sizeof(what), "sample '%.*s'", (int)keys.entries[0].key_size,
			 keys.entries[0].key);
	stele_key_list_release(&keys);
	name_users(c->txn, segment->descriptor.id, users);
	stele_log_error(&c->txn->image->log,
			"%s is damaged on the target, whose snapshots have it deleted: delete "
			"those that use its segment (%s), free it with gc, and copy again",
			what, users);
	return -EBADMSG;
}

static int check_unused(struct stele_copier *c, const struct stele_segment *segment)
{
	struct stele_deleted unused = {0};
	struct stele_segment_copy seen;
	int ret = find_unused(c, segment, &unused);

	if (ret == 0 && unused.count) {
		ret = look(c, segment, &unused, &seen);
		if (ret == -ENODATA) /* or the medium's error, which is logged */
			ret = seen.damaged == UINT64_MAX ?
				      -EIO : refuse_damaged(c, segment, seen.damaged);
	}
	stele_deleted_release(&unused);
	return ret;
}

/* ---- used by snapshots there ------------------------------------------------ */

static int check_ends_of(struct stele_copier *c, const struct stele_segment *there,
			 struct stele_disk_block *block)
{
	const struct stele_descriptor *d = &there->descriptor;
	struct stele_section section;
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < d->section_count; i++) {
		uint64_t last;

		stele_descriptor_section(d, i, &section);
		last = section.size / STELE_BLOCK_SIZE;
		if (!last)
			continue;
		ret = stele_section_read(c->txn->image, there, &section, 0, 1, block);
		if (ret == 0 && last > 1)
			ret = stele_section_read(c->txn->image, there, &section, last - 1, 1,
						 block);
	}
	return ret;
}

/*
 * All of it is read when a snapshot is verified: the price of a copy is that of what is new. The
 * first and last block of each section, the root of the digests among them, tell of a segment
 * that was overwritten or torn.
 */
static int check_ends(struct stele_copier *c, const struct stele_segment *segment)
{
	struct stele_disk_block *block = stele_device_alloc(c->txn->image->dev, STELE_BLOCK_SIZE);
	struct stele_segment there;
	int ret = block ? stele_segment_load_bare(c->txn->image,
						  stele_txn_segment(c->txn,
								    segment->descriptor.id),
						  &there) : -ENOMEM;

	if (ret == 0) {
		ret = check_ends_of(c, &there, block);
		stele_segment_release(&there);
	}
	free(block);
	return ret;
}

void stele_copier_unread(struct stele_copier *c, const struct stele_segment *segment)
{
	c->report->unread_count++;
	c->report->unread_size += segment->descriptor.size;
}

int stele_copier_check(struct stele_copier *c, const struct stele_segment *segment)
{
	const uint64_t id = segment->descriptor.id;
	int ret = check_present(c, segment, stele_txn_segment(c->txn, id));

	if (ret < 0 || !stele_txn_is_committed(c->txn, id))
		return ret; /* what came with this transaction was looked at */
	if (!stele_txn_was_used(c->txn, id))
		return check_left(c, segment);
	ret = check_ends(c, segment);
	if (ret == 0)
		ret = check_unused(c, segment);
	if (ret == 0)
		stele_copier_unread(c, segment);
	return ret;
}

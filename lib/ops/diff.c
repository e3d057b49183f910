/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.c - what two snapshots have different
 *
 * What both snapshots say of a key is put together in `pending`, and told when
 * the next key comes. Content is compared by the samples' digests, which cover
 * key, bytes and scalars, not the names of fields and classes.
 */
#include "lib/ops/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/ops/diff_fields.h"
#include "lib/ops/diff_keys.h"

/* Of the digests section: 128 MiB, 4 million samples. Others are read again. */
#define DIGEST_BLOCKS_MAX 32768u

enum { A = STELE_DIFF_A, B = STELE_DIFF_B };

struct place {
	struct stele_diff_part *part; /* NULL: not there */
	uint64_t number, id, size;
};

struct diff {
	struct stele_diff_keys keys;
	stele_diff_fn fn;
	void *user;
	struct stele_diff_report report;
	uint64_t digest_blocks; /* that are held */

	char pending[STELE_KEY_SIZE_MAX];
	size_t pending_size; /* 0: none */
	struct place place[2];
};

static int digest_of(struct diff *d, const struct place *place,
		     uint8_t digest[STELE_DIGEST_SIZE])
{
	struct stele_diff_part *part = place->part;
	const uint64_t index = place->number / STELE_DIGESTS_PER_BLOCK;
	struct stele_section section;
	int ret;

	if (stele_descriptor_find_section(&part->segment->descriptor,
					  STELE_BLOCK_DIGESTS, STELE_NO_FIELD,
					  &section) < 0)
		return -EUCLEAN;
	if (!part->digests) {
		part->digest_count = section.size / STELE_BLOCK_SIZE;
		part->digests = calloc(part->digest_count,
				       sizeof(struct stele_disk_block *));
	}
	if (!part->digests)
		return -ENOMEM;
	if (index >= part->digest_count)
		return -EUCLEAN;
	if (!part->digests[index]) {
		struct stele_disk_block *block;

		if (d->digest_blocks == DIGEST_BLOCKS_MAX)
			return stele_segment_digest(part->image, part->segment,
						    place->number, digest);
		block = stele_device_alloc(part->image->dev, STELE_BLOCK_SIZE);
		if (!block)
			return -ENOMEM;
		ret = stele_section_read(part->image, part->segment, &section,
					 index, 1, block);
		if (ret < 0) {
			free(block);
			return ret;
		}
		part->digests[index] = block;
		d->digest_blocks++;
	}
	memcpy(digest, stele_digest_entry(part->digests[index], place->number),
	       STELE_DIGEST_SIZE);
	return 0;
}

/* 1: they differ; 0: the same content. */
static int differ(struct diff *d)
{
	uint8_t digest[2][STELE_DIGEST_SIZE];
	int ret;

	if (d->place[A].size != d->place[B].size)
		return 1;
	ret = digest_of(d, &d->place[A], digest[A]);
	if (ret == 0)
		ret = digest_of(d, &d->place[B], digest[B]);
	if (ret == 0)
		ret = memcmp(digest[A], digest[B], STELE_DIGEST_SIZE) != 0;
	return ret;
}

/* Tell what became of the pending key, if there is one. */
static int tell(struct diff *d)
{
	struct stele_diff_entry entry = {
		.size = sizeof(entry),
		.key = d->pending,
		.key_size = d->pending_size,
		.a_id = d->place[A].id,
		.a_size = d->place[A].size,
		.b_id = d->place[B].id,
		.b_size = d->place[B].size,
	};
	int ret;

	if (!d->pending_size)
		return 0;
	if (!d->place[A].part) {
		entry.kind = STELE_DIFF_ADDED;
		d->report.added++;
	} else if (!d->place[B].part) {
		entry.kind = STELE_DIFF_REMOVED;
		d->report.removed++;
	} else {
		ret = differ(d);
		if (ret < 0)
			return ret;
		if (ret == 0) {
			d->report.same++;
			return 0;
		}
		entry.kind = STELE_DIFF_CHANGED;
		d->report.changed++;
	}
	return d->fn ? d->fn(d->user, &entry) : 0;
}

static int put_place(struct diff *d, int side, const struct place *place)
{
	if (d->place[side].part) {
		stele_log_error(&d->keys.side[side]->image.log,
				"snapshot '%s' has a key twice",
				d->keys.side[side]->snapshot.info.name);
		return -EUCLEAN;
	}
	d->place[side] = *place;
	return 0;
}

/* One key of one segment; it may be deleted on either side. */
static int take(struct diff *d, const struct stele_diff_key *key)
{
	struct place place[2];
	int ret;

	for (int side = A; side <= B; side++) {
		place[side] = (struct place){.number = key->number,
					     .size = key->size};
		ret = -ENOENT;
		if (key->part->in[side])
			ret = stele_snapshot_id(&d->keys.side[side]->snapshot,
						key->part->in[side],
						key->number, &place[side].id);
		if (ret < 0 && ret != -ENOENT)
			return -EUCLEAN;
		place[side].part = ret == 0 ? key->part : NULL;
	}
	/* Both: the same sample, which was counted. */
	if (!place[A].part == !place[B].part)
		return 0;
	if (key->key_size != d->pending_size ||
	    memcmp(key->key, d->pending, key->key_size) != 0) {
		ret = tell(d);
		if (ret)
			return ret;
		memcpy(d->pending, key->key, key->key_size);
		d->pending_size = key->key_size;
		memset(d->place, 0, sizeof(d->place));
	}
	return place[A].part ? put_place(d, A, &place[A]) :
			       put_place(d, B, &place[B]);
}

static int compare(struct diff *d)
{
	struct stele_diff_key key;
	int ret;

	while ((ret = stele_diff_keys_next(&d->keys, &key)) == 1) {
		ret = take(d, &key);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : tell(d);
}

static void release(struct diff *d)
{
	for (uint32_t i = 0; i < d->keys.part_count; i++) {
		struct stele_diff_part *part = &d->keys.parts[i];

		for (uint64_t j = 0; part->digests && j < part->digest_count;
		     j++)
			free(part->digests[j]);
		free(part->digests);
	}
	stele_diff_keys_release(&d->keys);
	free(d);
}

int stele_dataset_diff(const struct stele_dataset *a,
		       const struct stele_dataset *b, stele_diff_fn fn,
		       void *user, struct stele_diff_report *report)
{
	struct diff *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return -ENOMEM;
	d->fn = fn;
	d->user = user;
	ret = stele_diff_keys_init(&d->keys, a, b);
	d->report.same = d->keys.same;
	if (ret == 0)
		ret = compare(d);
	if (report)
		*report = d->report;
	release(d);
	return ret;
}

static int do_diff(const char *a, const char *b, stele_diff_fn fn,
		   void *user, const struct stele_open_opts *opts,
		   struct stele_diff_report *report)
{
	struct stele_dataset *one = NULL, *other = NULL;
	struct stele_diff_report made = {0};
	int ret;

	ret = stele_dataset_open(a, opts, &one);
	if (ret == 0)
		ret = stele_output_check(report, same, &one->image.log);
	if (ret == 0)
		ret = stele_dataset_open(b, opts, &other);
	if (ret == 0)
		ret = stele_dataset_diff(one, other, fn, user, &made);
	if (ret == 0)
		made.fields = stele_diff_fields(&(struct stele_diff_sides){
			.side = {one, other}, .target = {a, b}});
	stele_output_fill(report, &made, sizeof(made));
	stele_dataset_close(other);
	stele_dataset_close(one);
	return ret;
}

int stele_diff(const char *a, const char *b, stele_diff_fn fn, void *user,
	       const struct stele_open_opts *opts,
	       struct stele_diff_report *report)
{
	return STELE_CALL(do_diff(a, b, fn, user, opts, report),
			  "cannot compare '%s' with '%s'", a, b);
}

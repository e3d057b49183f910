/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_keys.c - see diff_keys.h
 */
#include "lib/ops/diff_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_parts(const void *a, const void *b)
{
	const struct stele_diff_part *x = a, *y = b;
	const struct stele_descriptor *dx = &x->segment->descriptor;
	const struct stele_descriptor *dy = &y->segment->descriptor;
	int order = memcmp(dx->tree_root, dy->tree_root, STELE_DIGEST_SIZE);

	if (order)
		return order;
	if (dx->sample_count != dy->sample_count)
		return dx->sample_count < dy->sample_count ? -1 : 1;
	return !x->in[STELE_DIFF_A] - !y->in[STELE_DIFF_A];
}

static bool same_samples(const struct stele_diff_part *x, const struct stele_diff_part *y)
{
	return x->segment->descriptor.sample_count ==
		       y->segment->descriptor.sample_count &&
	       !memcmp(x->segment->descriptor.tree_root,
		       y->segment->descriptor.tree_root, STELE_DIGEST_SIZE);
}

static void add_parts(struct stele_diff_keys *d, int side)
{
	const struct stele_snapshot *snapshot = &d->side[side]->snapshot;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		struct stele_diff_part *part = &d->parts[d->part_count];

		if (!snapshot->segments[i].descriptor.sample_count)
			continue;
		part->image = &d->side[side]->image;
		part->segment = part->in[side] = &snapshot->segments[i];
		d->part_count++;
	}
}

/* One part for each segment that both have. */
static void pair_parts(struct stele_diff_keys *d)
{
	uint32_t count = 0;

	qsort(d->parts, d->part_count, sizeof(*d->parts), compare_parts);
	for (uint32_t i = 0; i < d->part_count; i++) {
		struct stele_diff_part *last = count ? &d->parts[count - 1] : NULL;

		if (last && last->in[STELE_DIFF_A] &&
		    !last->in[STELE_DIFF_B] &&
		    d->parts[i].in[STELE_DIFF_B] &&
		    same_samples(last, &d->parts[i]))
			last->in[STELE_DIFF_B] = d->parts[i].in[STELE_DIFF_B];
		else
			d->parts[count++] = d->parts[i];
	}
	d->part_count = count;
}

static int make_parts(struct stele_diff_keys *d)
{
	const size_t most = (size_t)d->side[STELE_DIFF_A]->snapshot.segment_count +
			    d->side[STELE_DIFF_B]->snapshot.segment_count;

	d->parts = calloc(most + 1, sizeof(*d->parts));
	d->walked = calloc(most + 1, sizeof(struct stele_diff_part *));
	d->lists = calloc(most + 1, sizeof(*d->lists));
	if (!d->parts || !d->walked || !d->lists)
		return -ENOMEM;
	add_parts(d, STELE_DIFF_A);
	add_parts(d, STELE_DIFF_B);
	pair_parts(d);
	return stele_keys_merge_init(&d->merge, d->part_count);
}

/*
 * The numbers that only one of them deleted, malloced. `both` gets how many
 * are alive on both sides.
 */
static int deleted_by_one(const struct stele_segment *a,
			  const struct stele_segment *b, uint64_t **numbers,
			  uint64_t *count, uint64_t *both)
{
	struct stele_deleted one;
	int ret = stele_deleted_combine(&a->deleted, &b->deleted,
					STELE_DELETED_XOR, &one);

	*numbers = ret == 0 ? stele_deleted_numbers(&one) : NULL;
	*count = one.count;
	/* Deleted by any of them: half of the sum. */
	*both = a->descriptor.sample_count -
		(a->deleted.count + b->deleted.count + one.count) / 2;
	stele_deleted_release(&one);
	return *numbers ? 0 : -ENOMEM;
}

static int add_walk(struct stele_diff_keys *d, struct stele_diff_part *part)
{
	d->walked[d->merge.count] = part;
	return stele_keys_merge_add(&d->merge, part->image, part->segment, NULL,
				    0);
}

/* Of a segment that both have only what one of them deleted matters. */
static int add_shared(struct stele_diff_keys *d, struct stele_diff_part *part)
{
	struct stele_key_list *list = &d->lists[part - d->parts];
	uint64_t *numbers, count, both;
	int ret = deleted_by_one(part->in[STELE_DIFF_A], part->in[STELE_DIFF_B], &numbers, &count,
				 &both);

	if (ret < 0)
		return ret;
	d->same += both;
	if (count) {
		ret = -ENOENT;
		if (stele_key_list_pays(part->segment, count))
			ret = stele_key_list_load(part->image, part->segment,
						  numbers, count, list);
		if (ret == -ENOENT) {
			stele_key_list_release(list);
			ret = add_walk(d, part);
		}
	}
	d->found_count += list->count;
	free(numbers);
	return ret;
}

static int by_key(const void *a, const void *b)
{
	const struct stele_key_entry *x = ((const struct stele_diff_found *)a)->entry;
	const struct stele_key_entry *y = ((const struct stele_diff_found *)b)->entry;

	return stele_key_compare(x->key, x->key_size, y->key, y->key_size);
}

static int sort_found(struct stele_diff_keys *d)
{
	size_t n = 0;

	d->found = calloc(d->found_count + 1, sizeof(*d->found));
	if (!d->found)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->part_count; i++)
		for (size_t j = 0; j < d->lists[i].count; j++)
			d->found[n++] = (struct stele_diff_found){
				&d->parts[i], &d->lists[i].entries[j]};
	qsort(d->found, n, sizeof(*d->found), by_key);
	return 0;
}

static int open_keys(struct stele_diff_keys *d)
{
	int ret = 0;

	for (uint32_t i = 0; i < d->part_count && ret == 0; i++) {
		struct stele_diff_part *part = &d->parts[i];

		ret = part->in[STELE_DIFF_A] && part->in[STELE_DIFF_B] ? add_shared(d, part) :
						   add_walk(d, part);
	}
	return ret == 0 ? sort_found(d) : ret;
}

int stele_diff_keys_init(struct stele_diff_keys *d,
			 const struct stele_dataset *a,
			 const struct stele_dataset *b)
{
	int ret;

	memset(d, 0, sizeof(*d));
	d->side[STELE_DIFF_A] = a;
	d->side[STELE_DIFF_B] = b;
	ret = make_parts(d);
	return ret == 0 ? open_keys(d) : ret;
}

void stele_diff_keys_release(struct stele_diff_keys *d)
{
	for (uint32_t i = 0; d->lists && i < d->part_count; i++)
		stele_key_list_release(&d->lists[i]);
	stele_keys_merge_release(&d->merge);
	free(d->found);
	free(d->lists);
	free(d->walked);
	free(d->parts);
	memset(d, 0, sizeof(*d));
}

/* Have walk_key, unless the walks ended. */
static int look_ahead(struct stele_diff_keys *d)
{
	uint32_t index;
	int ret;

	if (d->walk_key || d->walk_ended)
		return 0;
	ret = stele_keys_merge_next(&d->merge, &index, &d->walk_key);
	if (ret < 0)
		return ret;
	d->walk_ended = ret == 0;
	if (ret)
		d->walk_part = d->walked[index];
	return 0;
}

static void take_found(struct stele_diff_keys *d, struct stele_diff_key *out)
{
	const struct stele_diff_found *found = &d->found[d->found_next++];

	*out = (struct stele_diff_key){found->part, found->entry->key,
				       found->entry->key_size,
				       found->entry->number, found->entry->size};
}

int stele_diff_keys_next(struct stele_diff_keys *d, struct stele_diff_key *out)
{
	const bool more = d->found_next < d->found_count;
	const struct stele_key *walk;
	int ret = look_ahead(d);

	if (ret < 0)
		return ret;
	walk = d->walk_key;
	if (!walk && !more)
		return 0;
	if (!walk || (more && stele_key_compare(
				      d->found[d->found_next].entry->key,
				      d->found[d->found_next].entry->key_size,
				      walk->key, walk->key_size) < 0)) {
		take_found(d, out);
		return 1;
	}
	*out = (struct stele_diff_key){d->walk_part, walk->key, walk->key_size,
				       walk->number, walk->size};
	d->walk_key = NULL; /* it stays valid until the merge moves on */
	return 1;
}

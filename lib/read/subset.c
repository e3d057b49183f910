/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subset.c - see subset.h
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"
#include "lib/image/digest.h"
#include "lib/read/subset.h"

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Does an id stand there twice? */
static int check_repeats(const struct stele_subset *subset)
{
	uint64_t ascending = 1, size = subset->count * sizeof(*subset->ids);
	uint64_t *sorted;
	int err = 0;

	while (ascending < subset->count &&
	       subset->ids[ascending - 1] < subset->ids[ascending])
		ascending++;
	if (ascending == subset->count)
		return 0;
	sorted = malloc(size);
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, subset->ids, size);
	qsort(sorted, subset->count, sizeof(*sorted), by_value);
	for (uint64_t i = 1; !err && i < subset->count; i++)
		err = sorted[i - 1] == sorted[i] ? -ENOTUNIQ : 0;
	free(sorted);
	return err;
}

static int copy_list(struct stele_subset *subset, const uint64_t *ids,
		     uint64_t count, uint64_t samples)
{
	uint64_t size;

	for (uint64_t i = 0; i < count; i++)
		if (ids[i] >= samples)
			return -ERANGE;
	if (!checked_mul(count, sizeof(*ids), &size) || size > SIZE_MAX)
		return -ENOMEM;
	subset->ids = malloc(size);
	if (!subset->ids)
		return -ENOMEM;
	memcpy(subset->ids, ids, size);
	subset->count = count;
	return check_repeats(subset);
}

static int take_range(struct stele_subset *subset, uint64_t first,
		      uint64_t count, uint64_t samples)
{
	if (first > samples || count > samples - first)
		return -ERANGE;
	subset->first = first;
	subset->count = count ? count : samples - first;
	return 0;
}

int stele_subset_init(struct stele_subset *subset,
		      const struct stele_loader_source *source)
{
	uint64_t samples = stele_dataset_count(source->ds);
	int err;

	*subset = (struct stele_subset){0};
	if (source->ids ? source->first || source->count : source->id_count)
		return -EINVAL;
	if (source->ids && source->id_count)
		err = copy_list(subset, source->ids, source->id_count, samples);
	else if (source->ids)
		err = -EINVAL;
	else
		err = take_range(subset, source->first, source->count, samples);
	if (!err && !subset->count)
		err = -EINVAL;
	if (err)
		stele_subset_release(subset);
	return err;
}

void stele_subset_release(struct stele_subset *subset)
{
	free(subset->ids);
	*subset = (struct stele_subset){0};
}

void stele_subset_hash(const struct stele_subset *subset,
		       struct stele_hash *hash)
{
	const le64 head[] = {
		le64_put(subset->ids != NULL),
		le64_put(subset->first),
		le64_put(subset->count),
	};

	stele_hash_add(hash, head, sizeof(head));
	for (uint64_t i = 0; subset->ids && i < subset->count; i++) {
		const le64 id = le64_put(subset->ids[i]);

		stele_hash_add(hash, &id, sizeof(id));
	}
}

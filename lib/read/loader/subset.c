/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subset.c - see subset.h
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"
#include "lib/image/digest.h"
#include "lib/read/loader/subset.h"

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* An id that stands there twice. Return: 0; -ENOTUNIQ; -ENOMEM. */
static int find_repeat(const struct stele_subset *subset, uint64_t *id)
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
	for (uint64_t i = 1; !err && i < subset->count; i++) {
		err = sorted[i - 1] == sorted[i] ? -ENOTUNIQ : 0;
		*id = sorted[i];
	}
	free(sorted);
	return err;
}

static int copy_list(struct stele_subset *subset, const uint64_t *ids,
		     uint64_t count, uint64_t samples,
		     const struct stele_log *log)
{
	uint64_t size, id;
	int err;

	for (uint64_t i = 0; i < count; i++)
		if (ids[i] >= samples) {
			stele_log_error(log,
					"id %" PRIu64 " of %" PRIu64 " samples",
					ids[i], samples);
			return -ERANGE;
		}
	if (!checked_mul(count, sizeof(*ids), &size) || size > SIZE_MAX)
		return -ENOMEM;
	subset->ids = malloc(size);
	if (!subset->ids)
		return -ENOMEM;
	memcpy(subset->ids, ids, size);
	subset->count = count;
	err = find_repeat(subset, &id);
	if (err == -ENOTUNIQ)
		stele_log_error(log, "id %" PRIu64 " twice", id);
	return err;
}

static int take_range(struct stele_subset *subset, uint64_t first,
		      uint64_t count, uint64_t samples,
		      const struct stele_log *log)
{
	if (first > samples || count > samples - first) {
		stele_log_error(log,
				"'first' %" PRIu64 " and 'count' %" PRIu64
				" of %" PRIu64 " samples",
				first, count, samples);
		return -ERANGE;
	}
	subset->first = first;
	subset->count = count ? count : samples - first;
	return 0;
}

static int invalid(const struct stele_log *log, const char *what)
{
	stele_log_error(log, "%s", what);
	return -EINVAL;
}

int stele_subset_init(struct stele_subset *subset,
		      const struct stele_loader_source *source,
		      const struct stele_log *log)
{
	uint64_t samples;
	int err;

	*subset = (struct stele_subset){0};
	if (!source->ds)
		return invalid(log, "no dataset");
	if (source->ids && (source->first || source->count))
		return invalid(log, "both a list of ids and a range");
	if (!source->ids && source->id_count)
		return invalid(log, "'id_count' without 'ids'");
	samples = stele_dataset_count(source->ds);
	if (source->ids ? !source->id_count
			: source->first == samples && !source->count)
		return invalid(log, "no samples");
	err = source->ids ? copy_list(subset, source->ids, source->id_count,
				      samples, log)
			  : take_range(subset, source->first, source->count,
				       samples, log);
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

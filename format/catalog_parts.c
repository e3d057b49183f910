/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_parts.c - the parts of trees that are in use are one tree, whole
 *
 * There is one root; one part of directories for each snapshot that is not deleted; one of
 * files for each segment that such a one refers to; or none of all. So whoever finds a root
 * finds the rest. Sorted by what they are of, a part of files comes next to its segment.
 */
#include "format/catalog_check.h"
#include "format/decode.h"

/* In the order in which the heap hands them out. */
enum group {
	GROUP_FILES, /* segments in use, and parts of them */
	GROUP_DIRECTORIES,
	GROUP_ROOT,
	GROUP_UNUSED,
};

struct place {
	enum group group;
	uint64_t of;
	bool part;
};

static struct place place_of(const struct stele_catalog *catalog, uint32_t index)
{
	struct stele_catalog_segment s;

	stele_catalog_segment(catalog, index, &s);
	if (s.unused_since)
		return (struct place){GROUP_UNUSED, 0, false};
	switch (s.part) {
	case STELE_PART_DIRECTORIES:
		return (struct place){GROUP_DIRECTORIES, s.of, true};
	case STELE_PART_ROOT:
		return (struct place){GROUP_ROOT, 0, true};
	case STELE_PART_FILES:
		return (struct place){GROUP_FILES, s.of, true};
	default:
		return (struct place){GROUP_FILES, s.id, false};
	}
}

/* Groups descend, so that the heap hands them out in their order; parts before segments. */
static int compare(const struct stele_catalog *catalog, uint32_t a, uint32_t b)
{
	const struct place x = place_of(catalog, a), y = place_of(catalog, b);

	if (x.group != y.group)
		return x.group < y.group ? 1 : -1;
	if (x.of != y.of)
		return x.of > y.of ? 1 : -1;
	return x.part - y.part;
}

/* What is handed out, and what was before it. */
struct walk {
	const struct stele_catalog *catalog;
	struct stele_catalog_heap heap;
	struct place last;
	uint64_t inode_count; /* of the last one */
	uint32_t snapshots;   /* that have directories */
};

/* A part of files, then the segment that it is of. */
static int check_files(const struct walk *walk, const struct place *place,
		       const struct stele_catalog_segment *segment, const char **why)
{
	const bool waits = walk->last.group == GROUP_FILES && walk->last.part;

	if (waits && (place->group != GROUP_FILES || place->of != walk->last.of))
		return unclean(why, "catalog: files of no segment in use");
	if (waits && place->part)
		return unclean(why, "catalog: files of a segment twice");
	if (place->group != GROUP_FILES || place->part)
		return 0;
	if (!waits)
		return unclean(why, "catalog: segment without files in a tree");
	if (walk->inode_count != segment->sample_count)
		return unclean(why, "catalog: files of a segment against its samples");
	return 0;
}

static int check_directories(struct walk *walk, const struct place *place, const char **why)
{
	struct stele_catalog_snapshot snapshot;

	if (walk->last.group == GROUP_DIRECTORIES && walk->last.of == place->of)
		return unclean(why, "catalog: directories of a snapshot twice");
	if (!stele_catalog_find_snapshot(walk->catalog, place->of, &snapshot))
		return unclean(why, "catalog: directories of no snapshot");
	walk->snapshots++;
	return 0;
}

static int check_next(struct walk *walk, const char **why)
{
	const uint32_t index = stele_catalog_heap_take(&walk->heap);
	const struct place place = place_of(walk->catalog, index);
	struct stele_catalog_segment segment;
	int ret;

	stele_catalog_segment(walk->catalog, index, &segment);
	ret = check_files(walk, &place, &segment, why);
	if (ret == 0 && place.group == GROUP_DIRECTORIES)
		ret = check_directories(walk, &place, why);
	walk->last = place;
	walk->inode_count = segment.inode_count;
	return ret;
}

/* Of parts in use, how many are there, and how many of them are roots? */
static uint32_t count_parts(const struct stele_catalog *catalog, uint32_t *roots)
{
	struct stele_catalog_segment segment;
	uint32_t count = 0;

	*roots = 0;
	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		stele_catalog_segment(catalog, i, &segment);
		if (!stele_catalog_is_tree(&segment) || segment.unused_since)
			continue;
		count++;
		*roots += segment.part == STELE_PART_ROOT;
	}
	return count;
}

int stele_catalog_check_parts(const struct stele_catalog *catalog, const char **why)
{
	struct walk walk = {.catalog = catalog, .last = {.group = GROUP_UNUSED}};
	uint32_t roots;
	int ret = 0;

	if (!count_parts(catalog, &roots))
		return 0;
	if (roots != 1)
		return unclean(why, roots ? "catalog: two roots in use" :
					    "catalog: parts in use without a root");
	stele_catalog_heap_fill(&walk.heap, catalog, catalog->counts.segments, compare);
	while (walk.heap.left && ret == 0)
		ret = check_next(&walk, why);
	if (ret == 0 && walk.snapshots != catalog->counts.snapshots)
		ret = unclean(why, "catalog: snapshot without directories in a tree");
	return ret;
}

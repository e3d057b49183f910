/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - what has to be read to fill in the pages of a sample
 *
 * A *group* is the sample, and those that have bytes on its first and its last page. A page
 * is filled in only if all samples with a byte on it are intact; else it is *bad*.
 *
 *	if (stele_group_plan(&filling, &slot, &group)) {
 *		ret = stele_group_fetch(&check);
 *		stele_group_release(&check);
 *	}
 *
 * Any thread.
 */
#ifndef STELE_VIEW_GROUP_H
#define STELE_VIEW_GROUP_H

#include "lib/view/places.h"
#include "lib/view/resident.h"

/* What is filled in, and from where. */
struct stele_filling {
	const struct stele_dataset *ds;
	enum stele_verify verify;
	struct stele_faults faults;
	struct stele_resident resident;
	struct stele_places places;
};

struct stele_group {
	uint64_t first, count; /* pages that are to be filled in */
	uint64_t begin, end;   /* blocks with the slots that have bytes there */
	uint64_t id, last;     /* the samples that were asked for */
};

/* A group as it is checked: the caller's are the first ones. */
struct stele_group_check {
	struct stele_filling *f;
	const struct stele_group *group;
	struct stele_proof *proof; /* for DIGEST */
	struct stele_sample *out; /* the first that was asked for; NULL: not wanted */
	const uint8_t *data; /* of a group that was read: from group->begin on */

	int status;  /* of reading it */
	char *image; /* of the pages */
	bool *bad;   /* each of them; NULL: no memory */
	int error;   /* of those that were asked for: the first */
};

/* The pages of a sample. */
void stele_group_pages(const struct stele_filling *f, const struct stele_slot *slot,
		       uint64_t *first, uint64_t *count);
/* The group of a sample. False: all its pages are present. */
bool stele_group_plan(struct stele_filling *f, const struct stele_slot *slot,
		      struct stele_group *group);
/*
 * Check what was read, and fill in what is intact; all pages are bad if userfaultfd fails.
 * Release in any case. Return: 0; 1 (some pages are bad, none of those that were asked for is
 * damaged); -ENOMEM; the error of one that was asked for; errno of userfaultfd.
 */
int stele_group_take(struct stele_group_check *check);
/* The same after reading it. */
int stele_group_fetch(struct stele_group_check *check);
void stele_group_release(struct stele_group_check *check);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_check.h - do directories mean the labels that a base has?
 *
 * Nothing in an image says by which directories it was labelled. The samples that both have
 * tell: a directory is part of their key, so that another label comes from another rule.
 */
#ifndef STELE_OPS_LABEL_CHECK_H
#define STELE_OPS_LABEL_CHECK_H

#include "lib/image/base.h"
#include "lib/source/fields.h"

struct stele_label_check {
	/* The caller's to set. */
	const struct stele_base *base;
	const struct stele_source *source;
	const struct stele_fields *fields; /* of the source, held against the base */
	const struct stele_log *log;

	uint32_t field;	   /* "label" */
	unsigned int left; /* samples that are still looked at */
	struct stele_disk_block *block;
};

/* Return: 0; -ENOMEM. Release in any case. */
int stele_label_check_init(struct stele_label_check *check);
/*
 * The sample of this number has the key of `entry`. One block of the segment is read, for the
 * first few of them; one that cannot be read is no reason.
 * Return: 0; they differ (logged): -EOPNOTSUPP, or -EPERM if somebody said which are classes.
 */
int stele_label_check(struct stele_label_check *check, const struct stele_segment *segment,
		      uint64_t number, const struct stele_source_entry *entry);
/* Idempotent on a zeroed struct. */
void stele_label_check_release(struct stele_label_check *check);

#endif

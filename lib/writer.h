/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - an image that is there, opened to be changed
 *
 * The one way from the name of a target to an edit and back to a commit. The
 * device is opened SOLE: readers go on, a second writer is refused. Where the
 * storage keeps shots (RBD), each snapshot of the catalog has a protected shot
 * of its name: opening finishes or undoes what an interrupted writer left,
 * committing makes those that are missing. For build's claim of a target that
 * is overwritten see claim.h.
 */
#ifndef STELE_LIB_WRITER_H
#define STELE_LIB_WRITER_H

#include "lib/device/target.h"
#include "lib/image/edit.h"

struct stele_writer {
	struct stele_target target;
	struct stele_image image; /* owns the device */
	struct stele_edit edit;
	struct stele_log log;
	uint64_t written_size; /* bytes written since open, metadata too */
};

/*
 * `text`: PATH, PATH@NAME or a mapped name. Close in any case.
 * Return: 0; -EBUSY (mounted or held; another writer, logged by name);
 * -EACCES, -EROFS, -EPERM (read-only, logged); errors of stele_image_open().
 */
int stele_writer_open(struct stele_writer *writer, const char *text,
		      const char *backend, const struct stele_log *log);
/* Commit the edit, then make and protect the shots that are missing. */
int stele_writer_commit(struct stele_writer *writer, int64_t time);
/* Idempotent on a zeroed struct. */
void stele_writer_close(struct stele_writer *writer);

#endif

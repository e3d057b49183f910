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
 *
 * Who deletes a snapshot removes its shot before he commits without it; who
 * is interrupted in between finds the shot made again by the next writer.
 * Shots of names that are not in the catalog are not ours, and not touched.
 */
#ifndef STELE_TXN_WRITER_H
#define STELE_TXN_WRITER_H

#include "lib/device/target.h"
#include "lib/txn/edit.h"

struct stele_writer {
	struct stele_target target; /* snapshot: what stood behind the '@' */
	struct stele_image image; /* owns the device */
	struct stele_edit edit;
	struct stele_log log;
	uint32_t side; /* of a fork; 0: it is refused */
	/* Bytes written since open, metadata too: as of the last commit. */
	uint64_t written_size;
};

/*
 * `text`: PATH, PATH@NAME or a mapped name, whose snapshot stands for a NAME that
 * is not given. Every failure is logged. Close in any case.
 * Return: 0; -EBUSY (mounted or held; another writer, logged by name);
 * -EACCES, -EROFS, -EPERM (read-only, logged); errors of stele_image_open().
 */
int stele_writer_open(struct stele_writer *writer, const char *text,
		      const char *backend, const struct stele_log *log);
/*
 * The same of a fork (see fork.h): that side, from 1. 0: as above. What is no fork is opened
 * whatever the side.
 */
int stele_writer_open_side(struct stele_writer *writer, const char *text,
			   uint32_t side, const char *backend,
			   const struct stele_log *log);
/*
 * The same with an opened device, which is the writer's from here on; for
 * tests. writer->target stays empty.
 */
int stele_writer_begin(struct stele_writer *writer, struct stele_device *dev,
		       const struct stele_log *log);
/*
 * Commit the edit, then make and protect the shots that are missing. When the
 * error is one of a shot, the commit has been made: the log says what is
 * missing, and the next writer makes it. A new snapshot whose name is that of
 * somebody else's shot is refused before (-EEXIST).
 */
int stele_writer_commit(struct stele_writer *writer, int64_t time);
/* Idempotent on a zeroed struct. */
void stele_writer_close(struct stele_writer *writer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - what a user calls an image: PATH[@SNAPSHOT], PATH@sha256:HEX
 *
 * The last '@' behind the last '/' divides; so a path whose last part holds
 * an '@' is written with another one behind it ("./a@b@"), and no other. "rbd:..." has rules
 * of its own (target_rbd.h); a library without librbd refuses it with
 * -EOPNOTSUPP.
 * Whether a word without a slash is a mapping is asked elsewhere (node/).
 */
#ifndef STELE_DEVICE_TARGET_H
#define STELE_DEVICE_TARGET_H

#include "lib/base/log.h"

struct stele_target {
	char *path;	/* owned; of RBD the canonical spelling */
	char *snapshot; /* owned; NULL: none given */
	bool pinned;	/* by digest; then snapshot is NULL */
	bool mapped;	/* by a mapped name: the snapshot must have the digest recorded */
	uint8_t digest[STELE_DIGEST_SIZE]; /* when pinned or mapped */
};

/* Is it "rbd:..."? A file of such a name is written "./rbd:...". */
bool stele_path_is_rbd(const char *path);
/*
 * Return: 0; -EINVAL (empty, bad snapshot name or digest; logged);
 * -EOPNOTSUPP ("rbd:...", logged); -ENOMEM.
 */
int stele_target_parse(const char *text, const struct stele_log *log,
		       struct stele_target *out);
/* That the snapshot must have; NULL: any. */
const uint8_t *stele_target_digest(const struct stele_target *target);
/* Of a mapped name, whose snapshot is not there any more: -ESTALE, logged. */
int stele_target_gone(const struct stele_target *target,
		      const struct stele_log *log);
void stele_target_release(struct stele_target *target);

#endif

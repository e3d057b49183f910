/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph_text.h - monitors and keys, out of what Ceph prints and keeps in files
 *
 * Text alone, without librados: what it tells in no other way.
 */
#ifndef STELE_DEVICE_RBD_CEPH_TEXT_H
#define STELE_DEVICE_RBD_CEPH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The addresses in the output of `ceph mon dump`: those of messenger v1, which every
 * kernel speaks, unless some monitor has none or `secure` wants what only v2
 * gives. Return: 0; -EUCLEAN (there are none); -ENOMEM.
 */
int stele_ceph_monitors(const char *dump, size_t size, bool secure,
		       char **monitors, const char **mode);
/* The key of client.`user` in a keyring. Return: 0; -ENOENT; -ENOMEM. */
int stele_ceph_keyring_find(const char *text, const char *user, char **key);

#endif

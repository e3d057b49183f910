/* SPDX-License-Identifier: Apache-2.0 */
/*
 * features.h - format version and feature bits
 *
 * One bit is one feature, never reused. compat: older readers and writers may
 * ignore it. ro_compat: older readers may, older writers must not touch the
 * image. incompat: refuse.
 *
 * Version history
 *   1  2026-11  first
 */
#ifndef STELE_FORMAT_FEATURES_H
#define STELE_FORMAT_FEATURES_H

#include <stdint.h>

#define STELE_FORMAT_VERSION 1

/* X(word, bit, NAME, text) */
#define STELE_FEATURES(X)                                                    \
	X(compat, 0, SIGNATURES, "snapshots carry signatures")               \
	X(ro_compat, 0, POSIX, "trees of files: the image is an EROFS, too") \
	X(incompat, 0, DELETED, "snapshots leave out samples of a segment")  \
	X(incompat, 1, BOUNDARY, "no slot of a run crosses a boundary")      \
	X(incompat, 2, TENSOR, "fields of type tensor")                      \
	X(incompat, 3, UNDELETE, "deleted snapshots that can be undeleted")  \
	X(incompat, 4, MIRROR, "a second copy of the catalog")

#define STELE_FEATURE_BIT(word, bit, name, text) \
	STELE_FEATURE_##name = 1 << (bit),
enum stele_feature { STELE_FEATURES(STELE_FEATURE_BIT) };
#undef STELE_FEATURE_BIT

#define STELE_INCOMPAT_SUPPORTED \
	((uint64_t)(STELE_FEATURE_DELETED | STELE_FEATURE_BOUNDARY | \
		    STELE_FEATURE_TENSOR | STELE_FEATURE_UNDELETE | \
		    STELE_FEATURE_MIRROR))

#define STELE_RO_COMPAT_SUPPORTED ((uint64_t)STELE_FEATURE_POSIX)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c - which library this is, and what its error codes mean
 *
 * The table repeats the one that heads stele.h: both change together.
 */
#include "lib/stele.h"

#include <errno.h>
#include <string.h>

#define TEXT(x) #x
#define DOTTED(major, minor, patch) \
	TEXT(major) "." TEXT(minor) "." TEXT(patch)

#define ERRNO_MAX 4095 /* the kernel's */

static const struct {
	int error;
	const char *text;
} meanings[] = {
	{EMEDIUMTYPE, "no Stele image there"},
	{ENODATA, "the target is shorter than its image"},
	{EINPROGRESS, "unfinished image"},
	{EBADMSG, "checksum or digest does not match"},
	{EUCLEAN, "impossible structure that no checksum caught"},
	{ENOTUNIQ, "the image has several versions"},
	{EOPNOTSUPP, "feature, format version or backend not supported"},
	{ENOTBLK, "neither a block device nor a regular file"},
	{ENOENT, "no such target, snapshot, key or mapping"},
	{EEXIST, "the target has existing contents"},
	{EBUSY, "in use: mounted, held, or open elsewhere"},
	{ENOSYS, "the kernel lacks it, or /proc or /sys is not mounted"},
	{ENOSPC, "the target is too small"},
	{EDQUOT, "the storage or a quota on it is full"},
	{ETIMEDOUT, "the storage did not answer in time"},
	{ESHUTDOWN, "the storage has fenced this client"},
	{EOVERFLOW, "more than an image can hold"},
	{ERANGE, "id, field or buffer out of range"},
	{ESTALE, "changed since it was opened"},
	{EOWNERDEAD, "the handle was made before a fork"},
	{ECANCELED, "stopped on request"},
	{ETXTBSY, "a source file changed while being read"},
	{EINVAL, "invalid argument"},
	{E2BIG, "option unknown to this library"},
};

const char *stele_version(void)
{
	return DOTTED(STELE_VERSION_MAJOR, STELE_VERSION_MINOR,
		      STELE_VERSION_PATCH);
}

const char *stele_strerror(int error)
{
	/* Compared with -x, never as -error: INT_MIN has no counterpart. */
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (error == -meanings[i].error)
			return meanings[i].text;
	}
	if (error > 0 || error < -ERRNO_MAX)
		return "not an error code";
	return strerror(-error);
}

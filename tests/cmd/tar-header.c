/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar-header.c - the header of one file that is not there, for export.t
 *
 *	tar-header PATH SIZE TIME >HEADER
 *
 * Files of many GiB and paths that no filesystem takes would cost too much to
 * make.
 */
#include "cmd/libarchive.c"
#include "cmd/ondemand.c"
#include "cmd/tar.c"
#include "cmd/text.c"

/* What is lost for want of memory shows in the test. */
void cmd_lost(void)
{
}

/* That it cannot be loaded shows in the status. */
void cmd_message(const char *format, ...)
{
	(void)format;
}

static int put(void *user, const void *data, size_t size)
{
	return fwrite(data, 1, size, user) == size ? 0 : -EIO;
}

int main(int argc, char **argv)
{
	struct tar *tar;

	if (argc != 4 || strlen(argv[1]) > TAR_PATH_MAX ||
	    !libarchive_load() || tar_open(put, stdout, &tar))
		return 2;
	if (tar_file(tar, argv[1], strtoull(argv[2], NULL, 10),
		     strtoll(argv[3], NULL, 10)) ||
	    flush(tar))
		return 1;
	tar_close(tar);
	return 0;
}

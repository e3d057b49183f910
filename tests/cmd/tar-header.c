/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar-header.c - the header of one file that is not there, for export.t
 *
 *	tar-header PATH SIZE TIME >HEADER
 *
 * Files of many GiB and paths that no filesystem takes would cost too much to
 * make.
 */
#include "cmd/tar.c"
#include "cmd/text.c"

int main(int argc, char **argv)
{
	char header[TAR_HEADER_MAX];
	size_t size;

	if (argc != 4 || strlen(argv[1]) > TAR_PATH_MAX)
		return 2;
	size = tar_header(header, argv[1], strlen(argv[1]),
			  strtoull(argv[2], NULL, 10), strtoll(argv[3], NULL, 10));
	return fwrite(header, 1, size, stdout) != size;
}

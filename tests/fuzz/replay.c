/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - main() of the fuzz targets where no fuzzer drives them
 *
 * Feeds every file of tests/fuzz/corpus/NAME/ to the target that it is linked
 * with, NAME being the program's own, or the files and directories that are
 * given. Each input is copied to a buffer of exactly its size, so that ASan
 * sees the first byte too far.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int count, failed;

static void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	uint8_t *data = NULL;
	struct stat st;

	if (!file)
		return NULL;
	if (fstat(fileno(file), &st) == 0)
		data = malloc(st.st_size ? (size_t)st.st_size : 1);
	if (data) {
		*size = (size_t)st.st_size;
		if (fread(data, 1, *size, file) != *size) {
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

static void replay_file(const char *path)
{
	size_t size = 0;
	uint8_t *data = read_file(path, &size);
	int accepted = -1;

	if (data) {
		accepted = LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	failed += accepted != 0;
	printf("%sok %u - %s\n", accepted ? "not " : "", ++count, path);
	fflush(stdout);
}

static int hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Return: 0; errno of scandir(3). */
static int replay_directory(const char *path)
{
	struct dirent **entries;
	int found = scandir(path, &entries, hidden, alphasort);

	if (found < 0)
		return -errno;
	for (int i = 0; i < found; i++) {
		char file[PATH_MAX];

		snprintf(file, sizeof(file), "%s/%s", path,
			 entries[i]->d_name);
		replay_file(file);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

int main(int argc, char **argv)
{
	char corpus[PATH_MAX];

	snprintf(corpus, sizeof(corpus), "tests/fuzz/corpus/%s",
		 program_invocation_short_name);
	if (argc == 1 && replay_directory(corpus) == -ENOENT) {
		printf("1..0 # SKIP no '%s'\n", corpus);
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		if (replay_directory(argv[i]) == -ENOTDIR)
			replay_file(argv[i]);
	}
	printf("1..%u\n", count);
	return failed || !count;
}

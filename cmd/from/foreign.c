/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.c - formats that only the Python package reads, stele.sources
 *
 * Nothing is read of them but names and how a file begins: a wrong guess is only a hint that
 * does not help.
 */
#include "from/foreign.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX_LOOK (64u << 10) /* bytes of an index.json that say whose it is */

/* Return: how many bytes; 0: there is no such file, or nothing can be read of it. */
static size_t read_head(const char *path, char *data, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t got = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		got = read(fd, data, size);
	close(fd);
	return got > 0 ? (size_t)got : 0;
}

const char *foreign_file(const char *path)
{
	static const struct {
		const char *magic, *end, *what;
	} known[] = {
		{"PAR1", ".parquet", "Parquet"},
		{"ARROW1", ".arrow", "Arrow"},
		{"FEA1", ".feather", "Feather"},
		{NULL, ".array_record", "array_record"},
		{NULL, ".arrayrecord", "array_record"},
	};
	const char *end = strrchr(path, '.');
	char head[8] = "";

	read_head(path, head, sizeof(head));
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const char *magic = known[i].magic;

		if ((magic && !memcmp(head, magic, strlen(magic))) ||
		    (end && !strcmp(end, known[i].end)))
			return known[i].what;
	}
	return NULL;
}

/* Is there such a file in the directory; with this in its head, unless NULL? */
static bool holds(const char *directory, const char *name, const char *text)
{
	char *path = NULL, *head = NULL;
	struct stat st;
	bool found = false;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return false;
	if (!text) {
		found = stat(path, &st) == 0;
	} else {
		head = calloc(1, INDEX_LOOK);
		found = head && memmem(head, read_head(path, head, INDEX_LOOK), text, strlen(text));
	}
	free(head);
	free(path);
	return found;
}

const char *foreign_directory(const char *path)
{
	if (holds(path, "index.json", "\"column_encodings\""))
		return "MDS";
	if (holds(path, "index.json", "\"chunks\""))
		return "LitData";
	if (holds(path, "dataset_dict.json", "\"splits\"") ||
	    holds(path, "state.json", "\"_data_files\""))
		return "Hugging Face";
	if (holds(path, "_versions", NULL) && holds(path, "data", NULL))
		return "Lance";
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordio_idx.c - fuzz target: any bytes as the index of a RecordIO file
 *
 * The file has three records, of which the first byte may cut some off, or break one. Whatever is
 * taken has the keys that lines of the index say, and nothing of the index is missing in the file.
 */
#include "tests/fuzz/source.h"

#define RECORDS	    3u
#define RECORD_SIZE 36u

static const uint8_t record[RECORD_SIZE] =
	"\x0a\x23\xd7\xce\x1c\0\0\0\0\0\0\0\0\0\x80\x3f\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0data";
static char top[] = "/tmp/stele-fuzz-XXXXXX";
static char rec_path[64], idx_path[64];
static const char *idx; /* with a null byte behind it */
static unsigned int there, broken; /* records; which of them, RECORDS: none */

static void remove_files(void)
{
	unlink(rec_path);
	unlink(idx_path);
	rmdir(top);
}

static void make_paths(void)
{
	if (rec_path[0])
		return;
	input_assert(mkdtemp(top) != NULL);
	snprintf(rec_path, sizeof(rec_path), "%s/a.rec", top);
	snprintf(idx_path, sizeof(idx_path), "%s/a.idx", top);
	atexit(remove_files);
}

/* From one offset on, so that a file that is written anew is another version. */
static void write_file(const char *path, const void *data, size_t size)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	input_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* KEY, blanks, OFFSET. Return: false: no such line. */
static bool parse(const char *line, uint64_t *key, uint64_t *offset)
{
	uint64_t *const numbers[] = {key, offset};

	for (unsigned int i = 0; i < 2; i++) {
		const char *begin = line;

		for (*numbers[i] = 0; *line >= '0' && *line <= '9'; line++)
			if (__builtin_mul_overflow(*numbers[i], 10, numbers[i]) ||
			    __builtin_add_overflow(*numbers[i], *line - '0', numbers[i]))
				return false;
		if (line == begin || (!i && *line != ' ' && *line != '\t'))
			return false;
		line += strspn(line, " \t");
	}
	line += *line == '\r';
	return !*line || *line == '\n';
}

static bool has_line(uint64_t key, uint64_t offset)
{
	uint64_t k, o;

	for (const char *at = idx; *at; at++)
		if ((at == idx || at[-1] == '\n') && parse(at, &k, &o) && k == key && o == offset)
			return true;
	return false;
}

/* Is there a line of a record that begins behind the last one? */
static bool has_more(void)
{
	uint64_t k, o;

	for (const char *at = idx; *at; at++)
		if ((at == idx || at[-1] == '\n') && parse(at, &k, &o) &&
		    o >= (uint64_t)there * RECORD_SIZE)
			return true;
	return false;
}

static void check(const struct source_seen *seen, bool skip)
{
	unsigned int number = 0;

	for (unsigned int i = 0; i < seen->count; i++, number++) {
		const char *key = seen->keys[i];

		number += number == broken;
		input_assert(seen->entries[i].key_size > 6 && !memcmp(key, "a.rec/", 6));
		input_assert(has_line(strtoull(key + 6, NULL, 10),
				      (uint64_t)number * RECORD_SIZE));
	}
	input_assert(seen->count == there - (broken < there));
	input_assert(skip || !has_more());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t rec[RECORDS * RECORD_SIZE];
	char *text;

	if (!size)
		return 0;
	make_paths();
	there = RECORDS - (data[0] & 1);
	broken = data[0] & 2 ? 1 : RECORDS;
	for (unsigned int i = 0; i < RECORDS; i++)
		memcpy(rec + (size_t)i * RECORD_SIZE, record, RECORD_SIZE);
	if (broken < RECORDS)
		rec[broken * RECORD_SIZE] ^= 1;
	text = calloc(1, size);
	input_assert(text != NULL);
	memcpy(text, data + 1, size - 1);
	idx = text;
	write_file(rec_path, rec, there * RECORD_SIZE);
	write_file(idx_path, text, size - 1);
	source_check = check;
	source_fuzz_path("recordio", false, rec_path);
	free(text);
	return 0;
}

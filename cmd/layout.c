/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - reports that fit the terminal
 *
 * A line that is too long is broken between words, below its value; where the terminal is
 * narrow, or a word needs it, two columns from the left. A word that is longer than
 * that is broken, too. Every byte of the values is still there.
 */
#include "layout.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"
#include "parse.h"

#define VALUE_INDENT 12u /* of ROW */
#define WORD_INDENT  2u
#define NARROW	     60u
#define COLUMNS_MIN  16u

static struct {
	FILE *stdout_before; /* NULL: nothing is held back */
	char *text;
	size_t size, columns;
} held;

size_t layout_columns(void)
{
	const char *wanted = getenv("COLUMNS");
	struct winsize window;
	uint64_t columns;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col)
		return window.ws_col;
	if (wanted && !parse_number(wanted, COLUMNS_MIN, 10000, &columns))
		return columns;
	return SIZE_MAX;
}

/* Characters, not bytes. */
static size_t width(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Start a line for a word of so many columns. Return: its indent. */
static size_t start_line(size_t word)
{
	size_t indent = held.columns < NARROW || VALUE_INDENT + word > held.columns ?
				WORD_INDENT : VALUE_INDENT;

	printf("\n%*s", (int)indent, "");
	return indent;
}

/* A word wider than a line. Return: the column after it. */
static size_t print_broken(const char *word, size_t size, size_t column)
{
	for (size_t i = 0; i < size; i++) {
		if (((unsigned char)word[i] & 0xc0) != 0x80 && column++ == held.columns)
			column = start_line(held.columns) + 1;
		putchar(word[i]);
	}
	return column;
}

static void print_wrapped(const char *line, size_t size)
{
	const bool narrow = held.columns < NARROW;
	size_t column = 0, gap, word, at = 0;

	while (at < size) {
		for (gap = 0; at + gap < size && line[at + gap] == ' ';)
			gap++;
		at += gap;
		for (word = 0; at + word < size && line[at + word] != ' ';)
			word++;
		gap = narrow && column && gap ? 1 : gap;
		if (column && column + gap + width(line + at, word) > held.columns)
			column = start_line(width(line + at, word));
		else
			column += (size_t)printf("%*s", (int)gap, "");
		if (column + width(line + at, word) > held.columns)
			column = print_broken(line + at, word, column);
		else
			column += width(line + at, fwrite(line + at, 1, word, stdout));
		at += word;
	}
}

void layout_begin(void)
{
	FILE *text;

	held.columns = layout_columns();
	if (held.columns == SIZE_MAX)
		return;
	text = open_memstream(&held.text, &held.size);
	if (!text)
		return;
	held.stdout_before = stdout;
	stdout = text;
}

void layout_end(void)
{
	if (!held.stdout_before)
		return;
	if (fclose(stdout))
		cmd_lost();
	stdout = held.stdout_before;
	held.stdout_before = NULL;
	for (size_t at = 0; held.text && at < held.size; at++) {
		const char *line = held.text + at;
		const size_t size = strcspn(line, "\n");

		if (width(line, size) <= held.columns)
			fwrite(line, 1, size, stdout);
		else
			print_wrapped(line, size);
		putchar('\n');
		at += size;
	}
	free(held.text);
	held.text = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.c - lines of text: each is a sample, as it is or as a JSON object
 *
 * A manifest is a table of either form.
 */
#include "from/lines.h"

#include <errno.h>
#include <string.h>

#include "text.h"

/* What ends a line is no part of it. */
static size_t without_end(const uint8_t *data, size_t size)
{
	if (size && data[size - 1] == '\n')
		size--;
	return size && data[size - 1] == '\r' ? size - 1 : size;
}

/* Return: 1; 0: no more; negative errno (said). */
static int next_line(struct from_scan *scan, struct line *line)
{
	size_t want = 1;

	for (;;) {
		const uint8_t *end;
		int64_t got = input_look(&scan->input, want, &line->data);

		if (got <= 0)
			return got < 0 ? from_input_failed(scan, (int)got) : 0;
		end = memchr(line->data + want - 1, '\n', (size_t)got - (want - 1));
		if (end || (size_t)got < want) {
			line->whole = end ? (size_t)(end + 1 - line->data) : (size_t)got;
			line->size = without_end(line->data, line->whole);
			line->offset = scan->input.offset;
			return 1;
		}
		want = (size_t)got + 1;
		if (want > FROM_RECORD_SIZE_MAX)
			return from_damaged(scan, scan->input.offset, "a line of more than %zu "
					    "bytes: what follows is lost", FROM_RECORD_SIZE_MAX);
	}
}

size_t lines_bom_size(const uint8_t *data, size_t size)
{
	return size >= LINES_BOM_SIZE && !memcmp(data, "\xef\xbb\xbf", LINES_BOM_SIZE) ?
		       LINES_BOM_SIZE : 0;
}

int lines_begin(struct from_scan *scan)
{
	const uint8_t *data;
	int64_t got = input_look(&scan->input, LINES_BOM_SIZE, &data);

	if (got < 0)
		return from_input_failed(scan, (int)got);
	if (got >= 2 && (!memcmp(data, "\xff\xfe", 2) || !memcmp(data, "\xfe\xff", 2)))
		return from_refused(scan->from, -EILSEQ, "'%s' is a text in UTF-16, not in UTF-8",
				   scan->shard->name);
	input_skip(&scan->input, lines_bom_size(data, (size_t)got));
	return 0;
}

int lines_scan(struct from_scan *scan, line_fn fn, void *user)
{
	struct line line = {.number = 0};
	int ret = lines_begin(scan);

	if (ret < 0)
		return ret;
	while ((ret = next_line(scan, &line)) > 0) {
		ret = fn(scan, &line, user);
		if (ret)
			break;
		input_skip(&scan->input, line.whole);
		line.number++;
	}
	return ret;
}

/* ---- a line is a sample ------------------------------------------------------ */

static int take_line(struct from_scan *scan, const struct line *line, void *user)
{
	uint64_t place = from_place(scan, line->offset);
	char key[FROM_NUMBER_KEY_MAX];
	int ret = 0;

	(void)user;
	if (text_valid((const char *)line->data, line->size) != line->size)
		return from_damaged(scan, line->offset, "the line is not UTF-8");
	if (!from_is_plain(scan)) {
		ret = from_store(scan, line->offset, &place);
		if (!ret)
			ret = from_append(scan, line->data, line->size);
	}
	if (ret)
		return ret;
	ret = from_number_key(scan, line->number, key);
	return from_sample(scan, key, (size_t)ret, line->size, place);
}

static int text_scan(struct from_scan *scan)
{
	scan->from->blob = (struct stele_field){
		.size = sizeof(scan->from->blob), .name = "text", .type = STELE_TYPE_UTF8};
	return lines_scan(scan, take_line, NULL);
}

const struct from_format from_text = {
	.name = "text",
	.scan = text_scan,
	.kind = FROM_BLOBS,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - one segment of a test image, composed in memory
 */
#include "tests/image.h"

#include <stdlib.h>
#include <string.h>

#include "format/keys.h"
#include "format/sections.h"
#include "format/segment.h"
#include "tests/tap.h"

#define SECTIONS_MAX 7u /* one more than there may be */

/* A segment while it is composed, in one piece of memory. */
struct work {
	const struct test_segment *in;
	struct stele_record_shape shape;
	struct stele_descriptor d;
	struct stele_descriptor_field fields[2];
	struct stele_section sections[SECTIONS_MAX];
	struct stele_run *runs;
	uint64_t *slot_sizes; /* by source ordinal */
	uint64_t *order;      /* number -> ordinal */
	uint64_t *numbers;    /* ordinal -> number */
	uint64_t *sorted;     /* ordinals by key */
	uint64_t descriptor_size;
	uint8_t *bytes; /* of the whole segment */
};

void test_hash_record(struct stele_hash *hash, const void *slot,
		      uint64_t slot_size, const struct stele_record *record,
		      uint8_t digest[32])
{
	const uint8_t *tail = (const uint8_t *)record->key;
	const uint8_t *crc = (const uint8_t *)slot + slot_size - sizeof(le32);

	stele_hash_begin(hash, STELE_HASH_LEAF);
	stele_hash_add(hash, record->payload, record->payload_size);
	stele_hash_add(hash, tail, (size_t)(crc - tail));
	stele_hash_end(hash, digest);
}

static void *allocate(size_t size)
{
	void *data = calloc(1, size ? size : 1);

	if (!data)
		bail("no memory for a test image");
	return data;
}

static uint32_t key_size(const struct test_sample *sample)
{
	return sample->key_size ? sample->key_size :
				  (uint32_t)strlen(sample->key);
}

/* ---- the plan: numbers, runs, sections ------------------------------------ */

/* What qsort's comparisons look at; tests have one thread. */
static const struct work *sorting;

static int by_slot_size(const void *a, const void *b)
{
	const uint64_t i = *(const uint64_t *)a, j = *(const uint64_t *)b;
	const uint64_t x = sorting->slot_sizes[i], y = sorting->slot_sizes[j];

	return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

static int by_key(const void *a, const void *b)
{
	const struct test_sample *x =
		&sorting->in->samples[*(const uint64_t *)a];
	const struct test_sample *y =
		&sorting->in->samples[*(const uint64_t *)b];

	return stele_key_compare(x->key, key_size(x), y->key, key_size(y));
}

static void plan_numbers(struct work *w)
{
	const uint64_t count = w->in->count;

	for (uint64_t i = 0; i < count; i++) {
		const struct test_sample *s = &w->in->samples[i];
		uint64_t size;

		if (!stele_record_size(&w->shape, s->size, key_size(s), &size))
			bail("sample too large");
		w->slot_sizes[i] = stele_slot_size(size, w->d.granule);
		w->order[i] = w->sorted[i] = i;
	}
	sorting = w;
	if (w->in->order == STELE_SLOT_ORDER_SIZE)
		qsort(w->order, count, sizeof(*w->order), by_slot_size);
	qsort(w->sorted, count, sizeof(*w->sorted), by_key);
	for (uint64_t i = 0; i < count; i++) {
		w->numbers[w->order[i]] = i;
		if (w->in->numbers)
			w->in->numbers[w->order[i]] = i;
	}
}

static uint32_t count_runs(const struct work *w)
{
	uint32_t count = w->in->count > 0;

	for (uint64_t i = 1; i < w->in->count; i++)
		count += w->slot_sizes[w->order[i]] !=
			 w->slot_sizes[w->order[i - 1]];
	return count;
}

/* Straight from stele-format(5): slots go where they do not cross. */
static uint64_t slot_behind(uint64_t end, uint64_t slot_size, uint64_t boundary)
{
	if (boundary && slot_size <= boundary &&
	    end / boundary != (end + slot_size - 1) / boundary)
		end = (end / boundary + 1) * boundary;
	return end;
}

static void plan_runs(struct work *w)
{
	uint64_t end = w->descriptor_size;
	struct stele_run *run = w->runs;

	w->d.slots_offset = end;
	for (uint64_t i = 0; i < w->in->count; i++) {
		uint64_t slot_size = w->slot_sizes[w->order[i]];

		end = slot_behind(end, slot_size, w->d.boundary);
		if (i == 0 || run->slot_size != slot_size) {
			run += i > 0;
			*run = (struct stele_run){i, end, slot_size};
		}
		if (i == 0)
			w->d.slots_offset = end;
		end += slot_size;
	}
	w->d.slots_size = end - w->d.slots_offset;
}

static uint64_t keys_pages(const struct work *w)
{
	static struct stele_keys_writer writer;
	uint64_t pages = w->in->count > 0;

	stele_keys_begin(&writer, NULL);
	for (uint64_t i = 0; i < w->in->count; i++) {
		const struct test_sample *s = &w->in->samples[w->sorted[i]];

		if (stele_keys_add(&writer, s->key, key_size(s), 0, 0))
			continue;
		stele_keys_begin(&writer, NULL);
		stele_keys_add(&writer, s->key, key_size(s), 0, 0);
		pages++;
	}
	return pages;
}

static void names_size(const struct work *w, struct stele_section *section)
{
	for (const char *const *name = w->in->names; name && *name; name++) {
		section->stream_size += 2 + strlen(*name);
		section->count++;
	}
}

static uint64_t leaf_blocks(const struct stele_section *section,
			    const struct stele_section *end)
{
	uint64_t blocks = 0;

	for (; section < end; section++)
		blocks += section->size / STELE_BLOCK_SIZE;
	return blocks;
}

/* Fills sections[] but for the offsets; returns their count. */
static uint32_t plan_sections(struct work *w)
{
	static const uint32_t types[] = {STELE_BLOCK_ORDER, STELE_BLOCK_COLUMN,
					 STELE_BLOCK_DIGESTS};
	const struct stele_section empty = {.field = STELE_NO_FIELD};
	const uint64_t count = w->in->count;
	struct stele_section *s = w->sections;

	if (count > 0) {
		*s = empty;
		s->type = STELE_BLOCK_KEYS;
		s->count = count;
		s++->size = keys_pages(w) * STELE_BLOCK_SIZE;
	}
	for (unsigned int i = 0; i < 3; i++) {
		if (types[i] == STELE_BLOCK_COLUMN && !w->in->labels)
			continue;
		*s = empty;
		s->type = types[i];
		if (types[i] == STELE_BLOCK_COLUMN)
			s->field = 1;
		s += stele_section_geometry(types[i], count, &s->count,
					    &s->size);
	}
	*s = (struct stele_section){.type = STELE_BLOCK_NAMES, .field = 1};
	names_size(w, s);
	s->size = stele_stream_blocks(s->stream_size) * STELE_BLOCK_SIZE;
	s += s->count > 0;
	if (count > 0) {
		*s = empty;
		s->type = STELE_BLOCK_TREE;
		stele_tree_geometry(leaf_blocks(w->sections, s), &s->count,
				    &s->size);
		s++;
	}
	return (uint32_t)(s - w->sections);
}

static void plan_fields(struct work *w)
{
	w->d.field_count = w->in->labels ? 2 : 1;
	w->shape.bytes_count = 1;
	w->shape.scalar_count = w->in->labels;
	strcpy(w->fields[0].name, "data");
	w->fields[0].type = STELE_FIELD_BYTES;
	strcpy(w->fields[1].name, "label");
	w->fields[1].type = STELE_FIELD_I64;
}

static void plan_segment(struct work *w)
{
	const uint64_t count = w->in->count;
	uint64_t stream, end;

	w->slot_sizes = allocate(count * sizeof(*w->slot_sizes));
	w->order = allocate(count * sizeof(*w->order));
	w->numbers = allocate(count * sizeof(*w->numbers));
	w->sorted = allocate(count * sizeof(*w->sorted));
	w->d.granule = w->in->granule ? w->in->granule : 16;
	w->d.order = w->in->order;
	w->d.boundary = w->in->boundary;
	w->d.sample_count = count;
	plan_fields(w);
	plan_numbers(w);
	w->d.run_count = count_runs(w);
	w->runs = allocate(w->d.run_count * sizeof(*w->runs));
	w->d.section_count = plan_sections(w);
	stream = stele_descriptor_stream_size(w->d.field_count, w->d.run_count,
					      w->d.section_count);
	w->descriptor_size = stele_stream_blocks(stream) * STELE_BLOCK_SIZE;
	plan_runs(w);
	end = round_up(w->d.slots_offset + w->d.slots_size, STELE_BLOCK_SIZE);
	for (uint32_t i = 0; i < w->d.section_count; i++) {
		w->sections[i].offset = end;
		end += w->sections[i].size;
	}
	w->d.size = end + w->descriptor_size;
	w->bytes = allocate(w->d.size);
}

/* ---- the bytes ------------------------------------------------------------- */

static struct stele_disk_block *blocks_of(struct work *w, uint32_t type)
{
	for (uint32_t i = 0; i < w->d.section_count; i++)
		if (w->sections[i].type == type)
			return (void *)(w->bytes + w->sections[i].offset);
	return NULL;
}

/* Also the digest of the record, into its place. */
static void put_record(struct work *w, struct stele_hash *hash, uint64_t number)
{
	const struct test_sample *s = &w->in->samples[w->order[number]];
	const struct stele_run *run =
		stele_run_find(w->runs, w->d.run_count, number);
	uint8_t *slot = w->bytes + stele_run_slot(run, number, w->d.boundary);
	uint8_t *slot_end = slot + run->slot_size;
	const uint64_t scalar = s->gone ? 0 : (uint64_t)s->label;
	const uint64_t size = s->gone ? 0 : s->size;
	struct stele_disk_block *digests = blocks_of(w, STELE_BLOCK_DIGESTS);
	struct stele_record record;
	const char *why;
	le32 crc;

	if (size)
		memcpy(slot, s->data, size);
	w->d.payload_size += size;
	w->d.records_size += size;
	w->d.records_size += stele_record_put_tail(
		&w->shape, slot_end, size, s->key, s->gone ? 0 : key_size(s),
		NULL, &scalar, s->gone ? STELE_RECORD_VOID : 0);
	crc = le32_put(stele_record_crc(w->d.id, number, slot, run->slot_size));
	memcpy(slot_end - sizeof(crc), &crc, sizeof(crc));
	if (stele_record_decode(slot, run->slot_size, &w->shape, &record, &why))
		bail("test record: %s", why);
	test_hash_record(hash, slot, run->slot_size, &record,
			  digests[number / STELE_DIGESTS_PER_BLOCK].payload +
				  number % STELE_DIGESTS_PER_BLOCK * 32);
}

/* Of all other sections, which lie one after the other. Leaves the top's hash. */
static void put_tree(struct work *w, struct stele_hash *hash)
{
	struct stele_disk_block *below = blocks_of(w, w->sections[0].type);
	struct stele_disk_block *tree = blocks_of(w, STELE_BLOCK_TREE);
	struct stele_tree_shape shape;

	if (!tree)
		return;
	stele_tree_shape((uint64_t)(tree - below), &shape);
	for (uint32_t level = 1; level < shape.level_count; level++) {
		struct stele_disk_block *blocks = tree + shape.first[level];

		for (uint64_t i = 0; i < shape.blocks[level - 1]; i++)
			stele_hash_block(
				hash, &below[i],
				blocks[i / STELE_DIGESTS_PER_BLOCK].payload +
					i % STELE_DIGESTS_PER_BLOCK * 32);
		below = blocks;
	}
	stele_hash_block(hash, below, w->d.tree_root);
}

static void put_keys(struct work *w)
{
	static struct stele_keys_writer writer;
	struct stele_disk_block *block = blocks_of(w, STELE_BLOCK_KEYS);

	stele_keys_begin(&writer, block);
	for (uint64_t i = 0; i < w->in->count; i++) {
		uint64_t ordinal = w->sorted[i];
		const struct test_sample *s = &w->in->samples[ordinal];

		if (stele_keys_add(&writer, s->key, key_size(s),
				   w->numbers[ordinal], s->size))
			continue;
		stele_keys_end(&writer);
		stele_keys_begin(&writer, ++block);
		stele_keys_add(&writer, s->key, key_size(s),
			       w->numbers[ordinal], s->size);
	}
	if (w->in->count)
		stele_keys_end(&writer);
}

static void put_order(struct work *w)
{
	const uint64_t count = w->in->count;
	const uint32_t width = stele_order_width(count);
	const uint32_t per_block = stele_order_per_block(width);
	struct stele_disk_block *first = blocks_of(w, STELE_BLOCK_ORDER);
	struct stele_disk_block *second = first + stele_order_blocks(count);

	for (uint64_t i = 0; i < count; i++) {
		stele_order_put(&first[i / per_block], width,
				(uint32_t)(i % per_block), w->numbers[i]);
		stele_order_put(&second[i / per_block], width,
				(uint32_t)(i % per_block), w->order[i]);
	}
}

static void put_column(struct work *w)
{
	struct stele_disk_block *block = blocks_of(w, STELE_BLOCK_COLUMN);
	uint64_t left = w->in->count;

	for (uint64_t number = 0; block && left > 0; block++) {
		struct stele_disk_column *column = (void *)block->payload;
		uint32_t count = left < STELE_COLUMN_PER_BLOCK ?
					 (uint32_t)left :
					 STELE_COLUMN_PER_BLOCK;

		for (uint32_t i = 0; i < count; i++) {
			const struct test_sample *s =
				&w->in->samples[w->order[number++]];

			column->values[i] = le64_put(
				s->gone ? 0 : (uint64_t)s->label);
		}
		stele_column_summarise(column, count, STELE_FIELD_I64);
		left -= count;
	}
}

static void put_names(struct work *w)
{
	struct stele_disk_block *blocks = blocks_of(w, STELE_BLOCK_NAMES);
	uint64_t position = 0;

	if (!blocks)
		return;
	for (const char *const *name = w->in->names; *name; name++) {
		size_t size = strlen(*name);
		const le16 head = le16_put((uint16_t)size);

		stele_stream_put(blocks, 4096, position, &head, sizeof(head));
		stele_stream_put(blocks, 4096, position + 2, *name, size);
		position += 2 + size;
	}
}

static void put_descriptor(struct work *w, struct stele_hash *hash)
{
	struct stele_disk_block *front = (void *)w->bytes;
	uint64_t back = w->d.size - w->descriptor_size;
	struct stele_names_stream names = {.field = 1};
	uint32_t names_count = 0;

	for (uint32_t i = 0; i < w->d.section_count; i++) {
		const struct stele_section *s = &w->sections[i];

		stele_blocks_seal((void *)(w->bytes + s->offset),
				  s->size / STELE_BLOCK_SIZE, s->type,
				  w->d.offset + s->offset, w->d.id);
		if (s->type != STELE_BLOCK_NAMES)
			continue;
		names.stream_size = s->stream_size;
		names.blocks = (void *)(w->bytes + s->offset);
		names.block_count = s->size / STELE_BLOCK_SIZE;
		names_count = 1;
	}
	stele_hash_schema(hash, w->fields, w->d.field_count, &names,
			  names_count, w->d.schema_digest);
	for (uint32_t i = 0; i < w->d.field_count; i++)
		stele_descriptor_put_field(front, &w->d, i, &w->fields[i]);
	for (uint32_t i = 0; i < w->d.run_count; i++)
		stele_descriptor_put_run(front, &w->d, i, &w->runs[i]);
	for (uint32_t i = 0; i < w->d.section_count; i++)
		stele_descriptor_put_section(front, &w->d, i, &w->sections[i]);
	w->d.blocks = front;
	w->d.block_count = w->descriptor_size / STELE_BLOCK_SIZE;
	if (w->d.sample_count)
		stele_hash_root(hash, &w->d, w->d.tree_root, w->d.tree_root);
	stele_descriptor_put_header(front, &w->d);
	memcpy(w->bytes + back, front, w->descriptor_size);
	stele_descriptor_seal(front, &w->d, w->d.offset);
	stele_descriptor_seal((void *)(w->bytes + back), &w->d,
			      w->d.offset + back);
}

static void put_segment(struct work *w)
{
	struct stele_hash *hash;

	if (stele_hash_new(&hash) < 0)
		bail("no hash");
	for (uint64_t i = 0; i < w->in->count; i++)
		put_record(w, hash, i);
	put_keys(w);
	put_order(w);
	put_column(w);
	put_names(w);
	put_tree(w, hash);
	put_descriptor(w, hash);
	stele_hash_free(hash);
}

void test_segment_compose(const struct test_segment *segment, uint64_t id,
			  uint64_t offset, struct test_composed *out)
{
	struct work w = {.in = segment};

	plan_segment(&w);
	w.d.id = id;
	w.d.offset = offset;
	put_segment(&w);
	out->d = w.d;
	out->descriptor_size = w.descriptor_size;
	out->bytes = w.bytes;
	free(w.slot_sizes);
	free(w.order);
	free(w.numbers);
	free(w.sorted);
	free(w.runs);
}

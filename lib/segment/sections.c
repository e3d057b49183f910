/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.c - keys, order, column, names, digests, tree, descriptors
 *
 * All is read from the plan's arrays front to back where it can be. Memory is
 * one buffer and, for the tree, the hashes of one level: each block that is
 * sealed leaves its own.
 */
#include "lib/segment/sections.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/filter.h"
#include "format/keys.h"
#include "format/sections.h"

#define BUFFER_SIZE (UINT64_C(4) << 20)

/* Metadata blocks one after the other, in large blocking writes. */
struct blocks {
	struct stele_device *dev;
	struct stele_disk_block *buffer;
	uint64_t capacity, count; /* blocks in the buffer */
	uint64_t offset;	  /* on the target, of the buffer's first one */
};

struct writing {
	struct stele_builder *builder;
	struct stele_plan *plan;
	const struct stele_written *written;
	struct stele_hash *hash;
	struct blocks out;
	uint64_t begin;		   /* of the sections on the target */
	struct stele_spill hashes; /* of the blocks of one level */
	uint64_t hash_count;
	struct stele_spill names[STELE_FIELD_COUNT_MAX]; /* raw streams */
};

/* ---- blocks ------------------------------------------------------------------ */

static int blocks_open(struct blocks *writer, struct stele_device *dev,
		       uint64_t offset, uint64_t buffer_size)
{
	memset(writer, 0, sizeof(*writer));
	writer->dev = dev;
	writer->offset = offset;
	writer->capacity = buffer_size / STELE_BLOCK_SIZE;
	writer->buffer = stele_device_alloc(dev, writer->capacity *
						 STELE_BLOCK_SIZE);
	return writer->buffer ? 0 : -ENOMEM;
}

/* What is not flushed is dropped. */
static void blocks_close(struct blocks *writer)
{
	free(writer->buffer);
	memset(writer, 0, sizeof(*writer));
}

static int blocks_flush(struct blocks *writer)
{
	const uint64_t size = writer->count * STELE_BLOCK_SIZE;
	int ret = 0;

	if (size)
		ret = stele_device_write(writer->dev, writer->buffer,
					 writer->offset, size);
	writer->offset += size;
	writer->count = 0;
	return ret;
}

/* The next block, zeroed. Return: 0; errno of the device. */
static int blocks_next(struct blocks *writer,
		       struct stele_disk_block **block)
{
	if (writer->count == writer->capacity) {
		int ret = blocks_flush(writer);

		if (ret < 0)
			return ret;
	}
	*block = &writer->buffer[writer->count++];
	memset(*block, 0, sizeof(**block));
	return 0;
}

static uint64_t blocks_offset(const struct blocks *writer)
{
	return writer->offset + writer->count * STELE_BLOCK_SIZE;
}

/* Where the block that next() gave last will lie. */
static uint64_t blocks_last(const struct blocks *writer)
{
	return blocks_offset(writer) - STELE_BLOCK_SIZE;
}

static int blocks_put(struct blocks *writer,
		      const struct stele_disk_block *blocks, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct stele_disk_block *block;
		int ret = blocks_next(writer, &block);

		if (ret < 0)
			return ret;
		memcpy(block, &blocks[i], sizeof(*block));
	}
	return 0;
}

/* ---- hashes ------------------------------------------------------------------ */

/* After each block, or a few of them. */
static int tell(struct writing *w)
{
	struct stele_progress *progress = &w->builder->progress;

	progress->bytes_done = blocks_offset(&w->out) - w->begin;
	return stele_builder_tick(w->builder);
}

static void add_hash(struct writing *w, const struct stele_disk_block *block)
{
	uint8_t *hashes = w->hashes.data;

	stele_hash_block(w->hash, block,
			 hashes + w->hash_count++ * STELE_DIGEST_SIZE);
}

/* The block that next() gave last is complete. */
static void seal(struct writing *w, struct stele_disk_block *block,
		 enum stele_block_type type)
{
	add_hash(w, block);
	stele_block_seal(block, type, blocks_last(&w->out),
			 w->plan->descriptor.id);
}

/* ---- keys, order, column ----------------------------------------------------- */

static int write_keys(struct writing *w)
{
	const struct stele_plan *plan = w->plan;
	const uint64_t *numbers = plan->numbers.data;
	struct stele_keys_writer *page = malloc(sizeof(*page));
	struct stele_disk_block *block = NULL;
	int ret = page ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < plan->descriptor.sample_count && !ret; i++) {
		struct stele_source_entry entry;

		stele_table_get(&plan->table, i, &entry);
		if (block && stele_keys_add(page, entry.key,
					    (uint32_t)entry.key_size,
					    numbers[i], entry.data_size))
			continue;
		if (block) {
			stele_keys_end(page);
			seal(w, block, STELE_BLOCK_KEYS);
		}
		ret = blocks_next(&w->out, &block);
		if (ret < 0)
			break;
		stele_keys_begin(page, block);
		stele_keys_add(page, entry.key, (uint32_t)entry.key_size,
			       numbers[i], entry.data_size);
		ret = tell(w);
	}
	if (!ret && block) {
		stele_keys_end(page);
		seal(w, block, STELE_BLOCK_KEYS);
	}
	free(page);
	return ret;
}

static int write_numbers(struct writing *w, const uint64_t *values)
{
	const uint64_t count = w->plan->descriptor.sample_count;
	const uint32_t width = stele_order_width(count);
	const uint32_t per_block = stele_order_per_block(width);
	int ret = 0;

	for (uint64_t at = 0; at < count && !ret; at += per_block) {
		struct stele_disk_block *block;

		ret = blocks_next(&w->out, &block);
		if (ret < 0)
			break;
		for (uint32_t i = 0; i < per_block && at + i < count; i++)
			stele_order_put(block, width, i, values[at + i]);
		seal(w, block, STELE_BLOCK_ORDER);
		ret = tell(w);
	}
	return ret;
}

static int write_order(struct writing *w)
{
	int ret = write_numbers(w, w->plan->numbers.data);

	return ret ? ret : write_numbers(w, w->plan->ordinals.data);
}

/* Values of a scalar field, by number. */
static const uint64_t *scalars_of(const struct writing *w, uint32_t field)
{
	const struct stele_plan *plan = w->plan;
	const uint64_t *scalars = w->written->scalars.data;

	for (uint32_t i = 0; i < field; i++)
		if (stele_field_is_scalar(plan->fields.list[i].type))
			scalars += plan->descriptor.sample_count;
	return scalars;
}

static int write_column(struct writing *w, uint32_t field)
{
	const uint64_t count = w->plan->descriptor.sample_count;
	const uint64_t *values = scalars_of(w, field);
	int ret = 0;

	for (uint64_t at = 0; at < count && !ret;
	     at += STELE_COLUMN_PER_BLOCK) {
		struct stele_disk_block *block;
		struct stele_disk_column *column;
		uint32_t i;

		ret = blocks_next(&w->out, &block);
		if (ret < 0)
			break;
		column = (struct stele_disk_column *)block->payload;
		for (i = 0; i < STELE_COLUMN_PER_BLOCK && at + i < count; i++)
			column->values[i] = le64_put(values[at + i]);
		stele_column_summarise(column, i, w->plan->fields.list[field].type);
		seal(w, block, STELE_BLOCK_COLUMN);
		ret = tell(w);
	}
	return ret;
}

/* ---- names ------------------------------------------------------------------- */

/* The raw stream: the schema's digest wants it whole. */
static int make_names(struct writing *w, uint32_t field)
{
	const struct stele_class_names *names = &w->plan->fields.names[field];
	const uint64_t count = stele_stream_blocks(names->stream_size);
	struct stele_disk_block *blocks;
	uint64_t position = 0;
	int ret = stele_spill_grow(&w->names[field], count * STELE_BLOCK_SIZE);

	blocks = w->names[field].data;
	for (uint32_t i = 0; i < names->count && !ret; i++) {
		const char *name = names->list[i];
		size_t size = strlen(name);
		le16 head = le16_put((uint16_t)size);

		if (!stele_stream_put(blocks, count, position, &head,
				      sizeof(head)) ||
		    !stele_stream_put(blocks, count, position + sizeof(head),
				      name, size))
			ret = -EUCLEAN;
		position += sizeof(head) + size;
	}
	return ret;
}

static int write_names(struct writing *w, uint32_t field)
{
	const struct stele_spill *names = &w->names[field];
	const uint64_t count = names->size / STELE_BLOCK_SIZE;
	const struct stele_disk_block *blocks = names->data;

	for (uint64_t i = 0; i < count; i++)
		add_hash(w, &blocks[i]);
	stele_blocks_seal(names->data, count, STELE_BLOCK_NAMES,
			  blocks_offset(&w->out),
			  w->plan->descriptor.id);
	return blocks_put(&w->out, names->data, count);
}

/* Makes the names' streams, which go out with their sections. */
static int hash_schema(struct writing *w)
{
	struct stele_descriptor *d = &w->plan->descriptor;
	struct stele_names_stream streams[STELE_FIELD_COUNT_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < d->field_count; i++) {
		const struct stele_class_names *names = &w->plan->fields.names[i];
		int ret;

		if (!names->count)
			continue;
		ret = make_names(w, i);
		if (ret < 0)
			return ret;
		streams[count++] = (struct stele_names_stream){
			.field = i,
			.stream_size = names->stream_size,
			.blocks = w->names[i].data,
			.block_count = w->names[i].size / STELE_BLOCK_SIZE,
		};
	}
	stele_hash_schema(w->hash, w->plan->fields.list, d->field_count, streams,
			  count, d->schema_digest);
	return 0;
}

/* ---- digests and their tree -------------------------------------------------- */

/* `count` digests or hashes, 127 to a block. */
static int write_level(struct writing *w, enum stele_block_type type,
		       const uint8_t *digests, uint64_t count)
{
	int ret = 0;

	for (uint64_t at = 0; at < count && !ret;
	     at += STELE_DIGESTS_PER_BLOCK) {
		uint64_t n = count - at;
		struct stele_disk_block *block;

		if (n > STELE_DIGESTS_PER_BLOCK)
			n = STELE_DIGESTS_PER_BLOCK;
		ret = blocks_next(&w->out, &block);
		if (ret < 0)
			break;
		memcpy(block->payload, digests + at * STELE_DIGEST_SIZE,
		       n * STELE_DIGEST_SIZE);
		seal(w, block, type);
		ret = tell(w);
	}
	return ret;
}

/*
 * The hash of each block of a level takes the place of the hashes that are in it:
 * never before they were read from there.
 */
static int write_tree(struct writing *w)
{
	struct stele_tree_shape shape;
	int ret = 0;

	stele_tree_shape(w->hash_count, &shape);
	for (uint32_t i = 1; i < shape.level_count && !ret; i++) {
		w->hash_count = 0;
		ret = write_level(w, STELE_BLOCK_TREE, w->hashes.data,
				  shape.blocks[i - 1]);
	}
	return ret;
}

/* ---- all of them ------------------------------------------------------------- */

static int write_section(struct writing *w,
			 const struct stele_section *section)
{
	switch (section->type) {
	case STELE_BLOCK_KEYS:
		return write_keys(w);
	case STELE_BLOCK_ORDER:
		return write_order(w);
	case STELE_BLOCK_COLUMN:
		return write_column(w, section->field);
	case STELE_BLOCK_NAMES:
		return write_names(w, section->field);
	case STELE_BLOCK_DIGESTS:
		return write_level(w, STELE_BLOCK_DIGESTS,
				   w->written->digests.data,
				   w->plan->descriptor.sample_count);
	default:
		return write_tree(w);
	}
}

static int not_planned(const struct writing *w, uint64_t planned)
{
	stele_log_error(&w->builder->log,
			"section at %" PRIu64 ", planned at %" PRIu64
			" (a bug)",
			blocks_offset(&w->out), planned);
	return -EUCLEAN;
}

static int write_sections(struct writing *w)
{
	const struct stele_descriptor *d = &w->plan->descriptor;
	const uint64_t blocks = w->plan->sections_size / STELE_BLOCK_SIZE;
	int ret = stele_spill_grow(&w->hashes, blocks * STELE_DIGEST_SIZE);

	for (uint32_t i = 0; i < d->section_count && !ret; i++) {
		const struct stele_section *section = &w->plan->sections[i];
		uint64_t planned = d->offset + section->offset;

		if (planned != blocks_offset(&w->out))
			return not_planned(w, planned);
		ret = write_section(w, section);
	}
	return ret;
}

/* Those of holes as well: what the section KEYS has. */
static void fill_filter(const struct stele_plan *plan,
			struct stele_disk_block *blocks)
{
	const struct stele_descriptor *d = &plan->descriptor;
	uint8_t filter[STELE_FILTER_SIZE_MAX] = {0};

	for (uint64_t i = 0; d->filter_size && i < d->sample_count; i++) {
		struct stele_source_entry entry;

		stele_table_get(&plan->table, i, &entry);
		stele_filter_add(filter, d->filter_size,
				 stele_filter_hash(entry.key, entry.key_size));
	}
	stele_descriptor_put_filter(blocks, d, filter);
}

/* The header comes last: its root is the hash of what the sections are. */
static void fill_descriptor(struct writing *w, struct stele_disk_block *blocks)
{
	const struct stele_plan *plan = w->plan;
	struct stele_descriptor *d = &w->plan->descriptor;
	const struct stele_run *runs = plan->runs.data;

	for (uint32_t i = 0; i < d->field_count; i++)
		stele_descriptor_put_field(blocks, d, i, &plan->fields.list[i]);
	for (uint32_t i = 0; i < d->run_count; i++)
		stele_descriptor_put_run(blocks, d, i, &runs[i]);
	for (uint32_t i = 0; i < d->section_count; i++)
		stele_descriptor_put_section(blocks, d, i, &plan->sections[i]);
	fill_filter(plan, blocks);
	d->blocks = blocks;
	d->block_count = plan->descriptor_size / STELE_BLOCK_SIZE;
	if (d->sample_count)
		stele_hash_root(w->hash, d, w->hashes.data, d->tree_root);
	d->blocks = NULL;
	stele_descriptor_put_header(blocks, d);
}

/* The second copy follows the sections; the first goes to the front. */
static int write_descriptors(struct writing *w)
{
	struct stele_plan *plan = w->plan;
	const struct stele_descriptor *d = &plan->descriptor;
	const uint64_t count = plan->descriptor_size / STELE_BLOCK_SIZE;
	const uint64_t second = d->offset + d->size - plan->descriptor_size;
	struct stele_spill blocks;
	int ret;

	if (blocks_offset(&w->out) != second)
		return not_planned(w, second);
	stele_spill_init(&blocks, &plan->pool);
	ret = stele_spill_grow(&blocks, plan->descriptor_size);
	if (!ret) {
		fill_descriptor(w, blocks.data);
		stele_descriptor_seal(blocks.data, d, second);
		ret = blocks_put(&w->out, blocks.data, count);
	}
	if (!ret)
		ret = blocks_flush(&w->out);
	if (!ret) {
		w->out.offset = d->offset;
		stele_descriptor_seal(blocks.data, d, d->offset);
		ret = blocks_put(&w->out, blocks.data, count);
	}
	if (!ret)
		ret = blocks_flush(&w->out);
	stele_spill_release(&blocks);
	return ret;
}

int stele_sections_write(struct stele_builder *builder, struct stele_plan *plan,
			 const struct stele_written *written,
			 struct stele_device *dev)
{
	const struct stele_descriptor *d = &plan->descriptor;
	const uint64_t memory = builder->opts.memory_size / 2;
	struct writing w = {
		.builder = builder,
		.plan = plan,
		.written = written,
	};
	int ret;

	stele_spill_init(&w.hashes, &plan->pool);
	for (uint32_t i = 0; i < STELE_FIELD_COUNT_MAX; i++)
		stele_spill_init(&w.names[i], &plan->pool);
	w.begin = d->offset + round_up(d->slots_offset + d->slots_size,
				       STELE_BLOCK_SIZE);
	ret = stele_builder_phase(builder, STELE_PHASE_SECTIONS, 0,
				  plan->sections_size);
	if (!ret)
		ret = stele_hash_new(&w.hash);
	if (!ret)
		ret = blocks_open(&w.out, dev, w.begin,
				  memory < BUFFER_SIZE ? memory : BUFFER_SIZE);
	if (!ret)
		ret = hash_schema(&w);
	if (!ret)
		ret = write_sections(&w);
	if (!ret)
		ret = write_descriptors(&w);
	if (ret < 0 && ret != -ECANCELED && ret != -ESTALE) /* logged */
		stele_log_error(&builder->log, "cannot write sections: %s",
				stele_device_strerror(dev, ret));
	blocks_close(&w.out);
	stele_hash_free(w.hash);
	stele_spill_release(&w.hashes);
	for (uint32_t i = 0; i < STELE_FIELD_COUNT_MAX; i++)
		stele_spill_release(&w.names[i]);
	return ret;
}

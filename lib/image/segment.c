/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - one segment in memory: descriptor, class names, deleted list
 *
 * Allocations are bounded by what the catalog and the descriptor claim to be
 * on the target, and recovery has compared that with the target's size.
 */
#include "lib/image/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"
#include "lib/image/digest.h"
#include "lib/image/section.h"

#define READ_MANY  4u /* descriptors that are worth a queue */
#define READ_DEPTH 64u

static int read_descriptor(struct stele_image *image,
			   const struct stele_catalog_segment *where,
			   uint64_t offset, bool is_read,
			   struct stele_segment *segment, const char **why)
{
	struct stele_descriptor *d = &segment->descriptor;
	int ret = 0;

	*why = "cannot be read";
	if (!is_read)
		ret = stele_device_read(image->dev, segment->blocks, offset,
					where->descriptor_size);
	if (ret == 0)
		ret = stele_descriptor_decode(segment->blocks,
					      where->descriptor_size, offset,
					      where->id, d, why);
	if (ret == 0 &&
	    (d->offset != where->offset || d->size != where->size ||
	     d->sample_count != where->sample_count)) {
		*why = "descriptor: differs from the catalog";
		ret = -EUCLEAN;
	}
	/* A catalog of ours references it: damaged, not foreign. */
	return ret == -EMEDIUMTYPE ? -EBADMSG : ret;
}

/* The first copy, which may have been read already, or else the last. */
static int load_descriptor(struct stele_image *image,
			   const struct stele_catalog_segment *where,
			   struct stele_segment *segment)
{
	const uint64_t size = where->descriptor_size;
	const uint64_t offsets[] = {
		where->offset, where->offset + where->size - size};
	const bool is_read = segment->blocks;
	const char *why;
	int ret = -EUCLEAN;

	if (size > STELE_DESCRIPTOR_SIZE_MAX || size > where->size)
		return -EUCLEAN;
	if (!is_read)
		segment->blocks = stele_device_alloc(image->dev, size);
	if (!segment->blocks)
		return -ENOMEM;
	for (unsigned int i = 0; i < 2; i++) {
		ret = read_descriptor(image, where, offsets[i],
				      is_read && i == 0, segment, &why);
		if (ret == 0)
			return 0;
		stele_log_emit(&image->log,
			       i ? STELE_LOG_ERROR : STELE_LOG_WARNING,
			       "descriptor of segment %" PRIx64 " at %" PRIu64
			       " rejected: %s",
			       where->id, offsets[i], why);
	}
	return ret;
}

/* Readers that do not know a feature were kept out by its bit. */
static int check_features(const struct stele_image *image,
			  const struct stele_segment *segment)
{
	const struct stele_descriptor *d = &segment->descriptor;

	if (!(stele_descriptor_features(d, segment->fields) &
	      ~(image->sb.feature_incompat | image->feature_pending)))
		return 0;
	stele_log_error(&image->log,
			"segment %" PRIx64 " has a boundary or tensors without "
			"their feature", d->id);
	return -EUCLEAN;
}

static int unpack_descriptor(struct stele_segment *segment)
{
	const struct stele_descriptor *d = &segment->descriptor;

	segment->runs = calloc(d->run_count + 1, sizeof(*segment->runs));
	segment->fields = calloc(d->field_count + 1, sizeof(*segment->fields));
	segment->names = calloc(d->field_count + 1, sizeof(*segment->names));
	if (!segment->runs || !segment->fields || !segment->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->run_count; i++)
		stele_descriptor_run(d, i, &segment->runs[i]);
	for (uint32_t i = 0; i < d->field_count; i++)
		stele_descriptor_field(d, i, &segment->fields[i]);
	stele_descriptor_shape(d, &segment->shape);
	return 0;
}

/* One block of memory: the pointers, then the names. */
static int unpack_names(const struct stele_section *section,
			const struct stele_disk_block *blocks,
			struct stele_names *out)
{
	const uint64_t count = section->count;
	const uint64_t block_count = section->size / STELE_BLOCK_SIZE;
	char name[STELE_KEY_SIZE_MAX + 1];
	uint64_t position = 0;
	char *text;

	/* Each name takes at least three bytes of the stream. */
	if (section->stream_size > STELE_NAMES_SIZE_MAX ||
	    count > section->stream_size / 3)
		return -EUCLEAN;
	out->names = malloc(count * sizeof(*out->names) + section->stream_size);
	if (!out->names)
		return -ENOMEM;
	text = (char *)(out->names + count);
	for (uint64_t i = 0; i < count; i++) {
		int size = stele_names_next(blocks, block_count,
					    section->stream_size, &position,
					    name);

		if (size < 0)
			return size;
		out->names[i] = text;
		memcpy(text, name, (size_t)size + 1);
		text += size + 1;
	}
	out->count = (uint32_t)count;
	if (position != section->stream_size ||
	    !stele_stream_zero_from(blocks, block_count, position))
		return -EUCLEAN;
	return 0;
}

static int load_names(struct stele_image *image, struct stele_segment *segment,
		      const struct stele_section *section,
		      struct stele_names_stream *stream)
{
	struct stele_disk_block *blocks;
	int ret;

	if (section->size > STELE_NAMES_SIZE_MAX + (STELE_NAMES_SIZE_MAX >> 6))
		return -EUCLEAN;
	blocks = stele_device_alloc(image->dev, section->size);
	if (!blocks)
		return -ENOMEM;
	stream->field = section->field;
	stream->stream_size = section->stream_size;
	stream->blocks = blocks; /* freed with the array */
	stream->block_count = section->size / STELE_BLOCK_SIZE;
	ret = stele_section_read(image, segment, section, 0,
				 stream->block_count, blocks);
	if (ret == 0)
		ret = unpack_names(section, blocks,
				   &segment->names[section->field]);
	return ret;
}

static int check_schema(struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_names_stream *streams,
			uint32_t count)
{
	const struct stele_descriptor *d = &segment->descriptor;
	uint8_t digest[STELE_DIGEST_SIZE];
	struct stele_hash *hash;
	int ret;

	ret = stele_hash_new(&hash);
	if (ret < 0)
		return ret;
	stele_hash_schema(hash, segment->fields, d->field_count, streams, count,
			  digest);
	stele_hash_free(hash);
	if (memcmp(digest, d->schema_digest, sizeof(digest)) == 0)
		return 0;
	stele_log_error(&image->log,
			"schema digest of segment %" PRIx64 " differs", d->id);
	return -EBADMSG;
}

int stele_segment_load_schema(struct stele_image *image,
			      struct stele_segment *segment)
{
	struct stele_names_stream streams[STELE_FIELD_COUNT_MAX] = {0};
	uint32_t count = 0;
	int ret = 0;

	for (uint32_t i = 0; i < segment->descriptor.field_count; i++) {
		struct stele_section section;

		if (stele_descriptor_find_section(&segment->descriptor,
						  STELE_BLOCK_NAMES, i,
						  &section) < 0)
			continue;
		ret = load_names(image, segment, &section, &streams[count++]);
		if (ret < 0)
			break;
	}
	if (ret == 0)
		ret = check_schema(image, segment, streams, count);
	if (ret == -EUCLEAN)
		stele_log_error(&image->log,
				"impossible class names of segment %" PRIx64,
				segment->descriptor.id);
	while (count > 0)
		free((void *)streams[--count].blocks);
	return ret;
}

static int load_deleted(struct stele_image *image,
			const struct stele_catalog_ref *ref,
			struct stele_segment *segment)
{
	const char *why = "no memory";
	int ret;

	ret = stele_deleted_load(image, ref, segment->descriptor.sample_count,
				 &segment->deleted, &why);
	if (ret < 0)
		stele_log_error(&image->log,
				"deleted list at %" PRIu64 ": %s",
				ref->lists[0].offset, why);
	return ret;
}

/* `blocks`: the first copy, as it was read, and now the segment's; or NULL. */
static int load_bare(struct stele_image *image,
		     const struct stele_catalog_segment *where, void *blocks,
		     struct stele_segment *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	out->blocks = blocks;
	ret = load_descriptor(image, where, out);
	if (ret == 0)
		ret = unpack_descriptor(out);
	if (ret == 0)
		ret = check_features(image, out);
	if (ret < 0)
		stele_segment_release(out);
	out->live_count = out->descriptor.sample_count;
	return ret;
}

int stele_segment_load_bare(struct stele_image *image,
			    const struct stele_catalog_segment *where,
			    struct stele_segment *out)
{
	return load_bare(image, where, NULL, out);
}

static int load(struct stele_image *image,
		const struct stele_catalog_segment *where,
		const struct stele_catalog_ref *ref, void *blocks,
		struct stele_segment *out)
{
	int ret;

	ret = load_bare(image, where, blocks, out);
	if (ret < 0)
		return ret;
	ret = stele_segment_load_schema(image, out);
	if (ret == 0 && ref && ref->deleted_count)
		ret = load_deleted(image, ref, out);
	if (ret < 0) {
		stele_segment_release(out);
		return ret;
	}
	out->live_count -= out->deleted.count;
	return 0;
}

int stele_segment_load(struct stele_image *image,
		       const struct stele_catalog_segment *where,
		       const struct stele_catalog_ref *ref,
		       struct stele_segment *out)
{
	return load(image, where, ref, NULL, out);
}

/* ---- all of a snapshot ------------------------------------------------------- */

static void segment_of(const struct stele_image *image, uint32_t ref_index,
		       struct stele_catalog_ref *ref,
		       struct stele_catalog_segment *where)
{
	stele_catalog_ref(&image->catalog, ref_index, ref);
	stele_catalog_segment(&image->catalog, ref->segment, where);
}

/* What is asked for; size 0: nothing. */
static void ask_for(const struct stele_image *image, uint32_t ref_index,
		    struct stele_request *request)
{
	struct stele_catalog_segment where;
	struct stele_catalog_ref ref;

	segment_of(image, ref_index, &ref, &where);
	*request = (struct stele_request){.op = STELE_OP_READ,
					  .offset = where.offset};
	if (where.descriptor_size > image->dev->limits.transfer_max ||
	    where.descriptor_size > STELE_DESCRIPTOR_SIZE_MAX ||
	    where.descriptor_size > where.size)
		return;
	request->data = stele_device_alloc(image->dev, where.descriptor_size);
	if (request->data)
		request->size = (uint32_t)where.descriptor_size;
}

/*
 * Read the first copies of all descriptors, many at a time. What fails is left to
 * who loads that segment. Where a queue broke, memory may be written to for ever.
 */
static void read_all(struct stele_image *image, uint32_t first_ref,
		     uint32_t count, void **blocks)
{
	struct stele_request *requests = calloc(count, sizeof(*requests));
	struct stele_queue *queue = NULL;
	uint32_t asked = 0;
	bool good = requests && !stele_queue_open(image->dev, READ_DEPTH, NULL,
						  0, &queue);

	for (uint32_t i = 0; good && i < count; i++) {
		ask_for(image, first_ref + i, &requests[asked]);
		if (!requests[asked].size)
			continue;
		requests[asked].user = &blocks[i];
		asked++;
	}
	if (good)
		good = stele_queue_run(queue, requests, asked) == 0;
	if (stele_queue_close(queue))
		asked = 0;
	for (uint32_t i = 0; i < asked; i++) {
		if (good && requests[i].status == 0)
			*(void **)requests[i].user = requests[i].data;
		else
			free(requests[i].data);
	}
	free(requests);
}

int stele_segments_load(struct stele_image *image, uint32_t first_ref,
			uint32_t count, struct stele_segment *out,
			uint32_t *loaded)
{
	void **blocks = calloc((size_t)count + 1, sizeof(*blocks));
	int ret = blocks ? 0 : -ENOMEM;

	*loaded = 0;
	if (blocks && count >= READ_MANY)
		read_all(image, first_ref, count, blocks);
	for (uint32_t i = 0; i < count && ret == 0; i++) {
		struct stele_catalog_segment where;
		struct stele_catalog_ref ref;

		segment_of(image, first_ref + i, &ref, &where);
		ret = load(image, &where, &ref, blocks[i], &out[i]);
		blocks[i] = NULL; /* the segment's, or released with it */
		*loaded += ret == 0;
	}
	for (uint32_t i = 0; blocks && i < count; i++)
		free(blocks[i]);
	free(blocks);
	return ret;
}

void stele_segment_release(struct stele_segment *segment)
{
	if (segment->names)
		for (uint32_t i = 0; i < segment->descriptor.field_count; i++)
			free(segment->names[i].names);
	free(segment->names);
	free(segment->fields);
	free(segment->runs);
	stele_deleted_release(&segment->deleted);
	free(segment->blocks);
	memset(segment, 0, sizeof(*segment));
}

_Static_assert((int)STELE_TYPE_TENSOR == STELE_FIELD_TENSOR &&
	       (int)STELE_TYPE_F64 == STELE_FIELD_F64, "types are the format's");
_Static_assert(STELE_RANK_MAX == STELE_FIELD_RANK_MAX, "so are ranks");

void stele_segment_field(const struct stele_segment *segment, uint32_t index,
			 struct stele_field *out)
{
	const struct stele_descriptor_field *field = &segment->fields[index];

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	memcpy(out->name, field->name, sizeof(out->name) - 1);
	out->type = field->type;
	out->name_count = segment->names[index].count;
	out->names = (const char *const *)segment->names[index].names;
	out->dtype = field->dtype;
	out->rank = field->rank;
	memcpy(out->dims, field->dims, sizeof(out->dims));
}

void stele_segment_slot(const struct stele_segment *segment, uint64_t number,
			uint64_t *offset, uint64_t *slot_size)
{
	const struct stele_descriptor *d = &segment->descriptor;
	const struct stele_run *run =
		stele_run_find(segment->runs, d->run_count, number);

	*offset = d->offset + stele_run_slot(run, number, d->boundary);
	*slot_size = run->slot_size;
}

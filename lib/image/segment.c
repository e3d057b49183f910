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
			       "descriptor of segment %016" PRIx64 " at byte %" PRIu64
			       " cannot be used: %s",
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
			"segment %016" PRIx64 " has a boundary or tensors without "
			"their feature", d->id);
	return -EUCLEAN;
}

static int unpack_descriptor(struct stele_segment *segment)
{
	const struct stele_descriptor *d = &segment->descriptor;
	struct stele_section keys;

	segment->runs = calloc(d->run_count + 1, sizeof(*segment->runs));
	segment->fields = calloc(d->field_count + 1, sizeof(*segment->fields));
	if (!segment->runs || !segment->fields)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->run_count; i++)
		stele_descriptor_run(d, i, &segment->runs[i]);
	for (uint32_t i = 0; i < d->field_count; i++)
		stele_descriptor_field(d, i, &segment->fields[i]);
	stele_descriptor_shape(d, &segment->shape);
	if (stele_descriptor_find_section(d, STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys) == 0)
		segment->pivots = stele_pivots_open(keys.size / STELE_BLOCK_SIZE);
	if (!d->filter_size)
		return 0;
	segment->filter = malloc(d->filter_size);
	if (!segment->filter)
		return -ENOMEM;
	stele_descriptor_filter(d, segment->filter);
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
	struct stele_names *names = &segment->names->field[section->field];
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
	ret = stele_section_fetch(image, segment, section, 0, stream->block_count, blocks);
	if (ret == 0) {
		ret = stele_section_prove(image, segment, section, 0, stream->block_count,
					  blocks);
		names->unproven = ret < 0;
	}
	return ret ? ret : unpack_names(section, blocks, names);
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
			"schema digest of segment %016" PRIx64 " differs", d->id);
	return -EBADMSG;
}

static int new_names(struct stele_segment *segment)
{
	const uint32_t count = segment->descriptor.field_count;

	segment->names = calloc(1, sizeof(*segment->names) +
				count * sizeof(*segment->names->field));
	if (!segment->names)
		return -ENOMEM;
	segment->names->users = 1;
	segment->names->count = count;
	return 0;
}

static void release_names(struct stele_names_set *names)
{
	if (!names || --names->users)
		return;
	for (uint32_t i = 0; i < names->count; i++)
		free(names->field[i].names);
	free(names);
}

/* A damaged block of the digest tree is no damage of the names, which may well be as they were. */
const char *stele_names_defect(const struct stele_names *names)
{
	return names->unproven ? "cannot be proven" : "are damaged";
}

/* Damaged names are left out. */
static int load_sound_names(struct stele_image *image,
			    struct stele_segment *segment,
			    const struct stele_section *section,
			    struct stele_names_stream *stream)
{
	struct stele_names *names = &segment->names->field[section->field];
	const struct stele_log log = image->log;
	struct stele_log_held held;
	int ret;

	stele_log_hold(&held, &log);
	image->log = held.log;
	ret = load_names(image, segment, section, stream);
	image->log = log;
	if (stele_error_of_blocks(image->dev, ret)) {
		stele_log_warning(&log, "class names of field '%s' %s: %s",
				  segment->fields[section->field].name,
				  stele_names_defect(names),
				  held.last ? held.last : "impossible contents");
		free(names->names);
		*names = (struct stele_names){.damage = ret, .unproven = names->unproven};
		ret = 0;
	}
	stele_log_end(&held, !names->damage);
	return ret;
}

static bool has_damaged_names(const struct stele_names_set *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		if (names->field[i].damage)
			return true;
	return false;
}

/* The digest of the schema proves the fields only together with all names. */
int stele_segment_load_schema(struct stele_image *image, struct stele_segment *segment)
{
	struct stele_names_stream streams[STELE_FIELD_COUNT_MAX] = {0};
	uint32_t count = 0;
	int ret = new_names(segment);

	for (uint32_t i = 0; ret == 0 && i < segment->descriptor.field_count;
	     i++) {
		struct stele_section section;

		if (stele_descriptor_find_section(&segment->descriptor,
						  STELE_BLOCK_NAMES, i,
						  &section) < 0)
			continue;
		ret = load_sound_names(image, segment, &section, &streams[count++]);
	}
	if (ret == 0 && !has_damaged_names(segment->names))
		ret = check_schema(image, segment, streams, count);
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

/*
 * The digest covers fields and names, and that of `known` has been checked: nothing has to
 * be read, and nothing hashed.
 */
static bool share_schema(const struct stele_segment *known,
			 struct stele_segment *segment)
{
	const struct stele_descriptor *d = &segment->descriptor;

	if (!known || has_damaged_names(known->names) ||
	    memcmp(known->descriptor.schema_digest, d->schema_digest,
			     sizeof(d->schema_digest)) ||
	    known->descriptor.field_count != d->field_count ||
	    memcmp(known->fields, segment->fields,
		   d->field_count * sizeof(*segment->fields)))
		return false;
	segment->names = known->names;
	segment->names->users++;
	return true;
}

int stele_segment_load_like(struct stele_image *image,
			    const struct stele_segment_at *at, void *blocks,
			    const struct stele_segment *known,
			    struct stele_segment *out)
{
	int ret;

	ret = load_bare(image, &at->where, blocks, out);
	if (ret < 0)
		return ret;
	if (!share_schema(known, out))
		ret = stele_segment_load_schema(image, out);
	if (ret == 0 && at->ref.deleted_count)
		ret = load_deleted(image, &at->ref, out);
	if (ret < 0) {
		stele_segment_release(out);
		return ret;
	}
	out->live_count -= out->deleted.count;
	return 0;
}

int stele_segment_load(struct stele_image *image,
		       const struct stele_catalog_segment *where,
		       struct stele_segment *out)
{
	const struct stele_segment_at at = {.where = *where};

	return stele_segment_load_like(image, &at, NULL, NULL, out);
}

void stele_segment_release(struct stele_segment *segment)
{
	release_names(segment->names);
	free(segment->fields);
	free(segment->runs);
	free(segment->filter);
	stele_pivots_close(segment->pivots);
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
	out->name_count = segment->names->field[index].count;
	out->names = (const char *const *)segment->names->field[index].names;
	out->names_damaged = segment->names->field[index].damage != 0;
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

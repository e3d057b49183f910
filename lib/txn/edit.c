/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.c - the catalog in memory: begin, segments, snapshots
 *
 * References name segments by id, because places in the table move when
 * segments come and go. What the arrays hold was checked by the catalog's decoder or by
 * the function that added it.
 */
#include "lib/txn/edit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/image/digest.h"
#include "lib/txn/intent.h"

static void snapshot_release(struct stele_edit_snapshot *snapshot)
{
	free(snapshot->refs);
	free(snapshot->note);
	free(snapshot->signatures);
	memset(snapshot, 0, sizeof(*snapshot));
}

/* ---- begin and end --------------------------------------------------------- */

static int load_snapshot(struct stele_edit *edit, uint32_t index)
{
	const struct stele_catalog *catalog = &edit->image->catalog;
	struct stele_edit_snapshot *s = &edit->snapshots[index];
	struct stele_catalog_snapshot in;

	stele_catalog_snapshot(catalog, index, &in);
	*s = (struct stele_edit_snapshot){
		.id = in.id,
		.parent = in.parent,
		.time = in.time,
		.source_time = in.source_time,
		.sample_count = in.sample_count,
		.payload_size = in.payload_size,
		.ref_count = in.ref_count,
		.note_size = in.note_size,
		.signature_count = in.signature_count,
	};
	memcpy(s->name, in.name, sizeof(s->name));
	memcpy(s->digest, in.digest, sizeof(s->digest));
	s->refs = calloc((size_t)in.ref_count + 1, sizeof(*s->refs));
	s->note = malloc((size_t)in.note_size + 1);
	s->signatures = malloc((size_t)in.signature_count *
				       STELE_SIGNATURE_SIZE + 1);
	edit->snapshot_count++;
	if (!s->refs || !s->note || !s->signatures)
		return -ENOMEM;
	stele_catalog_note(catalog, index, s->note);
	stele_catalog_signatures(catalog, index, s->signatures);
	for (uint32_t i = 0; i < in.ref_count; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(catalog, in.first_ref + i, &ref);
		s->refs[i] = (struct stele_edit_ref){
			edit->segments[ref.segment].id, ref.deleted_offset,
			ref.deleted_count, ref.deleted_owner};
	}
	return 0;
}

static int load_catalog(struct stele_edit *edit)
{
	const struct stele_catalog *catalog = &edit->image->catalog;
	const struct stele_catalog_counts *counts = &catalog->counts;
	int ret = 0;

	edit->next_snapshot_id = catalog->next_snapshot_id ?
					 catalog->next_snapshot_id :
					 1;
	edit->segments = calloc((size_t)counts->segments + 1,
				sizeof(*edit->segments));
	edit->snapshots = calloc((size_t)counts->snapshots + 1,
				 sizeof(*edit->snapshots));
	if (!edit->segments || !edit->snapshots)
		return -ENOMEM;
	for (uint32_t i = 0; i < counts->segments; i++)
		stele_catalog_segment(catalog, i, &edit->segments[i]);
	edit->segment_count = counts->segments;
	for (uint32_t i = 0; ret == 0 && i < counts->snapshots; i++)
		ret = load_snapshot(edit, i);
	return ret;
}

int stele_edit_begin(struct stele_image *image, struct stele_edit *edit)
{
	int ret;

	*edit = (struct stele_edit){
		.image = image,
		.feature_incompat = image->sb.feature_incompat,
		.image_size = image->sb.image_size,
		.stale = true,
	};
	ret = stele_image_check_writable(image);
	if (ret == 0 && image->dev->writable)
		ret = stele_device_flush(image->dev);
	stele_intent_settle(image->dev); /* an edit before us was given up */
	if (ret == 0)
		ret = load_catalog(edit);
	if (ret == 0)
		ret = stele_edit_refresh(edit);
	return ret;
}

void stele_edit_release(struct stele_edit *edit)
{
	for (uint32_t i = 0; i < edit->snapshot_count; i++)
		snapshot_release(&edit->snapshots[i]);
	free(edit->snapshots);
	free(edit->segments);
	stele_extents_release(&edit->used);
	if (edit->image)
		stele_edit_give_back(edit);
	memset(edit, 0, sizeof(*edit));
}

/* ---- segments -------------------------------------------------------------- */

int stele_edit_segment_id(const struct stele_edit *edit, uint64_t *id)
{
	do {
		if (getrandom(id, sizeof(*id), 0) != sizeof(*id))
			return errno ? -errno : -EIO;
	} while (*id == 0 || *id == STELE_OWNER_ANY ||
		 stele_edit_segment(edit, *id));
	return 0;
}

const struct stele_catalog_segment *
stele_edit_segment(const struct stele_edit *edit, uint64_t id)
{
	for (uint32_t i = 0; i < edit->segment_count; i++)
		if (edit->segments[i].id == id)
			return &edit->segments[i];
	return NULL;
}

bool stele_edit_in_use(const struct stele_edit *edit, uint64_t segment_id)
{
	for (uint32_t i = 0; i < edit->snapshot_count; i++)
		for (uint32_t j = 0; j < edit->snapshots[i].ref_count; j++)
			if (edit->snapshots[i].refs[j].segment_id == segment_id)
				return true;
	return false;
}

static int log_too_many(const struct stele_edit *edit, const char *what,
			uint32_t most)
{
	stele_log_error(&edit->image->log, "an image has at most %u %s", most,
			what);
	return -EOVERFLOW;
}

int stele_edit_add_segment(struct stele_edit *edit,
			   const struct stele_catalog_segment *segment)
{
	struct stele_catalog_segment *all;
	uint32_t at = edit->segment_count;

	if (stele_edit_segment(edit, segment->id))
		return -EEXIST;
	if (edit->segment_count == STELE_SEGMENTS_MAX)
		return log_too_many(edit, "segments", STELE_SEGMENTS_MAX);
	all = realloc(edit->segments,
		      ((size_t)edit->segment_count + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	while (at > 0 && all[at - 1].offset > segment->offset)
		at--;
	memmove(all + at + 1, all + at,
		(edit->segment_count - at) * sizeof(*all));
	all[at] = *segment;
	edit->segments = all;
	edit->segment_count++;
	return 0;
}

int stele_edit_drop_segment(struct stele_edit *edit, uint64_t id)
{
	const struct stele_catalog_segment *segment =
		stele_edit_segment(edit, id);
	uint32_t at;

	if (!segment)
		return -ENOENT;
	if (stele_edit_in_use(edit, id))
		return -EBUSY;
	at = (uint32_t)(segment - edit->segments);
	edit->segment_count--;
	memmove(edit->segments + at, edit->segments + at + 1,
		(edit->segment_count - at) * sizeof(*edit->segments));
	return 0;
}

/* ---- snapshots ------------------------------------------------------------- */

struct stele_edit_snapshot *stele_edit_snapshot(struct stele_edit *edit,
						const char *name)
{
	if (!name)
		return edit->snapshot_count ?
			       &edit->snapshots[edit->snapshot_count - 1] :
			       NULL;
	for (uint32_t i = 0; i < edit->snapshot_count; i++)
		if (!strcmp(edit->snapshots[i].name, name))
			return &edit->snapshots[i];
	return NULL;
}

int stele_edit_check_name(const char *name, const struct stele_log *log)
{
	const bool reserved = !strncmp(name, STELE_NAME_RESERVED,
				       strlen(STELE_NAME_RESERVED));

	if (!reserved && stele_name_ok(name, strlen(name)))
		return 0;
	stele_log_error(log, "'%s' cannot be a snapshot's name%s", name,
			reserved ? ": those that begin with '" STELE_NAME_RESERVED
				   "' are kept for withdrawn RBD snapshots" :
				   "");
	return -EINVAL;
}

/* Of a field that need not have an end. */
static int check_name(const struct stele_edit *edit,
		      const char name[STELE_SNAPSHOT_NAME_SIZE])
{
	char text[STELE_SNAPSHOT_NAME_SIZE + 1];

	snprintf(text, sizeof(text), "%.*s", (int)STELE_SNAPSHOT_NAME_SIZE, name);
	return stele_edit_check_name(text, &edit->image->log);
}

static bool refs_ok(const struct stele_edit *edit,
		    const struct stele_edit_snapshot *snapshot)
{
	const struct stele_edit_ref *refs = snapshot->refs;

	for (uint32_t i = 0; i < snapshot->ref_count; i++) {
		if (!stele_edit_segment(edit, refs[i].segment_id) ||
		    !refs[i].deleted_offset != !refs[i].deleted_count)
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (refs[j].segment_id == refs[i].segment_id)
				return false;
	}
	return true;
}

static int check_room(const struct stele_edit *edit,
		      const struct stele_edit_snapshot *more)
{
	uint64_t refs = more->ref_count, notes = more->note_size;

	for (uint32_t i = 0; i < edit->snapshot_count; i++) {
		refs += edit->snapshots[i].ref_count;
		notes += edit->snapshots[i].note_size;
	}
	if (edit->snapshot_count == STELE_SNAPSHOTS_MAX ||
	    edit->next_snapshot_id == UINT64_MAX)
		return log_too_many(edit, "snapshots", STELE_SNAPSHOTS_MAX);
	if (refs > STELE_REFS_MAX)
		return log_too_many(edit, "references to segments",
				    STELE_REFS_MAX);
	if (notes > STELE_NOTES_SIZE_MAX)
		return log_too_many(edit, "bytes of notes",
				    STELE_NOTES_SIZE_MAX);
	return 0;
}

/* One byte more, so that nothing is asked of malloc in vain. */
static void *copy_of(const void *data, size_t size)
{
	void *copy = malloc(size + 1);

	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}

static int append(struct stele_edit *edit,
		  const struct stele_edit_snapshot *snapshot)
{
	struct stele_edit_snapshot copy = *snapshot, *all;

	all = realloc(edit->snapshots,
		      ((size_t)edit->snapshot_count + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	edit->snapshots = all;
	copy.id = edit->next_snapshot_id;
	copy.refs = copy_of(snapshot->refs,
			    snapshot->ref_count * sizeof(*copy.refs));
	copy.note = copy_of(snapshot->note, snapshot->note_size);
	copy.signatures = copy_of(snapshot->signatures,
				  (size_t)snapshot->signature_count *
					  STELE_SIGNATURE_SIZE);
	if (!copy.refs || !copy.note || !copy.signatures) {
		snapshot_release(&copy);
		return -ENOMEM;
	}
	all[edit->snapshot_count++] = copy;
	edit->takes = true;
	edit->next_snapshot_id++;
	return 0;
}

int stele_edit_add_snapshot(struct stele_edit *edit,
			    const struct stele_edit_snapshot *snapshot)
{
	int ret = check_name(edit, snapshot->name);

	if (ret < 0)
		return ret;
	if (snapshot->parent >= edit->next_snapshot_id ||
	    !refs_ok(edit, snapshot))
		return -EINVAL;
	if (stele_edit_snapshot(edit, snapshot->name)) {
		stele_log_error(&edit->image->log,
				"there is a snapshot '%s' already",
				snapshot->name);
		return -EEXIST;
	}
	ret = check_room(edit, snapshot);
	return ret < 0 ? ret : append(edit, snapshot);
}

int stele_edit_rename_snapshot(struct stele_edit *edit, const char *name,
			       const char *to)
{
	struct stele_edit_snapshot *snapshot = stele_edit_snapshot(edit, name);
	const struct stele_edit_snapshot *other;

	if (!name)
		return -EINVAL;
	if (!snapshot)
		return -ENOENT;
	if (!strcmp(name, to))
		return 0;
	if (stele_edit_check_name(to, &edit->image->log) < 0)
		return -EINVAL;
	other = stele_edit_snapshot(edit, to);
	if (other && other != snapshot)
		return -EEXIST;
	memset(snapshot->name, 0, sizeof(snapshot->name));
	strcpy(snapshot->name, to); /* the check knows its size */
	return 0;
}

int stele_edit_remove_snapshot(struct stele_edit *edit, const char *name)
{
	struct stele_edit_snapshot *snapshot =
		name ? stele_edit_snapshot(edit, name) : NULL;
	uint32_t at;

	if (!snapshot)
		return -ENOENT;
	at = (uint32_t)(snapshot - edit->snapshots);
	snapshot_release(snapshot);
	edit->snapshot_count--;
	memmove(snapshot, snapshot + 1,
		(edit->snapshot_count - at) * sizeof(*snapshot));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - a snapshot in memory: its segments, and ids <-> numbers
 *
 * id: place within the snapshot. number: place within a segment. The segments
 * of a snapshot have the same fields; the class names of a later one begin with
 * those of the one before, so the last one's are the snapshot's. Immutable after
 * load; any thread may use it.
 */
#ifndef STELE_IMAGE_SNAPSHOT_H
#define STELE_IMAGE_SNAPSHOT_H

#include "format/segment.h"
#include "lib/image/deleted.h"
#include "lib/image/image.h"
#include "lib/image/pivots.h"

struct stele_names {
	char **names; /* by value 0, 1, ...; each NUL-terminated */
	uint32_t count;
	int damage; /* 0; errno: it has some, which could not be read: see load_like() */
	bool unproven; /* nor are they damaged themselves, as far as checksums tell */
};

/* Of those with damage: "are damaged", "cannot be proven". */
const char *stele_names_defect(const struct stele_names *names);

/* By field. Segments of one snapshot that have the same schema share it. */
struct stele_names_set {
	uint32_t users, count;
	struct stele_names field[];
};

struct stele_segment {
	struct stele_descriptor descriptor; /* views blocks */
	void *blocks;
	struct stele_run *runs;
	struct stele_descriptor_field *fields;
	struct stele_names_set *names; /* NULL: it was loaded without */
	uint8_t *filter; /* of its keys: descriptor.filter_size bytes; NULL: none */
	struct stele_pivots *pivots; /* of its keys, too: what searches have learnt */
	struct stele_record_shape shape;
	struct stele_deleted deleted;
	const uint8_t *deleted_digest; /* of these; NULL: not computed yet */
	uint64_t extends_id; /* a segment whose names its own are known to extend */
	uint64_t first_id; /* of its first live sample */
	uint64_t live_count;
};

struct stele_snapshot {
	struct stele_catalog_snapshot info;
	struct stele_segment *segments;
	uint32_t segment_count;
	uint64_t sample_count; /* live */
	uint8_t digest[STELE_DIGEST_SIZE]; /* recomputed; of a loaded one info.digest */
};

/*
 * Index in the catalog by name, or by digest; both NULL: the only one.
 * Return: 0; -ENOENT; -EINVAL (several, none named); -ENOTUNIQ (a fork, whose sides
 * do not share it).
 */
int stele_snapshot_find(const struct stele_image *image, const char *name,
			const uint8_t *digest, uint32_t *index);
/* Log what -ENOENT or -EINVAL of the above means, and list the names. Return: `error`. */
int stele_snapshot_log_choice(const struct stele_image *image, int error);

/*
 * Load descriptors, names (see stele_segment_load_like()) and deleted lists, and recompute
 * the digest.
 * Return: 0; -EBADMSG (also: the digest differs); -EUCLEAN; -EMEDIUMTYPE
 * never; -ENOMEM; device errno.
 */
int stele_snapshot_load(struct stele_image *image, uint32_t index,
			struct stele_snapshot *out);
/*
 * The rest of that, once the segments are loaded: are they consistent, and are the
 * count of samples and the digest right? Return: 0; -EUCLEAN, -EBADMSG (logged);
 * -ENOMEM.
 */
int stele_snapshot_check(const struct stele_image *image,
			 struct stele_snapshot *snapshot);
/*
 * An image and one of its snapshots, by name or digest as above. By digest it needs all class
 * names, without which nothing proves the fields. Retries if commits free and reuse what is
 * being read: see STELE_LOAD_TRIES. On success the image owns `dev`; on failure the caller still
 * does, and there is nothing to release.
 * Return: as the load of both, and find.
 */
int stele_snapshot_open(struct stele_device *dev, const struct stele_log *log,
			const char *name, const uint8_t *digest,
			struct stele_image *image,
			struct stele_snapshot *snapshot);
void stele_snapshot_release(struct stele_snapshot *snapshot);
/*
 * Set the digest from the segments' descriptors and deleted lists. Also used to make
 * a snapshot. Return: 0; -ENOMEM.
 */
int stele_snapshot_compute_digest(struct stele_snapshot *snapshot);

/*
 * The payload size of a snapshot after deleting samples of `deleted_size` bytes.
 * Return: 0; -EUCLEAN (it claims to have less; logged).
 */
int stele_snapshot_payload_without(const struct stele_image *image,
				   const struct stele_snapshot *snapshot,
				   uint64_t deleted_size, uint64_t *out);

/* Where a segment is, and what is deleted of it. */
struct stele_segment_at {
	struct stele_catalog_segment where;
	struct stele_catalog_ref ref;
};
/*
 * In the order of a snapshot. `loaded` are to be released, also on errors.
 * Return: as stele_segment_load_like().
 */
int stele_segments_load(struct stele_image *image,
			const struct stele_segment_at *at, uint32_t count,
			struct stele_segment *out, uint32_t *loaded);
/*
 * One of them. Damaged class names get a warning, and the segment goes without: its samples
 * are none the worse. `blocks`: the first copy of its descriptor, as it was read, and now the
 * segment's; or NULL. `known`, or NULL: one whose schema it may have, too.
 * Return: 0; -EBADMSG; -EUCLEAN; -ENOMEM; device errno.
 */
int stele_segment_load_like(struct stele_image *image,
			    const struct stele_segment_at *at, void *blocks,
			    const struct stele_segment *known,
			    struct stele_segment *out);
/*
 * Are all class names there? They are part of the digest of the snapshot, so who copies it,
 * adds to it or has to prove it cannot go without. Return: 0; -EBADMSG (logged).
 */
int stele_snapshot_check_names(const struct stele_image *image,
			       const struct stele_snapshot *snapshot);
/* One on its own, of which nothing is deleted. */
int stele_segment_load(struct stele_image *image,
		       const struct stele_catalog_segment *where,
		       struct stele_segment *out);
void stele_segment_release(struct stele_segment *segment);
/*
 * In two steps, for verify: without names; then names and the digest of the schema, which is
 * not compared if names are damaged.
 */
int stele_segment_load_bare(struct stele_image *image,
			    const struct stele_catalog_segment *where,
			    struct stele_segment *out);
int stele_segment_load_schema(struct stele_image *image,
			      struct stele_segment *segment);

/* A snapshot and a field as programs see them; the latter points into the segment. */
void stele_snapshot_describe(const struct stele_catalog_snapshot *snapshot,
			     struct stele_snapshot_info *out);
void stele_segment_field(const struct stele_segment *segment, uint32_t index,
			 struct stele_field *out);

/* id -> segment and number. Return: 0; -ERANGE. */
int stele_snapshot_locate(const struct stele_snapshot *snapshot, uint64_t id,
			  const struct stele_segment **segment,
			  uint64_t *number);
/* number -> id. Return: 0; -ENOENT (deleted); -ERANGE. */
int stele_snapshot_id(const struct stele_snapshot *snapshot,
		      const struct stele_segment *segment, uint64_t number,
		      uint64_t *id);
/* Offset on the target and size of a slot. */
void stele_segment_slot(const struct stele_segment *segment, uint64_t number,
			uint64_t *offset, uint64_t *slot_size);

#endif

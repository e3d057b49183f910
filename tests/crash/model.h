/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - what an image should hold, in arrays that cannot be wrong
 *
 * A key is a number, a sample's content is a key and a version (0: it is not
 * there), a snapshot is an array of versions. How each change of an image changes that is
 * written down here once more, as plainly as can be.
 */
#ifndef STELE_TESTS_CRASH_MODEL_H
#define STELE_TESTS_CRASH_MODEL_H

#include "lib/base/random.h"
#include "lib/device/device.h"
#include "tests/fixture/fake.h"

#define MODEL_KEYS	    96u
#define MODEL_SNAPSHOTS_MAX 12u
#define MODEL_DELETED_MAX   64u
#define MODEL_KEY_SIZE	    16u

struct model_snapshot {
	char name[64];
	int64_t time;
	int64_t source_time; /* what --quick goes by */
	uint8_t version[MODEL_KEYS];
	uint8_t digest[32];
	bool has_digest; /* false: not known until it is read the first time */
	bool is_new;	 /* of the commit to come: once removed, it never was */
	unsigned int id;
	int64_t deleted_time; /* of those that can be undeleted */
};

/* Oldest first, both. */
struct model_image {
	struct model_snapshot snapshots[MODEL_SNAPSHOTS_MAX];
	unsigned int count;
	struct model_snapshot deleted[MODEL_DELETED_MAX];
	unsigned int deleted_count;
	unsigned int ids; /* given out */
};

/* What the source holds now, and since when. */
struct model_world {
	uint8_t version[MODEL_KEYS];
	int64_t changed[MODEL_KEYS];
};

void model_key(unsigned int key, char text[MODEL_KEY_SIZE]);
/* Some versions of a key have the same size, others not. */
uint64_t model_size(unsigned int key, uint8_t version);
/* A source with what of the world `chosen` says. */
void model_source(const struct model_world *world, const bool *chosen,
		  struct fake *fake);

/* 32 bits; `state` is not 0. */
static inline uint64_t model_random(uint64_t *state)
{
	return stele_random_next(state) >> 32;
}

/* A few keys come, go, or get another version. */
void model_turn(struct model_world *world, uint64_t *random, int64_t now);
/* All keys, or some. */
void model_choose(uint64_t *random, bool chosen[MODEL_KEYS]);

/* NULL: none. */
struct model_snapshot *model_find(struct model_image *image, const char *name);
/* A copy of `base` under a new name, the newest. */
struct model_snapshot *model_add(struct model_image *image,
				 const struct model_snapshot *base,
				 const char *name, int64_t time);
void model_remove(struct model_image *image, const char *name, int64_t time);
/* The index of a deleted one; it is back under this name. */
void model_undelete(struct model_image *image, unsigned int index, const char *name);
/* A commit was made. */
void model_commit(struct model_image *image);
/* What an append makes of a copy of its base. `flags`: enum stele_build_flags. */
void model_append(struct model_snapshot *snapshot,
		  const struct model_world *world, const bool *chosen,
		  uint32_t flags);

/*
 * Does the image on `dev` (the caller's) hold these snapshots and deleted ones, no more,
 * and in each of the former every sample, byte for byte, at ids without gaps, by key and in
 * the cursor? Digests are compared, or taken over where not known yet. `only`
 * (NULL: all): look into this one alone. Says what is not so.
 */
bool model_check(struct model_image *model, struct stele_device *dev,
		 const char *only);
/* The same, and says nothing. */
bool model_check_quietly(struct model_image *model, struct stele_device *dev,
			 const char *only);

/* A device over another one, which closing it leaves open; `size` (0: all) hides
 * what is behind. The inner one outlives it. */
struct stele_device *model_device(struct stele_device *inner, uint64_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-delete-ids.c - samples are left out by their ids in the base
 *
 * What is made that way is what deleting the same samples by key makes: digest, payload and
 * all. Keys are so long that there are many pages of them: one id is looked up by rank, and
 * many take a walk. Ids hold whatever is deleted meanwhile, and wrong ones are refused.
 */
#include "lib/stele.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART	 900u /* samples of a segment */
#define KEY_SIZE 3000u
#define COUNT	 (2 * PART - 20) /* of v2 */

static char image[512];

static const char *at(const char *name)
{
	static char text[600];

	snprintf(text, sizeof(text), "%s@%s", image, name);
	return text;
}

static void put(struct stele_txn *txn, unsigned int number, unsigned int size)
{
	static char key[KEY_SIZE], data[300];
	const struct stele_txn_value value = {.data = data, .size = size};

	memset(key, 'k', sizeof(key));
	snprintf(key, sizeof(key), "%04u", number);
	key[4] = '/';
	if (stele_txn_put(txn, key, sizeof(key), &value, 1) < 0)
		bail("cannot put: %s", stele_errmsg());
}

static void set_schema(struct stele_txn *txn, uint32_t flags)
{
	const struct stele_field field = {.size = sizeof(field), .name = "data",
					  .type = STELE_TYPE_BYTES};
	const struct stele_schema schema = {.size = sizeof(schema), .fields = &field,
					    .count = 1};
	const struct stele_put_opts opts = {.size = sizeof(opts), .flags = flags};

	if (stele_txn_schema(txn, &schema, &opts) < 0)
		bail("no schema: %s", stele_errmsg());
}

static struct stele_txn *begin(uint32_t flags)
{
	const struct stele_txn_opts opts = {.size = sizeof(opts), .flags = flags};
	struct stele_txn *txn;

	if (stele_txn_open(image, &opts, &txn) < 0 || stele_txn_base(txn, "v2") < 0)
		bail("%s", stele_errmsg());
	return txn;
}

/* v2 is v1 with as many more, less each 90th. */
static void make_image(void)
{
	uint64_t gone[20];
	struct stele_txn *txn;

	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	if (stele_txn_create(image, NULL, &txn) < 0)
		bail("%s", stele_errmsg());
	set_schema(txn, 0);
	for (unsigned int i = 0; i < PART; i++)
		put(txn, i, i % 251 + 1);
	if (stele_txn_snapshot(txn, "v1", NULL, NULL) < 0)
		bail("%s", stele_errmsg());
	for (unsigned int i = 0; i < PART; i++)
		put(txn, PART + i * 7 % PART, i % 127 + 1);
	if (stele_txn_snapshot(txn, "whole", NULL, NULL) < 0)
		bail("%s", stele_errmsg());
	for (unsigned int i = 0; i < 20; i++)
		gone[i] = i * 90;
	is_int(0, stele_txn_delete_ids(txn, gone, 20), "v2: from what was just made");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, NULL), "v2");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
}

static char keys_text[COUNT][STELE_KEY_SIZE_MAX];
static struct stele_key_ref keys[COUNT];

static void load_keys(void)
{
	struct stele_dataset *ds;

	if (stele_dataset_open(at("v2"), NULL, &ds) < 0)
		bail("%s", stele_errmsg());
	is_uint(COUNT, stele_dataset_count(ds), "v2: so many");
	for (size_t i = 0; i < COUNT; i++) {
		keys[i].data = keys_text[i];
		if (stele_dataset_key(ds, i, keys_text[i], &keys[i].size) < 0)
			bail("%s", stele_errmsg());
	}
	stele_dataset_close(ds);
}

/* In two transactions that are thrown away, one of them dry: the same as by their keys. */
static void compare(const uint64_t *ids, size_t count, const char *what)
{
	struct stele_snapshot_info by_key = {.size = sizeof(by_key)};
	struct stele_snapshot_info by_id = {.size = sizeof(by_id)};
	struct stele_snapshot_info dry = {.size = sizeof(dry)};
	struct stele_key_ref *refs = calloc(count, sizeof(*refs));
	struct stele_txn *txn = begin(0);

	for (size_t i = 0; refs && i < count; i++)
		refs[i] = keys[ids[i]];
	is_int(0, stele_txn_delete(txn, refs, count), "%s: by key", what);
	is_int(0, stele_txn_snapshot(txn, "key", NULL, &by_key), "%s: snapshot", what);
	is_int(0, stele_txn_base(txn, "v2"), "%s: again", what);
	is_int(0, stele_txn_delete_ids(txn, ids, count), "%s: by id", what);
	is_int(0, stele_txn_snapshot(txn, "id", NULL, &by_id), "%s: snapshot", what);
	stele_txn_close(txn);
	txn = begin(STELE_DRY_RUN);
	is_int(0, stele_txn_delete_ids(txn, ids, count), "%s: dry", what);
	is_int(0, stele_txn_snapshot(txn, "id", NULL, &dry), "%s: dry snapshot", what);
	stele_txn_close(txn);
	is_uint(by_key.sample_count, by_id.sample_count, "%s: as many", what);
	is_uint(by_key.sample_count, dry.sample_count, "%s: as many in the dry run", what);
	is_uint(by_key.payload_size, by_id.payload_size, "%s: of as many bytes", what);
	is_uint(by_key.payload_size, dry.payload_size, "%s: and in the dry run", what);
	ok(!memcmp(by_key.digest, by_id.digest, STELE_DIGEST_SIZE), "%s: the same digest", what);
	free(refs);
}

static void test_same(void)
{
	static uint64_t ids[COUNT];
	const uint64_t few[] = {COUNT - 1, 3, PART - 10, 700, 0};

	compare(few, 1, "one of the second segment");
	compare(few + 1, 1, "one of the first");
	compare(few, 5, "a few of both");
	for (size_t i = 0; i < COUNT; i++)
		ids[i] = COUNT - 1 - i;
	compare(ids, COUNT - 10, "all but ten");
	compare(ids + COUNT - (PART - 10), PART - 10, "all of a segment");
	compare(ids, COUNT, "all");
}

static void refuse(struct stele_txn *txn, int error, const uint64_t *ids, size_t count,
		   const char *why)
{
	is_int(error, stele_txn_delete_ids(txn, ids, count), "%s", why);
	ok(strstr(stele_errmsg(), why), "and says so: %s", stele_errmsg());
}

static void test_wrong(uint32_t flags)
{
	const uint64_t beyond[] = {3, COUNT}, twice[] = {9, 4, 9}, some[] = {4, 6}, one[] = {5};
	struct stele_snapshot_info info = {.size = sizeof(info)};
	struct stele_txn *txn = begin(flags);

	refuse(txn, -ERANGE, beyond, 2,
	       "there is no id 1780: the last one of snapshot 'v2' is 1779");
	refuse(txn, -EINVAL, twice, 3, "id 9 is given twice");
	is_int(-EINVAL, stele_txn_delete_ids(txn, NULL, 1), "none where one should be");
	is_int(0, stele_txn_delete_ids(txn, NULL, 0), "none");
	is_int(0, stele_txn_delete_ids(txn, some, 2), "two");
	refuse(txn, -ENOENT, some + 1, 1,
	       "the sample of id 6 in snapshot 'v2' was deleted already");
	is_int(0, stele_txn_delete_ids(txn, one, 1), "the id between them is what it was");
	is_int(-ENOENT, stele_txn_delete(txn, &keys[5], 1), "and gone");
	is_int(0, stele_txn_delete(txn, &keys[8], 1), "one by key");
	refuse(txn, -ENOENT, (uint64_t[]){7, 8}, 2, "id 8 in snapshot 'v2' was deleted already");
	set_schema(txn, STELE_PUT_REPLACE);
	put(txn, (unsigned int)atoi(keys[12].data), 1);
	refuse(txn, -ENOENT, (uint64_t[]){12}, 1, "id 12 in snapshot 'v2' was deleted already");
	refuse(txn, -ERANGE, beyond + 1, 1, "there is no id 1780");
	is_int(0, stele_txn_snapshot(txn, "v3", NULL, &info), "snapshot");
	is_uint(COUNT - 4, info.sample_count, "what was refused has deleted nothing");
	stele_txn_close(txn);
}

static void test_other_base(void)
{
	uint8_t digest[STELE_DIGEST_SIZE] = {0};
	const uint64_t id = 0;
	const struct stele_deletions deleted = {
		.size = sizeof(deleted), .ids = &id, .id_count = 1, .base_digest = digest};
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;

	if (stele_dataset_open(at("v1"), NULL, &ds) < 0)
		bail("%s", stele_errmsg());
	stele_dataset_info(ds, &info);
	stele_dataset_close(ds);
	is_int(-ESTALE, stele_snapshot_create(at("v4"), "v1", &deleted, NULL, NULL, NULL),
	       "ids of another snapshot");
	ok(strstr(stele_errmsg(), "snapshot 'v1' is another one by now"), "and says so: %s",
	   stele_errmsg());
	memcpy(digest, info.digest, sizeof(digest));
	is_int(0, stele_snapshot_create(at("v4"), "v1", &deleted, NULL, NULL, NULL),
	       "of that one");
}

/* A sample that its key and its id name is left out once. */
static void test_both(void)
{
	const uint64_t ids[] = {9, 4, 5, 8}, twice[] = {7, 7};
	const struct stele_key_ref both[] = {keys[8], keys[20], keys[5]};
	struct stele_deletions deleted = {.size = sizeof(deleted),
					  .keys = both,
					  .key_count = 3,
					  .ids = ids,
					  .id_count = 4};
	struct stele_snapshot_info info = {.size = sizeof(info)};

	is_int(0, stele_snapshot_create(at("v5"), "v2", &deleted, NULL, NULL, &info),
	       "keys, and ids of some of them");
	is_uint(COUNT - 5, info.sample_count, "each is left out once");
	deleted.ids = twice;
	deleted.id_count = 2;
	is_int(-EINVAL, stele_snapshot_create(at("v6"), "v2", &deleted, NULL, NULL, NULL),
	       "an id twice is one too many");
}

int main(void)
{
	plan_lazy();
	make_image();
	load_keys();
	test_same();
	test_wrong(0);
	test_wrong(STELE_DRY_RUN);
	test_other_base();
	test_both();
	is_int(0, stele_verify(image, NULL, NULL), "sound");
	return done();
}

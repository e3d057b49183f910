/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor-keys.c - live keys in byte order, with ids and sizes, by prefix
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

static int compare_keys(const void *a, const void *b)
{
	const struct test_live *const *x = a, *const *y = b;

	return strcmp((*x)->sample->key, (*y)->sample->key);
}

/* The live samples whose key begins with `prefix`, in byte order of keys. */
static uint64_t expected(const struct test_dataset *t, const char *prefix,
			 const struct test_live **out)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < t->count; i++)
		if (!strncmp(t->live[i].sample->key, prefix, strlen(prefix)))
			out[count++] = &t->live[i];
	qsort(out, count, sizeof(*out), compare_keys);
	return count;
}

static bool is_entry(const struct test_dataset *t,
		     const struct stele_cursor_entry *entry,
		     const struct test_live *live)
{
	return entry->key_size == strlen(live->sample->key) &&
	       !memcmp(entry->key, live->sample->key, entry->key_size) &&
	       entry->id == (uint64_t)(live - t->live) &&
	       entry->size == live->sample->size;
}

static void check_prefix(struct test_dataset *t, const char *prefix)
{
	const struct test_live **wanted =
		calloc(t->count + 1, sizeof(struct test_live *));
	uint64_t count = expected(t, prefix, wanted), seen = 0, wrong = 0;
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int ret;

	is_int(0, stele_cursor_open(t->ds, prefix, strlen(prefix), &cursor),
	       "open '%s'", prefix);
	while ((ret = stele_cursor_next(cursor, &entry)) == 1) {
		wrong += seen >= count || !is_entry(t, &entry, wanted[seen]);
		seen++;
	}
	is_int(0, ret, "'%s': an end", prefix);
	is_uint(count, seen, "'%s': all of them", prefix);
	is_uint(0, wrong, "'%s': in order, ids and sizes", prefix);
	is_int(0, stele_cursor_next(cursor, &entry), "the end stays");
	stele_cursor_close(cursor);
	free(wanted);
}

static void check_all(const struct test_plan *plan)
{
	struct test_dataset t;

	test_dataset_open(&t, plan);
	check_prefix(&t, "");
	check_prefix(&t, "dir1/");
	check_prefix(&t, "dir2/00000");
	check_prefix(&t, "dir1/000001.0");
	check_prefix(&t, "dir3");
	check_prefix(&t, "a");
	check_prefix(&t, "\xff");
	test_dataset_close(&t);
}

static void test_errors(void)
{
	struct test_plan plan = {.segments = 2, .samples = 2000, .size_max = 9};
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .error = EIO};
	char prefix[STELE_KEY_SIZE_MAX + 1] = {0};
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	struct test_dataset t;
	unsigned int seen = 0;
	int ret;

	test_dataset_open(&t, &plan);
	is_int(-EINVAL, stele_cursor_open(t.ds, prefix, sizeof(prefix), &cursor),
	       "too long a prefix");
	is_int(-EINVAL, stele_cursor_open(t.ds, NULL, 1, &cursor), "none of 1");
	is_int(0, stele_cursor_open(t.ds, NULL, 0, &cursor), "none");
	rule.first = stele_fault_count(t.dev) + 3;
	stele_fault_set_rules(t.dev, &rule, 1);
	while ((ret = stele_cursor_next(cursor, &entry)) == 1)
		seen++;
	is_int(-EIO, ret, "a page that cannot be read");
	ok(seen > 100, "after %u keys", seen);
	is_int(-EIO, stele_cursor_next(cursor, &entry), "the error stays");
	stele_cursor_close(cursor);
	rule.first = stele_fault_count(t.dev);
	stele_fault_set_rules(t.dev, &rule, 1);
	is_int(-EIO, stele_cursor_open(t.ds, NULL, 0, &cursor), "at once");
	stele_cursor_close(NULL);
	test_dataset_close(&t);
}

/* So many that deletions are fetched ahead; pages of keys come by the megabyte. */
static void test_many(void)
{
	struct test_plan plan = {.samples = 150000, .size_max = 2, .delete_every = 2};
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	struct stele_section keys;
	struct test_dataset t;
	uint64_t count, pages;

	test_dataset_open(&t, &plan);
	check_prefix(&t, "");
	check_prefix(&t, "dir2/");
	if (stele_descriptor_find_section(&t.ds->snapshot.segments[0].descriptor,
					  STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys))
		bail("no keys");
	pages = keys.size / STELE_BLOCK_SIZE;
	count = stele_fault_count(t.dev);
	if (stele_cursor_open(t.ds, NULL, 0, &cursor))
		bail("no cursor");
	while (stele_cursor_next(cursor, &entry) == 1)
		;
	stele_cursor_close(cursor);
	count = stele_fault_count(t.dev) - count;
	/* 1, 2, 4 ... 256 pages, and then as many each time; two or three to open. */
	ok(pages > 500 && count <= 12 + pages / 256, "%u reads for %u pages",
	   (unsigned int)count, (unsigned int)pages);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check_all(&(struct test_plan){.samples = 700, .size_max = 50});
	check_all(&(struct test_plan){.segments = 5,
				      .samples = 700,
				      .size_max = 50,
				      .delete_every = 3});
	/* So many that ids are looked up in words of the list. */
	check_all(&(struct test_plan){.segments = 2,
				      .samples = 5000,
				      .size_max = 20,
				      .delete_every = 2});
	check_all(&(struct test_plan){
		.segments = 2, .samples = 1, .size_max = 5, .delete_every = 1});
	check_all(&(struct test_plan){.samples = 0, .size_max = 8});
	test_errors();
	test_many();
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-flush.c - what puts would make of an image: by a dry run of a new one, by a flush
 *
 * A dry run refuses what a real one refuses, and writes nothing. A flush says what was kept,
 * replaced and dropped, and whether the next snapshot would be another one.
 */
#include "lib/stele.h"
#include "tests/fixture/log.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 1000u

static struct test_log messages;
static char image[600], other[600];

static int put(struct stele_txn *txn, uint64_t number, uint32_t version)
{
	uint8_t bytes[SIZE] = {(uint8_t)number, (uint8_t)version};
	const struct stele_txn_value value = {.data = bytes, .size = sizeof(bytes)};
	char key[24];
	int size = snprintf(key, sizeof(key), "%03u", (unsigned int)number);

	return stele_txn_put(txn, key, (size_t)size, &value, 1);
}

static int put_some(struct stele_txn *txn, uint64_t first, uint64_t count, uint32_t version,
		    const struct stele_put_opts *opts)
{
	const struct stele_field field = {.size = sizeof(field), .name = "data",
					  .type = STELE_TYPE_BYTES};
	const struct stele_schema schema = {.size = sizeof(schema), .fields = &field, .count = 1};
	int ret = stele_txn_schema(txn, &schema, opts);

	for (uint64_t i = first; !ret && i < first + count; i++)
		ret = put(txn, i, version);
	return ret;
}

static struct stele_txn *create(const char *path, uint32_t flags, int error)
{
	const struct stele_create_opts opts = {.size = sizeof(opts), .log = messages.log.fn,
					       .log_user = messages.log.user, .flags = flags};
	struct stele_txn *txn = NULL;

	is_int(error, stele_txn_create(path, &opts, &txn), "begin '%s'", path);
	return txn;
}

static void commit(struct stele_txn *txn)
{
	is_int(0, stele_txn_snapshot(txn, "v1", NULL, NULL), "snapshot");
	is_int(0, stele_txn_commit(txn), "commit");
}

static void is_sound(const char *path)
{
	is_int(0, stele_verify(path, NULL, NULL), "sound");
}

/* ---- a new image, over nothing and over an old one ----------------------- */

static void rehearse(const char *path, uint32_t flags)
{
	const struct stele_put_opts wrong = {.size = sizeof(wrong), .granule = 7};
	struct stele_txn *txn = create(path, STELE_DRY_RUN | flags, 0);

	is_int(-EINVAL, put_some(txn, 0, 1, 0, &wrong), "options are checked");
	is_int(0, put_some(txn, 0, 30, 0, NULL), "put in a dry run");
	commit(txn);
	stele_txn_close(txn);
}

static void test_dry(void)
{
	char command[1400];

	rehearse(other, 0);
	is_int(-1, access(other, F_OK), "no file is made");
	create(image, STELE_DRY_RUN, -EEXIST);
	snprintf(command, sizeof(command), "cp '%s' '%s'", image, other);
	if (system(command))
		bail("cannot copy");
	test_log_init(&messages);
	rehearse(image, STELE_FORCE);
	ok(test_log_has(&messages, "which would be overwritten"), "says what would be lost");
	snprintf(command, sizeof(command), "cmp '%s' '%s' >&2", image, other);
	ok(!system(command), "and nothing is written");
}

int main(void)
{
	struct stele_txn *txn;

	plan_lazy();
	test_log_init(&messages);
	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	snprintf(other, sizeof(other), "%s/other", test_tmpdir());
	txn = create(image, 0, 0);
	is_int(0, put_some(txn, 0, 60, 0, NULL), "some");
	commit(txn);
	stele_txn_close(txn);
	test_dry();
	is_sound(image);
	return done();
}

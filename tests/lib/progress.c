/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - one way to follow whatever takes long, and to stop it
 *
 * Each verb tells which phases it goes through, and returns -ECANCELED wherever it is asked
 * to stop. Then the image is as it was, or as after a commit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/stele.h"
#include "tests/tap.h"

struct seen {
	uint32_t stop_at; /* a phase */
	uint32_t phases;  /* bit set */
	unsigned int wrong;
	struct stele_progress last;
};

static int follow(void *user, const struct stele_progress *p)
{
	struct seen *seen = user;

	seen->wrong += p->size != sizeof(*p) || p->reserved ||
		       (p->samples_total && p->samples_done > p->samples_total) ||
		       (p->bytes_total && p->bytes_done > p->bytes_total);
	seen->phases |= 1u << p->phase;
	seen->last = *p;
	return p->phase == seen->stop_at;
}

static void shell(const char *command)
{
	if (system(command))
		bail("%s", command);
}

/* ---- verbs, on "work": a copy of "image" ------------------------------------ */

static int build(struct seen *seen)
{
	return stele_build("source", "work@v1",
			   &STELE_OPTS(stele_build_opts, .progress = follow,
				       .progress_user = seen, .flags = STELE_FORCE),
			   NULL);
}

static int append(struct seen *seen)
{
	return stele_append("more", "work@v3",
			    &STELE_OPTS(stele_append_opts, .progress = follow,
					.progress_user = seen,
					.flags = STELE_APPEND_UPDATE),
			    NULL);
}

static int compact(struct seen *seen)
{
	return stele_compact("work@v2", "v3",
			     &STELE_OPTS(stele_compact_opts, .progress = follow,
					 .progress_user = seen),
			     NULL);
}

static int copy(struct seen *seen)
{
	unlink("copied");
	return stele_copy("work@v2", "copied",
			  &STELE_OPTS(stele_copy_opts, .progress = follow,
				      .progress_user = seen),
			  NULL);
}

static int verify(struct seen *seen)
{
	return stele_verify("work",
			    &STELE_OPTS(stele_verify_opts, .progress = follow,
					.progress_user = seen),
			    NULL);
}

static int gc(struct seen *seen)
{
	return stele_gc("work",
			&STELE_OPTS(stele_txn_opts, .progress = follow,
				    .progress_user = seen,
				    .flags = STELE_FORCE | STELE_TXN_DISCARD),
			NULL, NULL, NULL);
}

static int end(struct stele_txn *txn, int err)
{
	if (!err)
		err = stele_txn_snapshot(txn, "v3", NULL, NULL);
	if (!err)
		err = stele_txn_commit(txn);
	stele_txn_close(txn);
	return err;
}

static struct stele_txn *begin(struct seen *seen)
{
	struct stele_txn *txn;

	if (stele_txn_open("work",
			   &STELE_OPTS(stele_txn_opts, .progress = follow,
				       .progress_user = seen),
			   &txn))
		bail("%s", stele_errmsg());
	return txn;
}

/* Without a callback of its own. */
static int add(struct seen *seen)
{
	struct stele_txn *txn = begin(seen);

	return end(txn, stele_txn_add(txn, "more", NULL, NULL));
}

static int put_one(struct stele_txn *txn)
{
	const struct stele_field field = {.size = sizeof(field), .name = "data",
					  .type = STELE_TYPE_BYTES};
	const struct stele_schema schema = {.size = sizeof(schema),
					    .fields = &field, .count = 1};
	const struct stele_txn_value value = {.data = "put", .size = 3};
	int err = stele_txn_schema(txn, &schema, NULL);

	return err ? err : stele_txn_put(txn, "key", 3, &value, 1);
}

static int put(struct seen *seen)
{
	struct stele_txn *txn = begin(seen);

	return end(txn, put_one(txn));
}

static int create(struct seen *seen)
{
	struct stele_txn *txn;

	if (stele_txn_create("work",
			     &STELE_OPTS(stele_create_opts, .progress = follow,
					 .progress_user = seen,
					 .flags = STELE_FORCE),
			     &txn))
		bail("%s", stele_errmsg());
	return end(txn, put_one(txn));
}

/* ---- all the same ------------------------------------------------------------ */

#define PHASE(name) (1u << STELE_PHASE_##name)
#define BUILD (PHASE(SCAN) | PHASE(WRITE) | PHASE(SECTIONS) | PHASE(COMMIT))

static const struct {
	const char *name;
	int (*run)(struct seen *seen);
	uint32_t phases;
	bool replaces; /* what is there */
} verbs[] = {
	{"build", build, BUILD, true},
	{"append", append, BUILD | PHASE(COMPARE), false},
	{"compact", compact, BUILD, false},
	{"copy", copy, PHASE(COPY), false},
	{"verify", verify, PHASE(VERIFY), false},
	{"gc", gc, PHASE(DISCARD), false},
	{"add", add, BUILD | PHASE(COMPARE), false},
	{"put", put, BUILD | PHASE(COMPARE), false},
	{"create", create, BUILD, true},
};

static void stop_at(size_t i, uint32_t phase)
{
	struct seen seen = {.stop_at = phase};

	shell("cp image work");
	is_int(-ECANCELED, verbs[i].run(&seen), "%s: stopped in phase %u",
	       verbs[i].name, phase);
	is_uint(phase, seen.last.phase, "nothing follows");
	if (!verbs[i].replaces)
		is_int(0, stele_verify("work", NULL, NULL), "a sound image");
}

static void test_verb(size_t i)
{
	struct seen seen = {0};

	shell("cp image work");
	is_int(0, verbs[i].run(&seen), "%s: %s", verbs[i].name, stele_errmsg());
	is_uint(0, seen.wrong, "%s: done is never more than all", verbs[i].name);
	is_uint(verbs[i].phases, seen.phases, "%s: its phases", verbs[i].name);
	is_uint(seen.last.samples_total, seen.last.samples_done,
		"%s: all samples in the end", verbs[i].name);
	is_uint(seen.last.bytes_total, seen.last.bytes_done,
		"%s: and all bytes", verbs[i].name);
	for (uint32_t phase = 1; phase < 32; phase++)
		if (verbs[i].phases & 1u << phase)
			stop_at(i, phase);
}

int main(void)
{
	const char *old = "image@v1";

	plan_lazy();
	if (chdir(test_tmpdir()))
		bail("no directory");
	shell("mkdir source more && for i in 1 2 3; do seq 9999 >source/$i; "
	      "seq 99 >more/$i; done; echo new >more/new");
	if (stele_build("source", old,
			&STELE_OPTS(stele_build_opts, .file_size = 8 << 20,
				    .label_from = STELE_LABEL_FROM_NONE),
			NULL) ||
	    stele_compact(old, "v2", NULL, NULL) ||
	    stele_snapshot_delete(&old, 1, NULL))
		bail("%s", stele_errmsg());
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		test_verb(i);
	return done();
}

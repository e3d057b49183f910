/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic.c - an image of any number of samples, in a sparse file
 *
 *	synthetic SAMPLES FILE
 *
 * What opening and looking up depend on is real: superblocks, catalog, both copies of the
 * descriptor with the run table of a set of photographs (sizes log-normal around 123 KB).
 * Of the slots a few hundred are written, evenly spread: those of the numbers k * stride
 * that go to stdout with it. All else is a hole; so is every section.
 */
#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/segment.h"
#include "bench/content.h"
#include "bench/race.h"
#include "lib/image/digest.h"
#include "lib/image/image.h"
#include "lib/txn/txn.h"

#define GRANULE	     512u
#define SAMPLE_MIN   2048u
#define SAMPLE_MAX   (UINT64_C(1) << 20)
#define MEDIAN	     105700.0 /* with this deviation the mean is 123 KB */
#define DEVIATION    0.55
#define RUNS_MAX     4096u
#define PRESENT_MAX  256u
#define KEY_FORMAT   "s%012" PRIu64
#define KEY_SIZE     13u

struct synthetic {
	struct stele_device *dev;
	struct stele_descriptor d;
	struct stele_run runs[RUNS_MAX];
	struct stele_record_shape shape;
	uint64_t descriptor_size;
	struct stele_hash *hash;
};

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "cannot %s: %s", what, strerror(-ret));
}

/* Share of samples that are smaller. */
static double share_below(double size)
{
	return 0.5 * erfc(-log(size / MEDIAN) / (DEVIATION * sqrt(2)));
}

static void plan_runs(struct synthetic *s, uint64_t count)
{
	const double low = share_below(SAMPLE_MIN), all = share_below(SAMPLE_MAX) - low;
	uint64_t size = SAMPLE_MIN, at = 0, end;

	for (; at < count; size = stele_slot_size(size + 1, GRANULE)) {
		uint64_t next = (uint64_t)llround((double)count *
						  (share_below((double)size) - low) / all);

		if (size >= SAMPLE_MAX)
			next = count;
		if (next <= at)
			continue;
		if (s->d.run_count == RUNS_MAX)
			errx(1, "too many runs");
		s->runs[s->d.run_count++] = (struct stele_run){at, next - at, size};
		at = next;
	}
	s->d.sample_count = count;
	s->descriptor_size = stele_stream_blocks(stele_descriptor_stream_size(
				     1, s->d.run_count, 0, 0)) * STELE_BLOCK_SIZE;
	end = s->d.slots_offset = s->descriptor_size;
	for (uint32_t i = 0; i < s->d.run_count; i++) {
		const uint64_t slots = s->runs[i].offset; /* their count, until here */

		s->runs[i].offset = end;
		end += slots * s->runs[i].slot_size;
	}
	s->d.slots_size = end - s->d.slots_offset;
	s->d.records_size = s->d.slots_size;
	s->d.payload_size = s->d.slots_size -
			    count * (KEY_SIZE + stele_record_tail_fixed(&s->shape));
	s->d.size = (end + STELE_BLOCK_SIZE - 1) / STELE_BLOCK_SIZE * STELE_BLOCK_SIZE +
		    s->descriptor_size;
}

static void write_descriptor(struct synthetic *s)
{
	struct stele_descriptor_field field = {.name = "data", .type = STELE_FIELD_BYTES};
	struct stele_disk_block *blocks = stele_device_alloc(s->dev, s->descriptor_size);
	const uint64_t places[] = {s->d.offset, s->d.offset + s->d.size - s->descriptor_size};

	if (!blocks)
		errx(1, "no memory");
	memset(blocks, 0, s->descriptor_size);
	stele_hash_schema(s->hash, &field, 1, NULL, 0, s->d.schema_digest);
	stele_descriptor_put_header(blocks, &s->d);
	stele_descriptor_put_field(blocks, &s->d, 0, &field);
	for (uint32_t i = 0; i < s->d.run_count; i++)
		stele_descriptor_put_run(blocks, &s->d, i, &s->runs[i]);
	for (unsigned int i = 0; i < 2; i++) {
		stele_descriptor_seal(blocks, &s->d, places[i]);
		check(stele_device_write(s->dev, blocks, places[i], s->descriptor_size),
		      "write a descriptor");
	}
	free(blocks);
}

/* With what of its blocks belongs to neighbours, which are holes. */
static void write_slot(struct synthetic *s, uint64_t number)
{
	static const struct content content = {.seed = 813};
	const struct stele_run *run = stele_run_find(s->runs, s->d.run_count, number);
	const uint64_t size = run->slot_size;
	const uint64_t tail = KEY_SIZE + stele_record_tail_fixed(&s->shape);
	const uint64_t offset = s->d.offset + stele_run_slot(run, number, 0);
	const uint64_t skip = offset % STELE_BLOCK_SIZE;
	const uint64_t whole = (skip + size + STELE_BLOCK_SIZE - 1) / STELE_BLOCK_SIZE *
			       STELE_BLOCK_SIZE;
	uint8_t *blocks = stele_device_alloc(s->dev, whole), *slot = blocks + skip;
	struct stele_disk_trailer *trailer = (void *)(slot + size - sizeof(*trailer));
	char key[KEY_SIZE + 1];

	if (!blocks)
		errx(1, "no memory");
	memset(blocks, 0, whole);
	snprintf(key, sizeof(key), KEY_FORMAT, number);
	content_fill(&content, number, slot, size);
	stele_record_put_tail(&s->shape, slot + size, size - tail, key, KEY_SIZE, NULL, NULL, 0);
	trailer->crc = le32_put(stele_record_crc(s->d.id, number, slot, size));
	check(stele_device_write(s->dev, blocks, offset - skip, whole), "write a sample");
	free(blocks);
}

/* Space is reserved before it is used, and would be 100 TB of it here. */
static int reserve_nothing(struct stele_device *dev, uint64_t offset, uint64_t size)
{
	(void)dev;
	(void)offset;
	(void)size;
	return 0;
}

static void keep_sparse(struct stele_device *dev)
{
	static struct stele_device_ops ops;

	ops = *dev->ops;
	ops.reserve = reserve_nothing;
	dev->ops = &ops;
}

static void add_snapshot(struct synthetic *s, struct stele_txn *edit)
{
	struct stele_txn_ref ref = {.segment_id = s->d.id};
	struct stele_digest_part part = {.sample_count = s->d.sample_count};
	struct stele_txn_snapshot snapshot = {
		.info = {.name = "v1", .ref_count = 1, .time = 1700000000,
			 .sample_count = s->d.sample_count},
		.refs = &ref};
	const struct stele_catalog_segment segment = {
		.id = s->d.id,
		.offset = s->d.offset,
		.size = s->d.size,
		.descriptor_size = s->descriptor_size,
		.sample_count = s->d.sample_count,
	};

	memcpy(part.schema_digest, s->d.schema_digest, sizeof(part.schema_digest));
	memcpy(part.tree_root, s->d.tree_root, sizeof(part.tree_root));
	stele_hash_snapshot(s->hash, &part, 1, snapshot.info.digest);
	check(stele_txn_add_segment(edit, &segment), "add the segment");
	check(stele_txn_add_snapshot(edit, &snapshot), "add the snapshot");
}

int main(int argc, char **argv)
{
	struct synthetic s = {.shape = {.bytes_count = 1}};
	struct stele_superblock sb = {.uuid = {'b', 'e', 'n', 'c', 'h'}, .label = "synthetic"};
	struct stele_image image = {0};
	struct stele_txn edit = {0};
	uint64_t count, present, stride;

	if (argc != 3 || (count = strtoull(argv[1], NULL, 10)) == 0)
		errx(2, "usage: %s SAMPLES FILE", argv[0]);
	s.d.granule = GRANULE;
	s.d.field_count = 1;
	plan_runs(&s, count);
	check(stele_hash_new(&s.hash), "hash");
	check(stele_device_open_file(argv[2], STELE_DEVICE_WRITE | STELE_DEVICE_CREATE, NULL, NULL,
				     &s.dev), "create the file");
	keep_sparse(s.dev);
	sb.image_size = s.d.size + (UINT64_C(64) << 20);
	check(stele_device_resize(s.dev, sb.image_size), "set the size");
	check(stele_image_begin(s.dev, NULL, &sb, &image), "begin");
	check(stele_txn_attach(&image, &edit), "begin");
	check(stele_txn_segment_id(&edit, &s.d.id), "begin");
	check(stele_txn_allocate(&edit, s.d.size, 0, &s.d.offset), "allocate");
	write_descriptor(&s);
	present = count < PRESENT_MAX ? count : PRESENT_MAX;
	stride = count / present;
	for (uint64_t k = 0; k < present; k++)
		write_slot(&s, k * stride);
	add_snapshot(&s, &edit);
	check(stele_txn_publish(&edit, 1700000000), "commit");
	printf("{\"samples\":%" PRIu64 ",\"runs\":%u,\"slots_size\":%" PRIu64
	       ",\"present\":%" PRIu64 ",\"stride\":%" PRIu64 "}\n",
	       count, s.d.run_count, s.d.slots_size, present, stride);
	stele_txn_release(&edit);
	stele_image_release(&image);
	stele_hash_free(s.hash);
	return 0;
}

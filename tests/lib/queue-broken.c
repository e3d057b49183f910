/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue-broken.c - who else has a queue: what it may still touch is never freed
 *
 * Nobody can tell when the kernel is done with what was in flight in a ring that
 * broke, so all that was issued from the break on must keep its memory. Where
 * nothing broke it is given back. reader-broken.c says the same of readers.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "lib/image/record_stream.h"
#include "lib/image/snapshot.h"
#include "lib/ops/build.h"
#include "lib/verify/verify.h"
#include "tests/fixture/copies.h"
#include "tests/device/fault.h"
#include "tests/fixture/fake.h"
#include "tests/device/mapped.h"
#include "tests/tap.h"

#define DEVICE_SIZE   (UINT64_C(32) << 20)
#define STREAM_MEMORY (UINT64_C(4) << 20)
#define LARGE_NUMBER  4u /* 5 MB, in the first segment of copies_source() */
/* Whatever is as large gets a mapping of its own, and loses it when it is freed. */
#define MAPPED_MIN (64 << 10)

/* It is meant to leak. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *
__lsan_default_suppressions(void)
{
	return "leak:stele_device_alloc\nleak:stele_fault_open_queue\n";
}

static struct stele_device *faulty(struct stele_device *dev)
{
	if (!dev && stele_device_open_memory(DEVICE_SIZE, 512, &dev))
		bail("no device");
	if (stele_device_open_fault(dev, NULL, 0, &dev))
		bail("no fault device");
	return dev;
}

/* ---- who has a queue; `dev` is where it breaks ------------------------------- */

static int run_build(struct stele_device *dev)
{
	const struct stele_build_opts opts = {.size = sizeof(opts), .jobs = 2};
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;
	int ret;

	fake_init(&fake);
	fake_add_many(&fake, "a", 30, 300000);
	ret = stele_build_on(dev, &fake.source, "v1", &opts, &report);
	fake_release(&fake);
	return ret;
}

static int run_verify(struct stele_device *dev)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts), .jobs = 2};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;
	int ret = stele_image_load(dev, NULL, &image);

	if (ret < 0)
		return ret;
	ret = stele_verify_image(&image, -1, &opts, &report);
	image.dev = NULL;
	stele_image_release(&image);
	return ret;
}

static int run_copy_from(struct stele_device *dev)
{
	struct stele_device *to = copies_target(512);
	struct stele_copy_report report = {.size = sizeof(report)};
	int ret = copies_copy(dev, "v2", to, 2, &report);

	stele_device_close(to);
	return ret;
}

static int run_copy_to(struct stele_device *dev)
{
	struct stele_copy_report report = {.size = sizeof(report)};
	struct copies_source s;
	int ret;

	copies_source(&s, 512);
	ret = copies_copy(s.dev, "v2", dev, 2, &report);
	copies_source_drop(&s);
	return ret;
}

static int run_stream(struct stele_device *dev)
{
	struct stele_record_stream stream;
	struct stele_snapshot snapshot;
	struct stele_image image;
	const void *data;
	size_t size;
	int ret;

	if (stele_image_load(dev, NULL, &image) ||
	    stele_snapshot_load(&image, 0, &snapshot) ||
	    stele_record_stream_open(&stream, dev, STREAM_MEMORY))
		bail("no stream");
	ret = stele_record_stream_begin(&stream, &snapshot.segments[0], LARGE_NUMBER,
					0, NULL);
	while (ret >= 0 &&
	       (ret = stele_record_stream_next(&stream, &data, &size)) > 0)
		;
	stele_record_stream_close(&stream);
	stele_snapshot_release(&snapshot);
	image.dev = NULL;
	stele_image_release(&image);
	return ret;
}

/* ---- the check ----------------------------------------------------------------- */

/* Of what was queued: how much, and how much of that has its memory yet. */
static unsigned int count_mapped(struct stele_device *dev, unsigned int ops,
				 unsigned int *queued)
{
	const struct stele_fault_entry *log;
	unsigned int mapped = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	*queued = 0;
	for (size_t i = 0; i < count; i++) {
		if (!log[i].queued || !(ops & 1u << log[i].op))
			continue;
		++*queued;
		mapped += is_mapped(log[i].memory);
	}
	return mapped;
}

/* On `dev` it works, on `bad` (may be the same) its queue breaks. */
static void check(const char *what, int (*run)(struct stele_device *),
		  struct stele_device *dev, struct stele_device *bad,
		  enum stele_op op)
{
	const struct stele_fault_rule rule = {.kind = STELE_FAULT_BREAK,
					      .ops = 1u << op};
	unsigned int queued, mapped;

	stele_fault_log_clear(dev);
	is_int(0, run(dev), "%s: works", what);
	mapped = count_mapped(dev, rule.ops, &queued);
	ok(queued > 0, "%s: by a queue", what);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* Something else may have come to lie there. */
	ok(mapped < queued, "%s: memory is given back", what);
#endif
	stele_fault_log_clear(bad);
	stele_fault_set_rules(bad, &rule, 1);
	is_int(-EIO, run(bad), "%s: its queue breaks", what);
	mapped = count_mapped(bad, rule.ops, &queued);
	ok(queued > 0, "%s: something was in flight", what);
	is_uint(queued, mapped, "%s: that memory stays", what);
	stele_fault_set_rules(bad, NULL, 0);
}

int main(void)
{
	struct stele_device *dev = faulty(NULL), *other = copies_target(512);
	struct copies_source s;

	plan_lazy();
	test_log_init(&copies_log);
	mallopt(M_MMAP_THRESHOLD, MAPPED_MIN);
	check("build", run_build, dev, dev, STELE_OP_WRITE);
	stele_device_close(dev);
	copies_source(&s, 512);
	s.dev = faulty(s.dev);
	check("verify", run_verify, s.dev, s.dev, STELE_OP_READ);
	check("stream", run_stream, s.dev, s.dev, STELE_OP_READ);
	check("copy, source", run_copy_from, s.dev, s.dev, STELE_OP_READ);
	copies_source_drop(&s);
	dev = copies_target(512);
	check("copy, target", run_copy_to, dev, other, STELE_OP_WRITE);
	stele_device_close(dev);
	stele_device_close(other);
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-stop.c - a copy is stopped, and says how far it is, within a sample of any size
 */
#include <errno.h>
#include <string.h>

#include "lib/segment/copy_worker.h"
#include "tests/fixture/copies.h"
#include "tests/device/fault.h"
#include "tests/tap.h"

struct stage {
	struct stele_image image;
	struct stele_segment segment;
	struct stele_segment_copy copy;
	struct stele_edges edges;
	atomic_bool failed, stop;
	struct stele_copy_worker w;
	struct stele_copy_unit large;
};

static void begin(struct stage *s, struct stele_device *from, struct stele_device *to)
{
	struct stele_copy_units units = {.segment = &s->segment};
	struct stele_catalog_segment where;

	memset(s, 0, sizeof(*s));
	if (stele_image_load(from, NULL, &s->image))
		bail("no source");
	stele_catalog_segment(&s->image.catalog, 0, &where);
	if (stele_segment_load_bare(&s->image, &where, &s->segment) ||
	    stele_edges_init(&s->edges, to, 1))
		bail("no segment");
	s->copy = (struct stele_segment_copy){
		.image = &s->image, .segment = &s->segment, .to = to,
		.to_offset = where.offset, .jobs = 1};
	s->w = (struct stele_copy_worker){
		.copy = &s->copy, .edges = &s->edges, .failed = &s->failed, .stop = &s->stop,
		.from = {.dev = from, .is_source = true, .base = where.offset},
		.to = {.dev = to, .base = where.offset}};
	if (stele_copy_worker_init(&s->w))
		bail("no worker");
	do
		if (!stele_copy_units_next(&units, &s->large))
			bail("no large sample");
	while (s->large.kind != STELE_COPY_LARGE);
}

static void end(struct stage *s)
{
	stele_copy_worker_release(&s->w);
	stele_edges_release(&s->edges);
	stele_segment_release(&s->segment);
	s->image.dev = NULL;
	stele_image_release(&s->image);
}

static void check_large(struct stele_device *from)
{
	struct stele_device *to = copies_target(512);
	struct stage s;

	begin(&s, from, to);
	stele_fault_log_clear(to);
	s.stop = true;
	is_int(-ECANCELED, stele_copy_send_slots(&s.w, &s.large), "stopped, %ju bytes are not sent",
	       (uintmax_t)s.large.size);
	is_uint(0, copies_writes(to), "not one write");
	is_uint(0, s.w.passed, "and none of it has passed");
	is_int(-ECANCELED, stele_copy_find_slots(&s.w, &s.large), "nor looked for");
	s.stop = false;
	is_int(0, stele_copy_send_slots(&s.w, &s.large), "else they are");
	is_uint(s.large.size, s.w.passed, "and all of it has passed");
	end(&s);
	stele_device_close(to);
}

int main(void)
{
	struct copies_source small = {0};

	plan_lazy();
	test_log_init(&copies_log);
	copies_source(&small, 512);
	check_large(small.dev);
	copies_source_drop(&small);
	return done();
}

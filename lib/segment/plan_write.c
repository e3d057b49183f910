/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_write.c - place, slots, sections, an entry for the catalog
 */
#include "lib/segment/plan_write.h"

#include "lib/segment/sections.h"

static int place(struct stele_plan *plan, struct stele_txn *txn)
{
	struct stele_descriptor *d = &plan->descriptor;
	int ret = 0;

	if (!d->id) /* it is not one that must be reproducible */
		ret = stele_txn_segment_id(txn, &d->id);
	return ret ? ret : stele_txn_allocate(txn, d->size, d->boundary,
					       &d->offset);
}

static int add(const struct stele_plan *plan, struct stele_txn *txn)
{
	const struct stele_descriptor *d = &plan->descriptor;
	const struct stele_catalog_segment segment = {
		.id = d->id,
		.offset = d->offset,
		.size = d->size,
		.descriptor_size = plan->descriptor_size,
		.sample_count = d->sample_count,
	};

	txn->feature_incompat |= stele_descriptor_features(d, plan->fields.list);
	return stele_txn_add_segment(txn, &segment);
}

int stele_plan_write(struct stele_builder *builder, struct stele_plan *plan,
		     const struct stele_source *source, struct stele_txn *txn,
		     struct stele_written *written)
{
	struct stele_device *dev = txn->image->dev;
	struct stele_build_report *report = builder->report;
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = place(plan, txn);
	if (!ret)
		ret = stele_pipeline_run(builder, plan, source, dev, written);
	report->write_seconds = stele_seconds_since(&begin);
	if (!ret)
		ret = stele_sections_write(builder, plan, written, dev);
	if (!ret)
		ret = add(plan, txn);
	report->written_count -= written->void_count;
	report->payload_size = plan->descriptor.payload_size;
	report->padding_size = stele_descriptor_padding(&plan->descriptor);
	return ret;
}

void stele_written_voids(const struct stele_written *written, uint64_t *numbers)
{
	const struct stele_void *voids = written->voids.data;

	for (uint64_t i = 0; i < written->void_count; i++)
		numbers[i] = voids[i].number;
}

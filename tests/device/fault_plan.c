/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_plan.c - see fault_plan.h
 *
 * Owns rules, numbering and log of a fault device. An operation has its number
 * and its place in the log before anything of it happens.
 */
#include "tests/device/fault_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_ROOM_MIN 64

struct stele_fault_plan_rule {
	struct stele_fault_rule rule;
	uint64_t hits;
};

/* Written so that no sum can overflow. */
static bool touches(const struct stele_fault_rule *rule,
		    const struct stele_passage *passage)
{
	if (!rule->size)
		return true;
	if (passage->offset >= rule->offset)
		return passage->size &&
		       passage->offset - rule->offset < rule->size;
	return rule->offset - passage->offset < passage->size;
}

static bool matches(const struct stele_fault_plan_rule *rule,
		    const struct stele_passage *passage)
{
	const struct stele_fault_rule *r = &rule->rule;

	return (!r->ops || (r->ops & 1u << passage->op)) &&
	       passage->number >= r->first &&
	       (!r->count || rule->hits < r->count) && touches(r, passage);
}

static void find_rule(struct stele_fault_plan *plan,
		      struct stele_passage *passage)
{
	passage->fault = -1;
	for (size_t i = 0; i < plan->rule_count; i++) {
		struct stele_fault_plan_rule *rule = &plan->rules[i];

		if (!matches(rule, passage))
			continue;
		rule->hits++;
		passage->fault = (int)rule->rule.kind;
		passage->error = rule->rule.error;
		passage->arg = rule->rule.arg;
		return;
	}
}

static int make_room(struct stele_fault_plan *plan)
{
	size_t room = plan->log_room ? plan->log_room * 2 : LOG_ROOM_MIN;
	struct stele_fault_entry *log;

	if (plan->log_count < plan->log_room)
		return 0;
	log = reallocarray(plan->log, room, sizeof(*log));
	if (!log)
		return -ENOMEM;
	plan->log = log;
	plan->log_room = room;
	return 0;
}

static int add_entry(struct stele_fault_plan *plan,
		     const struct stele_passage *passage)
{
	struct stele_fault_entry *entry;

	if (make_room(plan))
		return -ENOMEM;
	entry = &plan->log[plan->log_count];
	*entry = (struct stele_fault_entry){
		.number = passage->number,
		.op = passage->op,
		.offset = passage->offset,
		.size = passage->size,
		.queued = passage->queued,
		.memory = passage->data,
		.fault = passage->fault,
	};
	if (plan->keep_data && passage->op == STELE_OP_WRITE) {
		entry->data = malloc(passage->size);
		if (!entry->data)
			return -ENOMEM;
		memcpy(entry->data, passage->data, passage->size);
	}
	plan->log_count++;
	return 0;
}

int stele_fault_plan_enter(struct stele_fault_plan *plan,
			   struct stele_passage *passage)
{
	int rc;

	test_lock_take(&plan->lock);
	passage->number = plan->next_number++;
	find_rule(plan, passage);
	rc = add_entry(plan, passage);
	test_lock_drop(&plan->lock);
	return rc;
}

uint64_t stele_fault_plan_count(struct stele_fault_plan *plan)
{
	uint64_t count;

	test_lock_take(&plan->lock);
	count = plan->next_number;
	test_lock_drop(&plan->lock);
	return count;
}

int stele_fault_plan_set_rules(struct stele_fault_plan *plan,
			       const struct stele_fault_rule *rules,
			       size_t count)
{
	struct stele_fault_plan_rule *copy = NULL;

	if (count) {
		copy = calloc(count, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		copy[i].rule = rules[i];
	test_lock_take(&plan->lock);
	free(plan->rules);
	plan->rules = copy;
	plan->rule_count = count;
	test_lock_drop(&plan->lock);
	return 0;
}

static void clear_log(struct stele_fault_plan *plan)
{
	for (size_t i = 0; i < plan->log_count; i++)
		free(plan->log[i].data);
	plan->log_count = 0;
}

int stele_fault_plan_init(struct stele_fault_plan *plan,
			  const struct stele_fault_rule *rules, size_t count)
{
	memset(plan, 0, sizeof(*plan));
	test_lock_init(&plan->lock);
	return stele_fault_plan_set_rules(plan, rules, count);
}

void stele_fault_plan_release(struct stele_fault_plan *plan)
{
	clear_log(plan);
	free(plan->log);
	free(plan->rules);
	test_lock_destroy(&plan->lock);
}

/* ---- what tests ask ------------------------------------------------------ */

int stele_fault_set_rules(struct stele_device *dev,
			  const struct stele_fault_rule *rules, size_t count)
{
	return stele_fault_plan_set_rules(stele_fault_plan_of(dev), rules,
					  count);
}

uint64_t stele_fault_count(struct stele_device *dev)
{
	return stele_fault_plan_count(stele_fault_plan_of(dev));
}

const struct stele_fault_entry *stele_fault_log(struct stele_device *dev,
						size_t *count)
{
	struct stele_fault_plan *plan = stele_fault_plan_of(dev);
	const struct stele_fault_entry *log;

	test_lock_take(&plan->lock);
	*count = plan->log_count;
	log = plan->log;
	test_lock_drop(&plan->lock);
	return log;
}

void stele_fault_log_clear(struct stele_device *dev)
{
	struct stele_fault_plan *plan = stele_fault_plan_of(dev);

	test_lock_take(&plan->lock);
	clear_log(plan);
	test_lock_drop(&plan->lock);
}

void stele_fault_keep_data(struct stele_device *dev, bool keep)
{
	struct stele_fault_plan *plan = stele_fault_plan_of(dev);

	test_lock_take(&plan->lock);
	plan->keep_data = keep;
	test_lock_drop(&plan->lock);
}

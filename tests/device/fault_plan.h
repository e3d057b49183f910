/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_plan.h - what a fault device is to break, and what has passed it
 *
 * Private to the fault device. Safe from several threads.
 */
#ifndef STELE_TESTS_DEVICE_FAULT_PLAN_H
#define STELE_TESTS_DEVICE_FAULT_PLAN_H


#include "tests/device/fault.h"
#include "tests/device/lock.h"

struct stele_fault_plan {
	struct test_lock lock;
	struct stele_fault_plan_rule *rules;
	size_t rule_count;
	uint64_t next_number;
	bool keep_data;
	struct stele_fault_entry *log;
	size_t log_count, log_room;
};

/* One raw operation on its way, and the rule that it met. */
struct stele_passage {
	enum stele_op op;
	void *data;
	uint64_t offset;
	size_t size;
	bool queued;
	uint64_t number;
	int fault; /* enum stele_fault_kind, or -1 */
	int error; /* of the rule, like arg */
	uint64_t arg;
};

int stele_fault_plan_init(struct stele_fault_plan *plan,
			  const struct stele_fault_rule *rules, size_t count);
void stele_fault_plan_release(struct stele_fault_plan *plan);
int stele_fault_plan_set_rules(struct stele_fault_plan *plan,
			       const struct stele_fault_rule *rules,
			       size_t count);
/* Number an operation, find what is to happen to it, log it. 0 or -ENOMEM. */
int stele_fault_plan_enter(struct stele_fault_plan *plan,
			   struct stele_passage *passage);
uint64_t stele_fault_plan_count(struct stele_fault_plan *plan);
/* Of a fault device. */
struct stele_fault_plan *stele_fault_plan_of(struct stele_device *dev);

#endif

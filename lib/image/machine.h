/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - which process on which machine wrote an intent, and does it run?
 */
#ifndef STELE_IMAGE_MACHINE_H
#define STELE_IMAGE_MACHINE_H

#include "format/intent.h"

enum stele_running {
	STELE_RUNNING_UNKNOWN, /* of another machine, or not to be seen */
	STELE_RUNNING_NO,
	STELE_RUNNING_BEFORE, /* nor that, the machine was started again since */
	STELE_RUNNING_YES,
};

/* Fill in boot, machine, namespace, process, start, host: of the calling process. */
void stele_machine_sign(struct stele_intent_record *record);
/* Of another process than the calling one; that one is always running. */
enum stele_running stele_machine_runs(const struct stele_intent_record *record);
#define STELE_MACHINE_TEXT_SIZE 256u

/*
 * "process 4711 (stele) of this machine, since 2026-11-21 06:45:00 UTC", or of 'HOST', as far as
 * that is known; or "this process itself".
 */
void stele_machine_describe(const struct stele_intent_record *record, char *text,
			    size_t size);
/* Was it signed by this very process? */
bool stele_machine_is_self(const struct stele_intent_record *record);

/* See stele_intent_pose(). */
extern _Thread_local unsigned int stele_machine_posed, stele_machine_posed_boot;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - an environment of LMDB whose data file is replaced: does anybody have it open?
 *
 * Each process that opens one locks the first byte of its lock file, shared, for that long, and
 * whoever gets it alone takes what the lock file holds for old. Not seen is who opens it without
 * locks, or on another machine.
 */
#ifndef STELE_CMD_TO_ENVIRONMENT_H
#define STELE_CMD_TO_ENVIRONMENT_H

#define ENVIRONMENT_LOCKS 2u /* of "data.mdb": as a file, and of its directory */

struct environment {
	int locks[ENVIRONMENT_LOCKS]; /* -1: there is none */
};

/*
 * Keep others from opening it: they wait. `data`: its file, which need not be there. Return: 0,
 * and ends with leave; -EBUSY: a process has it open; errno of a lock file.
 */
int environment_enter(struct environment *env, const char *data);
/*
 * Between those, what comes next has another data file: nothing that a lock file says of
 * transactions is true of that. Return: 0; errno.
 */
int environment_renew(const struct environment *env);
void environment_leave(struct environment *env);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - see machine.h
 *
 * A process is known by the machine's boot, the namespace that its id is of, the id,
 * and when it was started: none of this comes again. A machine is known by its
 * machine-id(5) and its name: of what it was doing when it was started again nothing is
 * left. What cannot be learned is "unknown", never "no".
 */
#include "lib/image/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/decode.h"
#include "lib/image/digest.h"

/* The inode of the process id namespace that a kernel begins with, PROC_PID_INIT_INO. */
#define FIRST_NAMESPACE UINT64_C(0xeffffffc)

_Thread_local unsigned int stele_machine_posed, stele_machine_posed_boot;

/* 32 hexadecimal digits, with dashes or without; zeros when it cannot be read. */
static void read_id(const char *path, uint8_t id[16])
{
	FILE *file = fopen(path, "re");
	unsigned int byte;

	memset(id, 0, 16);
	for (int i = 0; file && i < 16; i++) {
		if (fscanf(file, "%2x%*1[-]", &byte) != 1) {
			memset(id, 0, 16);
			break;
		}
		id[i] = (uint8_t)byte;
	}
	if (file)
		fclose(file);
}

static void read_machine(uint8_t machine[16])
{
	uint8_t id[16];

	read_id("/etc/machine-id", id);
	memset(machine, 0, 16);
	if (!bytes_zero(id, sizeof(id)))
		stele_hash_machine_id(id, machine);
}

/*
 * The fields of /proc/PID/stat behind the name, which may hold anything, begin with
 * the state; the start is the 22nd of all.
 */
static bool read_stat(uint64_t process, char *state, uint64_t *start)
{
	char path[64], line[1024], *at;
	uint64_t ticks;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat",
		 process);
	file = fopen(path, "re");
	if (!file)
		return false;
	size = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[size] = '\0';
	at = strrchr(line, ')');
	if (!at ||
	    sscanf(at + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %*s %*s %*s %" SCNu64,
		   state, &ticks) != 2)
		return false;
	*start = ticks;
	return true;
}

void stele_machine_sign(struct stele_intent_record *record)
{
	struct stat st;
	char state;

	read_id("/proc/sys/kernel/random/boot_id", record->boot);
	read_machine(record->machine);
	record->process = (uint64_t)getpid();
	record->namespace = stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
	if (!read_stat(record->process, &state, &record->start))
		memset(record->boot, 0, sizeof(record->boot));
	if (gethostname(record->host, sizeof(record->host) - 1))
		record->host[0] = '\0';
	/* As text: what stands behind its end may be anything. */
	memset(record->host + strlen(record->host), 0,
	       sizeof(record->host) - strlen(record->host));
	if (stele_machine_posed) {
		memset(record->boot, 0xff, sizeof(record->boot));
		record->boot[0] = (uint8_t)stele_machine_posed;
		record->boot[1] = (uint8_t)stele_machine_posed_boot;
		memset(record->machine, 0xff, sizeof(record->machine));
		record->machine[0] = (uint8_t)stele_machine_posed;
		record->namespace = FIRST_NAMESPACE;
		snprintf(record->host, sizeof(record->host), "machine-%u",
			 stele_machine_posed);
	}
}

static bool is_same_boot(const struct stele_intent_record *a,
			    const struct stele_intent_record *b)
{
	return !bytes_zero(a->boot, sizeof(a->boot)) &&
	       !memcmp(a->boot, b->boot, sizeof(a->boot)) &&
	       a->namespace && a->namespace == b->namespace;
}

/*
 * Machines that were copied have one id, and names that differ once they have any.
 * Containers may have both in common; so only who runs in none counts.
 */
static bool has_restarted(const struct stele_intent_record *now,
			  const struct stele_intent_record *then)
{
	return !bytes_zero(then->machine, sizeof(then->machine)) &&
	       !memcmp(now->machine, then->machine, sizeof(now->machine)) &&
	       now->host[0] && strncmp(now->host, "localhost", 9) &&
	       !strcmp(now->host, then->host) &&
	       now->namespace == FIRST_NAMESPACE &&
	       then->namespace == FIRST_NAMESPACE &&
	       !bytes_zero(now->boot, sizeof(now->boot)) &&
	       !bytes_zero(then->boot, sizeof(then->boot)) &&
	       memcmp(now->boot, then->boot, sizeof(now->boot));
}

bool stele_machine_is_self(const struct stele_intent_record *record)
{
	struct stele_intent_record self = {0};

	stele_machine_sign(&self);
	return is_same_boot(&self, record) &&
	       self.process == record->process && self.start == record->start;
}

enum stele_running stele_machine_runs(const struct stele_intent_record *record)
{
	struct stele_intent_record self = {0};
	uint64_t start;
	char state;

	stele_machine_sign(&self);
	if (has_restarted(&self, record))
		return STELE_RUNNING_BEFORE;
	if (!is_same_boot(&self, record) || record->process == 0 ||
	    record->process > INT32_MAX)
		return STELE_RUNNING_UNKNOWN;
	if (kill((pid_t)record->process, 0) && errno == ESRCH)
		return STELE_RUNNING_NO;
	if (!read_stat(record->process, &state, &start))
		return STELE_RUNNING_UNKNOWN;
	return start == record->start && state != 'Z' && state != 'X' ?
		       STELE_RUNNING_YES :
		       STELE_RUNNING_NO;
}

/* Of a process of this machine: its name, and the second of its start; 0: unknown. */
static void read_process(const struct stele_intent_record *record, char name[32],
			 time_t *began)
{
	const uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec up;
	char path[64];
	FILE *file;

	strcpy(name, "?");
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/comm", record->process);
	file = fopen(path, "re");
	if (file && fgets(name, 32, file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	*began = 0;
	if (!clock_gettime(CLOCK_BOOTTIME, &up) && ticks)
		*began = time(NULL) - up.tv_sec + (time_t)(record->start / ticks);
}

void stele_machine_describe(const struct stele_intent_record *record, char *text,
			    size_t size)
{
	char name[32], since[48] = "";
	struct tm tm;
	time_t began;

	if (stele_machine_runs(record) != STELE_RUNNING_YES) {
		snprintf(text, size, "process %" PRIu64 " of '%s'", record->process,
			 record->host);
		return;
	}
	if (stele_machine_is_self(record)) {
		snprintf(text, size, "this process itself");
		return;
	}
	read_process(record, name, &began);
	if (began && gmtime_r(&began, &tm))
		strftime(since, sizeof(since), ", since %Y-%m-%d %H:%M:%S UTC", &tm);
	snprintf(text, size, "process %" PRIu64 " (%s) of this machine%s",
		 record->process, name, since);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-fallback.c - where io_uring is forbidden, fall back to threads and say so
 *
 * What is forbidden cannot be allowed again, so each case runs in a child,
 * which leaves what it saw in shared memory.
 */
#include "tests/device/device.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

#define SIZE (4u << 20)

struct seen {
	int rc; /* of the open */
	char backend[16];
	struct test_log log;
	int transfers; /* 0 when all of them were right */
};

static char path[4096];

/* 0, or the number of the step that went wrong. */
static int use(struct stele_device *dev)
{
	char *wanted = test_data(dev, SIZE, 1), *seen = test_data(dev, SIZE, 2);
	uint32_t piece = dev->limits.transfer_max, offset;
	struct stele_request request, *done;
	struct stele_queue *queue;
	int step = 0;

	if (stele_device_write(dev, wanted, 0, SIZE))
		return 1;
	if (stele_queue_open(dev, 4, seen, SIZE, &queue))
		return 2;
	for (offset = 0; offset < SIZE && !step; offset += piece) {
		request = (struct stele_request){
			.op = STELE_OP_READ,
			.data = seen + offset,
			.offset = offset,
			.size = SIZE - offset < piece ? SIZE - offset : piece,
		};
		if (stele_queue_submit(queue, &request) ||
		    stele_queue_reap(queue, &done, 1, 1) != 1 ||
		    request.status)
			step = 3;
	}
	if (!step && memcmp(wanted, seen, SIZE) != 0)
		step = 4;
	stele_queue_close(queue);
	free(wanted);
	free(seen);
	return step;
}

static void open_and_use(const char *backend, struct seen *seen)
{
	struct stele_log log = test_log_to(&seen->log);
	struct stele_device *dev;

	seen->rc = stele_device_open_file(path, STELE_DEVICE_WRITE, backend,
					  &log, &dev);
	if (seen->rc)
		return;
	snprintf(seen->backend, sizeof(seen->backend), "%s",
		 stele_device_backend(dev));
	seen->transfers = use(dev);
	stele_device_close(dev);
}

/* ---- io_uring forbidden -------------------------------------------------- */

static void forbid(unsigned int number, unsigned int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

struct test_case {
	const char *what;
	unsigned int number, error;
	const char *backend; /* asked for */
	int rc;
	const char *served; /* by */
	unsigned int warnings, errors;
};

static const struct test_case cases[] = {
	{"EPERM", SYS_io_uring_setup, EPERM, NULL, 0, "threads", 1, 0},
	{"EPERM, no wish", SYS_io_uring_setup, EPERM, "", 0, "threads", 1, 0},
	{"ENOSYS", SYS_io_uring_setup, ENOSYS, NULL, 0, "threads", 1, 0},
	{"EACCES", SYS_io_uring_setup, EACCES, NULL, 0, "threads", 1, 0},
	{"ENOMEM", SYS_io_uring_setup, ENOMEM, NULL, 0, "threads", 1, 0},
	{"EINVAL", SYS_io_uring_setup, EINVAL, NULL, 0, "threads", 1, 0},
	{"a ring, but no use of it", SYS_io_uring_enter, EPERM, NULL, 0,
	 "threads", 1, 0},
	{"no registration", SYS_io_uring_register, EPERM, NULL, 0, "uring", 0,
	 0},
	{"threads by wish", SYS_io_uring_setup, EPERM, "threads", 0, "threads",
	 0, 0},
	{"uring by force", SYS_io_uring_setup, EPERM, "uring", -EPERM, "", 0,
	 1},
	{"no descriptors left", SYS_io_uring_setup, EMFILE, NULL, -EMFILE, "",
	 0, 1},
};

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0)
		sysbail("fork");
	if (waitpid(pid, &status, 0) != pid)
		sysbail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_case(const struct test_case *c, struct seen *seen)
{
	pid_t pid;
	int status;

	memset(seen, 0, sizeof(*seen));
	pid = fork();
	if (!pid) {
		forbid(c->number, c->error);
		open_and_use(c->backend, seen);
		_exit(0);
	}
	status = wait_for(pid);
	if (status == 77) {
		skip_block(6, "no seccomp filters");
		return;
	}
	is_int(0, status, "%s: ends", c->what);
	is_int(c->rc, seen->rc, "%s: opens or not", c->what);
	is_string(c->served, seen->backend, "%s: who serves", c->what);
	is_uint(c->warnings, seen->log.warnings, "%s: warnings", c->what);
	is_uint(c->errors, seen->log.errors, "%s: errors", c->what);
	is_int(0, seen->transfers, "%s: transfers", c->what);
	if (c->errors || c->warnings)
		ok(strstr(seen->log.last, "uring") != NULL,
		   "%s: names it: %s", c->what, seen->log.last);
}

/* Forbidden between the open of the file and that of a queue. */
static void check_late(const char *backend, struct seen *seen)
{
	pid_t pid;
	int status;

	memset(seen, 0, sizeof(*seen));
	pid = fork();
	if (!pid) {
		struct stele_log log = test_log_to(&seen->log);
		struct stele_device *dev;

		seen->rc = stele_device_open_file(path, STELE_DEVICE_WRITE,
						  backend, &log, &dev);
		if (seen->rc)
			_exit(1);
		forbid(SYS_io_uring_setup, EPERM);
		seen->transfers = use(dev);
		if (!seen->transfers)
			seen->transfers = use(dev);
		stele_device_close(dev);
		_exit(0);
	}
	status = wait_for(pid);
	if (status == 77) {
		skip_block(3, "no seccomp filters");
		return;
	}
	is_int(0, status, "forbidden late, %s: ends", backend ? backend : "-");
	is_int(backend ? 2 : 0, seen->transfers, "transfers or not");
	is_uint(backend ? 0 : 1, seen->log.warnings, "told once: %s",
		seen->log.last);
}

/* Forbidden while a transfer is in flight: its memory stays the kernel's. */
static void check_broken(struct seen *seen)
{
	pid_t pid;
	int status;

	memset(seen, 0, sizeof(*seen));
	pid = fork();
	if (!pid) {
		struct stele_log log = test_log_to(&seen->log);
		struct stele_request request = {.op = STELE_OP_READ,
						.size = 4096};
		struct stele_request *done;
		struct stele_queue *queue;
		struct stele_device *dev;

		if (stele_device_open_file(path, STELE_DEVICE_WRITE, "uring",
					   &log, &dev) ||
		    stele_queue_open(dev, 1, NULL, 0, &queue))
			_exit(1);
		request.data = test_data(dev, 4096, 1);
		forbid(SYS_io_uring_enter, EPERM);
		if (!stele_queue_submit(queue, &request))
			seen->rc = stele_queue_reap(queue, &done, 1, 1);
		seen->transfers = (int)stele_queue_close(queue);
		_exit(0);
	}
	status = wait_for(pid);
	if (status == 77) {
		skip_block(4, "no seccomp filters");
		return;
	}
	is_int(0, status, "broken in flight: ends");
	is_int(-EIO, seen->rc, "broken in flight: the queue failed");
	is_int(1, seen->transfers, "close tells what is in flight for ever");
	is_uint(1, seen->log.errors, "and says so: %s", seen->log.last);
}

/* ---- memory that cannot be locked ---------------------------------------- */

static void check_memlock(struct seen *seen)
{
	struct rlimit limit = {65536, 65536};
	pid_t pid;

	memset(seen, 0, sizeof(*seen));
	pid = fork();
	if (!pid) {
		struct stele_log log = test_log_to(&seen->log);
		struct stele_device *dev;

		seen->rc = stele_device_open_file(path, STELE_DEVICE_WRITE,
						  "uring", &log, &dev);
		/* Root may lock what it wants. */
		if (setrlimit(RLIMIT_MEMLOCK, &limit) ||
		    (!geteuid() && seteuid(65534)))
			_exit(77);
		seen->transfers = seen->rc ? 9 : use(dev);
		_exit(0);
	}
	is_int(0, wait_for(pid), "small memlock: ends");
	is_int(0, seen->rc, "small memlock: opens");
	is_int(0, seen->transfers, "small memlock: transfers");
	is_uint(1, seen->log.infos, "small memlock: told: %s", seen->log.last);
	is_uint(0, seen->log.warnings, "small memlock: no warning");
}

int main(void)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct stele_device *dev;

	if (seen == MAP_FAILED)
		sysbail("no memory");
	plan_lazy();
	unsetenv(STELE_BACKEND_ENV);
	snprintf(path, sizeof(path), "%s/target", test_tmpdir());
	if (stele_device_open_file(path,
				   STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				   "threads", NULL, &dev) ||
	    stele_device_resize(dev, SIZE))
		bail("no target");
	stele_device_close(dev);

	open_and_use(NULL, seen);
	if (strcmp(seen->backend, "uring") != 0)
		skip_all("no io_uring here");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(&cases[i], seen);
	check_late(NULL, seen);
	check_late("uring", seen);
	check_broken(seen);
	check_memlock(seen);
	return done();
}

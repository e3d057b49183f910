/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd-writers.c - one writer of an RBD image: a second one is refused by name, a
 * dead one is fenced, a live one never, and a fenced one hears of it
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/device/device.h"
#include "tests/ceph.h"
#include "tests/loop.h"
#include "tests/tap.h"

#define SIZE (UINT64_C(8) << 20)
#define SOLE (STELE_DEVICE_WRITE | STELE_DEVICE_SOLE)
#define EXCL (STELE_DEVICE_WRITE | STELE_DEVICE_EXCL)

static char lines[4096]; /* all that was logged since the last open */

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	size_t used = strlen(lines);

	(void)user, (void)level;
	snprintf(lines + used, sizeof(lines) - used, "%s\n", line);
}

static int open_image(const char *path, unsigned int flags,
		      struct stele_device **dev)
{
	const struct stele_log log = {.fn = keep_line};

	*dev = NULL;
	lines[0] = '\0';
	return stele_device_open(path, NULL, flags, NULL, &log, dev);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * The other writer: opens, says so, and waits for a word; then writes, and
 * exits with what came of that.
 */
static int writer_main(const char *path, const char *flags, const char *first)
{
	struct stele_device *dev;
	_Alignas(4096) uint8_t block[512] = {1};
	int rc = open_image(path, (unsigned int)atoi(flags), &dev);

	if (!rc && *first == '1')
		rc = stele_device_write(dev, block, 0, sizeof(block));
	if (rc || write(1, "x", 1) != 1 || read(0, block, 1) != 1)
		return 99;
	block[0] = 1;
	rc = stele_device_write(dev, block, 0, sizeof(block));
	stele_device_close(dev);
	return -rc;
}

/* A program of its own: librados must not have run before a fork. */
static pid_t writer_start(const char *path, unsigned int flags, bool write_first,
			  int *to)
{
	char text[16], word;
	int up[2], down[2];
	pid_t pid;

	snprintf(text, sizeof(text), "%u", flags);
	if (pipe(up) || pipe(down) || (pid = fork()) < 0)
		sysbail("no child");
	if (!pid) {
		dup2(up[1], 1);
		dup2(down[0], 0);
		close(up[0]);
		close(down[1]);
		execl("/proc/self/exe", "writer", path, text,
		      write_first ? "1" : "0", NULL);
		_exit(98);
	}
	close(up[1]);
	close(down[0]);
	if (read(up[0], &word, 1) != 1)
		bail("the other writer did not come up");
	close(up[0]);
	*to = down[1];
	return pid;
}

static int writer_end(pid_t pid, int to)
{
	int status = 0;

	if (write(to, "x", 1) != 1)
		diag("the other writer is gone");
	close(to);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_second(const char *path)
{
	char pid_text[32], host[65] = "";
	struct stele_device *dev, *reader;
	double begin;
	int to;
	pid_t pid = writer_start(path, SOLE, false, &to);

	begin = now();
	is_int(-EBUSY, open_image(path, SOLE, &dev), "a second writer is refused");
	ok(now() - begin < 5, "at once");
	snprintf(pid_text, sizeof(pid_text), "pid %d ", (int)pid);
	gethostname(host, sizeof(host) - 1);
	ok(strstr(lines, pid_text) && strstr(lines, host) &&
		   strstr(lines, "client."),
	   "with the holder's name") || (diag("%s", lines), 0);
	is_int(-EBUSY, open_image(path, EXCL, &dev), "so is an exclusive one");
	is_int(0, open_image(path, 0, &reader), "a reader is not");
	stele_device_close(reader);
	is_int(0, writer_end(pid, to), "the first one writes undisturbed");
	is_int(0, open_image(path, SOLE, &dev), "once it has closed, another may");
	is_string("", lines, "without a word");
	stele_device_close(dev);
}

static void check_killed(const char *path)
{
	struct stele_device *dev;
	double begin;
	int to;
	pid_t pid = writer_start(path, SOLE, false, &to);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(to);
	begin = now();
	is_int(0, open_image(path, EXCL, &dev), "a killed writer is in nobody's way");
	ok(now() - begin < 3, "not for the time that its watch lives");
	ok(strstr(lines, "fenced") != NULL, "and that is said") ||
		(diag("%s", lines), 0);
	stele_device_close(dev);
}

/* A writer on another machine hangs until its watch ends. */
static void check_fenced(const char *path)
{
	struct stele_device *dev;
	_Alignas(4096) uint8_t block[512] = {2};
	int to;
	pid_t pid = writer_start(path, SOLE, false, &to);

	kill(pid, SIGSTOP);
	is_int(-EBUSY, open_image(path, SOLE, &dev),
	       "one that is stopped on this machine is alive");
	if (!command("v=$(rbd --conf '%s' image-meta get %s stele.writer) && "
		     "rbd --conf '%s' image-meta set %s stele.writer "
		     "\"$(echo $v | awk '{ $5 = \"elsewhere\"; print }')\"",
		     ceph_conf(), rbd_spec(path), ceph_conf(), rbd_spec(path)))
		bail("cannot change metadata");
	is_int(0, open_image(path, SOLE, &dev),
	       "elsewhere it is dead when its watch has ended");
	is_int(0, stele_device_write(dev, block, 0, sizeof(block)),
	       "the new writer writes");
	kill(pid, SIGCONT);
	is_int(ESHUTDOWN, writer_end(pid, to), "the fenced one can't any more");
	is_int(0, stele_device_read(dev, block, 0, sizeof(block)), "(read back)");
	is_int(2, block[0], "and did not");
	stele_device_close(dev);
}

static void check_others(const char *path)
{
	struct stele_device *dev;
	int to;
	pid_t pid = writer_start(path, STELE_DEVICE_WRITE, true, &to);

	is_int(-EBUSY, open_image(path, SOLE, &dev),
	       "a client that locks by itself is a writer");
	ok(strstr(lines, "open elsewhere: client.") != NULL, "and is named") ||
		(diag("%s", lines), 0);
	is_int(0, writer_end(pid, to), "it goes on");
	pid = writer_start(path, STELE_DEVICE_WRITE, false, &to);
	is_int(0, open_image(path, SOLE, &dev), "one that does not write is none");
	stele_device_close(dev);
	is_int(-EBUSY, open_image(path, EXCL, &dev), "but not alone with it");
	writer_end(pid, to);
	if (!ceph_command("rbd", "lock add %s cookie", rbd_spec(path)))
		bail("cannot add a lock");
	is_int(-EBUSY, open_image(path, SOLE, &dev), "an advisory lock is a lock");
	ok(strstr(lines, "rbd lock rm") != NULL, "with advice") ||
		(diag("%s", lines), 0);
	/* Left there, `rbd rm` would ask for it for ever. */
	if (!command("rbd='rbd --conf %s'; $rbd lock rm %s cookie $($rbd lock "
		     "ls %s | grep -o 'client[.][0-9]*')",
		     ceph_conf(), rbd_spec(path), rbd_spec(path)))
		bail("cannot remove a lock");
}

int main(int argc, char **argv)
{
	struct stele_device *dev;
	const char *path;

	if (argc == 4)
		return writer_main(argv[1], argv[2], argv[3]);
	plan_lazy();
	requires_ceph();
	path = rbd_new(SIZE);
	check_second(path);
	check_killed(path);
	check_fenced(path);
	check_others(path);
	path = rbd_new(0);
	if (!ceph_command("rbd", "create --size 8M --image-feature layering %s",
			  rbd_spec(path)))
		bail("cannot create '%s'", path);
	is_int(-EOPNOTSUPP, open_image(path, SOLE, &dev),
	       "an image without the feature");
	ok(strstr(lines, "rbd feature enable") != NULL, "with advice");
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd-writers.c - one writer of an RBD image: a second one is refused by name, a
 * dead one is fenced, a live one never, and a fenced one hears of it; so does
 * one that slept until nothing of its fence is left
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
#include "tests/device/ceph.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#define SIZE (UINT64_C(8) << 20)
#define SOLE (STELE_DEVICE_WRITE | STELE_DEVICE_SOLE)
#define EXCL (STELE_DEVICE_WRITE | STELE_DEVICE_EXCL)

/* The connection of a writer in doubt is left open until its process ends. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *
__lsan_default_suppressions(void)
{
	return "leak:librados.so\nleak:librbd.so\n";
}

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
	if (*lines)
		fprintf(stderr, "# the other writer: %s", lines);
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

/* As if it ran on another machine: its boot id is another one. rbd(8) would take the lock. */
static void move_writer(const char *path)
{
	if (!command("rbd='rbd --conf %s'; "
		     "id=$($rbd info --format json %s | "
		     "grep -o '\"id\":\"[^\"]*' | cut -d'\"' -f4) && "
		     "v=$($rbd image-meta get %s stele.writer | "
		     "awk '{ $5 = \"elsewhere\"; print }') && "
		     "rados --conf %s --pool rbd setomapval rbd_header.$id "
		     "metadata_stele.writer \"$v\"",
		     ceph_conf(), rbd_spec(path), rbd_spec(path), ceph_conf()))
		bail("cannot change metadata");
}

/* Is it on the blocklist, and not for an hour? */
static bool fenced_for_years(const char *address)
{
	return command("ceph --conf '%s' osd blocklist ls 2>&- | "
		       "awk -v a=%s -v y=$(($(date +%%Y) + 5)) "
		       "'$1 == a && $2 > y { found = 1 } END { exit !found }'",
		       ceph_conf(), address);
}

static void read_address(const char *path, char address[64])
{
	char text[1024];
	FILE *pipe;

	snprintf(text, sizeof(text),
		 "rbd --conf '%s' lock ls %s | awk 'END { print $NF }'",
		 ceph_conf(), rbd_spec(path));
	pipe = popen(text, "r");
	if (!pipe || fscanf(pipe, "%63s", address) != 1)
		bail("cannot list who locks");
	pclose(pipe);
}

/* A writer on another machine hangs until its watch ends. */
static void check_fenced(const char *path)
{
	struct stele_device *dev;
	_Alignas(4096) uint8_t block[512] = {2};
	char address[64];
	int to;
	pid_t pid = writer_start(path, SOLE, false, &to);

	kill(pid, SIGSTOP);
	read_address(path, address);
	is_int(-EBUSY, open_image(path, SOLE, &dev),
	       "one that is stopped on this machine is alive");
	move_writer(path);
	is_int(0, open_image(path, SOLE, &dev),
	       "elsewhere it is dead when its watch has ended");
	ok(fenced_for_years(address), "and fenced for years");
	is_int(0, stele_device_write(dev, block, 0, sizeof(block)),
	       "the new writer writes");
	kill(pid, SIGCONT);
	is_int(ESHUTDOWN, writer_end(pid, to), "the fenced one can't any more");
	is_int(0, stele_device_read(dev, block, 0, sizeof(block)), "(read back)");
	is_int(2, block[0], "and did not");
	stele_device_close(dev);
}

/* The cluster's and the image's settings say that nobody is to be fenced. */
static void check_settings(const char *path)
{
	struct stele_device *dev;
	char address[64];
	int to;
	pid_t pid;

	if (!ceph_command("ceph", "config set client rbd_blocklist_on_break_lock "
				  "false") ||
	    !ceph_command("rbd", "config image set %s "
				 "rbd_blocklist_on_break_lock false",
			  rbd_spec(path)))
		bail("cannot set");
	pid = writer_start(path, SOLE, false, &to);
	kill(pid, SIGSTOP);
	read_address(path, address);
	move_writer(path);
	is_int(0, open_image(path, SOLE, &dev), "no fence by the settings");
	ok(fenced_for_years(address), "but for the writer there is one");
	stele_device_close(dev);
	ceph_command("ceph", "config rm client rbd_blocklist_on_break_lock");
	ceph_command("rbd", "config image rm %s rbd_blocklist_on_break_lock",
		     rbd_spec(path));
	kill(pid, SIGCONT);
	is_int(ESHUTDOWN, writer_end(pid, to), "and it hears of it");
}

/* Ceph's own fences last for an hour; here one was made by other means. */
static void check_short(const char *path)
{
	struct stele_device *dev;
	char address[64];
	int to;
	pid_t pid = writer_start(path, SOLE, false, &to);

	kill(pid, SIGSTOP);
	read_address(path, address);
	if (!ceph_command("ceph", "osd blocklist add %s 600", address))
		bail("cannot fence");
	is_int(0, open_image(path, SOLE, &dev),
	       "who is fenced is dead, though its process lives");
	ok(fenced_for_years(address), "and is fenced for years from then on");
	stele_device_close(dev);
	kill(pid, SIGCONT);
	is_int(ESHUTDOWN, writer_end(pid, to), "and hears of it");
}

/* It slept for so long that its fence is gone, and the other writer, too. */
static void check_slept(const char *path)
{
	struct stele_device *dev;
	_Alignas(4096) uint8_t block[512] = {3};
	char address[64];
	int to;
	pid_t pid = writer_start(path, SOLE, false, &to);

	kill(pid, SIGSTOP);
	read_address(path, address);
	move_writer(path);
	is_int(0, open_image(path, SOLE, &dev), "another writer came");
	is_int(0, stele_device_write(dev, block, 0, sizeof(block)), "wrote");
	stele_device_close(dev);
	if (!ceph_command("ceph", "osd blocklist rm %s", address))
		bail("cannot undo the fence");
	kill(pid, SIGCONT);
	is_int(ESHUTDOWN, writer_end(pid, to),
	       "one whose lock was another's stops before its next write");
	is_int(0, open_image(path, 0, &dev), "(open)");
	is_int(0, stele_device_read(dev, block, 0, sizeof(block)), "(read back)");
	is_int(3, block[0], "what the other one wrote is there");
	stele_device_close(dev);
	ok(fenced_for_years(address), "and it has fenced itself for what was under way");
}

/* The lock is asked for in vain: its holder hangs, and its watch lives. */
static void check_patience(const char *path)
{
	char impatient[1024];
	struct stele_device *dev;
	int to;
	pid_t pid;

	if (!ceph_command("ceph", "tell osd.0 config set "
				  "osd_client_watch_timeout 60"))
		bail("cannot set");
	pid = writer_start(path, SOLE, false, &to);
	kill(pid, SIGSTOP);
	move_writer(path);
	snprintf(impatient, sizeof(impatient), "%s&timeout=1", path);
	is_int(-ETIMEDOUT, open_image(impatient, SOLE, &dev),
	       "taking the lock ends within the timeout");
	kill(pid, SIGCONT);
	is_int(0, writer_end(pid, to), "the holder has lost nothing");
	is_int(0, open_image(path, SOLE, &dev), "and the next one may");
	stele_device_close(dev);
	ceph_command("ceph", "tell osd.0 config set osd_client_watch_timeout 5");
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
	check_settings(path);
	check_short(path);
	check_slept(path);
	check_patience(path);
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

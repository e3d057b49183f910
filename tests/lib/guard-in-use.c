/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard-in-use.c - what is in use is refused, and by whom it is used is said
 *
 * Real mounts, swap, loop devices, partitions and other processes, each once
 * in use and once no more.
 */
#include "lib/device/guard.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static char said[4096];

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	size_t used = strlen(said);

	(void)user, (void)level;
	snprintf(said + used, sizeof(said) - used, "%s\n", line);
}

static int in_use(const char *path)
{
	struct stele_log log = {.fn = keep_line};

	said[0] = '\0';
	return stele_guard_in_use(path, &log);
}

static void is_free(const char *path, const char *what)
{
	is_int(0, in_use(path), "%s: free", what);
	is_string("", said, "%s: nothing to say", what);
}

static void is_used(const char *path, const char *words, const char *what)
{
	is_int(-EBUSY, in_use(path), "%s: refused", what);
	ok(strstr(said, words) && strstr(said, path), "%s: says '%s'", what,
	   words);
	diag("%s", said);
}

/* A process that has `path` open until it is told to go. */
static pid_t opener_start(const char *path, int flags)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		sysbail("pipe");
	pid = fork();
	if (pid < 0)
		sysbail("fork");
	if (!pid) {
		byte = open(path, flags) >= 0;
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ready[0], &byte, 1) != 1 || !byte)
		bail("a child cannot open '%s'", path);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void opener_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void check_opener(const char *path, int flags, const char *what)
{
	char words[64];
	pid_t pid = opener_start(path, flags);

	snprintf(words, sizeof(words), "open in process %d (guard-in-use)",
		 (int)pid);
	is_used(path, words, what);
	opener_stop(pid);
	is_free(path, what);
}

static void check_files(void)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s", file_new("file", MIB));
	is_free("/nonexistent/file", "no such path");
	is_free(path, "a file");
	fd = open(path, O_RDWR | O_CLOEXEC);
	is_free(path, "a file that we have open ourselves");
	close(fd);
	check_opener(path, O_RDONLY, "a file with a reader");
	check_opener(path, O_WRONLY, "a file with a writer");
	is_int(-ENOTDIR, in_use("/dev/null/x"), "a path that is none");
}

/* ---- with root ------------------------------------------------------------- */

static void check_loops(void)
{
	char path[PATH_MAX], node[LOOP_NODE_SIZE], upper[LOOP_NODE_SIZE];

	snprintf(path, sizeof(path), "%s", file_new("disk", 4 * MIB));
	if (!loop_attach(path, 512, node))
		bail("no loop device");
	is_used(path, node + strlen("/dev/"), "a file under a loop device");
	is_free(node, "a loop device");
	check_opener(node, O_RDONLY, "a device with a reader");
	check_opener(node, O_RDWR | O_EXCL, "a device held exclusively");
	if (!loop_attach(node, 512, upper))
		bail("no loop device");
	is_used(node, upper + strlen("/dev/"), "a device under a loop device");
	loop_detach(upper);
	is_free(node, "a device no more under a loop device");
	unlink(path);
	loop_detach(node);
}

/* Two over the same file: only what is done with the other counts. */
static void check_twins(void)
{
	char path[PATH_MAX], point[PATH_MAX], words[96], node[LOOP_NODE_SIZE],
		twin[LOOP_NODE_SIZE], upper[LOOP_NODE_SIZE];
	pid_t pid;

	snprintf(path, sizeof(path), "%s", file_new("twins", 8 * MIB));
	snprintf(point, sizeof(point), "%s/twin", test_tmpdir());
	mkdir(point, 0755);
	if (!loop_attach(path, 512, node) || !loop_attach(path, 512, twin) ||
	    !loop_attach(twin, 512, upper))
		bail("no loop device");
	is_free(node, "a device whose bytes another has, too");
	snprintf(words, sizeof(words), "shares bytes with '%s', which is open in process",
		 twin + strlen("/dev/"));
	pid = opener_start(twin, O_RDONLY);
	is_used(node, words, "a device with a reader of another");
	is_used(upper, words, "a device over one that is read");
	is_int(0, stele_guard_claimed(node, NULL), "which an image may be changed with");
	opener_stop(pid);
	pid = opener_start(path, O_RDONLY);
	is_used(node, "over a file that is open in process", "a device with a reader of its file");
	is_used(upper, "over a file that is open in process", "a device two above it");
	opener_stop(pid);
	snprintf(words, sizeof(words), "shares bytes with '%s', which somebody",
		 twin + strlen("/dev/"));
	pid = opener_start(twin, O_RDWR | O_EXCL);
	is_used(node, words, "a device whose other is held exclusively");
	is_used(upper, words, "a device over one that is");
	is_int(-EBUSY, stele_guard_claimed(node, NULL), "nor is an image changed there");
	is_int(0, stele_guard_viewed(node, NULL, NULL), "which is no view of one");
	opener_stop(pid);
	is_free(node, "a device whose other is held no more");
	if (!command("mkfs.ext4 -q %s", twin) || mount(twin, point, "ext4", MS_RDONLY, NULL)) {
		skip_block(8, "needs mkfs.ext4 and its driver");
	} else {
		snprintf(words, sizeof(words), "shares bytes with '%s', which is mounted on",
			 twin + strlen("/dev/"));
		is_used(node, words, "a device whose other is mounted");
		is_used(upper, words, "a device over one that is");
		is_int(-EBUSY, stele_guard_claimed(node, NULL), "nor is an image changed there");
		is_int(0, stele_guard_viewed(node, NULL, NULL), "which is no view of one");
		umount(point);
		is_free(node, "a device whose other is mounted no more");
	}
	loop_detach(upper);
	loop_detach(twin);
	loop_detach(node);
}

static void check_deleted_file(void)
{
	char path[PATH_MAX], other[PATH_MAX + 8], node[LOOP_NODE_SIZE];

	snprintf(path, sizeof(path), "%s", file_new("moved", 4 * MIB));
	snprintf(other, sizeof(other), "%s.link", path);
	if (link(path, other) || !loop_attach(path, 512, node))
		bail("no link, or no loop device");
	unlink(path);
	is_used(other, node + strlen("/dev/"),
		"a file under a loop device by a name that is gone");
	loop_detach(node);
	is_free(other, "the same, detached");
}

static void check_mounted(const char *type, const char *options, uint64_t size)
{
	char point[PATH_MAX], node[LOOP_NODE_SIZE], what[64];

	snprintf(what, sizeof(what), "%s", type);
	if (!loop_attach(file_new(type, size), 512, node))
		bail("no loop device");
	snprintf(point, sizeof(point), "%s/a mount", test_tmpdir());
	mkdir(point, 0755);
	if (!command("mkfs.%s %s %s", type, options, node) ||
	    mount(node, point, type, MS_RDONLY, NULL)) {
		skip_block(4, "needs mkfs.%s and its driver", type);
		goto out;
	}
	is_used(node, "a\\040mount", what);
	umount(point);
	is_free(node, what);
out:
	loop_detach(node);
}

/* Mounted by a name that nobody knows any more: only the number is left. */
static void check_mounted_unnamed(void)
{
	char point[PATH_MAX], name[PATH_MAX], node[LOOP_NODE_SIZE];
	struct stat st;

	if (!loop_attach(file_new("unnamed", 8 * MIB), 512, node))
		bail("no loop device");
	snprintf(point, sizeof(point), "%s/a mount", test_tmpdir());
	snprintf(name, sizeof(name), "%s/node", test_tmpdir());
	if (!command("mkfs.ext4 -q %s", node) || stat(node, &st) ||
	    mknod(name, S_IFBLK | 0600, st.st_rdev) ||
	    mount(name, point, "ext4", MS_RDONLY, NULL)) {
		skip_block(2, "needs mkfs.ext4 and its driver");
	} else {
		unlink(name);
		is_used(node, "mounted on", "mounted by a name that is gone");
		umount(point);
	}
	loop_detach(node);
}

static void check_swap(void)
{
	char path[PATH_MAX], node[LOOP_NODE_SIZE];

	snprintf(path, sizeof(path), "%s", file_new("swap device", 4 * MIB));
	if (!loop_attach(path, 512, node))
		bail("no loop device");
	if (!command("mkswap %s", node) || swapon(node, 0)) {
		skip_block(4, "needs mkswap and a kernel with swap");
	} else {
		is_used(node, "swap", "swap device");
		swapoff(node);
		is_free(node, "swap device no more");
	}
	loop_detach(node);

	snprintf(path, sizeof(path), "%s", file_new("swap file", 0));
	if (!command("dd if=/dev/zero of='%s' bs=1M count=4", path) ||
	    !command("chmod 600 '%s' && mkswap '%s'", path, path) ||
	    swapon(path, 0)) {
		skip_block(4, "needs a filesystem that takes swap files");
	} else {
		is_used(path, "swap", "swap file");
		swapoff(path);
		is_free(path, "swap file no more");
	}
}

static void check_partitions(void)
{
	char node[LOOP_NODE_SIZE], first[LOOP_NODE_SIZE + 4],
		second[LOOP_NODE_SIZE + 4], twin[LOOP_NODE_SIZE], half[LOOP_NODE_SIZE],
		point[PATH_MAX], path[PATH_MAX];
	pid_t pid;

	snprintf(point, sizeof(point), "%s/partition", test_tmpdir());
	mkdir(point, 0755);
	snprintf(path, sizeof(path), "%s", file_new("table", 64 * MIB));
	if (!loop_attach(path, 512, node))
		bail("no loop device");
	snprintf(first, sizeof(first), "%sp1", node);
	snprintf(second, sizeof(second), "%sp2", node);
	/* partx: where the kernel itself reads no tables. */
	if (!command("printf 'label: gpt\\n,24M\\n,24M\\n' | sfdisk %s", node) ||
	    !command("test -b %s || partx -a %s", first, node) ||
	    !command("mkfs.ext4 -q %s", first) ||
	    mount(first, point, "ext4", MS_RDONLY, NULL)) {
		skip_block(18, "needs sfdisk, mkfs.ext4 and partitions on loop devices");
		goto out;
	}
	is_used(first, "mounted on", "a mounted partition");
	is_used(node, strrchr(first, '/') + 1, "its disk");
	is_free(second, "the partition beside it");
	if (!loop_attach(path, 512, twin) || !loop_attach(second, 512, half))
		bail("no loop device");
	is_used(twin, strrchr(first, '/') + 1, "another device over the disk");
	is_free(half, "one over the partition beside it");
	loop_detach(half);
	loop_detach(twin);
	umount(point);
	is_free(node, "the disk afterwards");

	pid = opener_start(first, O_RDONLY);
	is_used(node, "open in process", "a disk with an open partition");
	is_free(second, "the partition beside it");
	opener_stop(pid);
	pid = opener_start(node, O_RDONLY);
	is_free(first, "a partition of an open disk");
	opener_stop(pid);
out:
	loop_detach(node);
}

static void check_held(void)
{
	char node[LOOP_NODE_SIZE];

	if (!loop_attach(file_new("held", 8 * MIB), 512, node))
		bail("no loop device");
	if (command("dmsetup create stele-test-%d --table '0 8192 linear %s 0'",
		    (int)getpid(), node)) {
		is_used(node, "held by dm-", "a device under device-mapper");
		command("dmsetup remove stele-test-%d", (int)getpid());
		is_free(node, "a device no more under device-mapper");
	} else {
		skip_block(4, "needs device-mapper");
	}
	loop_detach(node);
}

int main(void)
{
	plan_lazy();
	check_files();
	if (!loop_usable()) {
		skip_block(1, "needs root and loop devices");
		return done();
	}
	check_loops();
	check_twins();
	check_deleted_file();
	check_mounted("ext4", "-q", 8 * MIB);
	check_mounted("btrfs", "-q", 128 * MIB);
	check_mounted_unnamed();
	check_swap();
	check_partitions();
	check_held();
	return done();
}

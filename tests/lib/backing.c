/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.c - which files no other may take the place of, and why
 *
 * Real loop devices, and EROFS mounted from files: by their paths, by relative ones, from files
 * that were renamed since, seen from here and from another mount namespace.
 */
#include "lib/stele.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static char said[1024];

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	(void)user, (void)level;
	snprintf(said, sizeof(said), "%s", line);
}

static struct stele_backing *opened(void)
{
	struct stele_backing *backing;

	if (stele_backing_open(&STELE_OPTS(stele_backing_opts, .log = keep_line), &backing))
		bail("%s", stele_errmsg());
	return backing;
}

/* Of what there is now. */
static void is_kind(int wanted, const char *words, const char *path, const char *what)
{
	struct stele_backing *backing = opened();
	char whole[sizeof(said) + PATH_MAX];
	int fd = open(path, O_PATH | O_CLOEXEC);

	said[0] = '\0';
	is_int(wanted, stele_backing_check(backing, AT_FDCWD, path, 0), "%s", what);
	if (!ok(strstr(said, words) && !said[0] == !*words, "%s: says '%s'", what, words))
		diag("%s", said);
	if (wanted) {
		snprintf(whole, sizeof(whole), "cannot replace '%s': %s", path, said);
		is_string(whole, stele_errmsg(), "%s: so does the call", what);
	}
	is_int(wanted, stele_backing_check(backing, fd, "", AT_EMPTY_PATH), "%s: by a descriptor",
	       what);
	close(fd);
	stele_backing_close(backing);
}

static const char *in_tmp(const char *name)
{
	static char paths[32][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % 32];

	snprintf(path, PATH_MAX, "%s/%s", test_tmpdir(), name);
	return path;
}

/* An image that the kernel can mount, too. */
static const char *image_new(const char *name)
{
	const char *path = in_tmp(name), *source = in_tmp("source"), *file = in_tmp("source/x");
	int fd;

	mkdir(source, 0755);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd))
		sysbail("cannot write '%s'", file);
	if (stele_build(source, path, &STELE_OPTS(stele_build_opts, .flags = STELE_BUILD_POSIX),
			NULL))
		bail("%s", stele_errmsg());
	return path;
}

static void move(const char *from, const char *to)
{
	if (rename(from, to))
		sysbail("cannot rename '%s'", from);
}

static void check_plain(void)
{
	struct stele_backing *backing = opened();
	const char *link = in_tmp("link");

	is_kind(0, "", file_new("file", 4 * MIB), "a file");
	is_kind(0, "", "/dev/null", "a device for characters");
	is_int(0, stele_backing_check(backing, AT_FDCWD, "/nonexistent/x", 0), "no file");
	is_int(-EINVAL, stele_backing_check(backing, AT_FDCWD, "/", AT_SYMLINK_FOLLOW),
	       "a flag that means nothing here");
	if (symlink(image_new("linked"), link))
		sysbail("symlink");
	is_int(-EEXIST, stele_backing_check(backing, AT_FDCWD, link, 0), "a link to an image");
	is_int(0, stele_backing_check(backing, AT_FDCWD, link, AT_SYMLINK_NOFOLLOW),
	       "which is a link, if it is not followed");
	stele_backing_close(backing);
	stele_backing_close(NULL);
}

/* Overwrite bytes of a file. */
static void damage(const char *path, off_t at, size_t size)
{
	static const char zeros[8192];
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || pwrite(fd, zeros, size, at) != (ssize_t)size || close(fd))
		sysbail("cannot write '%s'", path);
}

static void check_images(void)
{
	const char words[] = "it holds an image";
	const char *path = in_tmp("an@image");

	move(image_new("image"), path);
	is_kind(-EEXIST, words, path, "an image");
	is_int(1, stele_image_detect(path), "which is one");
	if (truncate(path, 2 * MIB))
		sysbail("truncate");
	is_kind(-EEXIST, words, path, "one that was cut off");
	damage(path, 0, 8192);
	is_kind(-EEXIST, words, path, "one with a damaged superblock");
	if (truncate(path, 2 * MIB - 1))
		sysbail("truncate");
	is_kind(0, "", path, "what has no sample");
	is_int(0, stele_image_detect(in_tmp("none")), "no file is no image");
	is_int(0, stele_image_detect("/dev/null"), "nor is that device");
	is_int(0, stele_image_detect(file_new("none", 4 * MIB)), "nor any other file");
	if (!command_exists("sfdisk")) {
		skip_block(5, "needs sfdisk");
		return;
	}
	path = file_new("parted", 16 * MIB);
	if (!command("echo 2048,,L | sfdisk -q '%s'", path) ||
	    !command("dd if='%s' of='%s' bs=1M seek=1 conv=notrunc", image_new("within"), path))
		bail("no partition");
	is_kind(-EEXIST, words, path, "one in a partition");
	is_int(1, stele_image_detect(path), "which is one, too");
}

/* ---- with root ------------------------------------------------------------------------- */

static void check_loops(void)
{
	char node[LOOP_NODE_SIZE], words[96];
	const char *path = file_new("disk", 4 * MIB), *moved = in_tmp("moved");

	if (!loop_attach(path, 512, node))
		bail("no loop device");
	snprintf(words, sizeof(words), "it is under loop device '%s'", node + strlen("/dev/"));
	is_kind(-EPERM, "it is a block device", node, "a loop device");
	is_kind(-ETXTBSY, words, path, "a file under one");
	move(path, moved);
	is_kind(-ETXTBSY, words, moved, "a file that was renamed since");
	is_kind(0, "", file_new("disk", 4 * MIB), "another one by its name");
	loop_detach(node);
	is_kind(0, "", moved, "one that was detached");
}

/* On tmp/mnt. False: this kernel mounts no EROFS from a file. */
static bool mounted(const char *source)
{
	const char *point = in_tmp("mnt");

	mkdir(point, 0755);
	return !mount(source, point, "erofs", MS_RDONLY, NULL);
}

static void unmount(void)
{
	if (umount(in_tmp("mnt")))
		sysbail("umount");
}

static void check_renamed(const char *path, const char *uuid_words)
{
	const char *moved = in_tmp("moved.img");

	move(path, moved);
	is_kind(-EBUSY, uuid_words, moved, "mounted, and renamed since");
	is_kind(-EEXIST, "it holds an image", image_new("a.img"), "another one by its name");
	unmount();
	is_kind(-EEXIST, "it holds an image", moved, "unmounted");
	unlink(moved);
}

static void check_mounts(void)
{
	const char *path = image_new("a.img"), *point = in_tmp("mnt");
	char words[PATH_MAX + 64], uuid_words[PATH_MAX + 64], may_words[PATH_MAX + 64];

	snprintf(words, sizeof(words), "it is mounted on '%s'", point);
	snprintf(uuid_words, sizeof(uuid_words),
		 "it has the UUID of the EROFS that is mounted on '%s'", point);
	snprintf(may_words, sizeof(may_words), "it may be the EROFS that is mounted on '%s'",
		 point);
	if (!mounted(path)) {
		skip_block(42, "needs a kernel that mounts EROFS from files");
		return;
	}
	is_kind(-EBUSY, words, path, "mounted by its path");
	is_kind(-EEXIST, "it holds an image", image_new("other.img"), "another image");
	check_renamed(path, uuid_words);

	if (chdir(test_tmpdir()) || !mounted("a.img"))
		sysbail("mount");
	is_kind(-EBUSY, uuid_words, in_tmp("a.img"), "mounted by a relative path");
	is_kind(-EEXIST, "it holds an image", in_tmp("other.img"), "not another image");
	is_kind(0, "", file_new("file", 4 * MIB), "nor any file");
	if (mount("none", in_tmp("mnt"), "tmpfs", 0, NULL))
		sysbail("tmpfs");
	is_kind(-EBUSY, may_words, in_tmp("a.img"), "something is mounted over it");
	is_kind(-EBUSY, may_words, in_tmp("other.img"), "another image may be it, too");
	is_kind(0, "", in_tmp("file"), "no other file may");
	unmount();
	unmount();
}

static void check_namespace(void)
{
	char words[PATH_MAX + 64], byte = 0;
	const char *path = in_tmp("a.img");
	int ready[2];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		sysbail("pipe");
	pid = fork();
	if (pid < 0)
		sysbail("fork");
	if (!pid) {
		byte = !unshare(CLONE_NEWNS) &&
		       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) && mounted(path);
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ready[0], &byte, 1) != 1 || !byte) {
		skip_block(8, "needs mount namespaces, and a kernel that mounts EROFS from files");
	} else {
		snprintf(words, sizeof(words), "it is mounted on '%s', as process %d sees it",
			 in_tmp("mnt"), (int)pid);
		is_kind(-EBUSY, words, path, "mounted in another namespace");
		move(path, in_tmp("b.img"));
		snprintf(words, sizeof(words), "it has the UUID of the EROFS that is mounted on "
			 "'%s', as process %d sees it", in_tmp("mnt"), (int)pid);
		is_kind(-EBUSY, words, in_tmp("b.img"), "and renamed since");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	plan_lazy();
	check_plain();
	check_images();
	if (!loop_usable()) {
		skip_block(68, "needs root and losetup");
		return done();
	}
	check_loops();
	check_mounts();
	check_namespace();
	return done();
}

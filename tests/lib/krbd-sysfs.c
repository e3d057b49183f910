/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd-sysfs.c - what is told to the kernel's RBD client, and found of it
 *
 * Over a directory that looks like sysfs. The kernel is played by a thread: it
 * waits until the list of devices was read, puts a new device there, and only
 * then takes the line, which is a pipe's.
 */
#include "lib/node/krbd.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define FSID "546e2805-0636-4789-87fc-bc376c527aad"

static char sysfs[PATH_MAX];

static const struct stele_krbd_shot shot = {
	.fsid = FSID, .pool = "rbd", .ns = "", .image = "photos",
	.shot = "v1", .image_id = "100b49f4c185", .shot_id = 4,
};
static const struct stele_krbd_access access_v2 = {
	.monitors = "192.0.2.1:3300,[2001:db8::1]:3300",
	.user = "reader",
	.key = "AQC1ZwFrwQl7BRAAcYbMiHNIJ+ZFAVJBInTuBw==",
	.mode = "prefer-crc",
};

static void put(const char *text, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	file = fopen(path, "we");
	if (!file)
		sysbail("cannot write '%s'", path);
	fputs(text, file);
	fclose(file);
}

/* As the kernel has it: each value with a newline. NULL is an old kernel's. */
static void put_device(unsigned int number, const struct stele_krbd_shot *of)
{
	char at[PATH_MAX], id[32];
	const char *values[][2] = {
		{"cluster_fsid", of->fsid}, {"pool", of->pool},
		{"pool_ns", of->ns},	    {"name", of->image},
		{"image_id", of->image_id}, {"current_snap", of->shot},
		{"snap_id", id},
	};

	snprintf(id, sizeof(id), "%llu", (unsigned long long)of->shot_id);
	snprintf(at, sizeof(at), "%.3000s/devices/%u", sysfs, number);
	if (mkdir(at, 0755))
		sysbail("mkdir '%s'", at);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char line[256];

		if (!values[i][1])
			continue;
		snprintf(line, sizeof(line), "%s\n", values[i][1]);
		put(line, "%s/%s", at, values[i][0]);
	}
}

static void new_sysfs(const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(sysfs, sizeof(sysfs), "%.3000s/%s", test_tmpdir(), name);
	snprintf(path, sizeof(path), "%s/devices", sysfs);
	if (mkdir(sysfs, 0755) || mkdir(path, 0755))
		sysbail("mkdir '%s'", path);
}

/* ---- the line ---------------------------------------------------------------- */

static void is_line(const char *wanted, const struct stele_krbd_access *access,
		    const struct stele_krbd_shot *of, const char *auth,
		    const char *what)
{
	char *line = NULL;
	int err = stele_krbd_compose(access, of, auth, &line);

	is_int(wanted ? 0 : -EOPNOTSUPP, err, "%s: composes", what);
	is_string(wanted, line, "%s: the line", what);
	free(line);
}

static void test_compose(void)
{
	struct stele_krbd_access access = access_v2;
	struct stele_krbd_shot other = shot;
	char longest[5000];

	is_line("192.0.2.1:3300,[2001:db8::1]:3300 name=reader,secret=x,"
		"ms_mode=prefer-crc,read_only rbd photos v1",
		&access, &shot, "secret=x", "messenger v2");
	access.mode = NULL;
	access.monitors = "192.0.2.1:6789";
	is_line("192.0.2.1:6789 name=reader,read_only rbd photos v1", &access,
		&shot, NULL, "v1, no cephx");
	other.ns = "team";
	is_line("192.0.2.1:6789 name=reader,key=k,_pool_ns=team,read_only rbd photos v1",
		&access, &other, "key=k", "namespace");
	other.ns = "te,am";
	is_line(NULL, &access, &other, NULL, "a comma in a namespace");
	other = shot;
	other.image = "my photos";
	is_line(NULL, &access, &other, NULL, "a blank in an image");
	other.image = "a,b";
	is_line("192.0.2.1:6789 name=reader,read_only rbd a,b v1", &access,
		&other, NULL, "a comma in an image");
	access.user = "a,secret=y";
	is_line(NULL, &access, &shot, NULL, "a comma in a user");
	access.user = "";
	is_line(NULL, &access, &shot, NULL, "no user");
	access = access_v2;
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	access.monitors = longest;
	is_line(NULL, &access, &shot, NULL, "more than a page");
}

/* ---- what is there ------------------------------------------------------------ */

static void is_found(int wanted, const struct stele_krbd_shot *of,
		     const char *what)
{
	uint32_t number = 99;

	is_int(wanted, stele_krbd_find(sysfs, of, &number), "%s", what);
	is_uint(wanted > 0 ? 7 : 99, number, "%s: its number", what);
}

static void test_find(void)
{
	struct stele_krbd_shot other = shot;

	snprintf(sysfs, sizeof(sysfs), "%.3000s/none", test_tmpdir());
	is_found(-EOPNOTSUPP, &shot, "no krbd in this kernel");
	new_sysfs("find");
	is_found(0, &shot, "nothing attached");
	put_device(7, &shot);
	other.shot = "-";
	other.shot_id = UINT64_MAX - 1; /* the head */
	put_device(1, &other);
	put("", "%s/devices/README", sysfs);
	is_found(1, &shot, "the very shot");
	other = shot;
	other.shot_id++;
	is_found(0, &other, "one that was removed and made again");
	other = shot;
	other.image_id = "100b";
	is_found(0, &other, "an image that was removed and made again");
	other = shot;
	other.ns = "team";
	is_found(0, &other, "another namespace");
	other = shot;
	other.pool = "rb";
	is_found(0, &other, "another pool");
	other = shot;
	other.fsid = "546e2805-0636-4789-87fc-000000000000";
	is_found(0, &other, "another cluster");
	other = shot;
	other.image = "renamed";
	is_found(1, &other, "an image that was renamed");
}

static void test_old_kernel(void)
{
	struct stele_krbd_shot old = shot;

	new_sysfs("old");
	old.ns = NULL;
	put_device(7, &old);
	is_found(1, &shot, "a kernel without namespaces");
}

/* ---- attach -------------------------------------------------------------------- */

struct kernel {
	const struct stele_krbd_shot *adds; /* NULL: nothing */
	int events;
	char line[5000];
};

static void *play(void *user)
{
	struct kernel *kernel = user;
	char event[4096] __attribute__((aligned(8))), path[PATH_MAX + 32];
	ssize_t size;
	int fd;

	if (read(kernel->events, event, sizeof(event)) <= 0)
		sysbail("inotify");
	if (kernel->adds)
		put_device(2, kernel->adds);
	snprintf(path, sizeof(path), "%s/add_single_major", sysfs);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = read(fd, kernel->line, sizeof(kernel->line) - 1);
	kernel->line[size > 0 ? size : 0] = '\0';
	close(fd);
	return NULL;
}

/* With device 0 there from before, of the same names. */
static int attach(const char *name, const struct stele_krbd_shot *adds,
		  struct kernel *kernel, uint32_t *number)
{
	char path[PATH_MAX + 32];
	pthread_t thread;
	int err;

	new_sysfs(name);
	put_device(0, &shot);
	snprintf(path, sizeof(path), "%s/add_single_major", sysfs);
	if (mkfifo(path, 0600))
		sysbail("mkfifo '%s'", path);
	put("", "%s/remove_single_major", sysfs);
	*kernel = (struct kernel){.adds = adds};
	kernel->events = inotify_init1(IN_CLOEXEC);
	snprintf(path, sizeof(path), "%s/devices", sysfs);
	if (inotify_add_watch(kernel->events, path, IN_CLOSE_NOWRITE) < 0 ||
	    pthread_create(&thread, NULL, play, kernel))
		sysbail("no watch");
	err = stele_krbd_attach(sysfs, &access_v2, &shot, NULL, number);
	pthread_join(thread, NULL);
	close(kernel->events);
	return err;
}

static void is_removed(const char *wanted, const char *what)
{
	char path[PATH_MAX + 32], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/remove_single_major", sysfs);
	file = fopen(path, "re");
	if (!file)
		sysbail("cannot read '%s'", path);
	if (!fgets(line, sizeof(line), file))
		*line = '\0';
	fclose(file);
	is_string(wanted, line, "%s", what);
}

static void test_attach(void)
{
	struct stele_krbd_shot other = shot;
	struct kernel kernel;
	uint32_t number = 99;

	is_int(0, attach("attach", &shot, &kernel, &number), "attaches");
	is_uint(2, number, "the new one, not the one from before");
	is_removed("", "nothing is removed");
	/* This machine's kernel may have a keyring for it, or not. */
	if (strstr(kernel.line, "key="))
		ok(!strstr(kernel.line, access_v2.key), "the key stays secret");
	else
		ok(strstr(kernel.line, ",secret=AQC1ZwFrwQl7BRAAcYbMiHNIJ+ZFAVJBInTuBw==,"),
		   "the line has the key");
	ok(strstr(kernel.line, ",read_only rbd photos v1"), "read-only: %s",
	   kernel.line);

	is_int(-ENODEV, attach("none", NULL, &kernel, &number),
	       "the kernel says yes, and nothing is there");
	other.shot_id = 5;
	is_int(-ESTALE, attach("other", &other, &kernel, &number),
	       "the shot was made again meanwhile");
	is_removed("2", "that one is removed again");
}

static void test_refused(void)
{
	struct stele_krbd_access bad = access_v2;
	uint32_t number = 99;

	new_sysfs("refused");
	is_int(-EOPNOTSUPP,
	       stele_krbd_attach(sysfs, &access_v2, &shot, NULL, &number),
	       "no file to tell it");
	put("", "%s/add_single_major", sysfs);
	bad.key = "not base64!";
	is_int(-EINVAL, stele_krbd_attach(sysfs, &bad, &shot, NULL, &number),
	       "a key that is none");
	bad.key = "QQ==Q";
	is_int(-EINVAL, stele_krbd_attach(sysfs, &bad, &shot, NULL, &number),
	       "bytes behind the end of a key");
	is_int(0, stele_krbd_detach(sysfs, 3, NULL), "what is gone, is gone");
	put("", "%s/remove_single_major", sysfs);
	is_int(0, stele_krbd_detach(sysfs, 31, NULL), "detach");
	is_removed("31", "by number");
}

static void test_nodes(void)
{
	char node[STELE_KRBD_NODE_SIZE];
	uint32_t number = 0;

	stele_krbd_node(12, node);
	is_string("/dev/rbd12", node, "a node's name");
	is_int(0, stele_krbd_number(node, &number), "and back");
	is_uint(12, number, "its number");
	is_int(-EINVAL, stele_krbd_number("/dev/rbd", &number), "no number");
	is_int(-EINVAL, stele_krbd_number("/dev/rbd1p1", &number), "partition");
	is_int(-EINVAL, stele_krbd_number("/dev/nbd1", &number), "another");
	is_int(-EINVAL, stele_krbd_number("/dev/rbd-1", &number), "negative");
}

int main(void)
{
	plan_lazy();
	test_compose();
	test_find();
	test_old_kernel();
	test_attach();
	test_refused();
	test_nodes();
	return done();
}

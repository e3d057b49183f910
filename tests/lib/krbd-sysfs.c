/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd-sysfs.c - what is found of the kernel's RBD devices, in a directory like sysfs
 */
#include "lib/node/krbd.h"
#include "tests/tap.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static char sysfs[PATH_MAX];

static const struct stele_storage_id v1 = {
	.cluster = "546e2805-0636-4789-87fc-bc376c527aad", .pool = 2,
	.image = "100b49f4c185", .snap = 4,
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

/* As the kernel has it: each value with a newline. */
static void put_device(const char *number, const struct stele_storage_id *id)
{
	char at[PATH_MAX], text[256];

	snprintf(at, sizeof(at), "%.3000s/devices/%s", sysfs, number);
	if (mkdir(at, 0755))
		sysbail("mkdir '%s'", at);
	snprintf(text, sizeof(text), "%s\n", id->cluster);
	put(text, "%s/cluster_fsid", at);
	snprintf(text, sizeof(text), "%lld\n", (long long)id->pool);
	put(text, "%s/pool_id", at);
	snprintf(text, sizeof(text), "%s\n", id->image);
	put(text, "%s/image_id", at);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)id->snap);
	put(text, "%s/snap_id", at);
}

static void is_found(int wanted, const struct stele_storage_id *id,
		     const char *what)
{
	char node[STELE_KRBD_NODE_SIZE] = "none";

	is_int(wanted, stele_krbd_find(sysfs, id, node), "%s", what);
	is_string(wanted > 0 ? "/dev/rbd17" : "none", node, "%s: the node", what);
}

static void test_find(void)
{
	struct stele_storage_id other = v1;
	char path[PATH_MAX + 32];

	snprintf(sysfs, sizeof(sysfs), "%.3000s/rbd", test_tmpdir());
	is_found(-EOPNOTSUPP, &v1, "no krbd in this kernel");
	snprintf(path, sizeof(path), "%s/devices", sysfs);
	if (mkdir(sysfs, 0755) || mkdir(path, 0755))
		sysbail("mkdir '%s'", path);
	is_found(0, &v1, "nothing is attached");
	put_device("rbd17", &v1);
	put_device("1234567890", &v1);
	is_found(0, &v1, "what is no number");
	put("", "%s/README", path);
	other.snap = UINT64_MAX - 1;
	put_device("3", &other);
	is_found(0, &v1, "the head");
	put_device("17", &v1);
	is_found(1, &v1, "the very snapshot");
	other = v1;
	other.snap++;
	is_found(0, &other, "one that was removed and made again");
	other = v1;
	other.image[4] = '\0';
	is_found(0, &other, "an image that was removed and made again");
	other = v1;
	other.pool = 20;
	is_found(0, &other, "another pool");
	other = v1;
	other.cluster[0] = '6';
	is_found(0, &other, "another cluster");
	snprintf(path, sizeof(path), "%s/devices/17/snap_id", sysfs);
	remove(path);
	is_found(0, &v1, "a device that goes away");
}

static void test_node(void)
{
	char node[STELE_KRBD_NODE_SIZE];
	struct stat st;

	is_int(-ENOENT, stele_krbd_node_of(makedev(4095, 77), node),
	       "no such device");
	if (!stat("/dev/loop0", &st) && S_ISBLK(st.st_mode))
		is_int(-ENOENT, stele_krbd_node_of(st.st_rdev, node),
		       "a device that is not krbd's");
	else
		skip_block(1, "no loop device");
}

int main(void)
{
	plan_lazy();
	test_find();
	test_node();
	return done();
}

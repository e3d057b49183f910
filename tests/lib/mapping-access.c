/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping-access.c - a mapping is for those who may read its target, and is
 * believed only if nobody else can have written it
 */
#include "lib/node/mapping.h"
#include "tests/fixture/image.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void map_path(const char *name, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s", stele_mapping_dir(), name);
}

/* The mapping of a target that these others may read has this mode. */
static void save(const char *name, mode_t others, mode_t mode)
{
	struct stele_mapping mapping = {
		.info = {.snapshot = "v1", .via = "device"},
		.target = "/dev/none",
		.identity = {.rdev = 0x701, .size = 1 << 20},
		.access = {.others = others, .group = getegid()},
	};
	char path[PATH_MAX];
	struct stat st;

	strcpy(mapping.info.name, name);
	if (stele_mapping_save(&mapping, NULL))
		bail("cannot save '%s'", name);
	map_path(name, path);
	ok(!stat(path, &st) && (st.st_mode & 0777) == mode,
	   "saved for %04o: %04o", others, mode);
}

/* The access to a file of this mode at run/PLACE/of. */
static mode_t access_at(const char *place, mode_t mode, gid_t group)
{
	struct stele_access access = {0};
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/of", stele_mapping_dir(), place);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fchown(fd, (uid_t)-1, group) || fchmod(fd, mode))
		sysbail("cannot make '%s'", path);
	stele_access_of(fd, place[0] ? path : NULL, &access);
	close(fd);
	return access.others;
}

static void check_access(void)
{
	const gid_t group = getegid();
	const char *tmp = test_tmpdir();
	struct stele_access access;

	chmod(tmp, 0711); /* how far it is reached otherwise is not ours to say */
	is_uint(0, access_at("", 0600, group), "a private target: nobody");
	is_uint(0040, access_at("", 0640, group), "its group");
	is_uint(0044, access_at("", 0664, group), "all that may read it");
	is_uint(0, access_at("", 0622, group), "not who may but write it");
	command("cd '%s'; mkdir -m 700 closed; mkdir -m 710 group; "
		"mkdir -m 755 open; mkdir -m 755 closed/below",
		stele_mapping_dir());
	is_uint(0044, access_at("open", 0644, group), "where all may look");
	is_uint(0, access_at("closed", 0644, group), "where nobody may");
	is_uint(0, access_at("closed/below", 0644, group), "nor below it");
	is_uint(0040, access_at("group", 0644, group), "where a group may");
	if (geteuid() == 0)
		is_uint(0, access_at("group", 0640, group + 1),
			"where another group may");
	stele_access_of(-1, NULL, &access);
	is_uint(0, access.others, "not known: nobody");
	chmod(tmp, 0700);
}

static void fails_for(const char *how, const char *why)
{
	struct stele_mapping mapping;
	struct test_log log;

	test_log_init(&log);
	is_int(-EPERM, stele_mapping_load("cats", &log.log, &mapping), "%s",
	       how);
	ok(test_log_has(&log, why), "%s: said", how);
}

static void check_owner(void)
{
	const char *dir = stele_mapping_dir();
	struct stele_mapping mapping;
	char path[PATH_MAX];

	map_path("cats", path);
	save("cats", 0044, 0644);
	save("dogs", 0040, 0640);
	save("mice", 0, 0600);
	chmod(path, 0664);
	fails_for("a group may write it", "others may write to it");
	chmod(path, 0646);
	fails_for("all may write it", "others may write to it");
	chmod(path, 0644);
	chmod(dir, 0777);
	fails_for("its directory is for all", "others may write to its dir");
	is_int(-ENOENT, stele_mapping_load("none", NULL, &mapping),
	       "what is not there is not there");
	chmod(dir, 0755);
	is_int(0, stele_mapping_load("cats", NULL, &mapping), "ours, and only ours");
	stele_mapping_release(&mapping);
	if (geteuid() == 0) {
		if (chown(path, 12345, (gid_t)-1))
			sysbail("cannot give it away");
		fails_for("of another user", "belongs to another user");
	}
	is_int(0, stele_mapping_remove("cats"), "removed");
}

int main(void)
{
	char dir[PATH_MAX];

	plan_lazy();
	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	setenv(STELE_RUN_DIR_ENV, dir, 1);
	if (mkdir(dir, 0755))
		sysbail("cannot make '%s'", dir);
	check_access();
	check_owner();
	return done();
}

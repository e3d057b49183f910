/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.c - see krbd.h
 *
 * The key goes to the kernel by way of this process's keyring, as a secret in
 * the line could be read in sysfs by root for as long as the device is there;
 * where containers forbid keyrings, it goes into the line all the same.
 */
#include "lib/node/krbd.h"

#include "lib/device/stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE_PREFIX    "/dev/rbd"
#define ATTRIBUTE_SIZE 512
#define NUMBERS_MAX    4096u
#define KEY_SIZE_MAX   512
#define AUTH_SIZE      (KEY_SIZE_MAX + 64)

void stele_krbd_node(uint32_t number, char node[STELE_KRBD_NODE_SIZE])
{
	snprintf(node, STELE_KRBD_NODE_SIZE, NODE_PREFIX "%u", number);
}

static bool parse_number(const char *text, uint32_t *number)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 9 || text[digits])
		return false;
	*number = (uint32_t)strtoul(text, NULL, 10);
	return true;
}

int stele_krbd_number(const char *node, uint32_t *number)
{
	size_t size = strlen(NODE_PREFIX);

	if (strncmp(node, NODE_PREFIX, size) ||
	    !parse_number(node + size, number))
		return -EINVAL;
	return 0;
}

int stele_krbd_node_of(uint64_t rdev, char node[STELE_KRBD_NODE_SIZE])
{
	char place[PATH_MAX];
	uint32_t number;

	if (stele_stack_place(rdev, place) ||
	    snprintf(node, STELE_KRBD_NODE_SIZE, "/dev%s",
		     strrchr(place, '/')) >= STELE_KRBD_NODE_SIZE)
		return -ENOENT;
	return stele_krbd_number(node, &number) ? -ENOENT : 0;
}

/* ---- what the kernel says ------------------------------------------------- */

/* Without the newline. An attribute that this kernel lacks is empty. */
static int read_attribute(const char *sysfs, uint32_t number, const char *name,
			  char value[ATTRIBUTE_SIZE])
{
	char path[PATH_MAX];
	ssize_t size;
	int fd, err;

	snprintf(path, sizeof(path), "%s/devices/%u/%s", sysfs, number, name);
	*value = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	size = read(fd, value, ATTRIBUTE_SIZE - 1);
	err = size < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	value[size] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return 0;
}

struct attribute {
	const char *name, *wanted;
};

/* 1: the kernel says just this; 0: something else; errno. */
static int compare(const char *sysfs, uint32_t number,
		   const struct attribute *attributes, size_t count)
{
	char value[ATTRIBUTE_SIZE];

	for (size_t i = 0; i < count; i++) {
		int err = read_attribute(sysfs, number, attributes[i].name,
					 value);

		if (err)
			return err;
		if (strcmp(value, attributes[i].wanted) != 0)
			return 0;
	}
	return 1;
}

static int is_named(const char *sysfs, uint32_t number,
		    const struct stele_krbd_shot *shot)
{
	const struct attribute names[] = {
		{"pool", shot->pool},
		{"pool_ns", shot->ns},
		{"name", shot->image},
		{"current_snap", shot->shot},
	};

	return compare(sysfs, number, names, sizeof(names) / sizeof(names[0]));
}

static int is_shot(const char *sysfs, uint32_t number,
		   const struct stele_krbd_shot *shot)
{
	char id[24];
	const struct attribute ids[] = {
		{"cluster_fsid", shot->fsid},
		{"pool", shot->pool},
		{"pool_ns", shot->ns},
		{"image_id", shot->image_id},
		{"snap_id", id},
	};

	snprintf(id, sizeof(id), "%llu", (unsigned long long)shot->shot_id);
	return compare(sysfs, number, ids, sizeof(ids) / sizeof(ids[0]));
}

struct numbers {
	uint32_t count;
	uint32_t list[NUMBERS_MAX];
};

static bool has_number(const struct numbers *numbers, uint32_t number)
{
	for (uint32_t i = 0; i < numbers->count; i++)
		if (numbers->list[i] == number)
			return true;
	return false;
}

static int list_numbers(const char *sysfs, struct numbers *out)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	out->count = 0;
	snprintf(path, sizeof(path), "%s/devices", sysfs);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	while (out->count < NUMBERS_MAX && (entry = readdir(dir)))
		if (parse_number(entry->d_name, &out->list[out->count]))
			out->count++;
	closedir(dir);
	return 0;
}

int stele_krbd_find(const char *sysfs, const struct stele_krbd_shot *shot,
		    uint32_t *number)
{
	struct numbers *numbers = malloc(sizeof(*numbers));
	int rc = numbers ? list_numbers(sysfs, numbers) : -ENOMEM;

	for (uint32_t i = 0; !rc && i < numbers->count; i++) {
		rc = is_shot(sysfs, numbers->list[i], shot);
		if (rc == -ENODEV) /* it goes away just now */
			rc = 0;
		if (rc > 0)
			*number = numbers->list[i];
	}
	free(numbers);
	return rc;
}

/* ---- what the kernel is told ---------------------------------------------- */

static bool is_plain(const char *text, const char *forbidden)
{
	return *text && !strpbrk(text, forbidden);
}

/* Names end at a blank, values of options at a comma too. */
static bool can_say(const struct stele_krbd_access *access,
		    const struct stele_krbd_shot *shot)
{
	static const char blank[] = " \t\n", comma[] = " \t\n,";

	return is_plain(access->monitors, blank) &&
	       is_plain(access->user, comma) && is_plain(shot->pool, blank) &&
	       is_plain(shot->image, blank) && is_plain(shot->shot, blank) &&
	       (!*shot->ns || is_plain(shot->ns, comma));
}

int stele_krbd_compose(const struct stele_krbd_access *access,
		       const struct stele_krbd_shot *shot, const char *auth,
		       char **line)
{
	const char *ns = shot->ns;
	char *text;
	int size;

	*line = NULL;
	if (!can_say(access, shot))
		return -EOPNOTSUPP;
	size = asprintf(&text, "%s name=%s%s%s%s%s%s%s,read_only %s %s %s",
			access->monitors, access->user, auth ? "," : "",
			auth ? auth : "", access->mode ? ",ms_mode=" : "",
			access->mode ? access->mode : "",
			*ns ? ",_pool_ns=" : "", ns, shot->pool, shot->image,
			shot->shot);
	if (size < 0)
		return -ENOMEM;
	if ((unsigned int)size > STELE_KRBD_LINE_MAX) {
		free(text);
		return -EOPNOTSUPP;
	}
	*line = text;
	return 0;
}

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Base64. Return: bytes; -EINVAL. */
static int decode_key(const char *text, uint8_t out[KEY_SIZE_MAX])
{
	size_t length = strcspn(text, "="), size = 0;
	uint32_t bits = 0;

	if (length * 3 / 4 > KEY_SIZE_MAX || strspn(text + length, "=") > 2 ||
	    text[length + strspn(text + length, "=")])
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4)
			out[size++] = (uint8_t)(bits >> (6 - i % 4 * 2));
	}
	return (int)size;
}

/* What of `auth` the line says. *serial: of a key to be forgotten, or -1. */
static int give_key(const struct stele_krbd_access *access,
		    char auth[AUTH_SIZE], long *serial)
{
	static _Atomic unsigned int count; /* of keys: no two have one name */
	uint8_t key[KEY_SIZE_MAX];
	char name[64];
	int size = decode_key(access->key, key);

	if (size <= 0)
		return -EINVAL;
	snprintf(name, sizeof(name), "stele.%d.%u", (int)getpid(), count++);
	*serial = syscall(SYS_add_key, "ceph", name, key, (size_t)size,
			  KEY_SPEC_PROCESS_KEYRING);
	explicit_bzero(key, sizeof(key));
	if (*serial >= 0)
		snprintf(auth, AUTH_SIZE, "key=%s", name);
	else
		snprintf(auth, AUTH_SIZE, "secret=%s", access->key);
	return 0;
}

static int write_line(const char *sysfs, const char *name, const char *line)
{
	char path[PATH_MAX];
	ssize_t done;
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s_single_major", sysfs, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	done = write(fd, line, strlen(line));
	if (done < 0)
		err = -errno;
	close(fd);
	return err;
}

static int add(const char *sysfs, const struct stele_krbd_access *access,
	       const struct stele_krbd_shot *shot)
{
	char auth[AUTH_SIZE], *line = NULL;
	long serial = -1;
	int err = 0;

	if (access->key)
		err = give_key(access, auth, &serial);
	if (!err)
		err = stele_krbd_compose(access, shot,
					 access->key ? auth : NULL, &line);
	if (!err)
		err = write_line(sysfs, "add", line);
	if (serial >= 0)
		syscall(SYS_keyctl, KEYCTL_UNLINK, serial,
			KEY_SPEC_PROCESS_KEYRING);
	explicit_bzero(auth, sizeof(auth));
	if (line)
		explicit_bzero(line, strlen(line));
	free(line);
	return err;
}

/* ---- attach, detach -------------------------------------------------------- */

static int explain(const struct stele_krbd_shot *shot,
		   const struct stele_log *log, int err)
{
	const char *why = strerror(-err);

	switch (err) {
	case -EOPNOTSUPP:
		why = "the kernel has no krbd ('modprobe rbd', as root, where it is a module)";
		break;
	case -EACCES:
	case -EPERM:
		why = "permission denied (only root attaches, and the user's key must be right)";
		err = -EACCES;
		break;
	case -ENXIO:
		why = "the kernel does not know all features of the image ('dmesg' has more)";
		break;
	case -ENOENT:
		why = "the kernel does not find it";
		break;
	}
	stele_log_error(log, "cannot attach '%s/%s%s%s@%s' through krbd: %s",
			shot->pool, shot->ns, *shot->ns ? "/" : "", shot->image,
			shot->shot, why);
	return err == -ENXIO ? -EOPNOTSUPP : err;
}

/* The one that was not there before. Another process may add some, too. */
static int find_new(const char *sysfs, const struct stele_krbd_shot *shot,
		    const struct numbers *before, uint32_t *number)
{
	struct numbers *now = malloc(sizeof(*now));
	int rc = now ? list_numbers(sysfs, now) : -ENOMEM;

	if (!rc)
		rc = -ENODEV;
	for (uint32_t i = 0; rc == -ENODEV && i < now->count; i++) {
		if (has_number(before, now->list[i]) ||
		    is_named(sysfs, now->list[i], shot) <= 0)
			continue;
		*number = now->list[i];
		rc = is_shot(sysfs, *number, shot);
		if (!rc) { /* of the same name, and yet another */
			stele_krbd_detach(sysfs, *number, NULL);
			rc = -ESTALE;
		}
	}
	free(now);
	return rc > 0 ? 0 : rc;
}

int stele_krbd_attach(const char *sysfs, const struct stele_krbd_access *access,
		      const struct stele_krbd_shot *shot,
		      const struct stele_log *log, uint32_t *number)
{
	struct numbers *before = malloc(sizeof(*before));
	int err = before ? list_numbers(sysfs, before) : -ENOMEM;

	if (!err)
		err = add(sysfs, access, shot);
	if (!err)
		err = find_new(sysfs, shot, before, number);
	free(before);
	return err ? explain(shot, log, err) : 0;
}

int stele_krbd_detach(const char *sysfs, uint32_t number,
		      const struct stele_log *log)
{
	static const struct stele_log none;
	char line[16], node[STELE_KRBD_NODE_SIZE];
	int err;

	snprintf(line, sizeof(line), "%u", number);
	err = write_line(sysfs, "remove", line);
	if (!err || err == -ENOENT || err == -EOPNOTSUPP)
		return 0;
	stele_krbd_node(number, node);
	stele_log_error(log ? log : &none, "cannot detach '%s': %s", node,
			err == -EBUSY ? "it is open" : strerror(-err));
	return err;
}

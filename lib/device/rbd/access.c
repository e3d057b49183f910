/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - see access.h
 *
 * librados tells its settings but never the key that it found by them, so it
 * is looked for once more, in the places and in the order that librados has: key,
 * keyfile, keyring.
 */
#include "lib/device/rbd/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/device/rbd/ceph_text.h"
#include "lib/device/rbd/rbd.h"

#define SETTING_SIZE  4096
#define FILE_SIZE_MAX (1u << 20)

/* "" when it is not set. */
static int get_setting(rados_t cluster, const char *name,
		       char value[SETTING_SIZE])
{
	*value = '\0';
	return stele_ceph.rados_conf_get(cluster, name, value, SETTING_SIZE);
}

/* All of a small file, terminated. */
static int read_file(const char *path, char **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	size_t used = 0;
	char *text;

	if (fd < 0)
		return -errno;
	text = malloc(FILE_SIZE_MAX + 1);
	while (text && used < FILE_SIZE_MAX) {
		ssize_t n = read(fd, text + used, FILE_SIZE_MAX - used);

		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	close(fd);
	if (!text)
		return -ENOMEM;
	text[used] = '\0';
	*out = text;
	if (err)
		free(text);
	return err;
}

/* ---- key ------------------------------------------------------------------- */

/* Of several files the first that can be read counts. */
static int find_in_keyrings(char *paths, const char *user, char **key)
{
	char *save, *text;

	for (char *path = strtok_r(paths, ",; \t", &save); path;
	     path = strtok_r(NULL, ",; \t", &save)) {
		int err = read_file(path, &text);

		if (err == -ENOENT)
			continue;
		if (err)
			return err;
		err = stele_ceph_keyring_find(text, user, key);
		explicit_bzero(text, strlen(text));
		free(text);
		return err;
	}
	return -ENOENT;
}

static int find_key(rados_t cluster, const char *user, char **key)
{
	char value[SETTING_SIZE];
	int rc = get_setting(cluster, "key", value);

	if (!rc && *value) {
		*key = strdup(value);
		return *key ? 0 : -ENOMEM;
	}
	rc = get_setting(cluster, "keyfile", value);
	if (!rc && *value) {
		rc = read_file(value, key);
		if (!rc)
			(*key)[strcspn(*key, " \t\r\n")] = '\0';
		return rc;
	}
	rc = get_setting(cluster, "keyring", value);
	return rc ? rc : find_in_keyrings(value, user, key);
}

/* ---- monitors -------------------------------------------------------------- */

static int find_monitors(rados_t cluster, struct stele_rbd_access *out)
{
	static const char *command[] = {"{\"prefix\": \"mon dump\"}"};
	char *dump = NULL, *words = NULL, mode[SETTING_SIZE];
	size_t size = 0, words_size = 0;
	int rc = get_setting(cluster, "ms_client_mode", mode);

	if (rc)
		*mode = '\0';
	rc = stele_ceph.rados_mon_command(cluster, command, 1, "", 0, &dump,
					  &size, &words, &words_size);
	if (!rc)
		rc = stele_ceph_monitors(dump, size, !strncmp(mode, "secure", 6),
					&out->monitors, &out->mode);
	stele_ceph.rados_buffer_free(dump);
	stele_ceph.rados_buffer_free(words);
	return rc;
}

/* ---- all of it ------------------------------------------------------------- */

static int copy_names(const struct stele_rbd *rbd, struct stele_rbd_access *out)
{
	const struct stele_rbd_name *name = &rbd->name;

	out->pool = strdup(name->pool);
	out->ns = strdup(name->ns ? name->ns : "");
	out->image = strdup(name->image);
	out->image_id = strdup(rbd->id.image);
	out->shot = strdup(rbd->shot);
	out->shot_id = rbd->id.shot;
	out->user = strdup(rbd->settings.user);
	return out->pool && out->ns && out->image && out->image_id &&
			       out->shot && out->user ?
		       0 :
		       -ENOMEM;
}

static int get_all(struct stele_rbd *rbd, struct stele_rbd_access *out)
{
	char auth[SETTING_SIZE];
	rados_t cluster;
	rados_ioctx_t io;
	int rc = stele_rbd_ioctx(rbd, &io);

	if (rc)
		return rc;
	cluster = stele_ceph.rados_ioctx_get_cluster(io);
	rc = stele_ceph.rados_cluster_fsid(cluster, out->fsid,
					   sizeof(out->fsid));
	if (rc < 0)
		return rc;
	rc = copy_names(rbd, out);
	if (!rc)
		rc = find_monitors(cluster, out);
	if (!rc && get_setting(cluster, "auth_client_required", auth))
		*auth = '\0';
	if (!rc && strcmp(auth, "none"))
		rc = find_key(cluster, out->user, &out->key);
	/* A cluster that asks for none is reached without. */
	return rc == -ENOENT ? 0 : rc;
}

int stele_rbd_access_get(struct stele_device *dev, struct stele_rbd_access *out)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	int rc;

	memset(out, 0, sizeof(*out));
	if (strcmp(dev->ops->name, "rbd") || !rbd->shot)
		return -EOPNOTSUPP;
	rc = get_all(rbd, out);
	if (rc) {
		stele_rbd_access_release(out);
		stele_rbd_explain(rbd, "ask for the monitors and the key of",
				  rc);
	}
	return rc;
}

void stele_rbd_access_release(struct stele_rbd_access *access)
{
	free(access->pool);
	free(access->ns);
	free(access->image);
	free(access->shot);
	free(access->image_id);
	free(access->user);
	if (access->key)
		explicit_bzero(access->key, strlen(access->key));
	free(access->key);
	free(access->monitors);
	memset(access, 0, sizeof(*access));
}

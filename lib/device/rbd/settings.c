/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - by which configuration, as whom and how patiently
 *
 * First what the target says, then our environment, then Ceph's own ($CEPH_ARGS
 * may hold anything that Ceph's commands take; librados understands all of it
 * but who we are and which file to read, which has to be known before).
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT	    30u
#define CONNECTIONS_DEFAULT 4u
#define BLANKS		    " \t\n"

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/*
 * The value of one of two options in $CEPH_ARGS, "-n V", "--name V" or
 * "--name=V", malloc'ed; the last one counts. NULL: it is not there.
 */
static char *ceph_argument(const char *brief, const char *full)
{
	const char *all = environment("CEPH_ARGS");
	char *copy = all ? strdup(all) : NULL, *save, *value = NULL;
	size_t size = strlen(full);
	bool next = false;

	for (char *word = copy ? strtok_r(copy, BLANKS, &save) : NULL; word;
	     word = strtok_r(NULL, BLANKS, &save)) {
		const char *found = next ? word : NULL;

		next = !next && (!strcmp(word, brief) || !strcmp(word, full));
		if (!found && !strncmp(word, full, size) && word[size] == '=')
			found = word + size + 1;
		if (found) {
			free(value);
			value = strdup(found);
		}
	}
	free(copy);
	return value;
}

static char *ceph_user(void)
{
	char *id = ceph_argument("--user", "--id"), *name;
	const char *dot;

	if (id)
		return id;
	name = ceph_argument("-n", "--name");
	dot = name ? strchr(name, '.') : NULL;
	if (dot) /* client.ID */
		id = strdup(dot + 1);
	free(name);
	return id;
}

static int get_timeout(const struct stele_log *log, uint32_t *out)
{
	const char *text = environment("STELE_TIMEOUT");
	char *end;
	unsigned long value;

	if (*out)
		return 0;
	*out = TIMEOUT_DEFAULT;
	if (!text)
		return 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || !value ||
	    value > STELE_RBD_TIMEOUT_MAX) {
		stele_log_error(log, "$STELE_TIMEOUT is '%s', and no seconds from 1 to %u",
				text, STELE_RBD_TIMEOUT_MAX);
		return -EINVAL;
	}
	*out = (uint32_t)value;
	return 0;
}

int stele_rbd_settings_get(const struct stele_rbd_name *name,
			   const struct stele_log *log,
			   struct stele_rbd_settings *out)
{
	const char *user = name->user ? name->user :
					environment("STELE_CEPH_USER");
	const char *conf = name->conf ? name->conf : environment("CEPH_CONF");
	int err;

	*out = (struct stele_rbd_settings){
		.timeout = name->timeout,
		.connections = name->connections ? name->connections :
						   CONNECTIONS_DEFAULT,
	};
	err = get_timeout(log, &out->timeout);
	if (err)
		return err;
	out->conf = conf ? strdup(conf) : ceph_argument("-c", "--conf");
	out->user = user ? strdup(user) : ceph_user();
	if (!out->user)
		out->user = strdup(STELE_RBD_USER_DEFAULT);
	if (out->user && (out->conf || !conf))
		return 0;
	stele_rbd_settings_release(out);
	return -ENOMEM;
}

void stele_rbd_settings_release(struct stele_rbd_settings *settings)
{
	free(settings->conf);
	free(settings->user);
	memset(settings, 0, sizeof(*settings));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect.c - to a cluster and a pool, with an end to all waiting
 *
 * What we set stands above the configuration file. Timeouts: librados knows one
 * for the first contact, one for monitors, one for OSDs, and with each of them unset it
 * waits for ever. An OSD that came back is found only by those who ask for a
 * new map: with its defaults librados asks after 15 s, and if requests time out
 * sooner, never. Here it asks early. No client leaves a socket, a log file or a
 * line on stderr.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/device/rbd/bound.h"

#define ADVICE_READ \
	"reading needs the capabilities mon 'profile rbd-read-only', osd " \
	"'profile rbd-read-only pool=%s'; writing: 'profile rbd'"

struct setting {
	const char *name, *value;
};

static int set_all(rados_t cluster, const struct setting *settings, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = stele_ceph.rados_conf_set(cluster, settings[i].name,
					       settings[i].value);
	return rc;
}

static int configure(rados_t cluster, uint32_t timeout)
{
	char all[16], laggy[16], tick[16];
	const struct setting settings[] = {
		{"client_mount_timeout", all},
		{"rados_mon_op_timeout", all},
		{"rados_osd_op_timeout", all},
		{"objecter_timeout", laggy},
		{"objecter_tick_interval", tick},
		{"rbd_cache", "false"}, /* samples are read at random */
		{"admin_socket", ""},
		{"log_file", ""},
		{"log_to_stderr", "false"},
		{"err_to_stderr", "false"},
	};
	uint32_t seconds = timeout / 10;

	if (seconds < 1)
		seconds = 1;
	if (seconds > 5)
		seconds = 5;
	snprintf(all, sizeof(all), "%u", timeout);
	snprintf(laggy, sizeof(laggy), "%u", seconds);
	snprintf(tick, sizeof(tick), "%.1f", seconds / 2.0);
	return set_all(cluster, settings,
		       sizeof(settings) / sizeof(settings[0]));
}

/*
 * librbd fences for an hour, and of two entries in the blocklist the first one counts
 * (Ceph 16): so here librbd does not, and lock.c does. Before Ceph 16 the setting has
 * another name, and stays.
 */
static void configure_fence(rados_t cluster)
{
	stele_ceph.rados_conf_set(cluster, "rbd_blocklist_on_break_lock", "false");
}

/* ---- messages -------------------------------------------------------------- */

static const char *conf_name(const struct stele_rbd *rbd)
{
	return rbd->settings.conf ? rbd->settings.conf : "of Ceph's default";
}

/* Number: the pool's id, which no other pool ever gets. */
static ssize_t run_pool_lookup(struct stele_rbd_call *call)
{
	char name[256];
	int rc = stele_ceph_real.rados_wait_for_latest_osdmap(call->cluster);

	if (!rc)
		rc = stele_ceph_real.rados_pool_reverse_lookup(
			call->cluster, (int64_t)call->number[0], name,
			sizeof(name));
	return rc < 0 ? rc : 0;
}

bool stele_rbd_pool_gone(struct stele_rbd *rbd)
{
	const struct stele_rbd_links *links = atomic_load(&rbd->links);
	struct stele_rbd_call call = {.number = {(uint64_t)rbd->id.pool}};

	if (!links || links->fork_count != stele_fork_count() ||
	    !links->link[0].cluster || !*rbd->id.cluster)
		return false;
	call.cluster = links->link[0].cluster;
	if (stele_rbd_do(run_pool_lookup, STELE_RBD_ALWAYS, &call) != -ENOENT)
		return false;
	if (!atomic_exchange(&rbd->pool_gone, true))
		stele_log_error(&rbd->base.log,
				"'%s': pool '%s' has been deleted", rbd->path,
				rbd->name.pool);
	return true;
}

int stele_rbd_explain(const struct stele_rbd *rbd, const char *what, int error)
{
	const struct stele_log *log = &rbd->base.log;
	const char *user = rbd->settings.user;

	if ((error == -EPERM || error == -EACCES || error == -ENOENT) &&
	    stele_rbd_pool_gone((struct stele_rbd *)rbd))
		return -ESTALE;
	switch (error) {
	case -ETIMEDOUT:
		stele_log_error(log,
				"cannot %s '%s': no answer from the storage "
				"within %u s (is the cluster up? 'ceph -s'; a "
				"longer wait: '?timeout=')",
				what, rbd->path, rbd->settings.timeout);
		break;
	case -EPERM:
	case -EACCES:
		stele_log_error(log,
				"cannot %s '%s' as client.%s: permission denied "
				"(" ADVICE_READ ")",
				what, rbd->path, user, rbd->name.pool);
		return -EACCES;
	case -EDQUOT:
	case -ENOSPC:
		stele_log_error(log,
				"cannot %s '%s': pool '%s' is full ('ceph df', "
				"'ceph osd dump'); snapshots can be deleted, and "
				"what is unused discarded, all the same",
				what, rbd->path, rbd->name.pool);
		return -EDQUOT;
	case -ESHUTDOWN:
		stele_log_error(log,
				"cannot %s '%s': the cluster has locked this "
				"client out ('ceph osd blocklist ls'): another "
				"writer took over, or an administrator did it",
				what, rbd->path);
		break;
	default:
		stele_log_error(log, "cannot %s '%s' as client.%s: %s", what,
				rbd->path, user, strerror(-error));
	}
	return error;
}

static int explain_connect(const struct stele_rbd *rbd, int error)
{
	const struct stele_log *log = &rbd->base.log;

	if (error == -ETIMEDOUT) {
		stele_log_error(log,
				"cannot open '%s': no monitor answered within "
				"%u s (configuration %s; is the cluster up?)",
				rbd->path, rbd->settings.timeout,
				conf_name(rbd));
		return error;
	}
	if (error != -ENOENT && error != -EACCES && error != -EPERM &&
	    error != -EOPNOTSUPP && error != -EINVAL)
		return stele_rbd_explain(rbd, "open", error);
	stele_log_error(log,
			"cannot open '%s' as client.%s: %s (configuration %s; "
			"another user: '?user=')",
			rbd->path, rbd->settings.user,
			error == -ENOENT || error == -EINVAL ?
				"no keyring with its key" :
				"the cluster does not know this user and key",
			conf_name(rbd));
	return -EACCES;
}

/* ---- connect --------------------------------------------------------------- */

/* Without a file, $CEPH_ARGS may name the monitors. */
static int read_configuration(const struct stele_rbd *rbd, rados_t cluster)
{
	const char *conf = rbd->settings.conf;
	char monitors[4] = "";
	int rc = stele_ceph.rados_conf_read_file(cluster, conf);

	if (rc == -ENOENT && !conf)
		rc = 0;
	if (!rc)
		rc = stele_ceph.rados_conf_parse_env(cluster, NULL);
	if (rc) {
		stele_log_error(&rbd->base.log,
				"cannot read the Ceph configuration '%s': %s",
				conf_name(rbd), strerror(-rc));
		return rc;
	}
	rc = stele_ceph.rados_conf_get(cluster, "mon_host", monitors,
				       sizeof(monitors));
	if (rc == -ENAMETOOLONG || *monitors)
		return 0;
	stele_log_error(&rbd->base.log,
			"cannot open '%s': no monitors are known (configuration "
			"%s; another one: '?conf=', CEPH_CONF)",
			rbd->path, conf_name(rbd));
	return -ENOENT;
}

static int open_pool(const struct stele_rbd *rbd, struct stele_rbd_link *link)
{
	int rc = stele_ceph.rados_ioctx_create(link->cluster, rbd->name.pool,
					       &link->io);

	if (!rc) {
		/*
		 * Of a full pool librados would hold all writes back until they
		 * time out. So those that take space fail at once, and others,
		 * such as a delete has, go through.
		 */
		stele_ceph.rados_set_pool_full_try(link->io);
		if (rbd->name.ns)
			stele_ceph.rados_ioctx_set_namespace(link->io,
							     rbd->name.ns);
		return 0;
	}
	link->io = NULL;
	if (rc != -ENOENT)
		return stele_rbd_explain(rbd, "open", rc);
	stele_log_error(&rbd->base.log,
			"cannot open '%s': the cluster has no pool '%s' (there "
			"are: 'ceph osd lspools')",
			rbd->path, rbd->name.pool);
	return rc;
}

int stele_rbd_connect(const struct stele_rbd *rbd, struct stele_rbd_link *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = stele_ceph.rados_create(&out->cluster, rbd->settings.user);
	if (!rc) {
		rc = stele_rbd_client_add(out->cluster, rbd->settings.timeout);
		if (rc)
			stele_ceph.rados_shutdown(out->cluster);
	}
	if (rc) {
		out->cluster = NULL;
		return stele_rbd_explain(rbd, "open", rc);
	}
	rc = configure(out->cluster, rbd->settings.timeout);
	if (rc)
		rc = stele_rbd_explain(rbd, "set Ceph's options for", rc);
	else
		rc = read_configuration(rbd, out->cluster);
	if (!rc) {
		configure_fence(out->cluster);
		rc = stele_ceph.rados_connect(out->cluster);
		if (rc)
			rc = explain_connect(rbd, rc);
	}
	if (!rc)
		rc = open_pool(rbd, out);
	if (rc)
		stele_rbd_disconnect(out, false);
	return rc;
}

void stele_rbd_disconnect(struct stele_rbd_link *link, bool background)
{
	if (link->cluster)
		stele_rbd_client_close(link->cluster, background);
	memset(link, 0, sizeof(*link));
}

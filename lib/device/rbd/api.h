/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - what we call of librbd and librados, loaded when it is first needed
 *
 * The two libraries bring forty others: linked, they would cost every process that
 * reads a disk or a file more than all else that it does before its first sample. So
 * nothing links them. The first target of RBD loads them, once, for the rest of the
 * process; every call goes through the table, which has the types of their headers.
 * Those that ask the cluster end within its timeout: see bound.h.
 */
#ifndef STELE_DEVICE_RBD_API_H
#define STELE_DEVICE_RBD_API_H

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "lib/base/log.h"

#define STELE_RBD_CALLS(X) \
	X(rados_blocklist_add) \
	X(rados_buffer_free) \
	X(rados_cluster_fsid) \
	X(rados_conf_get) \
	X(rados_conf_parse_env) \
	X(rados_conf_read_file) \
	X(rados_conf_set) \
	X(rados_connect) \
	X(rados_create) \
	X(rados_getaddrs) \
	X(rados_get_instance_id) \
	X(rados_ioctx_create) \
	X(rados_ioctx_destroy) \
	X(rados_ioctx_get_cluster) \
	X(rados_ioctx_get_id) \
	X(rados_ioctx_set_namespace) \
	X(rados_mon_command) \
	X(rados_pool_reverse_lookup) \
	X(rados_set_pool_full_try) \
	X(rados_shutdown) \
	X(rados_wait_for_latest_osdmap) \
	X(rbd_aio_create_completion) \
	X(rbd_aio_discard) \
	X(rbd_aio_flush) \
	X(rbd_aio_get_return_value) \
	X(rbd_aio_read) \
	X(rbd_aio_release) \
	X(rbd_aio_wait_for_complete) \
	X(rbd_aio_write) \
	X(rbd_close) \
	X(rbd_create4) \
	X(rbd_diff_iterate2) \
	X(rbd_get_features) \
	X(rbd_get_id) \
	X(rbd_get_size) \
	X(rbd_get_stripe_count) \
	X(rbd_get_stripe_unit) \
	X(rbd_image_options_create) \
	X(rbd_image_options_destroy) \
	X(rbd_image_options_set_uint64) \
	X(rbd_list_lockers) \
	X(rbd_lock_acquire) \
	X(rbd_lock_break) \
	X(rbd_lock_release) \
	X(rbd_metadata_get) \
	X(rbd_metadata_remove) \
	X(rbd_metadata_set) \
	X(rbd_open) \
	X(rbd_open_read_only) \
	X(rbd_remove) \
	X(rbd_remove_with_progress) \
	X(rbd_resize) \
	X(rbd_resize_with_progress) \
	X(rbd_snap_create) \
	X(rbd_snap_get_namespace_type) \
	X(rbd_snap_is_protected) \
	X(rbd_snap_list) \
	X(rbd_snap_list_end) \
	X(rbd_snap_protect) \
	X(rbd_snap_remove) \
	X(rbd_snap_rename) \
	X(rbd_snap_set_by_id) \
	X(rbd_snap_unprotect) \
	X(rbd_stat) \
	X(rbd_watchers_list) \
	X(rbd_watchers_list_cleanup)

struct stele_ceph {
#define STELE_RBD_CALL(name) __typeof__(name) *name;
	STELE_RBD_CALLS(STELE_RBD_CALL)
#undef STELE_RBD_CALL
};

/* Filled by stele_rbd_api_load(), and constant from then on. */
extern struct stele_ceph stele_ceph;
/* The libraries' own, without an end: for what runs as a job, see bound.h. */
extern struct stele_ceph stele_ceph_real;

/*
 * Before any call; at once when it was done before. Safe from several threads.
 * Return: 0; -EOPNOTSUPP (no library, or one that lacks a function; logged).
 */
int stele_rbd_api_load(const struct stele_log *log);

#endif

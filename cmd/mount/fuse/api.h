/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the parts of libfuse3 that we use, loaded on demand
 *
 * Its loop is not among them: receiving and answering requests is all that a thread of ours
 * does.
 */
#ifndef STELE_CMD_MOUNT_FUSE_API_H
#define STELE_CMD_MOUNT_FUSE_API_H

#define FUSE_USE_VERSION 312

#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

#define FUSE_CALLS(X) \
	X(fuse_add_direntry) \
	X(fuse_add_direntry_plus) \
	X(fuse_opt_add_arg) \
	X(fuse_opt_add_opt_escaped) \
	X(fuse_opt_free_args) \
	X(fuse_reply_attr) \
	X(fuse_reply_buf) \
	X(fuse_reply_entry) \
	X(fuse_reply_err) \
	X(fuse_reply_open) \
	X(fuse_reply_statfs) \
	X(fuse_reply_xattr) \
	X(fuse_req_ctx) \
	X(fuse_req_userdata) \
	X(fuse_session_destroy) \
	X(fuse_session_exited) \
	X(fuse_session_mount) \
	X(fuse_session_new) \
	X(fuse_session_process_buf) \
	X(fuse_session_receive_buf) \
	X(fuse_session_unmount) \
	X(fuse_set_log_func)

struct fuse_api {
#define FUSE_CALL(name) __typeof__(name) *name;
	FUSE_CALLS(FUSE_CALL)
#undef FUSE_CALL
};
extern struct fuse_api fuse;

/* Before any call. False: missing or incomplete (said). */
bool fuse_api_load(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive.h - the parts of libarchive that we use, loaded on demand
 *
 * It depends on a dozen other libraries, which take longer to load than reading a sample
 * takes. So nothing links it, and it is loaded where an archive is written or read.
 */
#ifndef STELE_CMD_LIBARCHIVE_H
#define STELE_CMD_LIBARCHIVE_H

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>

#define LIBARCHIVE_CALLS(X) \
	X(archive_entry_clear) \
	X(archive_entry_copy_pathname) \
	X(archive_entry_filetype) \
	X(archive_entry_free) \
	X(archive_entry_hardlink) \
	X(archive_entry_new) \
	X(archive_entry_pathname) \
	X(archive_entry_set_filetype) \
	X(archive_entry_set_mtime) \
	X(archive_entry_set_perm) \
	X(archive_entry_set_size) \
	X(archive_entry_size) \
	X(archive_entry_size_is_set) \
	X(archive_entry_sparse_count) \
	X(archive_entry_sparse_next) \
	X(archive_entry_sparse_reset) \
	X(archive_errno) \
	X(archive_error_string) \
	X(archive_filter_bytes) \
	X(archive_filter_code) \
	X(archive_read_data) \
	X(archive_read_data_block) \
	X(archive_read_free) \
	X(archive_read_header_position) \
	X(archive_read_new) \
	X(archive_read_next_header) \
	X(archive_read_open2) \
	X(archive_read_open_memory) \
	X(archive_read_support_filter_bzip2) \
	X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_lz4) \
	X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_empty) \
	X(archive_read_support_format_raw) \
	X(archive_read_support_format_tar) \
	X(archive_read_support_format_zip_streamable) \
	X(archive_set_error) \
	X(archive_write_add_filter_none) \
	X(archive_write_close) \
	X(archive_write_data) \
	X(archive_write_fail) \
	X(archive_write_finish_entry) \
	X(archive_write_free) \
	X(archive_write_header) \
	X(archive_write_new) \
	X(archive_write_open2) \
	X(archive_write_set_bytes_per_block) \
	X(archive_write_set_format_option) \
	X(archive_write_set_format_pax_restricted) \
	X(archive_write_set_format_ustar)

struct libarchive {
#define LIBARCHIVE_CALL(name) __typeof__(name) *name;
	LIBARCHIVE_CALLS(LIBARCHIVE_CALL)
#undef LIBARCHIVE_CALL
};
extern struct libarchive libarchive;

/* What failed last: not all that libarchive refuses has words of its own. */
const char *libarchive_why(struct archive *archive);
/* Before any call. False: missing or incomplete; printed. */
bool libarchive_load(void);

#endif

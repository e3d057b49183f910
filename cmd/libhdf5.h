/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhdf5.h - the parts of HDF5 that we use, loaded on demand
 *
 * Of any version since 1.10: no call whose name or structures differ among them, and no macro
 * that is a variable of the library.
 */
#ifndef STELE_CMD_LIBHDF5_H
#define STELE_CMD_LIBHDF5_H

#include <hdf5.h>
#include <stdbool.h>

#define LIBHDF5_CALLS(X) \
	X(H5Dclose) \
	X(H5Dget_access_plist) \
	X(H5Dget_create_plist) \
	X(H5Dget_offset) \
	X(H5Dget_space) \
	X(H5Dget_storage_size) \
	X(H5Dget_type) \
	X(H5Dopen2) \
	X(H5Dread) \
	X(H5Dvlen_reclaim) \
	X(H5Eset_auto2) \
	X(H5Ewalk2) \
	X(H5Fopen) \
	X(H5Gget_info) \
	X(H5Iget_type) \
	X(H5Lget_name_by_idx) \
	X(H5Lget_val) \
	X(H5Oclose) \
	X(H5Oopen) \
	X(H5Pget_chunk) \
	X(H5Pget_external_count) \
	X(H5Pget_filter2) \
	X(H5Pget_layout) \
	X(H5Pget_nfilters) \
	X(H5Pset_chunk_cache) \
	X(H5Sclose) \
	X(H5Screate_simple) \
	X(H5Sget_simple_extent_dims) \
	X(H5Sget_simple_extent_ndims) \
	X(H5Sget_simple_extent_type) \
	X(H5Sselect_hyperslab) \
	X(H5Tcopy) \
	X(H5Tget_class) \
	X(H5Tget_fields) \
	X(H5Tget_member_name) \
	X(H5Tget_nmembers) \
	X(H5Tget_order) \
	X(H5Tget_precision) \
	X(H5Tget_sign) \
	X(H5Tget_size) \
	X(H5Tget_strpad) \
	X(H5Tget_super) \
	X(H5Tis_variable_str) \
	X(H5Tset_order) \
	X(H5Tset_strpad) \
	X(H5Tvlen_create) \
	X(H5get_libversion) \
	X(H5Zfilter_avail) \
	X(H5free_memory)

struct libhdf5 {
#define LIBHDF5_CALL(name) __typeof__(name) *name;
	LIBHDF5_CALLS(LIBHDF5_CALL)
#undef LIBHDF5_CALL
};
extern struct libhdf5 libhdf5;

/* Before any call. False: missing or incomplete; printed. */
bool libhdf5_load(void);

#endif

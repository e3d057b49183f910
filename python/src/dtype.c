/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.c - types of a tensor's elements, as NumPy, buffers and DLPack call them
 *
 * bfloat16 has no buffer format: it is handed out as 16-bit integers there, and as what it
 * is through DLPack.
 */
#include "py.h"

/* Of two types of 64 bits the one that NumPy calls so; others do not know the other. */
#define I64_FORMAT (sizeof(long) == sizeof(int64_t) ? "l" : "q")
#define U64_FORMAT (sizeof(long) == sizeof(int64_t) ? "L" : "Q")

/* Codes of DLPack. */
enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5, BOOL = 6 };

static const struct py_dtype dtypes[] = {
	[STELE_DTYPE_BOOL] = {"bool", "?", 1, BOOL},
	[STELE_DTYPE_U8] = {"uint8", "B", 1, UINT},
	[STELE_DTYPE_I8] = {"int8", "b", 1, INT},
	[STELE_DTYPE_U16] = {"uint16", "H", 2, UINT},
	[STELE_DTYPE_I16] = {"int16", "h", 2, INT},
	[STELE_DTYPE_U32] = {"uint32", "I", 4, UINT},
	[STELE_DTYPE_I32] = {"int32", "i", 4, INT},
	[STELE_DTYPE_U64] = {"uint64", U64_FORMAT, 8, UINT},
	[STELE_DTYPE_I64] = {"int64", I64_FORMAT, 8, INT},
	[STELE_DTYPE_F16] = {"float16", "e", 2, FLOAT},
	[STELE_DTYPE_BF16] = {"bfloat16", "H", 2, BFLOAT},
	[STELE_DTYPE_F32] = {"float32", "f", 4, FLOAT},
	[STELE_DTYPE_F64] = {"float64", "d", 8, FLOAT},
	[STELE_DTYPE_C64] = {"complex64", "Zf", 8, COMPLEX},
	[STELE_DTYPE_C128] = {"complex128", "Zd", 16, COMPLEX},
};

const struct py_dtype *py_dtype(uint32_t dtype)
{
	if (dtype && dtype < sizeof(dtypes) / sizeof(*dtypes))
		return &dtypes[dtype];
	PyErr_Format(PyExc_TypeError, "unknown type %u of a tensor's elements",
		     (unsigned int)dtype);
	return NULL;
}

/* The code of elements with that format; -1: of none that tensors have. */
static int code_of(const char *format)
{
	if (format[0] == 'Z')
		return strlen(format) == 2 ? COMPLEX : -1;
	if (strlen(format) != 1)
		return -1;
	if (strchr("bhilqn", *format))
		return INT;
	if (strchr("BHILQN", *format))
		return UINT;
	if (strchr("efd", *format))
		return FLOAT;
	return *format == '?' ? BOOL : -1;
}

/* The first one is it: what is 16 bits of bfloat16 is not known to be that. */
const char *py_dtype_name(const char *format, Py_ssize_t size)
{
	for (uint32_t i = 1; i < sizeof(dtypes) / sizeof(*dtypes); i++)
		if (py_dtype_fits(i, format, size))
			return dtypes[i].name;
	return NULL;
}

int py_dtype_fits(uint32_t dtype, const char *format, Py_ssize_t size)
{
	int code;

	if (*format && strchr("@=<", *format)) /* little-endian, as the machine */
		format++;
	code = code_of(format);
	if (size != dtypes[dtype].size)
		return 0;
	return code == dtypes[dtype].code ||
	       (dtype == STELE_DTYPE_BF16 && *format == 'H');
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c - the library's version is the header's, every code has a text
 */
#include "lib/stele.h"
#include "tests/tap.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void check_version(void)
{
	char wanted[32];

	snprintf(wanted, sizeof(wanted), "%d.%d.%d", STELE_VERSION_MAJOR,
		 STELE_VERSION_MINOR, STELE_VERSION_PATCH);
	is_string(wanted, stele_version(), "version of the header");
}

static void check_meanings(void)
{
	static const int ours[] = {
		EMEDIUMTYPE, ENODATA, EINPROGRESS, EBADMSG, EUCLEAN, ENOTUNIQ, EOPNOTSUPP,
		ENOENT, EEXIST, EBUSY, ENOSYS, ENOSPC, EOVERFLOW, ERANGE, ESTALE, EOWNERDEAD,
		ECANCELED, ETXTBSY, EINVAL, E2BIG, ENOTBLK,
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		char system[128];

		snprintf(system, sizeof(system), "%s", strerror(ours[i]));
		ok(strcmp(stele_strerror(-ours[i]), system) != 0,
		   "%s has a meaning of ours", system);
	}
	is_string(strerror(EIO), stele_strerror(-EIO), "else strerror's");
}

static void check_foreign_numbers(void)
{
	static const int foreign[] = {1, INT_MAX, INT_MIN, -4096};

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		is_string("not an error code", stele_strerror(foreign[i]),
			  "%d is no code", foreign[i]);
}

int main(void)
{
	plan_lazy();
	check_version();
	check_meanings();
	check_foreign_numbers();
	return done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetched.h - a view of what no kernel can map, or of what has to be verified: whole samples
 *
 * Memory laid out like the target, where samples come when they are asked for, or touched,
 * or prefetched. A page is filled in only with verified samples, all that have a byte on it;
 * what lies between them, and deleted samples, are zeros there. If one of them is
 * damaged, the page is not filled in; who touches it gets SIGBUS, and the others on it have to
 * be read apart. What nobody asked for lately is dropped (resident.h), and comes back,
 * verified again, to the same place when it is touched.
 *
 * Touches are handled by one thread. Any thread may ask, one at a time prefetch; a child after
 * fork() has neither memory nor thread: -EOWNERDEAD.
 */
#ifndef STELE_VIEW_FETCHED_H
#define STELE_VIEW_FETCHED_H

#include "lib/read/sample.h"

struct stele_fetched;

/* What is present at most, unless somebody says: or what the largest sample needs. */
#define STELE_FETCHED_MEMORY_DEFAULT (UINT64_C(256) << 20)

/*
 * `size` bytes of the target; at most `memory` of them are present (0: the default).
 * Return: 0; -EINVAL (memory is less than the largest sample needs; logged); -EPERM,
 * -EOPNOTSUPP (see stele_faults_open()); -ENOMEM; -EAGAIN (no thread); errno.
 */
int stele_fetched_open(const struct stele_dataset *ds, uint64_t size,
		       enum stele_verify verify, uint64_t memory,
		       struct stele_fetched **out);
/* NULL is fine. */
void stele_fetched_close(struct stele_fetched *fetched);
/* Is this a child after fork()? */
bool stele_fetched_is_forked(const struct stele_fetched *fetched);

/*
 * Sets *out as stele_sample_decode(), with pointers into the memory. Return: 0; 1 (it is
 * intact, but something on its pages is not: to be read apart, *out is not set); -EUCLEAN,
 * -EBADMSG; -ESTALE; -ENOMEM; errno of the device or of userfaultfd.
 */
int stele_fetched_sample(struct stele_fetched *fetched, const struct stele_slot *slot,
			 struct stele_proof *proof, struct stele_sample *out);
/*
 * Many at once, as many as may be present. Return: 0; -ERANGE; as sample (the
 * first failure; the rest is still tried).
 */
int stele_fetched_prefetch(struct stele_fetched *fetched, const uint64_t *ids,
			   size_t count, struct stele_proof *proof);

#endif

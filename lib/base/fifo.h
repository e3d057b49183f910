/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.h - first in, first out: a list through the `next` of what is in it
 *
 *	struct thing_list STELE_FIFO(thing);
 *
 *	stele_fifo_push(&list, thing);
 *	while ((thing = stele_fifo_pop(&list)))
 *		...
 *
 * All zero is empty, and `head` is NULL exactly then; `tail` is undefined then.
 * A thing is in one list at a time. No locks: those are the list owner's.
 */
#ifndef STELE_BASE_FIFO_H
#define STELE_BASE_FIFO_H

#include <stddef.h>

#define STELE_FIFO(type)                       \
	{                                      \
		struct type *head, **tail;     \
	}

#define stele_fifo_push(list, thing)                       \
	do {                                               \
		typeof(&*(list)) fifo_ = (list);           \
		typeof(fifo_->head) thing_ = (thing);      \
		thing_->next = NULL;                       \
		if (!fifo_->head)                          \
			fifo_->tail = &fifo_->head;        \
		*fifo_->tail = thing_;                     \
		fifo_->tail = &thing_->next;               \
	} while (0)

/* The first one, or NULL. */
#define stele_fifo_pop(list)                               \
	({                                                 \
		typeof(&*(list)) fifo_ = (list);           \
		typeof(fifo_->head) thing_ = fifo_->head;  \
		if (thing_)                                \
			fifo_->head = thing_->next;        \
		thing_;                                    \
	})

#endif

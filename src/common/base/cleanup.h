/* SPDX-License-Identifier: BSD-3-Clause */
/* Scoped release of locals.  A function uses either these attributes or a label ladder, never
 * both. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* For _cleanup_free_: free the pointer at @p. */
static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}

/* For _cleanup_close_: close the descriptor at @fd, unless negative. */
static inline void cleanup_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* For LOCK_SCOPE(): unlock the mutex at @m, unless NULL. */
static inline void cleanup_unlock_(pthread_mutex_t **m)
{
	if (*m)
		pthread_mutex_unlock(*m);
}

#define _cleanup_free_ __attribute__((cleanup(cleanup_free_)))
#define _cleanup_close_ __attribute__((cleanup(cleanup_close_)))

/* Hold @m to the end of the enclosing block. */
#define LOCK_SCOPE(m) LOCK_SCOPE_(m, __COUNTER__)
#define LOCK_SCOPE_(m, n) LOCK_SCOPE__(m, n)
#define LOCK_SCOPE__(m, n)                                                                         \
	__attribute__((cleanup(cleanup_unlock_), unused)) pthread_mutex_t *scope_lock_##n = (m);   \
	pthread_mutex_lock(scope_lock_##n)

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound of a program's end.  A program that is told to end waits for much: requests, peers,
 * threads.  After END_MS a thread of its own logs what is waited for, and ends the process. */
#ifndef END_H
#define END_H

#include <stdbool.h>

#define END_WAITS_MS 45000		/* for requests: what waits longer fails */
#define END_MS 60000			/* for all */

/* Start the thread.  @last, if not NULL, is called on it before the process ends by force.  Once,
 * after the last fork.  0 or -errno. */
int end_init(void (*last)(void));
/* The end begins; further calls do nothing.  Any thread, and signal handlers. */
void end_begin(void);
/* True from end_begin() on, for who waits for what the end need not wait for.  Any thread. */
bool end_has_begun(void);
/* From now on the end waits for @what, a literal.  Any thread. */
void end_waits_for(const char *what);
/* Nothing is waited for any more: join the thread, if it runs.  The thread of end_init(). */
void end_over(void);

/* End the process with @status.  exit() runs the destructors of libraries, which must not meet a
 * thread that is still in one of them: end_at_once() runs none, and end_with() none while a call
 * goes on that its caller has left (aside.h).  Both write what stdio holds. */
_Noreturn void end_at_once(int status);
_Noreturn void end_with(int status);

#endif

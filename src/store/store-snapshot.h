/* SPDX-License-Identifier: BSD-3-Clause */
/* A snapshot of the storage of an export, made while clients write: what a machine that loses its
 * power at that moment would find.  Everything that was answered before is in it. */
#ifndef STORE_SNAPSHOT_H
#define STORE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

struct export;

#define SNAPSHOT_NAME_MAX 64		/* bytes of a name */
#define SNAPSHOT_PATIENCE_S 45		/* for the storage; less than rtrsctl's for the answer */

/* True if a snapshot may be called @name: letters, digits, '.', '_' and '-', and no '.' in
 * front. */
bool store_snapshot_is_name(const char *name);

/* Make the snapshot @name of @ex, which the caller holds, and which is open.  0, and @text is what
 * others call it; or -errno with the reason in @text.  -ETIMEDOUT: the storage works on it still,
 * and @ex must not end before this process does.  Waits, SNAPSHOT_PATIENCE_S at most; a worker. */
int store_snapshot(struct export *ex, const char *name, char *text, size_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counts of who uses a file; control thread.  The rules of sharing are doc/protocol.md
 * 8.2. */
#include <assert.h>
#include <errno.h>

#include "export.h"

int export_acquire(struct export *ex, enum rnbd_access_mode mode)
{
	struct store *count = ex->store;
	unsigned max_writers = mode == RNBD_ACCESS_MIGRATION ? 2 : 1;

	if (mode != RNBD_ACCESS_RO) {
		if (ex->readonly)
			return -EROFS;
		if (count->writers >= max_writers)
			return -EPERM;
	}
	if (!count->writers && export_sync_error(ex) && count->anew != EXPORT_ANEW_DONE)
		return -EAGAIN;
	count->anew = EXPORT_ANEW_NEEDED;	/* by the next one who comes without a writer */
	count->users++;
	count->writers += mode != RNBD_ACCESS_RO;
	return 0;
}

void export_release(struct export *ex, enum rnbd_access_mode mode)
{
	struct store *count = ex->store;

	assert(count->users);
	count->users--;
	if (mode == RNBD_ACCESS_RO)
		return;
	assert(count->writers);
	if (!--count->writers && export_sync_error(ex))
		atomic_fetch_add(&store_state(count)->losses, 1);
}

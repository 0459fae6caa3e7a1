/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the descriptions of a file or device beside the first one, and claims a block device
 * exported for writing (O_EXCL), as mounts, swap, LVM, md and mkfs claim theirs.  A claim keeps all
 * others away: a device in such use is not exported.  Owns the descriptions for fdatasync, and the
 * time in which the server waits; main thread, or a worker (export-life.h).
 *
 * The description with the claim is a fixed file of each ring.  So a killed server has the device
 * until its last request has ended, and the next server waits (doc/decisions.md D6).  Other
 * descriptions of the device need no claim of their own, except to discard and zero
 * (store-file-io.h). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "exports.h"
#include "log.h"
#include "process.h"
#include "store-file-priv.h"
#include "store-wait.h"

/* ---- descriptions for fdatasync ----
 *
 * Owns one for each ring, from open to close; and the list of all descriptions of a store, on the
 * control thread. */

int store_file_desc_reopen(const struct export *ex, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", store_file(ex)->fd);
	fd = open(path, flags | O_CLOEXEC | (ex->spec.readonly ? O_RDONLY : O_RDWR));
	return fd < 0 ? -errno : fd;
}

int store_file_desc_open(struct store_file *f)
{
	unsigned n = f->ex.all->nrings;
	struct export_desc *descs = calloc(n + 1, sizeof(*descs));

	if (!descs)
		return -ENOMEM;
	f->sync_descs = descs;
	for (unsigned i = 0; i < n; i++)
		descs[i].fd = -1;
	for (unsigned i = 0; i < n; i++) {
		int fd = store_file_desc_reopen(&f->ex, 0);

		if (fd < 0)
			return fd;
		descs[i].fd = fd;
	}
	return 0;
}

void store_file_desc_close(struct store_file *f)
{
	for (unsigned i = 0; f->sync_descs && i < f->ex.all->nrings; i++)
		store_file_close_fd(f->sync_descs[i].fd);
	free(f->sync_descs);
}

static void desc_add(struct store_file *f, struct export_desc *desc, int fd)
{
	desc->fd = fd;
	list_init(&desc->link);
	if (fd >= 0)
		list_add_tail(&store_file_all(f->ex.store)->descs, &desc->link);
}

void store_file_desc_added(struct export *ex)
{
	struct store_file *f = store_file(ex);

	desc_add(f, &f->fd_desc, f->fd);
	desc_add(f, &f->tail_desc, f->tail_fd);
	for (unsigned i = 0; i < ex->all->nrings; i++)
		desc_add(f, &f->sync_descs[i], f->sync_descs[i].fd);
}

void store_file_desc_removed(struct export *ex)
{
	struct store_file *f = store_file(ex);

	list_del(&f->fd_desc.link);
	list_del(&f->tail_desc.link);
	for (unsigned i = 0; i < ex->all->nrings; i++)
		list_del(&f->sync_descs[i].link);
}

/* ---- the claim ---- */

struct claiming {
	struct store_wait wait;
	const struct export *ex;
};

bool store_file_claim_needed(const struct export *ex)
{
	return store_file(ex)->is_block && !ex->spec.readonly && !ex->spec.force;
}

int store_file_claim_refuse(const struct export *ex, const char *use, char *err, size_t errlen)
{
	snprintf(err, errlen,
		 "export '%s': '%s' %s: writing clients would destroy its contents: add "
		 "',readonly', or ',force' to export it anyway",
		 ex->name, ex->path, use);
	return -EBUSY;
}

/* Find an export of a store that this server has claimed, on the same device as @ex, its disk or a
 * partition.  NULL: none. */
static const struct export *claimed_by(const struct export *ex)
{
	const struct store *store = NULL;
	const struct export *other;

	while ((store = store_next_like(ex->all, store, STORE_BY_DISK, ex))) {
		if (store->driver != ex->driver || store_file_all(store)->keep.claim_fd < 0)
			continue;
		other = store_oldest_name(store);
		if (store_file_disk_same(store_file(other)->dev, store_file(ex)->dev))
			return other;
	}
	return NULL;
}

static const char *user_name(const struct export *ex, char *name, size_t size)
{
	if (!store_file_look_writer(ex, name, size))
		snprintf(name, size,
			 "an unknown process or part of the kernel, or a server that ended with "
			 "requests still in the storage");
	return name;
}

static void claim_tell_waiting(const struct store_wait *wait, uint64_t waited_ms)
{
	const struct export *ex = container_of(wait, const struct claiming, wait)->ex;
	char name[NAME_MAX + 1];

	log_warn(ex->name,
		 "'%s' is in use by %s: waited %llu s, giving up after %u s (--lock-timeout; do "
		 "not use ',force' to skip this: unsafe)",
		 ex->path, user_name(ex, name, sizeof(name)), (unsigned long long)waited_ms / 1000,
		 exports_patience_ms(ex) / 1000);
}

/* Claim the device of @ex, and wait for a user that cannot be named.  A known use is refused.  A
 * descriptor or -errno. */
static int claim_wait(const struct export *ex, char *err, size_t errlen)
{
	struct claiming c = {
		.ex = ex,
		.wait = { .exports = ex->all, .retry_ms = STORE_WAIT_RETRY_MS,
			  .since_ms = clock_now_ms(), .patience_ms = exports_patience_ms(ex),
			  .tell_ms = STORE_WAIT_TELL_MS,
			  .tell = ex->hasty ? NULL : claim_tell_waiting },
	};
	char use[STORE_FILE_USE_MAX];
	int fd, waits;

	while ((fd = store_file_desc_reopen(ex, O_EXCL)) == -EBUSY) {
		if (store_file_disk_inuse(store_file(ex)->dev, use, sizeof(use)))
			return store_file_claim_refuse(ex, use, err, errlen);
		waits = store_wait(&c.wait);
		if (waits == -ETIMEDOUT) {
			snprintf(err, errlen, "export '%s': '%s' is in use by %s: waited %u s "
				 "(--lock-timeout)", ex->name, ex->path,
				 user_name(ex, use, sizeof(use)), exports_patience_ms(ex) / 1000);
			return -EBUSY;
		}
		if (waits) {
			snprintf(err, errlen, "export '%s': the server stops", ex->name);
			return waits;
		}
	}
	if (fd < 0)
		snprintf(err, errlen, "export '%s': '%s' cannot be claimed (O_EXCL): %s", ex->name,
			 ex->path, fds_strerror(fd));
	else if (c.wait.told_ms)
		log_info(ex->name, "'%s' is claimed by this server now", ex->path);
	return fd;
}

int store_file_claim(struct export *ex, char *err, size_t errlen)
{
	const struct export *other;
	char use[STORE_FILE_USE_MAX];
	int fd;

	if (!store_file_claim_needed(ex) || store_file_keep(ex)->claim_fd >= 0)
		return 0;
	other = claimed_by(ex);
	if (other) {
		snprintf(use, sizeof(use),
			 "is on the same disk as '%.256s', which the export '%s' writes to",
			 other->path, other->name);
		return store_file_claim_refuse(ex, use, err, errlen);
	}
	fd = claim_wait(ex, err, errlen);
	if (fd < 0)
		return fd;
	store_file_keep(ex)->claim_fd = fd;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the descriptions of a file for fdatasync, one for each ring, from open to close; and the
 * list of all descriptions of a store, on the control thread. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "exports.h"
#include "store-file-priv.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
/* EXTENTS: the parts of a file with data, found by SEEK_DATA and SEEK_HOLE.
 *
 * Owns a thread for each file that was asked about.  The ring has no lseek, and lseek waits for
 * the file system, which may have stopped (doc/decisions.md D16).  The thread begins with the
 * first question and ends when the file is closed (store-file.c).  All functions except
 * seek_main() and its callees: thread of the reactor.
 *
 * Cannot fail: the unknown counts as data.  Data is all of
 *   - a block device,
 *   - a file on a file system not known to find data that was written and not written back yet:
 *     FUSE with a write-back cache does not find such data, and NFS writes the data back first,
 *     with errors that belong to a FLUSH,
 *   - the range behind the end of a truncated file: a hole would hide the answer of a READ. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "store-file-io.h"
#include "rnbd-ext.h"
#include "signals.h"

/* ---- on the thread of the file ---- */

/* The first byte of data in [@pos, @end), or @end; -1: cannot tell. */
static int64_t seek_data(int fd, uint64_t pos, uint64_t end)
{
	off_t at = lseek(fd, (off_t)pos, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? (int64_t)end : -1;
	return (uint64_t)at < pos ? -1 : (int64_t)MIN((uint64_t)at, end);
}

/* The end of the data that begins at @data, or @end. */
static uint64_t seek_hole(int fd, uint64_t data, uint64_t end)
{
	off_t at = lseek(fd, (off_t)data, SEEK_HOLE);

	return at <= (off_t)data ? end : MIN((uint64_t)at, end);
}

/* Put holes in [*@pos, @end), and the data in front of each, into @w.  Moves *@pos to the end of
 * the known range.  False: @w has no room for more. */
static bool seek_all(int fd, uint64_t *pos, uint64_t end, struct rnbd_extents_writer *w)
{
	while (*pos < end) {
		int64_t data = seek_data(fd, *pos, end);
		uint64_t begin, hole;

		if (data < 0)
			return true;
		/* A sector with one byte of data is data. */
		begin = align_down((uint64_t)data, RNBD_SECTOR_SIZE);
		if (begin > *pos &&
		    !rnbd_extents_add(w, begin - *pos, RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO))
			return false;
		*pos = begin;
		if (begin == end)
			return true;
		hole = MIN(align_up(seek_hole(fd, (uint64_t)data, end), RNBD_SECTOR_SIZE), end);
		if (!rnbd_extents_add(w, hole - begin, 0))
			return false;
		*pos = hole;
	}
	return true;
}

static void seek_extents(struct export_io *io)
{
	int fd = store_file(io->ex)->fd;
	uint64_t pos = io->offset, end = io->offset + io->len, file_end;
	struct rnbd_extents_writer w;
	bool room = true;
	struct stat st;

	rnbd_extents_begin(&w, io->buf, io->room);
	if ((store_file(io->ex)->fs & STORE_FILE_FS_HOLES) && !fstat(fd, &st)) {
		file_end = align_down((uint64_t)st.st_size, RNBD_SECTOR_SIZE);
		room = seek_all(fd, &pos, MIN(end, file_end), &w);
	}
	if (room && pos < end)
		rnbd_extents_add(&w, end - pos, 0);
	rnbd_extents_end(&w);
}

static void *seek_main(void *arg)
{
	struct export_seeker *s = arg;
	struct export_io *io;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		io = list_pop_entry(&s->waiting, struct export_io, link);
		if (!io) {
			pthread_cond_wait(&s->cond, &s->lock);
			continue;
		}
		s->serves = io->reactor;
		pthread_mutex_unlock(&s->lock);
		seek_extents(io);
		/* RACE: with the message the request may end, and with the request the reactor. */
		loop_post(reactor_loop(s->serves), &io->msg);
		pthread_mutex_lock(&s->lock);
		s->serves = NULL;
		pthread_cond_broadcast(&s->cond);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- on the thread of the reactor ---- */

static void extents_msg(struct loop_msg *msg)
{
	export_io_next(container_of(msg, struct export_io, msg), 0);
}

/* True: the thread of the file has taken @io over. */
static bool give_to_seeker(struct export_seeker *s, struct export_io *io)
{
	LOCK_SCOPE(&s->lock);
	if (!s->running) {
		s->running = signals_thread(&s->thread, seek_main, s) == 0;
		if (s->running)
			pthread_setname_np(s->thread, "extents");
	}
	if (!s->running)
		return false;
	list_add_tail(&s->waiting, &io->link);
	pthread_cond_broadcast(&s->cond);
	return true;
}

void store_file_extents(struct export_io *io)
{
	loop_msg_init(&io->msg, extents_msg);
	if (!store_file(io->ex)->is_block && give_to_seeker(&store_file(io->ex)->seeker, io))
		return;
	export_io_all_data(io);
	export_io_next_later(io, 0);
}

void store_file_extents_detach(struct export_slot *slot)
{
	struct export_seeker *s = &store_file(slot->ex)->seeker;

	LOCK_SCOPE(&s->lock);
	while (s->serves == slot->ring->reactor)
		pthread_cond_wait(&s->cond, &s->lock);
}

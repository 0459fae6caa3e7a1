/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the descriptors of an exported file; finds out whether and how the file can be exported:
 * kind, size, access, O_DIRECT's alignment.  Main thread, or a worker (export-life.h); blocks.
 * Each refusal is one line with the export's name, the path, the fault and the remedy. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"
#include "names.h"
#include "number.h"
#include "process.h"
#include "store-file-priv.h"

#define DIO_ALIGN_MAX 65536u
#define NAME_LEN_MAX 64u		/* of id=; fits struct store_id */

struct refusal {
	const struct export *ex;
	char *err;
	size_t errlen;
};

/* Put the line of a refusal into @to->err.  Returns @rc. */
__attribute__((format(printf, 3, 4)))
static int file_refuse(const struct refusal *to, int rc, const char *fmt, ...)
{
	va_list ap;

	snprintf(to->err, to->errlen, "export '%s': '%s' ", to->ex->name, to->ex->path);
	va_start(ap, fmt);
	fmt_vadd(to->err, to->errlen, fmt, ap);
	va_end(ap);
	return rc;
}

/* The reason has the user of the program, and names what its unit hides. */
static int cannot_open(const struct refusal *to, int err)
{
	const char *path = to->ex->path;
	char why[256];

	who_closed(path, -err, geteuid(), "chown it", why, sizeof(why));
	/* A line of a file, say: a unit starts in "/". */
	if (!*why && err == ENOENT && *path != '/')
		snprintf(why, sizeof(why), ": expected a path from / on, or from where the server "
			 "was started");
	else if (!*why && err == ENOENT)
		snprintf(why, sizeof(why), ": create it, or correct the path");
	return file_refuse(to, -err, "cannot be opened: %s%s", fds_strerror(-err), why);
}

/* What lets the server write to @ex, after open(2) has failed with @err. */
static const char *writable_by(int err)
{
	switch (err) {
	case EROFS:
		return "mount its file system for writing";
	case EPERM:
		return "take its attribute \"immutable\" away (chattr -i)";
	default:
		return "chown it";
	}
}

static bool only_readable(const struct export *ex, int err)
{
	return !ex->spec.readonly && (err == EACCES || err == EROFS || err == EPERM) &&
	       !access(ex->path, R_OK);
}

static int open_path(struct export *ex, const struct refusal *to)
{
	char user[WHO_TEXT_LEN];
	int flags;
	int err, read_only = 0;

	/* What one host has acknowledged must not lie in its page cache. */
	ex->direct |= ex->spec.shared;
	flags = O_CLOEXEC | (ex->spec.readonly ? O_RDONLY : O_RDWR) | (ex->direct ? O_DIRECT : 0);
	store_file(ex)->fd = open(ex->path, flags);
	if (store_file(ex)->fd < 0) {
		err = errno;
		if (ex->direct && err == EINVAL)
			return file_refuse(to, -err,
				      "cannot be opened with O_DIRECT: its file system does not "
				      "support that: remove ',direct'");
		if (only_readable(ex, err))
			return file_refuse(to, -err, "is not writable by %s, who runs the server "
					   "(%s): %s, or export it read-only: " STORE_READONLY,
					   who_text(geteuid(), user), strerror(err),
					   writable_by(err));
		return cannot_open(to, err);
	}
	if (store_file(ex)->is_block && !ex->spec.readonly &&
	    !ioctl(store_file(ex)->fd, BLKROGET, &read_only) && read_only)
		return file_refuse(to, -EROFS,
				   "is not writable (read-only device): export it read-only: "
				   STORE_READONLY);
	return 0;
}

/* Two servers may have the block device of @ex, if its reservations fence the one that loses. */
static int check_shared(struct export *ex, const struct refusal *to)
{
	char why[256];
	int rc = store_file_share_check(ex, why, sizeof(why));

	if (rc)
		snprintf(to->err, to->errlen, "export '%s': shared=yes: %s", ex->name, why);
	return rc;
}

/* Look for other users now, as well as with the claim, which comes after the wait for a lock. */
static int check_use(const struct export *ex, const struct stat *st, const struct refusal *to)
{
	char use[STORE_FILE_USE_MAX];

	if (ex->spec.shared && !store_file(ex)->is_block)
		return file_refuse(to, -EINVAL,
			      "cannot be exported with ',shared=yes': no lock of a file system "
			      "fences the server that loses it: share a block device with "
			      "persistent reservations, or an image of Ceph (rbd:POOL/IMAGE)");
	if (ex->spec.force && !store_file(ex)->is_block)
		return file_refuse(to, -EINVAL,
			      "is a file: ',force' is for block devices: remove it");
	if (!store_file_claim_needed(ex) || !store_file_disk_inuse(st->st_rdev, use, sizeof(use)))
		return 0;
	return store_file_claim_refuse(ex, use, to->err, to->errlen);
}

static int learn_size(struct export *ex, const struct stat *st, const struct refusal *to)
{
	uint32_t block = store_file_geometry_block(store_file(ex));
	uint64_t size = (uint64_t)st->st_size, tail;

	if (store_file(ex)->is_block && ioctl(store_file(ex)->fd, BLKGETSIZE64, &size) < 0)
		return file_refuse(to, -errno, "does not report its size: %s", strerror(errno));
	if (!size)
		return file_refuse(to, -EINVAL,
			      store_file(ex)->is_block
				      ? "has size 0: there is no medium in this device"
				      : "is empty: give it a size first, e.g.: truncate -s 1G '%s'",
			      ex->path);
	if (size % RNBD_SECTOR_SIZE)
		return file_refuse(to, -EINVAL,
				   "has %llu bytes, which is no multiple of 512, and RNBD "
				   "counts in sectors of 512: round it up with: "
				   "truncate -s %%512 '%s'",
				   (unsigned long long)size, ex->path);
	/* A loop device has the size of its file, whatever its blocks. */
	tail = size % block;
	if (tail == size)
		return file_refuse(to, -EINVAL, "has %llu bytes, which are no block of %u",
				   (unsigned long long)size, block);
	if (tail)
		log_warn(ex->name, "'%s' has %llu bytes, and %llu at its end are no block of %u: "
			 "the kernel does not read or write them, and they are not exported",
			 ex->path, (unsigned long long)size, (unsigned long long)tail, block);
	if (store_file_geometry_tail(store_file(ex), tail))
		posix_fadvise(store_file(ex)->fd, 0, 0, POSIX_FADV_DONTNEED);
	atomic_store(&ex->size, size - tail);
	return 0;
}

/* The largest alignment of memory, offset and length; 0: cannot tell. */
static uint32_t dio_align_statx(const struct export *ex)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(store_file(ex)->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
	    (stx.stx_mask & STATX_DIOALIGN))
		return MAX(MAX(stx.stx_dio_mem_align, stx.stx_dio_offset_align), RNBD_SECTOR_SIZE);
#endif
	return 0;
}

static uint32_t dio_align_try(const struct export *ex)
{
	_cleanup_free_ char *mem = NULL;
	void *p;

	if (posix_memalign(&p, (size_t)2 * DIO_ALIGN_MAX, (size_t)2 * DIO_ALIGN_MAX))
		return 0;
	mem = p;
	/* Read into memory aligned to @align and no more, at such an offset.  At the end of the
	 * file the kernel returns 0, after a check of the alignment. */
	for (uint32_t align = RNBD_SECTOR_SIZE; align <= DIO_ALIGN_MAX; align *= 2) {
		if (pread(store_file(ex)->fd, mem + align, align, align) >= 0)
			return align;
	}
	return 0;
}

/* False: the file system takes small direct reads alone, as unionfs-fuse takes those of a page. */
static bool dio_takes_large(const struct export *ex)
{
	uint64_t max = store_file(ex)->is_block ? export_size(ex) : UINT64_MAX;
	_cleanup_free_ char *mem = NULL;
	void *p;

	if (posix_memalign(&p, DIO_ALIGN_MAX, DIO_ALIGN_MAX))
		return true;
	mem = p;
	return pread(store_file(ex)->fd, mem, MIN(DIO_ALIGN_MAX, max), 0) >= 0 || errno != EINVAL;
}

static int learn_dio_align(struct export *ex, const struct refusal *to)
{
	uint32_t page;
	int rc;

	ex->block_align = dio_align_statx(ex);
	if (!ex->block_align)
		ex->block_align = dio_align_try(ex);
	if (!ex->block_align || !is_pow2(ex->block_align) || ex->block_align > DIO_ALIGN_MAX ||
	    !dio_takes_large(ex))
		return file_refuse(to, -EINVAL,
				   "cannot be read with O_DIRECT: remove ',direct'");
	store_file(ex)->tail_start = UINT64_MAX;
	if (!(export_size(ex) % ex->block_align))
		return 0;
	/* Whole pages, so that no page of the page cache holds data that is written directly. */
	page = MAX(ex->block_align, (uint32_t)sysconf(_SC_PAGESIZE));
	store_file(ex)->tail_start = align_down(export_size(ex), page);
	store_file(ex)->tail_fd =
		open(ex->path, O_CLOEXEC | (ex->spec.readonly ? O_RDONLY : O_RDWR));
	if (store_file(ex)->tail_fd < 0) {
		rc = -errno;
		return file_refuse(to, rc, "cannot be opened: %s", fds_strerror(rc));
	}
	/* No read-ahead: only the last block is to be in the page cache. */
	posix_fadvise(store_file(ex)->tail_fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

static void set_kind(struct export *ex, bool is_block)
{
	store_file(ex)->is_block = is_block;
	ex->kind = is_block ? "block" : "file";
	ex->kind_text = is_block ? "block device" : "file";
}

/* True if the kernel swaps to the file of @ex: it refuses each change of an active swap file. */
static bool is_swap_file(const struct export *ex)
{
	return !ex->spec.readonly && !store_file(ex)->is_block &&
		store_file_punch_behind(store_file(ex)) == -ETXTBSY;
}

static void learn_ids(struct export *ex, const struct stat *st)
{
	struct store_file *f = store_file(ex);

	f->dev = f->is_block ? st->st_rdev : st->st_dev;
	f->ino = f->is_block ? 0 : st->st_ino;
	if (ex->spec.id)
		ex->id.len = (uint8_t)snprintf(ex->id.bytes, sizeof(ex->id.bytes), "id-%s",
					       ex->spec.id);
	else
		ex->id.len = (uint8_t)snprintf(ex->id.bytes, sizeof(ex->id.bytes), "%s-%u:%u-%llu",
					       ex->kind, major(f->dev), minor(f->dev),
					       (unsigned long long)f->ino);
	ex->ident = store_file_ident(f);
	ex->place = store_file_place(f);
	ex->disk = f->is_block ? store_file_disk_of(f->dev) : 0;
	ex->medium = (uint64_t)f->dev << 1 | f->is_block;
}

static int file_open(struct export *ex, char *err, size_t errlen)
{
	const struct refusal to = { .ex = ex, .err = err, .errlen = errlen };
	struct stat st;
	int rc;

	/* Before opening: opening a FIFO waits, and some devices act on it. */
	if (stat(ex->path, &st) < 0)
		return cannot_open(&to, errno);
	if (S_ISDIR(st.st_mode))
		return file_refuse(&to, -EISDIR,
				   "is a directory: expected a regular file or a block "
				   "device");
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return file_refuse(&to, -EINVAL, "is neither a regular file nor a block device");
	set_kind(ex, S_ISBLK(st.st_mode));
	rc = check_use(ex, &st, &to);
	if (!rc)
		rc = open_path(ex, &to);
	if (rc)
		return rc;
	if (fstat(store_file(ex)->fd, &st) < 0)
		return file_refuse(&to, -errno, "cannot be examined: %s", strerror(errno));
	if (store_file(ex)->is_block != !!S_ISBLK(st.st_mode))
		return file_refuse(&to, -ESTALE, "was replaced while it was opened");
	learn_ids(ex, &st);
	store_file(ex)->fs = store_file_geometry_fs(store_file(ex));
	rc = learn_size(ex, &st, &to);
	if (!rc && is_swap_file(ex))
		rc = file_refuse(&to, -ETXTBSY, "is in use as swap: end that first (swapoff '%s'), "
				 "or export it read-only: " STORE_READONLY, ex->path);
	if (!rc && ex->spec.shared)
		rc = check_shared(ex, &to);
	if (!rc && ex->direct)
		rc = learn_dio_align(ex, &to);
	if (rc)
		return rc;
	rc = store_file_desc_open(store_file(ex));
	if (rc)
		return file_refuse(&to, rc,
				   "cannot be opened again through /proc: %s", fds_strerror(rc));
	store_file_geometry(store_file(ex), (uint32_t)st.st_blksize);
	/* The writes that the other server answered for need no FLUSH of this one. */
	ex->durable = ex->spec.shared && !ex->spec.readonly && ex->geometry.writeback;
	ex->geometry.writeback &= !ex->spec.shared;
	return 0;
}

/* End the thread of @s.  No ring has the file any more, so no question waits. */
static void seeker_end(struct export_seeker *s)
{
	pthread_mutex_lock(&s->lock);
	assert(list_empty(&s->waiting));
	s->stop = true;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (s->running)
		pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->lock);
}

static void file_close(struct export *ex)
{
	struct store_file *f = store_file(ex);

	seeker_end(&f->seeker);
	for (unsigned i = 0; i < EXPORT_QUESTIONS; i++) {
		if (!f->asking[i])
			free(f->asks[i]);
	}
	store_file_desc_close(f);
	store_file_close_fd(f->tail_fd);
	store_file_close_fd(f->fd);
	free(f);
}

static void file_store_init(struct store *store)
{
	struct store_file_all *all = store_file_all(store);

	list_init(&all->descs);
	all->keep.lock_fd = all->keep.own_fd = all->keep.claim_fd = -1;
}

static void file_store_close(const struct exports *e, struct store *store)
{
	struct store_file_keep *keep = &store_file_all(store)->keep;

	/* ORDER: before the claim goes, behind which the next server begins. */
	store_file_share_end(store);
	store_file_close_fd(keep->claim_fd);
	store_file_lock_drop(e, store, keep);
}

static struct export *file_create(void)
{
	struct store_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	pthread_mutex_init(&f->seeker.lock, NULL);
	pthread_cond_init(&f->seeker.cond, NULL);
	list_init(&f->seeker.waiting);
	f->fd = -1;
	f->tail_fd = -1;
	return &f->ex;
}

#define FIELD(field) OPT_FIELD(struct export_spec, field)
static const struct opt file_options[] = {
	{ .name = "direct", .type = OPT_FLAG, FIELD(direct), .holds = OPT_AT_START | OPT_IN_FILE,
	  .help = "use O_DIRECT" },
	{ .name = "force", .type = OPT_FLAG, FIELD(force), .holds = OPT_AT_START | OPT_IN_FILE,
	  .help = "a device in use, too" },
	{ .name = "id", .type = OPT_TEXT, FIELD(id), .arg = "NAME", .of = "a name",
	  .holds = OPT_AT_START | OPT_IN_FILE, .help = "its identity" },
};

static void file_removed(struct export *ex)
{
	store_file_desc_removed(ex);
	store_file_share_left(ex);
}

static int file_claim(struct export *ex, char *err, size_t errlen)
{
	int rc = store_file_claim(ex, err, errlen);

	if (!rc)
		rc = store_file_share_begin(ex, err, errlen);
	if (!rc)
		store_file_look_format(ex);
	if (!rc)
		store_file_ident_warn(ex);
	return rc;
}

/* Files of the state directory have the name. */
static bool name_is_good(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";

	return !name || (strlen(name) <= NAME_LEN_MAX && !name[strspn(name, good)]);
}

static int file_check(const struct export_spec *spec, char *err, size_t errlen)
{
	if (!name_is_good(spec->id)) {
		snprintf(err, errlen, "export '%s': id='%s': expected at most %u letters, digits, "
			 "'.', '_' and '-'", spec->name, spec->id, NAME_LEN_MAX);
		return -EINVAL;
	}
	if (spec->shared && spec->force) {
		snprintf(err, errlen, "export '%s': shared=yes and force together: a device shared "
			 "by two servers must not be used by others: remove force", spec->name);
		return -EINVAL;
	}
	if (!spec->force || !spec->readonly)
		return 0;
	snprintf(err, errlen, "export '%s': readonly and force together: a read-only export may be "
		 "in use by others anyway: remove force", spec->name);
	return -EINVAL;
}

const struct store_driver store_file_driver = {
	.options = { .rows = file_options, .n = ARRAY_SIZE(file_options) },
	/* Persistent reservations (store-file-pr.h): SG_IO, and on older kernels IOC_PR_*. */
	.shared_capabilities = 1ULL << CAP_SYS_RAWIO | 1ULL << CAP_SYS_ADMIN,
	.create = file_create,
	.check = file_check,
	.fits = store_file_ident_fits,
	.open = file_open,
	.added = store_file_desc_added,
	.removed = file_removed,
	.lock = store_file_lock,
	.claim = file_claim,
	.look = store_file_look_warn,
	.check_same = store_file_lock_check_same,
	.drop = store_file_sync_drop,
	.take = store_file_share_take,
	.forget = store_file_share_forget,
	.yield = store_file_share_yield,
	.owns = store_file_share_owns,
	.keeps = store_file_share_keeps,
	.renew = store_file_share_renew,
	.snapshot = store_file_snapshot,
	.close = file_close,
	.store_own = sizeof(struct store_file_all),
	.store_init = file_store_init,
	.store_close = file_store_close,
};

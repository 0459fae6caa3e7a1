/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the file of a session that outlives its process: its lock, and a mapping of its one page.  A
 * store to the page is in the file at once, without a call, whatever happens to the process. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "client-kept.h"
#include "clt-kept.h"
#include "lock-file.h"
#include "log.h"
#include "process.h"

#define KEPT_BYTES 4096u
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LEN 36

_Static_assert(sizeof(struct client_kept) <= KEPT_BYTES, "one page");

struct clt_kept {
	struct client_kept *page;
	int fd;				/* has the lock */
	char *path;
};

static int kept_boot(char boot[BOOT_ID_LEN + 1], char *err)
{
	_cleanup_close_ int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, boot, BOOT_ID_LEN) != BOOT_ID_LEN) {
		snprintf(err, CLT_FRONT_ERR, "cannot read " BOOT_ID_PATH
			 ", which says whether a file of a session is of this boot");
		return -EIO;
	}
	boot[BOOT_ID_LEN] = '\0';
	return 0;
}

static int kept_lock(struct clt_kept *k, char *err)
{
	char who[64];
	struct stat st;
	pid_t pid = 0;

	k->fd = lock_file_take(AT_FDCWD, k->path, LOCK_EX);
	if (k->fd >= 0)
		return 0;
	if (k->fd == -EWOULDBLOCK) {
		if (!stat(k->path, &st))
			lock_holders(&st, &pid, 1);
		lock_holder_name(pid, who, sizeof(who));
		snprintf(err, CLT_FRONT_ERR, "%s: %s has this session: end it first", k->path, who);
		return -EBUSY;
	}
	snprintf(err, CLT_FRONT_ERR, "cannot lock %s: %s", k->path, k->fd == -EPERM ?
		 "expected a regular file of this user with mode 0600" : fds_strerror(k->fd));
	return k->fd;
}

static int kept_is_other(const struct clt_kept *k, char *err)
{
	snprintf(err, CLT_FRONT_ERR, "%s: expected a file that a session of this program has left: "
		 "remove it to begin a new session", k->path);
	return -EINVAL;
}

/* Map the file, and give a new one its size: a page that the file lacks would end the process when
 * it is touched. */
static int kept_map(struct clt_kept *k, char *err)
{
	void *page = MAP_FAILED;
	struct stat st;
	int r;

	r = fstat(k->fd, &st) ? -errno : 0;
	if (r == 0 && st.st_size && st.st_size != KEPT_BYTES)
		return kept_is_other(k, err);
	if (r == 0)
		r = -posix_fallocate(k->fd, 0, KEPT_BYTES);
	if (r == 0)
		page = mmap(NULL, KEPT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
	if (r == 0 && page == MAP_FAILED)
		r = -errno;
	if (r < 0)
		snprintf(err, CLT_FRONT_ERR, "cannot use %s: %s", k->path, fds_strerror(r));
	else
		k->page = page;
	/* No request waits for the page.  Without the right to lock it is in use, and so stays. */
	if (r == 0 && mlock(page, KEPT_BYTES))
		log_dbg(k->path, "cannot be locked into memory: %s", strerror(errno));
	return r;
}

static bool page_is_new(const struct client_kept *page)
{
	static const char none[sizeof(page->magic)];

	return !memcmp(page->magic, none, sizeof(none));
}

/* The page is of this boot: may @conf go on with it? */
static int kept_check(const struct clt_kept *k, const struct clt_conf *conf, char *err)
{
	const struct client_kept *page = k->page;

	if (strcmp(page->name, conf->export_name)) {
		snprintf(err, CLT_FRONT_ERR, "%s is of export '%.64s', not of export='%.64s': "
			 "expected another file", k->path, page->name, conf->export_name);
		return -EINVAL;
	}
	if (client_kept_resumes(page) && !conf->mode_auto &&
	    page->mode != (uint32_t)conf->mode) {
		snprintf(err, CLT_FRONT_ERR, "%s is of a session with mode=%s, and mode=%s: "
			 "expected the same mode until its users have gone", k->path,
			 rnbd_access_names[page->mode], rnbd_access_names[conf->mode]);
		return -EINVAL;
	}
	return 0;
}

static int kept_begin(struct clt_kept *k, const struct clt_conf *conf, char *err)
{
	char boot[BOOT_ID_LEN + 1];
	int r = kept_boot(boot, err);

	if (r < 0)
		return r;
	if (!page_is_new(k->page) && !client_kept_is_valid(k->page))
		return kept_is_other(k, err);
	if (page_is_new(k->page) || client_kept_is_old(k->page, boot)) {
		client_kept_init(k->page, boot, conf->export_name);
		return 0;
	}
	return kept_check(k, conf, err);
}

static void kept_free(struct clt_kept *k)
{
	if (k->page)
		munmap(k->page, KEPT_BYTES);
	if (k->fd >= 0)
		close(k->fd);
	free(k->path);
	free(k);
}

/* Fill @k, which is all 0 but for its path. */
static int kept_open(struct clt_kept *k, const struct clt_conf *conf, char *err)
{
	int r = kept_lock(k, err);

	if (r == 0)
		r = kept_map(k, err);
	if (r == 0)
		r = kept_begin(k, conf, err);
	return r;
}

int clt_kept_open(struct clt_conf *conf, const char *path, char err[CLT_FRONT_ERR])
{
	struct clt_kept *k;
	int r;

	if (!conf->export_name) {
		snprintf(err, CLT_FRONT_ERR, "a session that outlives its process needs export=");
		return -EINVAL;
	}
	k = calloc(1, sizeof(*k));
	if (k)
		k->path = strdup(path);
	if (!k || !k->path) {
		free(k);
		snprintf(err, CLT_FRONT_ERR, "%s: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	r = kept_open(k, conf, err);
	if (r < 0)
		kept_free(k);
	else
		conf->kept = k;
	return r;
}

struct client_kept *clt_kept_page(const struct clt_conf *conf)
{
	return conf->kept ? conf->kept->page : NULL;
}

bool clt_kept_resumes(const struct clt_conf *conf)
{
	return conf->kept && client_kept_resumes(conf->kept->page);
}

void clt_kept_choose(const struct clt_conf *conf)
{
	const struct fab_provider *chosen = clt_conf_chosen(conf);
	struct client_kept *page = clt_kept_page(conf);

	if (page && chosen)
		snprintf(page->provider, sizeof(page->provider), "%s", fab_provider_name(chosen));
}

const struct fab_provider *clt_kept_provider(const struct clt_conf *conf)
{
	const struct client_kept *page = clt_kept_page(conf);

	return page && *page->provider ? fab_provider_find(page->provider) : NULL;
}

void clt_kept_close(struct clt_conf *conf)
{
	if (conf->kept)
		kept_free(conf->kept);
	conf->kept = NULL;
}

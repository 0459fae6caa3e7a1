/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a session that outlives its process (clt-kept.h): who may have it, and what of it the
 * next process takes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "client-kept.h"
#include "clt-kept.h"
#include "rtrs-msg.h"

static const struct clt_front front = { .name = "front", .program = "front", .help = "help" };
static char dir[] = "/tmp/test-clt-kept.XXXXXX", path[64];
static char err[CLT_FRONT_ERR];
static struct clt_conf first, second;

static void begin(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/session", dir);
}

static void end(void)
{
	if (first.front)
		clt_conf_fini(&first);
	if (second.front)
		clt_conf_fini(&second);
	unlink(path);
	rmdir(dir);
}

static struct clt_conf *conf_of(struct clt_conf *conf, const char *export, const char *mode)
{
	char *why = NULL;

	if (conf->front)
		clt_conf_fini(conf);
	clt_conf_init(conf, &front);
	cr_assert_eq(clt_conf_set(conf, "server", "tcp://127.0.0.1", &why), 0, "%s", why);
	if (export)
		cr_assert_eq(clt_conf_set(conf, "export", export, &why), 0, "%s", why);
	cr_assert_eq(clt_conf_set(conf, "mode", mode, &why), 0, "%s", why);
	cr_assert_eq(clt_conf_complete(conf, &why), 0, "%s", why);
	return conf;
}

static const struct rnbd_dev_info disk = { .nsectors = 8, .logical_block_size = 512 };

/* A process that had its export open, in @mode, and has ended. */
static void leave(enum rnbd_access_mode mode)
{
	struct client_kept *page;

	cr_assert_eq(clt_kept_open(conf_of(&first, "disk", "rw"), path, err), 0, "%s", err);
	page = clt_kept_page(&first);
	page->mode = mode;
	rnbd_open_rsp_encode(&page->rsp, &disk);
	atomic_store(&page->opened, 1);
	clt_kept_close(&first);
	cr_assert(!clt_kept_page(&first));
}

TestSuite(clt_kept, .init = begin, .fini = end);

Test(clt_kept, next_takes_the_place)
{
	uint8_t before[RTRS_UUID_LEN], now[RTRS_UUID_LEN];

	cr_assert_eq(clt_kept_open(conf_of(&first, "disk", "rw"), path, err), 0, "%s", err);
	cr_assert(!clt_kept_resumes(&first), "nothing was open");
	client_kept_next(clt_kept_page(&first), before);
	clt_kept_close(&first);
	leave(RNBD_ACCESS_RW);
	cr_assert_eq(clt_kept_open(conf_of(&second, "disk", "auto"), path, err), 0, "%s", err);
	cr_assert(clt_kept_resumes(&second));
	client_kept_next(clt_kept_page(&second), now);
	cr_assert(rtrs_lineage_same(before, now));
	cr_assert_gt(rtrs_lineage_compare(now, before), 0);
	clt_kept_close(&second);
}

/* Also of a process that was killed, and did not close it. */
Test(clt_kept, lasts_without_an_end)
{
	struct client_kept *page;
	int fd;
	char magic[8];

	cr_assert_eq(clt_kept_open(conf_of(&first, "disk", "rw"), path, err), 0, "%s", err);
	page = clt_kept_page(&first);
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, magic, sizeof(magic)), (ssize_t)sizeof(magic));
	cr_assert(!memcmp(magic, page->magic, sizeof(magic)), "a store is in the file at once");
	close(fd);
	clt_kept_close(&first);
}

Test(clt_kept, one_process_has_it)
{
	cr_assert_eq(clt_kept_open(conf_of(&first, "disk", "rw"), path, err), 0, "%s", err);
	cr_assert_eq(clt_kept_open(conf_of(&second, "disk", "rw"), path, err), -EBUSY);
	cr_assert(strstr(err, path) && strstr(err, "has this session: end it first"), "%s", err);
	cr_assert(!clt_kept_resumes(&second));
	clt_kept_close(&first);
	cr_assert_eq(clt_kept_open(&second, path, err), 0, "%s", err);
	clt_kept_close(&second);
}

Test(clt_kept, forgotten)
{
	leave(RNBD_ACCESS_RW);
	cr_assert_eq(clt_kept_open(conf_of(&second, "disk", "rw"), path, err), 0, "%s", err);
	clt_kept_close(&second);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(clt_kept_open(&second, path, err), 0, "%s", err);
	cr_assert(!clt_kept_resumes(&second));
	clt_kept_close(&second);
}

/* The device of another boot is gone, and so is its file's use. */
Test(clt_kept, of_another_boot)
{
	uint8_t before[RTRS_UUID_LEN], now[RTRS_UUID_LEN];

	leave(RNBD_ACCESS_RW);
	cr_assert_eq(clt_kept_open(conf_of(&second, "disk", "rw"), path, err), 0, "%s", err);
	client_kept_next(clt_kept_page(&second), before);
	clt_kept_page(&second)->boot[0] ^= 1;
	clt_kept_close(&second);
	cr_assert_eq(clt_kept_open(conf_of(&second, "other", "rw"), path, err), 0, "%s", err);
	cr_assert(!clt_kept_resumes(&second));
	client_kept_next(clt_kept_page(&second), now);
	cr_assert(!rtrs_lineage_same(before, now));
	clt_kept_close(&second);
}

static void expect_refused(const char *export, const char *mode, const char *why)
{
	*err = '\0';
	cr_assert_eq(clt_kept_open(conf_of(&second, export, mode), path, err), -EINVAL);
	cr_assert(strstr(err, why), "'%s' without '%s'", err, why);
	cr_assert(!clt_kept_page(&second));
}

Test(clt_kept, of_another_export)
{
	leave(RNBD_ACCESS_RO);
	expect_refused("other", "rw", "is of export 'disk', not of export='other': expected "
		       "another file");
	expect_refused("disk", "rw", "is of a session with mode=ro, and mode=rw: expected the "
		       "same mode");
	expect_refused(NULL, "rw", "needs export=");
}

static void write_file(const char *text, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
}

/* No byte of a file of somebody else's is changed. */
Test(clt_kept, other_files)
{
	static char page[4096] = "not this one";
	char text[16] = "";
	struct stat st;
	int fd;

	write_file("a line\n", 7, 0600);
	expect_refused("disk", "rw", "expected a file that a session of this program has left: "
		       "remove it");
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, text, sizeof(text)), 7);
	cr_assert_str_eq(text, "a line\n");
	close(fd);
	write_file(page, sizeof(page), 0600);
	expect_refused("disk", "rw", "remove it to begin a new session");
	cr_assert(!stat(path, &st) && st.st_size == sizeof(page));
	unlink(path);
	write_file("", 0, 0600);
	chmod(path, 0644);
	cr_assert_eq(clt_kept_open(conf_of(&second, "disk", "rw"), path, err), -EPERM);
	cr_assert(strstr(err, "expected a regular file of this user with mode 0600"), "%s", err);
}

Test(clt_kept, no_such_directory)
{
	conf_of(&second, "disk", "rw");
	cr_assert_eq(clt_kept_open(&second, "/nowhere/session", err), -ENOENT);
	cr_assert(strstr(err, "/nowhere/session"), "%s", err);
}

/* Each byte of the page may be what a crash or a hand has left there: refused, or taken. */
Test(clt_kept, any_page)
{
	struct client_kept page;

	for (size_t at = 0; at < sizeof(page); at++) {
		client_kept_init(&page, "boot", "disk");
		cr_assert(client_kept_is_valid(&page));
		memset((uint8_t *)&page + at, 0xff, 1);
		if (client_kept_is_valid(&page)) {
			cr_assert_lt(strlen(page.name), sizeof(page.name));
			cr_assert_lt(page.mode, RNBD_ACCESS_MODES);
		}
	}
	client_kept_init(&page, "boot", "disk");
	memset(page.name, 'x', sizeof(page.name));
	cr_assert(!client_kept_is_valid(&page));
	client_kept_init(&page, "boot", "disk");
	atomic_store(&page.opened, 1);
	cr_assert(!client_kept_is_valid(&page), "the geometry of no device");
}

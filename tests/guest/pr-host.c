/* SPDX-License-Identifier: BSD-3-Clause */
/* A host before a shared device, for test-reservation.sh.  It carries one command out, prints what
 * came of it as one line, "ok" or the name of an errno, and words.
 *
 *	pr-host DEVICE KEY check | register | reserve | release | unregister | look
 *	pr-host DEVICE KEY preempt OTHER-KEY
 *	pr-host DEVICE KEY write BYTE OFFSET | flush | discard OFFSET	by io_uring and direct IO
 *
 * KEY "new" stands for a new key, which "look" prints.  Exits with 0 for "ok", 1 for another errno,
 * 2 for a mistake. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/fs.h>
#include <unistd.h>

#include "store-file-pr.h"
#include "util.h"

#define BLOCK 4096

static char why[256];

static void __attribute__((noreturn)) usage(const char *what)
{
	fprintf(stderr, "pr-host: %s\n", what);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n;

	if (!text)
		usage("a number is missing");
	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		usage(text);
	return n;
}

static int tell(int rc)
{
	printf("%s %s\n", rc ? strerrorname_np(-rc) : "ok", why);
	fflush(stdout);
	return rc ? 1 : 0;
}

/* The completion of one request, as the server gets it. */
static int ring_one(int fd, const char *what, void *buf, uint64_t offset)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	int rc = io_uring_queue_init(4, &ring, 0);

	if (rc)
		return rc;
	sqe = io_uring_get_sqe(&ring);
	if (!strcmp(what, "flush"))
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
	else
		io_uring_prep_write(sqe, fd, buf, BLOCK, offset);
	rc = io_uring_submit(&ring);
	if (rc == 1)
		rc = io_uring_wait_cqe(&ring, &cqe);
	if (!rc)
		rc = cqe->res == BLOCK ? 0 : cqe->res;
	io_uring_queue_exit(&ring);
	return rc;
}

static int do_io(const struct store_file_pr *pr, char **word)
{
	const char *what = word[0];
	uint64_t range[2] = { 0, BLOCK };
	void *buf;
	int rc;

	if (!strcmp(what, "discard")) {
		range[0] = number(word[1]);
		return ioctl(pr->fd, BLKDISCARD, range) ? -errno : 0;
	}
	if (!strcmp(what, "flush"))
		return ring_one(pr->fd, what, NULL, 0);
	if (posix_memalign(&buf, BLOCK, BLOCK))
		return -ENOMEM;
	if (!word[1])
		usage("a byte is missing");
	memset(buf, (int)number(word[1]), BLOCK);
	rc = ring_one(pr->fd, what, buf, number(word[2]));
	free(buf);
	return rc;
}

static int look(const struct store_file_pr *pr)
{
	static const char *const owners[] = { "free", "ours", "other" };
	struct store_file_pr_view view;
	int rc = store_file_pr_look(pr, &view, why, sizeof(why));

	if (!rc)
		snprintf(why, sizeof(why), "%s holder=0x%" PRIx64 " registered=%d others=%u "
			 "key=0x%" PRIx64, owners[view.owner], view.holder, view.registered,
			 view.others, pr->key);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(const struct store_file_pr *pr, char *why, size_t len);
} calls[] = {
	{ "check", store_file_pr_check },
	{ "register", store_file_pr_register },
	{ "reserve", store_file_pr_reserve },
	{ "release", store_file_pr_release },
	{ "unregister", store_file_pr_unregister },
};

int main(int argc, char **argv)
{
	struct store_file_pr pr = { 0 };
	const char *what;
	bool does_io;

	if (argc < 4)
		usage("DEVICE KEY COMMAND [ARG...]");
	what = argv[3];
	pr.path = argv[1];
	if (strcmp(argv[2], "new"))
		pr.key = number(argv[2]);
	else if (store_file_pr_new_key(&pr.key))
		usage("no random key");
	does_io = !strcmp(what, "write") || !strcmp(what, "flush") || !strcmp(what, "discard");
	pr.fd = open(pr.path, O_RDWR | O_CLOEXEC | (does_io ? O_DIRECT : 0));
	if (pr.fd < 0) {
		perror(pr.path);
		return 2;
	}
	if (!strcmp(what, "look"))
		return tell(look(&pr));
	if (!strcmp(what, "preempt"))
		return tell(store_file_pr_preempt(&pr, number(argv[4]), why, sizeof(why)));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		if (!strcmp(what, calls[i].name))
			return tell(calls[i].run(&pr, why, sizeof(why)));
	if (!does_io)
		usage(what);
	return tell(do_io(&pr, argv + 3));
}

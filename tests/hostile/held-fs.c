/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage that stops when told to and tells when a write waits in it, so that what a peer does
 * "during the IO" is done during the IO for certain.
 *
 *	held-fs FILE DIR SOCKET
 *
 * A FUSE file system on DIR with one file, DIR/disk, which is FILE; says "ready" on stdout when it
 * is mounted, and unmounts at SIGTERM.  Needs the right to mount: root, or a user and a mount
 * namespace.
 *
 * The file is not cached (FOPEN_DIRECT_IO): the kernel copies a write's data out of the writer's
 * memory when the request is read from /dev/fuse, and not before.  Who connects to SOCKET holds the
 * storage:
 *
 *	'H' to him	held: from now on no request is read
 *	'W' to him	a request waits; its data is still in the writer's memory
 *	'G' from him	go on
 *	'D' to him	the request was a WRITE, and FILE has its data; or
 *	'X' to him	it was something else, so what he did meanwhile proves nothing
 *	'K' from him	instead of 'G': take the data of the request and keep it aside; all
 *			others go on
 *	'K' to him	that is so; 'G' lets the one that was kept happen, after all that came
 *			meanwhile
 *
 * Each FSYNC is a line "fsync" on stderr, written before the answer, and while FILE.fails exists
 * each FSYNC fails with EIO.
 *
 * One thread; one holder at a time; a holder that goes lets the storage go on.  What fails here
 * ends the process, and the kernel then fails what waits. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/fuse.h>

#define DISK_NODE 2u
#define VALID_S 86400u			/* nothing changes behind the kernel's back */
#define MAX_WRITE (128u << 10)
#define REQUEST_SIZE (MAX_WRITE + FUSE_MIN_READ_BUFFER)

static int fuse_fd, file_fd, listen_fd, holder_fd = -1;
static char *fails_path;
static bool told;			/* the holder: that a request waits */
static uint8_t *kept;			/* a WRITE that is to happen later, or NULL */
static volatile sig_atomic_t ending;
static uint8_t *request;		/* REQUEST_SIZE */

static void die(const char *what)
{
	fprintf(stderr, "held-fs: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- FUSE ---- */

/* The kernel says ENOENT when it does not wait for the answer any more. */
static void answer(const struct fuse_in_header *in, int err, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len), .error = -err,
				       .unique = in->unique };
	struct iovec iov[2] = { { &out, sizeof(out) }, { (void *)(uintptr_t)data, len } };

	if (writev(fuse_fd, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		die("answering the kernel");
}

static void do_init(const struct fuse_in_header *in)
{
	const struct fuse_init_in *init = (const void *)(in + 1);
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = init->minor < FUSE_KERNEL_MINOR_VERSION ? init->minor :
								   FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = init->max_readahead,
		.flags = FUSE_BIG_WRITES | FUSE_ASYNC_DIO,
		.max_write = MAX_WRITE,
		.time_gran = 1,
	};

	answer(in, 0, &out, sizeof(out));
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .uid = getuid(), .gid = getgid(),
				  .blksize = 4096, .mode = S_IFDIR | 0700 };
	struct stat st;

	if (node == DISK_NODE) {
		if (fstat(file_fd, &st) < 0)
			die("fstat");
		attr.mode = S_IFREG | 0600;
		attr.size = (uint64_t)st.st_size;
		attr.blocks = (uint64_t)st.st_blocks;
	}
	return attr;
}

static void do_lookup(const struct fuse_in_header *in)
{
	struct fuse_entry_out out = { .nodeid = DISK_NODE, .entry_valid = VALID_S,
				      .attr_valid = VALID_S, .attr = attr_of(DISK_NODE) };

	if (strcmp((const char *)(in + 1), "disk") != 0)
		answer(in, ENOENT, NULL, 0);
	else
		answer(in, 0, &out, sizeof(out));
}

static void do_getattr(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr_valid = VALID_S, .attr = attr_of(in->nodeid) };

	answer(in, 0, &out, sizeof(out));
}

static void do_open(const struct fuse_in_header *in)
{
	struct fuse_open_out out = { .open_flags = FOPEN_DIRECT_IO };

	answer(in, 0, &out, sizeof(out));
}

static void do_read(const struct fuse_in_header *in)
{
	const struct fuse_read_in *rd = (const void *)(in + 1);
	static uint8_t data[MAX_WRITE];
	ssize_t n;

	if (rd->size > sizeof(data)) {
		answer(in, EINVAL, NULL, 0);
		return;
	}
	n = pread(file_fd, data, rd->size, (off_t)rd->offset);
	answer(in, n < 0 ? errno : 0, data, n < 0 ? 0 : (size_t)n);
}

static void do_write(const struct fuse_in_header *in)
{
	const struct fuse_write_in *wr = (const void *)(in + 1);
	ssize_t n = pwrite(file_fd, wr + 1, wr->size, (off_t)wr->offset);
	struct fuse_write_out out = { .size = (uint32_t)(n < 0 ? 0 : n) };

	answer(in, n < 0 ? errno : 0, &out, n < 0 ? 0 : sizeof(out));
}

static void do_fsync(const struct fuse_in_header *in)
{
	int err = access(fails_path, F_OK) ? 0 : EIO;

	if (!err && fdatasync(file_fd) < 0)
		err = errno;
	fputs("fsync\n", stderr);
	answer(in, err, NULL, 0);
}

/* Into @request; false when there was nothing. */
static bool read_request(void)
{
	if (read(fuse_fd, request, REQUEST_SIZE) >= 0)
		return true;
	if (errno != EINTR && errno != EAGAIN && errno != ENOENT)
		die("reading from the kernel");
	return false;
}

/* Returns the opcode. */
static uint32_t serve(void)
{
	const struct fuse_in_header *in = (const void *)request;

	switch (in->opcode) {
	case FUSE_INIT:
		do_init(in);
		break;
	case FUSE_LOOKUP:
		do_lookup(in);
		break;
	case FUSE_GETATTR:
		do_getattr(in);
		break;
	case FUSE_OPEN:
		do_open(in);
		break;
	case FUSE_READ:
		do_read(in);
		break;
	case FUSE_WRITE:
		do_write(in);
		break;
	case FUSE_FSYNC:
		do_fsync(in);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:		/* what is served here ends by itself */
		break;
	default:
		answer(in, ENOSYS, NULL, 0);
	}
	return in->opcode;
}

/* As serve(), or 0 when there was nothing. */
static uint32_t serve_one(void)
{
	return read_request() ? serve() : 0;
}

/* What waits is read and not served, if it is a WRITE. */
static bool keep_one(void)
{
	const struct fuse_in_header *in = (const void *)request;

	if (!read_request())
		return false;
	if (in->opcode != FUSE_WRITE) {
		serve();
		return false;
	}
	kept = request;
	request = malloc(REQUEST_SIZE);
	if (!request)
		die("malloc");
	return true;
}

static void serve_kept(void)
{
	do_write((const void *)kept);
	free(kept);
	kept = NULL;
}

static void mount_on(const char *dir)
{
	char options[128];

	fuse_fd = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fuse_fd < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fuse_fd,
		 getuid(), getgid());
	if (mount("held-fs", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		die(dir);
}

/* ---- the holder ---- */

static void tell(char c)
{
	if (send(holder_fd, &c, 1, MSG_NOSIGNAL) != 1) {
		close(holder_fd);
		holder_fd = -1;
	}
}

static void holder_comes(void)
{
	holder_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (holder_fd < 0)
		die("accept");
	told = false;
	tell('H');
}

/* Whatever else he says, and if he has gone, it goes on. */
static void holder_speaks(void)
{
	uint32_t op;
	char c = 0;

	if (recv(holder_fd, &c, 1, 0) == 1 && told) {
		if (c == 'K' && !kept) {
			tell(keep_one() ? 'K' : 'X');
			return;
		}
		op = kept ? FUSE_WRITE : serve_one();
		if (kept)
			serve_kept();
		tell(op == FUSE_WRITE ? 'D' : 'X');
	}
	if (kept)
		serve_kept();
	if (holder_fd >= 0)
		close(holder_fd);
	holder_fd = -1;
}

static void listen_on(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		die(path);
	}
	strcpy(sa.sun_path, path);
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(listen_fd, 1) < 0)
		die(path);
}

/* ---- life ---- */

static void on_term(int sig)
{
	ending = 1;
}

static void loop(const sigset_t *wait_mask)
{
	while (!ending) {
		bool held = holder_fd >= 0, all = held && !kept;
		struct pollfd fds[2] = {
			{ .fd = all && told ? -1 : fuse_fd, .events = POLLIN },
			{ .fd = held ? holder_fd : listen_fd, .events = POLLIN },
		};

		if (ppoll(fds, 2, NULL, wait_mask) < 0) {
			if (errno == EINTR)
				continue;
			die("poll");
		}
		if (fds[1].revents && held)
			holder_speaks();
		else if (fds[1].revents)
			holder_comes();
		else if (fds[0].revents && all)
			told = true, tell('W');
		else if (fds[0].revents)
			serve_one();
	}
}

int main(int argc, char **argv)
{
	const struct sigaction term = { .sa_handler = on_term };
	sigset_t term_set, wait_mask;

	if (argc != 4) {
		fprintf(stderr, "usage: held-fs FILE DIR SOCKET\n");
		return 2;
	}
	sigemptyset(&term_set);
	sigaddset(&term_set, SIGTERM);
	sigprocmask(SIG_BLOCK, &term_set, &wait_mask);
	sigaction(SIGTERM, &term, NULL);
	request = malloc(REQUEST_SIZE);
	file_fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (!request || file_fd < 0 || asprintf(&fails_path, "%s.fails", argv[1]) < 0)
		die(argv[1]);
	listen_on(argv[3]);
	mount_on(argv[2]);
	printf("ready\n");
	fflush(stdout);
	loop(&wait_mask);
	if (umount2(argv[2], MNT_DETACH) < 0)
		die("unmounting");
	free(fails_path);
	free(request);
	return 0;
}

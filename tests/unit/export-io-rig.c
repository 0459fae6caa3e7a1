/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store-file-io.h"
#include "export-add.h"
#include "export-io-rig.h"
#include "export-ring.h"
#include "unit.h"

struct rig rig;

void rig_init(void)
{
	memset(&rig, 0, sizeof(rig));
	/* Not below a directory that may be a tmpfs: O_DIRECT is to be tested. */
	strcpy(rig.dir, "/var/tmp/test-export-io.XXXXXX");
	cr_assert(mkdtemp(rig.dir));
	cr_assert_eq(chdir(rig.dir), 0);
	exports_init(&rig.exports, 1);
	cr_assert_eq(reactor_create("test", 64, &rig.reactor), 0);
}

void rig_attach(void)
{
	char err[256] = "";

	cr_assert_eq(export_ring_attach(rig.reactor, 0, &rig.exports, false, err, sizeof(err)), 0,
		     "%s", err);
}

void rig_fini(void)
{
	char cmd[96];

	export_ring_detach(rig.reactor);
	reactor_destroy(rig.reactor);
	exports_fini(&rig.exports);
	if (rig.loop) {
		cr_assert_eq(ioctl(rig.loop, LOOP_CLR_FD), 0);
		close(rig.loop);
	}
	if (rig.mounted)	/* the kernel closes a ring's files a little later */
		cr_assert_eq(umount2("small", MNT_DETACH), 0);
	cr_assert_eq(chdir("/"), 0);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", rig.dir);
	cr_assert_eq(system(cmd), 0);
}

void rig_file(const char *name, size_t size, unsigned seed)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
	uint8_t *buf = malloc(size);

	cr_assert(fd >= 0 && buf);
	for (size_t i = 0; i < size; i++)
		buf[i] = (uint8_t)((i / 512 + seed) % 251);
	cr_assert_eq(write(fd, buf, size), (ssize_t)size);
	free(buf);
	close(fd);
}

struct export *rig_export(const char *spec)
{
	char err[512] = "", name[64];

	cr_assert_eq(export_add_line(&rig.exports, spec, err, sizeof(err)), 0, "%s", err);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, "="), spec);
	return exports_find(&rig.exports, name);
}

void rig_set_align(struct export *ex, uint32_t align)
{
	cr_assert(ex->direct && ex->block_align <= align);
	ex->block_align = align;
	store_file(ex)->tail_start = UINT64_MAX;
	if (ex->size % align && store_file(ex)->tail_fd < 0)
		store_file(ex)->tail_fd = open(ex->path, O_RDWR | O_CLOEXEC);
	if (ex->size % align)
		store_file(ex)->tail_start = align_down(ex->size, MAX(align, 4096u));
}

static void rig_done(struct export_io *io, int status)
{
	struct rig_io *rio = container_of(io, struct rig_io, io);

	cr_assert_eq(rio->status, 1, "done() ran twice");
	cr_assert_leq(status, 0);
	rio->status = status;
	if (!--rig.in_flight)
		reactor_stop(rig.reactor);
}

void rig_start(struct export *ex, struct rig_io *rio)
{
	rio->status = 1;
	rio->io.ex = ex;
	rio->io.done = rig_done;
	rig.in_flight++;
	export_io_start(rig.reactor, &rio->io);
	cr_assert_eq(rio->status, 1, "done() ran inside export_io_start()");
}

void rig_wait(void)
{
	if (rig.in_flight)
		cr_assert_eq(reactor_run(rig.reactor), 0);
	cr_assert_eq(rig.in_flight, 0);
}

int rig_do(struct export *ex, enum rnbd_io_op op, uint32_t flags, uint64_t offset,
	   uint32_t len, void *buf)
{
	struct rig_io rio = { .io = { .op = op, .flags = flags, .offset = offset, .len = len,
				      .buf = buf, .mem = -1 } };

	rig_start(ex, &rio);
	rig_wait();
	return rio.status;
}

void rig_read_file(const char *name, void *buf, size_t len)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(read(fd, buf, len), (ssize_t)len);
	close(fd);
}

bool rig_mount_small(unsigned kib)
{
	char options[32];

	snprintf(options, sizeof(options), "size=%uk", kib);
	rig.mounted = !mkdir("small", 0755) && !unshare(CLONE_NEWNS) &&
		       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		       !mount("none", "small", "tmpfs", 0, options);
	return rig.mounted;
}

bool rig_loop(const char *file, char *path, size_t len)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), fd, loop;

	for (unsigned tries = 0; control >= 0 && !rig.loop && tries < 20; tries++) {
		snprintf(path, len, "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
		loop = open(path, O_RDWR | O_CLOEXEC);
		fd = open(file, O_RDWR | O_CLOEXEC);
		if (loop >= 0 && fd >= 0 && !ioctl(loop, LOOP_SET_FD, fd))
			rig.loop = loop;
		else if (loop >= 0)
			close(loop);
		close(fd);
	}
	if (control >= 0)
		close(control);
	return rig.loop;
}

bool rig_takes_at_once(struct export *ex, uint32_t flags)
{
	struct export_io io = {
		.ex = ex, .slot = reactor_storage(rig.reactor)->slots[ex->index],
		.op = RNBD_OP_WRITE,
		.flags = flags,
	};

	return io.slot->ops->takes_at_once(&io);
}

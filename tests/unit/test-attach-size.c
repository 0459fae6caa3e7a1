/* SPDX-License-Identifier: BSD-3-Clause */
/* A larger export of rtrs-attach: what the end of the helper that resizes the device means. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include "attach-nbd.h"
#include "attach.h"
#include "log.h"

#define OLD (8u << 20)
#define NEW (16u << 20)

/* ---- the rest of the program ---- */

static uint64_t kernel_has;		/* bytes */
static unsigned resizes;
static char said[512];

void clt_export_open_start(struct clt_export_req *req, struct client *clt,
			   const struct clt_conf *conf)
{
}

void dev_close(struct dev *dev)
{
}

uint64_t dev_size(const struct dev *dev)
{
	return NEW;
}

uint64_t driver_node_size(const char *disk)
{
	return kernel_has;
}

int attach_nbd_set_look(const char *disk)
{
	return 0;
}

pid_t attach_state_process(const char *name)
{
	return 0;
}

int attach_state_read(struct attach_state *s, const char *name, char *err, size_t len)
{
	return -ENOENT;
}

/* A helper that ends as a->own says. */
static int resize(struct attach *a, char *err, size_t len)
{
	int how = *(int *)a->own;

	resizes++;
	a->helper.pid = fork();
	if (a->helper.pid == 0 && how < 0)
		raise(-how);
	if (a->helper.pid == 0)
		_exit(how);
	return 1;
}

static void hear(enum log_level level, const char *line)
{
	snprintf(said, sizeof(said), "%s", line);
}

/* Have the device grow by a helper that ends with @status, or, less than 0, by a signal. */
static void grow(int status)
{
	static const struct attach_driver driver = { .resize = resize };
	struct attach a = { .driver = &driver, .own = &status, .helper.fd = -1,
			    .size.told = OLD, .state.disk = "nbd0" };

	log_init(hear, LOG_LEVEL_INFO);
	resizes = 0;
	attach_size_take(&a);
	attach_size_helped(&a, attach_helper_take(&a.helper));
	attach_size_take(&a);
}

/* ---- tests ---- */

Test(attach_size, grows)
{
	grow(0);
	cr_assert_eq(resizes, 1);
	cr_assert(strstr(said, "/dev/nbd0 has 16777216 bytes now"), "%s", said);
}

/* One line, and no line at each look. */
Test(attach_size, kernel_refuses)
{
	grow(EINVAL);
	cr_assert_eq(resizes, 1);
	cr_assert(strstr(said, "does not resize /dev/nbd0: Invalid argument"), "%s", said);
}

/* Nothing is known of the kernel, which is asked for the size, and told again. */
Test(attach_size, helper_is_killed)
{
	kernel_has = OLD;
	grow(-SIGKILL);
	cr_assert_eq(resizes, 2);
	cr_assert(strstr(said, "rtrs-attach-resize was ended by signal 9"), "%s", said);
	kernel_has = NEW;
	grow(-SIGKILL);
	cr_assert_eq(resizes, 1);
}

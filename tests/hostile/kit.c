/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the connection manager and all paths of one case, and polls them; one thread; ends with the
 * process. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "hostile.h"

#define PATHS_MAX 160

static struct fab_cm *cm;
static struct hpath *paths[PATHS_MAX];
static unsigned npaths;
static int also_fd = -1;

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("    ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	_exit(1);
}

bool over_tcp(void)
{
	return hrun.server.provider == fab_provider_find("tcp");
}

void skip(void)
{
	_exit(HSKIPPED);
}

uint64_t hnow_ms(void)
{
	return clock_now_ms();
}

uint64_t hdeadline(void)
{
	return hnow_ms() + hrun.timeout_ms;
}

/* ---- the pump ---- */

static bool work(struct pollfd *fds, unsigned *nfds)
{
	bool progress = false;
	struct fab_event ev;

	while (fab_cm_get_event(cm, &ev) == 1) {
		hpath_event(&ev);
		progress = true;
	}
	fds[0] = (struct pollfd){ .fd = fab_cm_fd(cm), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = also_fd, .events = POLLIN };
	*nfds = 2;
	for (unsigned i = 0; i < npaths * HCONS_MAX; i++) {
		struct hcon *con = &paths[i / HCONS_MAX]->cons[i % HCONS_MAX];
		struct pollfd *pfd = &fds[*nfds];

		if (con->state != H_UP || con->path->idle)
			continue;
		progress |= hpath_poll(con);
		if (con->state != H_UP)
			continue;
		pfd->fd = fab_conn_fd(con->conn);
		progress |= fab_arm(con->conn, &pfd->events) == 1;
		++*nfds;
	}
	return progress;
}

void hpump_also(int fd)
{
	also_fd = fd;
}

bool hpump(uint64_t deadline_ms)
{
	static struct pollfd fds[2 + PATHS_MAX * HCONS_MAX];
	uint64_t now = hnow_ms();
	unsigned nfds;

	if (work(fds, &nfds))
		return true;
	if (now >= deadline_ms)
		return false;
	poll(fds, nfds, (int)MIN(deadline_ms - now, (uint64_t)1000));
	return true;
}

/* ---- set-up ---- */

void kit_forget(void)
{
	cm = NULL;
	npaths = 0;
}

struct hpath *hpath_new(void)
{
	struct hpath *p = malloc(sizeof(*p));

	expect(p && npaths < PATHS_MAX);
	if (!cm)
		expect(!fab_cm_create(&(struct fab_cm_conf){ .provider = hrun.server.provider },
				      &cm));
	hpath_init(p, cm, &hrun.server);
	random_bytes(p->sess_uuid, RTRS_UUID_LEN);
	random_bytes(p->paths_uuid, RTRS_UUID_LEN);
	snprintf(p->name, sizeof(p->name), "hostile-%d-%u", (int)getpid(), npaths);
	paths[npaths++] = p;
	return p;
}

struct hpath *hpath_ready(const char *export_name, enum rnbd_access_mode mode)
{
	struct hpath *p = hpath_new();

	hpath_up(p);
	expect_outcome(hpath_sess_info(p), 0);
	expect_outcome(hpath_open(p, export_name, mode), 0);
	return p;
}

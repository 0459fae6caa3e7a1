/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of a thread test: a session with the mock server, and its disk. */
#ifndef CLT_RIG_H
#define CLT_RIG_H

#include "../mock/mock-server.h"
#include "clock.h"
#include "clt-start.h"
#include "dev.h"
#include "log.h"
#include "thread.h"

static struct clt_run run;
static struct dev_handle handle;

static inline void rig_no_line(enum log_level level, const char *line)
{
}

/* No line is logged: connections are cut on purpose. */
static inline void rig_quiet(void)
{
	log_init(rig_no_line, LOG_LEVEL_ERROR);
}

/* Start the session of @conf, with @loops loops; @conf, which is completed, says no more than the
 * test needs.  @provider: NULL, or in the place of the mock's. */
static inline void rig_session(struct clt_sess_conf *conf, unsigned loops,
			       const struct fab_provider *provider)
{
	static struct clt_sess_addr addr;
	char why[256];

	mock_server_addr(&addr.dst);
	if (provider)
		addr.dst.provider = provider;
	conf->name = "test";
	conf->paths = &addr;
	conf->npaths = 1;
	conf->io_timeout_ms = CLOCK_NEVER;
	conf->max_reconnect_attempts = -1;
	check(!clt_run_thread(&run, "service"));
	check(!clt_run_more(&run, "io", loops - 1));
	check(!clt_run_session(&run, conf));
	check(!clt_run_wait_up(&run, why, sizeof(why)));
}

static inline void rig_session_end(void)
{
	clt_run_close(&run);
	clt_run_fini(&run);
}

static inline struct dev *rig_dev(void)
{
	struct dev *dev;

	check(!dev_open(&run.clt, "disk", RNBD_ACCESS_RW, &dev));
	return dev;
}

/* rig_session(), and @handle of the disk. */
static inline void rig_open(struct clt_sess_conf *conf, unsigned loops,
			    const struct fab_provider *provider)
{
	rig_session(conf, loops, provider);
	dev_handle_init(&handle, rig_dev());
}

static inline void rig_close(void)
{
	dev_handle_fini(&handle);
	dev_close(handle.dev);
	rig_session_end();
}

#endif

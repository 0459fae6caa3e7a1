/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the capabilities, and the watch that tells the log about denied calls.  filter.c has the
 * filter itself. */
#include <config.h>

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "denied.h"
#include "filter.h"
#include "log.h"
#include "loop.h"
#include "util.h"

/* ---- capabilities ---- */

/* What a running server of root may be asked for.  A server of another user has none of them. */
static const unsigned kept[] = {
	CAP_DAC_OVERRIDE,	/* exports that come later may belong to any user */
	CAP_DAC_READ_SEARCH,
	CAP_FOWNER,		/* a dead socket in a sticky directory is replaced */
	CAP_IPC_LOCK,		/* memory of new paths is registered */
	CAP_NET_BIND_SERVICE,	/* a reload may bring an address */
	CAP_SYS_NICE,		/* requests of real-time priority */
	CAP_SYS_PTRACE,		/* who has a locked file open */
};

/* @kept and what the exports of @conf need as long as they live.  An export that comes later finds
 * no more: a capability that was given up does not come back. */
static uint64_t needed_capabilities(const struct srv_conf *conf)
{
	uint64_t needed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		needed |= 1ULL << kept[i];
	for (unsigned i = 0; i < conf->nexports; i++)
		needed |= export_spec_capabilities(&conf->exports[i]->spec);
	return needed;
}

static int drop_capabilities(uint64_t needed)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &hdr, data) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		data[i].effective &= (uint32_t)(needed >> (32 * i));
		data[i].permitted &= (uint32_t)(needed >> (32 * i));
		data[i].inheritable = 0;	/* the ambient ones go with these */
	}
	return syscall(SYS_capset, &hdr, data) < 0 ? -errno : 0;
}

int confine_begin(const struct srv_conf *conf)
{
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		rc = -errno;
		log_err(NULL, "cannot set no_new_privs: %s", strerror(-rc));
		return rc;
	}
	rc = drop_capabilities(needed_capabilities(conf));
	if (rc)
		log_err(NULL, "cannot give up capabilities: %s", strerror(-rc));
	return rc;
}

/* ---- system calls ---- */

static struct loop_watch watch;

static bool denied_ready(struct loop_watch *w)
{
	denied_tell(false);
	return false;
}

/* Answer --seccomp=on and log. */
static int filter_calls(enum srv_seccomp how, struct loop *loop)
{
	int rc;

#ifndef HAVE_SECCOMP
	log_err(NULL, "--seccomp=%s: " FILTER_MISSING "; expected off", srv_seccomp_names[how]);
	return -EOPNOTSUPP;
#endif
	rc = denied_open(how == SRV_SECCOMP_LOG, filter_call_name);
	if (rc) {
		log_err(NULL, "cannot open an eventfd: %s", strerror(-rc));
		return rc;
	}
	watch = (struct loop_watch){ .fd = denied_fd(), .events = POLLIN, .ready = denied_ready };
	rc = loop_watch(loop, &watch);
	if (rc) {
		log_err(NULL, "cannot watch denied system calls: %s", strerror(-rc));
		return rc;
	}
	return filter_load(how == SRV_SECCOMP_LOG);
}

int confine_calls(const struct srv_conf *conf, struct loop *loop)
{
	int rc;

	if (conf->seccomp == SRV_SECCOMP_OFF) {
#ifdef HAVE_SECCOMP
		log_info(NULL, "system calls are not filtered: --seccomp=off");
#else
		log_warn(NULL, "system calls are not filtered: " FILTER_MISSING);
#endif
		return 0;
	}
	rc = filter_calls(conf->seccomp, loop);
	if (!rc)
		log_info(NULL, "system calls are filtered: --seccomp=%s",
			 srv_seccomp_names[conf->seccomp]);
	return rc;
}

void confine_unwatch(void)
{
	if (watch.loop)
		loop_unwatch(&watch);
}

void confine_end(void)
{
	denied_tell(true);
	denied_close();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts, and of users.  A question to the resolver has what its call works with
 * (worker.h): the call owns it once the caller has left. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fab-names.h"
#include "fabric.h"
#include "number.h"
#include "process.h"
#include "worker.h"

/* fab_addr_parse_all(), or fab_addr_resolve(). */
typedef int find_fn(const char *text, const struct fab_provider *p, uint16_t port,
		    struct fab_addr *all, unsigned max, char *why, size_t len);

struct question {
	find_fn *find;
	const struct fab_provider *provider;
	uint16_t port;
	int n;				/* addresses, or -errno with @why */
	struct fab_addr all[FAB_ADDRS_MAX];
	char why[256];
	char text[];
};

static _Atomic(unsigned) behind;	/* questions whose callers have left */

static void ask(void *arg)
{
	struct question *q = arg;

	pthread_setname_np(pthread_self(), "rtrs-names");
	q->n = q->find(q->text, q->provider, q->port, q->all, FAB_ADDRS_MAX, q->why,
		       sizeof(q->why));
}

static void answered_late(void *arg)
{
	free(arg);
	atomic_fetch_sub(&behind, 1);
}

static int patience(void *arg, uint64_t ms)
{
	const unsigned *most_ms = arg;
	int rc = end_has_begun() ? -ECANCELED : ms < *most_ms ? 0 : -ETIMEDOUT;

	if (rc)
		atomic_fetch_add(&behind, 1);
	return rc;
}

/* Have @find answer a question about @text, whose answer goes to @all or @err. */
static int answer(find_fn *find, const char *text, const struct fab_provider *p,
		  uint16_t port, struct fab_addr all[FAB_ADDRS_MAX], char *err, size_t errlen)
{
	unsigned nbehind = atomic_load(&behind);
	unsigned most_ms = nbehind ? FAB_NAMES_AGAIN_MS : FAB_NAMES_MS;
	struct question *q = calloc(1, sizeof(*q) + strlen(text) + 1);
	struct aside *call;
	int rc = -ENOMEM;

	if (q) {
		*q = (struct question){ .find = find, .provider = p, .port = port };
		strcpy(q->text, text);
		rc = nbehind < FAB_NAMES_LEFT_MAX ?
		     aside_begin(&call, ask, answered_late, q) : -EBUSY;
	}
	if (rc) {
		snprintf(err, errlen, "cannot ask the resolver: %s", rc == -EBUSY ?
			 "it has not answered others" : threads_strerror(rc));
		free(q);
		return rc;
	}
	rc = aside_wait(call, patience, &most_ms);
	if (rc) {
		snprintf(err, errlen, rc == -ECANCELED ? "the program ends" :
			 "the resolver has not answered for %u s", most_ms / 1000);
		return rc;
	}
	rc = q->n;
	memcpy(all, q->all, sizeof(q->all));
	snprintf(err, errlen, "%s", q->why);
	free(q);
	return rc;
}

int fab_names_find(const char *text, const struct fab_provider *p, uint16_t default_port,
		   struct fab_addr all[FAB_ADDRS_MAX], char *err, size_t errlen)
{
	/* An address needs no resolver. */
	if (!fab_addr_parse_text(text, p, default_port, all, err, errlen) && all->len)
		return 1;
	return answer(fab_addr_parse_all, text, p, default_port, all, err, errlen);
}

int fab_names_resolve(const char *host, const struct fab_provider *p, uint16_t port,
		      struct fab_addr all[FAB_ADDRS_MAX], char *why, size_t len)
{
	/* The addresses of loopback need none either. */
	return host ? answer(fab_addr_resolve, host, p, port, all, why, len) :
		      fab_addr_resolve(NULL, p, port, all, FAB_ADDRS_MAX, why, len);
}

/* ---- users ---- */

int fab_user_parse(const char *text, uid_t *uid)
{
	const struct passwd *pw = getpwnam(text);
	unsigned n;

	if (pw) {
		*uid = pw->pw_uid;
		return 0;
	}
	/* (uid_t)-1 is no user's number. */
	if (!number_parse_u(text, 0, UINT32_MAX - 1, &n))
		return -EINVAL;
	*uid = (uid_t)n;
	return 0;
}

int fab_users_parse(const char *text, struct fab_users *users)
{
	char name[256];
	size_t len;

	users->n = 0;
	for (;;) {
		len = strcspn(text, ",");
		if (len >= sizeof(name) || users->n == FAB_USERS_MAX)
			return -EINVAL;
		memcpy(name, text, len);
		name[len] = '\0';
		if (fab_user_parse(name, &users->uid[users->n]))
			return -EINVAL;
		users->n++;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

bool fab_users_have(const struct fab_users *users, uid_t uid)
{
	for (unsigned i = 0; i < users->n; i++) {
		if (users->uid[i] == uid)
			return true;
	}
	return !users->n && (!uid || uid == geteuid());
}

const char *fab_users_format(const struct fab_users *users, char *buf, size_t len)
{
	size_t n = 0;

	if (!users->n && geteuid())
		snprintf(buf, len, "0 or %u", (unsigned)geteuid());
	else if (!users->n)
		snprintf(buf, len, "0");
	for (unsigned i = 0; i < users->n && n < len; i++)
		n += (size_t)snprintf(buf + n, len - n, "%s%u", i ? " or " : "",
				      (unsigned)users->uid[i]);
	return buf;
}

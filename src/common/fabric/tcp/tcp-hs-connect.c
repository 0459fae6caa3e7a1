/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at a socket of the active side whose connect(2) is over.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp-hs-connect.h"

/* 0 if the listener runs as a user that the cm trusts: any user may have taken the name of an
 * AF_UNIX address. */
static int check_user(const struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	const struct fab_users *servers = &c->base.cm->servers;
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);
	char users[FAB_TLS_WHY_LEN / 2];

	if (!fab_addr_is_unix(&c->base.peer))
		return 0;
	getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (fab_users_have(servers, cred.uid))
		return 0;
	/* Its process may have left the socket to a child, and its number to anybody. */
	snprintf(why, FAB_TLS_WHY_LEN, "user %u listens there, expected user %s (server-uid)",
		 (unsigned)cred.uid, fab_users_format(servers, users, sizeof(users)));
	return -ECONNABORTED;
}

/* Note our own address. */
static int note_local(struct tcp_conn *c)
{
	struct fab_addr *local = &c->base.local;

	local->len = sizeof(local->ss);
	if (getsockname(c->fd, (struct sockaddr *)&local->ss, &local->len))
		return -errno;
	local->pid = getpid();
	local->uid = geteuid();
	return 0;
}

int tcp_hs_connected(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	socklen_t len = sizeof(int);
	int err = 0, rc;

	*why = '\0';
	rc = getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : -err;
	if (!rc)
		rc = check_user(c, why);
	if (!rc)
		rc = note_local(c);
	if (rc && !*why)
		snprintf(why, FAB_TLS_WHY_LEN, "%s", strerror(-rc));
	return rc;
}

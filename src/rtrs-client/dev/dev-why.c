/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  The words name the parameter to change, or the command that says more. */
#include <errno.h>
#include <string.h>

#include "dev-why.h"

/* Of a server that gives no reason: an older one, or a kernel's. */
static const char *why_errno(int status)
{
	switch (status) {
	case -EPERM:
		return "open for writing by another session, which the server's log names (mode=ro "
		       "or mode=migration would share it)";
	case -EROFS: case -EACCES:
		return "read-only on the server (mode=auto or mode=ro would take it)";
	case -ENOENT:
		return "the server has no such export for this client";
	case -EMEDIUMTYPE:
		return "shrunk while other clients here have it open";
	case -EAGAIN: case -ENODEV:
		return "the server cannot open its storage now (\"rtrsctl doctor\" there says why)";
	case -ECONNABORTED:
		return "the server was lost";
	default:
		return strerror(-status);
	}
}

const char *dev_why(int status, enum rnbd_refusal refusal)
{
	switch (refusal) {
	case RNBD_REFUSES_READ_ONLY:
		return "read-only on the server, for all clients (mode=auto or mode=ro would take "
		       "it)";
	case RNBD_REFUSES_READER:
		return "read-only on the server for this client, which its read-only= names "
		       "(mode=auto or mode=ro would take it)";
	case RNBD_REFUSES_WRITER:
		return "open for writing by another session, which \"rtrsctl clients\" at the "
		       "server names (mode=ro or mode=migration would share it)";
	case RNBD_REFUSES_CLOSING:
		return "requests of a client that had it open are still in the server's storage "
		       "(try again when they have ended)";
	case RNBD_REFUSES_OPENING:
		return "the server is still opening its storage, or taking its lock from another "
		       "server (try again)";
	case RNBD_REFUSES_LOCKED:
		return "another server keeps the lock of its storage (\"rtrsctl export break\" at "
		       "this server takes the lock from a dead one)";
	case RNBD_REFUSES_NOT: case RNBD_NREFUSALS:
		break;
	}
	return why_errno(status);
}

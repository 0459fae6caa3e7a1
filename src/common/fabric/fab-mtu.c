/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  TCP knows the MTU of a way from the route, and from routers that sent a packet
 * back. */
#include <config.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "fabric.h"

/* Headers of IP and TCP; a segment of TCP_INFO is without options. */
#define HEADERS_V4 40u
#define HEADERS_V6 60u
#define TIMESTAMPS 12u
/* TCP sends at most half of the peer's window in a segment, whatever the MTU.  That is less than
 * the MTU on loopback alone, and says nothing of the peer's. */
#define WINDOW_BOUND 16384u

void fab_mtu_of_socket(int fd, struct fab_mtu *mtu)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	struct tcp_info info;

	*mtu = (struct fab_mtu){ 0 };
	if (getsockname(fd, (struct sockaddr *)&local, &len))
		return;
	len = sizeof(info);
	/* A unix socket has no option of TCP. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    info.tcpi_state != TCP_ESTABLISHED)
		return;
	mtu->path = info.tcpi_pmtu;
	mtu->sent = info.tcpi_snd_mss + (local.ss_family == AF_INET6 ? HEADERS_V6 : HEADERS_V4);
	if (info.tcpi_options & TCPI_OPT_TIMESTAMPS)
		mtu->sent += TIMESTAMPS;
	if (mtu->path > WINDOW_BOUND)
		mtu->sent = mtu->path;
}

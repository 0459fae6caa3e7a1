/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolve 127.0.0.1 with getaddrinfo(3) and with rdma_getaddrinfo(3), for a connection to it and
 * for listening at it. */
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

static void rdma(const char *what, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *res;
	int r = rdma_getaddrinfo("127.0.0.1", "1234", &hints, &res);

	printf("%s: %s\n", what, r ? strerror(errno) : "resolved");
	if (!r)
		rdma_freeaddrinfo(res);
}

int main(void)
{
	struct addrinfo *res;
	int r = getaddrinfo("127.0.0.1", "1234", NULL, &res);

	printf("getaddrinfo: %s\n", r ? gai_strerror(r) : "resolved");
	if (!r)
		freeaddrinfo(res);
	rdma("rdma_getaddrinfo", 0);
	rdma("passive", RAI_PASSIVE);
	rdma("numeric", RAI_NUMERICHOST);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry to the providers: makes the checks common to all and calls through, but for IO
 * (fab-provider.h).  Owns the table of providers, which is complete before any thread starts.
 * Threads and errors as fabric.h says. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fab-tls.h"
#include "fabric.h"

#define FAB_PROVIDERS_MAX 4
#define SILENCE_MS 30000		/* fab_cm_conf.silence_ms */

static const struct fab_provider *providers[FAB_PROVIDERS_MAX] = {
	&fab_tcp,
#ifdef HAVE_RDMA
	&fab_verbs,
#endif
};

const struct fab_provider *fab_provider_find(const char *name)
{
	for (unsigned i = 0; i < FAB_PROVIDERS_MAX && providers[i]; i++) {
		if (strcmp(providers[i]->name, name) == 0)
			return providers[i];
	}
	return NULL;
}

const char *fab_provider_name(const struct fab_provider *p)
{
	return p->name;
}

bool fab_provider_has_tls(const struct fab_provider *p)
{
	return p->tls;
}

void fab_provider_register(const struct fab_provider *p)
{
	unsigned i = 0;

	while (i < FAB_PROVIDERS_MAX && providers[i])
		i++;
	assert(i < FAB_PROVIDERS_MAX);
	providers[i] = p;
}

int fab_cm_create(const struct fab_cm_conf *conf, struct fab_cm **cm)
{
	int rc;

	assert(conf->refusal_len <= sizeof((*cm)->refusal));
	if (fab_tls_mode(conf->tls) == FAB_TLS_REQUIRE && !conf->tls->spares_rdma &&
	    !conf->provider->tls)
		return -EPROTONOSUPPORT;
	rc = conf->provider->cm_create(cm);
	if (rc)
		return rc;
	(*cm)->ops = conf->provider;
	(*cm)->admit = conf->admit;
	(*cm)->refused = conf->refused;
	(*cm)->admit_arg = conf->admit_arg;
	if (conf->refusal)
		memcpy((*cm)->refusal, conf->refusal, conf->refusal_len);
	(*cm)->tells_pushed_out = conf->pushed_out;
	if (conf->pushed_out)
		memcpy((*cm)->pushed_out, conf->pushed_out, conf->refusal_len);
	(*cm)->refusal_len = conf->refusal_len;
	(*cm)->seal = conf->seal;
	(*cm)->servers = conf->servers;
	(*cm)->tls = conf->tls;
	fab_cm_set_silence(*cm, conf->silence_ms);
	return 0;
}

void fab_cm_set_silence(struct fab_cm *cm, unsigned silence_ms)
{
	cm->silence_ms = silence_ms ? silence_ms : SILENCE_MS;
}

void fab_cm_destroy(struct fab_cm *cm)
{
	if (cm)
		cm->ops->cm_destroy(cm);
}

int fab_cm_fd(const struct fab_cm *cm)
{
	return cm->fd;
}

int fab_cm_get_event(struct fab_cm *cm, struct fab_event *ev)
{
	return cm->ops->cm_get_event(cm, ev);
}

int fab_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **l)
{
	if (addr->len == 0 || addr->provider != cm->ops)
		return -EINVAL;
	return cm->ops->listen(cm, addr, l);
}

void fab_listener_addr(const struct fab_listener *l, struct fab_addr *addr)
{
	*addr = l->addr;
}

int fab_listener_query_device(const struct fab_listener *l, struct fab_device_attr *attr)
{
	int rc = l->ops->listener_query_device(l, attr);

	if (!rc && l->ops->mw_zero_based)
		attr->caps |= FAB_CAP_MW_ZERO_BASED;
	return rc;
}

void fab_listener_destroy(struct fab_listener *l)
{
	if (l)
		l->ops->listener_destroy(l);
}

int fab_conn_create(struct fab_cm *cm, void *context, struct fab_conn **conn)
{
	int rc = cm->ops->conn_create(cm, conn);

	if (!rc)
		(*conn)->context = context;
	return rc;
}

void fab_conn_set_context(struct fab_conn *conn, void *context)
{
	conn->context = context;
}

void fab_conn_identity(const struct fab_conn *conn, struct fab_identity *id)
{
	*id = (struct fab_identity){ 0 };
	if (conn->ops->identity)
		conn->ops->identity(conn, id);
}

void fab_conn_mtu(const struct fab_conn *conn, struct fab_mtu *mtu)
{
	*mtu = (struct fab_mtu){ 0 };
	if (conn->ops->mtu)
		conn->ops->mtu(conn, mtu);
}

bool fab_conn_unheard(const struct fab_conn *conn)
{
	return conn->ops->unheard && conn->ops->unheard(conn);
}

bool fab_conn_trusted(const struct fab_conn *conn)
{
	return !conn->ops->trusted || conn->ops->trusted(conn);
}

bool fab_conn_binding(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN])
{
	memset(out, 0, FAB_BINDING_LEN);
	return conn->ops->binding && conn->ops->binding(conn, out);
}

void fab_conn_destroy(struct fab_conn *conn)
{
	if (conn)
		conn->ops->conn_destroy(conn);
}

int fab_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst)
{
	if (src && src->len == 0)
		src = NULL;
	if (dst->len == 0 || (src && src->ss.ss_family != dst->ss.ss_family))
		return -EINVAL;
	return conn->ops->resolve(conn, src, dst);
}

int fab_query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	int rc = conn->ops->query_device(conn, attr);

	if (!rc && conn->ops->mw_zero_based)
		attr->caps |= FAB_CAP_MW_ZERO_BASED;
	return rc;
}

int fab_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr)
{
	struct fab_device_attr dev;
	int rc;

	rc = conn->ops->query_device(conn, &dev);
	if (rc)
		return rc;
	if (pd->ops != conn->ops || attr->max_send_wr == 0 || attr->max_recv_wr == 0 ||
	    attr->max_send_sge == 0 || attr->max_send_wr > dev.max_qp_wr ||
	    attr->max_recv_wr > dev.max_qp_wr || attr->max_send_sge > dev.max_sge)
		return -EINVAL;
	return conn->ops->create_qp(conn, pd, attr);
}

size_t fab_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr)
{
	return conn->ops->qp_memory ? conn->ops->qp_memory(conn, attr) : 0;
}

__attribute__((format(printf, 2, 3)))
static void note_cause(struct fab_conn *conn, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fab_conn_note_cause(conn, fmt, ap);
	va_end(ap);
}

int fab_conn_seal(struct fab_conn *conn, void *data, size_t len)
{
	const char *why = conn->cm->seal ? conn->cm->seal(conn, data, len) : NULL;

	if (!why)
		return 0;
	note_cause(conn, "%s", why);
	return -EACCES;
}

int fab_connect(struct fab_conn *conn, const void *private_data, size_t len)
{
	uint8_t data[FAB_CONNECT_DATA_MAX];
	int rc = 0;

	if (len > sizeof(data))
		return -EINVAL;
	if (len)
		memcpy(data, private_data, len);
	if (!conn->ops->tls)
		rc = fab_conn_seal(conn, data, len);
	return rc ? rc : conn->ops->connect(conn, data, len);
}

int fab_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	if (len > FAB_PRIVATE_DATA_MAX)
		return -EINVAL;
	return conn->ops->accept(conn, private_data, len);
}

void fab_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	assert(len <= FAB_REJECT_DATA_MAX);
	conn->ops->reject(conn, private_data, len);
}

void fab_conn_addrs(const struct fab_conn *conn, struct fab_addr *local, struct fab_addr *peer)
{
	if (local)
		*local = conn->local;
	if (peer)
		*peer = conn->peer;
}

int fab_pd_create(struct fab_conn *conn, struct fab_pd **pd)
{
	return conn->ops->pd_create(conn, pd);
}

void fab_pd_destroy(struct fab_pd *pd)
{
	if (pd)
		pd->ops->pd_destroy(pd);
}

bool fab_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey)
{
	*lkey = pd->dma_lkey;
	return pd->dma_lkey != 0;
}

void fab_disconnect(struct fab_conn *conn)
{
	conn->ops->disconnect(conn, "disconnected");
}

const char *fab_conn_cause(const struct fab_conn *conn)
{
	return atomic_load_explicit(&conn->cause_state, memory_order_acquire) == 2 ?
		conn->cause : "";
}

bool fab_conn_claim_cause(struct fab_conn *conn, const char *fmt, va_list ap)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&conn->cause_state, &none, 1))
		return false;
	vsnprintf(conn->cause, sizeof(conn->cause), fmt, ap);
	return true;
}

void fab_conn_tell_cause(struct fab_conn *conn)
{
	atomic_store_explicit(&conn->cause_state, 2, memory_order_release);
}

void fab_conn_note_cause(struct fab_conn *conn, const char *fmt, va_list ap)
{
	if (fab_conn_claim_cause(conn, fmt, ap))
		fab_conn_tell_cause(conn);
}

/* ---- the MTU of a way ----
 *
 * TCP knows it from the route, and from routers that sent a packet back. */

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

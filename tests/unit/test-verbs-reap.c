/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that take long to let go of a queue pair: nobody waits for them but their own threads,
 * and what is destroyed behind the queue pair follows in order.  Devices and librdmacm stand here
 * in their places. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "clock.h"
#include "fabric.h"
#include "log.h"

static _Atomic uint64_t now_ms = 1;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

uint64_t clock_now_ns(void)
{
	return now_ms * 1000000;
}

/* ---- mutexes: only who holds one gives it back ---- */

int __real_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	pthread_mutexattr_t checks;

	cr_assert_null(attr);
	pthread_mutexattr_init(&checks);
	pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK);
	return __real_pthread_mutex_init(m, &checks);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (__real_pthread_mutex_unlock(m))
		abort();
	return 0;
}

/* ---- what is destroyed, in order ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char done[400];			/* "qp0 cq0 id0 mr0 ..." */
static bool slow[2];			/* device: destroys no queue pair yet */
static unsigned waiting[2];		/* device: queue pairs that are being destroyed */
static bool slow_id;			/* librdmacm destroys no id yet */
static unsigned ids_waiting;

static void note(const char *what, unsigned n)
{
	pthread_mutex_lock(&lock);
	snprintf(done + strlen(done), sizeof(done) - strlen(done), "%s%u ", what, n);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static bool has(const char *what)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = strstr(done, what);
	pthread_mutex_unlock(&lock);
	return is;
}

static void wait_for(const char *what)
{
	pthread_mutex_lock(&lock);
	while (!strstr(done, what))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void expect_done(const char *want)
{
	pthread_mutex_lock(&lock);
	cr_assert_str_eq(done, want);
	pthread_mutex_unlock(&lock);
}

static void be_slow(unsigned n, bool is)
{
	pthread_mutex_lock(&lock);
	slow[n] = is;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* Until the thread of device @n is in the device. */
static void wait_until_stuck(unsigned n)
{
	pthread_mutex_lock(&lock);
	while (!waiting[n])
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- devices ---- */

static struct ibv_device hw[2];
static struct ibv_context devices[2];
static struct ibv_comp_channel comp_channels[2];
static struct ibv_pd pds[2];
static struct ibv_mr mrs[2];
static struct ibv_cq cqs[2];
static struct ibv_qp qps[2];
static bool flushed[2];			/* the marker, of a queue pair in error */
static uint64_t marker[2];

static unsigned number(const struct ibv_context *context)
{
	return (unsigned)(context - devices);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){ .max_qp_wr = 64, .max_cqe = 1000, .max_sge = 4 };
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = &pds[number(context)];

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	note("pd", number(pd->context));
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *mr = &mrs[number(pd->context)];

	*mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length };
	return mr;
}

struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	note("mr", number(mr->context));
	return 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = calloc(1, sizeof(*mw));

	*mw = (struct ibv_mw){ .context = pd->context, .pd = pd, .type = type, .rkey = 0x100 };
	return mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	note("mw", number(mw->context));
	free(mw);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *c = &comp_channels[number(context)];

	c->fd = dup(STDERR_FILENO);
	return c;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	close(c->fd);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *c, int vector)
{
	struct ibv_cq *cq = &cqs[number(context)];

	cq->context = context;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	note("cq", number(cq->context));
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	unsigned i = number(cq->context);

	if (!flushed[i])
		return 0;
	flushed[i] = false;
	*wc = (struct ibv_wc){ .wr_id = marker[i], .status = IBV_WC_WR_FLUSH_ERR };
	return 1;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	marker[number(qp->context)] = wr->wr_id;
	flushed[number(qp->context)] = true;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	id->qp = &qps[number(id->verbs)];
	id->qp->context = id->verbs;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	unsigned n = number(qp->context);

	pthread_mutex_lock(&lock);
	waiting[n]++;
	pthread_cond_broadcast(&changed);
	while (slow[n])
		pthread_cond_wait(&changed, &lock);
	waiting[n]--;
	pthread_mutex_unlock(&lock);
	note("qp", n);
	return 0;
}

/* ---- librdmacm ---- */

static struct rdma_event_channel channel;
static struct rdma_cm_id *made;		/* the last id */
static struct rdma_cm_event *next;
static int pipe_fds[2];

struct rdma_event_channel *rdma_create_event_channel(void)
{
	channel.fd = pipe_fds[0];
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	note("cm", 0);
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	made = calloc(1, sizeof(*made));
	made->context = context;
	made->route.addr.src_addr.sa_family = AF_INET;
	*id = made;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	ids_waiting++;
	pthread_cond_broadcast(&changed);
	while (slow_id)
		pthread_cond_wait(&changed, &lock);
	ids_waiting--;
	pthread_mutex_unlock(&lock);
	note("id", number(id->verbs));
	free(id);
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **event)
{
	*event = next;
	next = NULL;
	errno = EAGAIN;
	return *event ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return 0;
}

/* ---- paths over them ---- */

#define DRAIN_MS 10000			/* VERBS_DRAIN_MS */

static struct fab_cm *cm;
static char memory[4096];

static void setup(void)
{
	cr_assert_eq(pipe(pipe_fds), 0);
	for (unsigned n = 0; n < 2; n++) {
		devices[n].device = &hw[n];
		devices[n].async_fd = pipe_fds[1];
		devices[n].ops.poll_cq = poll_cq;
		devices[n].ops.post_send = post_send;
		devices[n].ops.alloc_mw = alloc_mw;
		devices[n].ops.dealloc_mw = dealloc_mw;
	}
	cr_assert_eq(fab_cm_create(&(struct fab_cm_conf){ .provider = fab_provider_find("rdma") },
				   &cm), 0);
}

TestSuite(verbs_reap, .init = setup, .timeout = 60);

static void tell(enum rdma_cm_event_type type, enum fab_event_type want)
{
	struct rdma_cm_event e = { .id = made, .event = type };
	struct fab_event ev;

	next = &e;
	cr_assert_eq(fab_cm_get_event(cm, &ev), 1);
	cr_assert_eq(ev.type, want);
}

/* The device of the last id is gone: nobody is told, for its connection is destroyed. */
static void tell_removed(void)
{
	struct rdma_cm_event e = { .id = made, .event = RDMA_CM_EVENT_DEVICE_REMOVAL };
	struct fab_event ev;

	next = &e;
	cr_assert_eq(fab_cm_get_event(cm, &ev), 0);
}

/* A connection that may have queues of device @n. */
static struct fab_conn *resolved(unsigned n)
{
	struct fab_addr dst = { .provider = fab_provider_find("rdma"),
				.len = sizeof(struct sockaddr_in) };
	struct fab_conn *conn;

	dst.ss.ss_family = AF_INET;
	cr_assert_eq(fab_conn_create(cm, NULL, &conn), 0);
	cr_assert_eq(fab_resolve(conn, NULL, &dst), 0);
	made->verbs = &devices[n];
	tell(RDMA_CM_EVENT_ROUTE_RESOLVED, FAB_EVENT_ROUTE_RESOLVED);
	return conn;
}

static int create_qp(struct fab_conn *conn, struct fab_pd *pd)
{
	return fab_create_qp(conn, pd, &(struct fab_qp_attr){ 8, 8, 1 });
}

/* A connection over device @n, in @pd, or in a pd that is made. */
static struct fab_conn *connection(unsigned n, struct fab_pd **pd)
{
	struct fab_conn *conn = resolved(n);

	if (!*pd)
		cr_assert_eq(fab_pd_create(conn, pd), 0);
	cr_assert_eq(create_qp(conn, *pd), 0);
	cr_assert_eq(fab_connect(conn, NULL, 0), 0);
	tell(RDMA_CM_EVENT_ESTABLISHED, FAB_EVENT_ESTABLISHED);
	return conn;
}

static void drain(struct fab_conn *conn)
{
	struct ibv_wc wc;

	fab_disconnect(conn);
	while (fab_poll(conn, &wc, 1) != -ENOTCONN)
		;
}

static struct ibv_mr *region(struct fab_pd *pd)
{
	struct ibv_mr *mr = fab_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	cr_assert_not_null(mr);
	return mr;
}

/* ---- tests ---- */

/* The whole end of a path and of its cm, while the device keeps the queue pair. */
Test(verbs_reap, nobody_waits_for_a_slow_device)
{
	struct fab_pd *pd = NULL;
	struct fab_conn *conn = connection(0, &pd);
	struct ibv_mr *mr = region(pd);
	struct ibv_mw *mw = fab_alloc_mw(pd, IBV_MW_TYPE_2);

	drain(conn);
	be_slow(0, true);
	fab_conn_destroy(conn);
	wait_until_stuck(0);
	cr_assert_eq(fab_dealloc_mw(mw), 0);
	fab_dereg_mr(mr);
	fab_pd_destroy(pd);
	fab_cm_destroy(cm);
	expect_done("");
	be_slow(0, false);
	wait_for("cm0");
	/* The id stays with the record of the device, until the cm ends. */
	expect_done("qp0 cq0 mw0 mr0 pd0 id0 cm0 ");
}

/* Memory of such a connection may be written as long as its queue pair is there. */
Test(verbs_reap, what_has_not_drained_is_destroyed_at_once)
{
	struct fab_pd *pd = NULL;
	struct fab_conn *conn = connection(0, &pd);
	struct ibv_mr *mr = region(pd);

	fab_disconnect(conn);
	fab_conn_destroy(conn);
	expect_done("qp0 cq0 ");
	fab_dereg_mr(mr);
	fab_pd_destroy(pd);
	fab_cm_destroy(cm);
	expect_done("qp0 cq0 mr0 pd0 id0 cm0 ");
}

/* A region whose key is given to a peer of another connection is closed when the call returns. */
Test(verbs_reap, a_region_of_living_connections_does_not_follow)
{
	struct fab_pd *pd = NULL;
	struct fab_conn *ends = connection(0, &pd), *lives = connection(0, &pd);
	struct ibv_mr *mr = region(pd);

	drain(ends);
	be_slow(0, true);
	fab_conn_destroy(ends);
	wait_until_stuck(0);
	fab_dereg_mr(mr);
	expect_done("mr0 ");
	be_slow(0, false);
	drain(lives);
	fab_conn_destroy(lives);
	fab_pd_destroy(pd);
	fab_cm_destroy(cm);
	wait_for("cm0");
}

Test(verbs_reap, no_device_waits_for_another_one)
{
	struct fab_pd *pd[2] = { NULL, NULL };
	struct fab_conn *conn[2] = { connection(0, &pd[0]), connection(1, &pd[1]) };

	drain(conn[0]);
	drain(conn[1]);
	be_slow(0, true);
	fab_conn_destroy(conn[0]);
	wait_until_stuck(0);
	fab_pd_destroy(pd[0]);
	fab_conn_destroy(conn[1]);
	fab_pd_destroy(pd[1]);
	wait_for("pd1");
	cr_assert(!has("qp0"));
	fab_cm_destroy(cm);
	cr_assert(!has("cm0"));
	be_slow(0, false);
	wait_for("cm0");
	cr_assert(has("pd0 "));
}

/* Another path uses the device while it keeps the queue pair of an earlier one. */
Test(verbs_reap, the_next_path_does_not_wait)
{
	struct fab_pd *old = NULL, *pd = NULL;
	struct fab_conn *conn = connection(0, &old);

	drain(conn);
	be_slow(0, true);
	fab_conn_destroy(conn);
	fab_pd_destroy(old);
	wait_until_stuck(0);
	conn = connection(0, &pd);
	drain(conn);
	fab_conn_destroy(conn);
	fab_pd_destroy(pd);
	expect_done("");
	be_slow(0, false);
	fab_cm_destroy(cm);
	wait_for("cm0");
}

/* rdma_get_cm_event() of the cm's thread moves the queue pair of an id along: not one that another
 * thread destroys. */
Test(verbs_reap, librdmacm_has_no_queue_pair_that_is_being_destroyed)
{
	struct fab_pd *pd = NULL;
	struct fab_conn *conn = connection(0, &pd);

	drain(conn);
	cr_assert_not_null(made->qp);
	be_slow(0, true);
	fab_conn_destroy(conn);
	wait_until_stuck(0);
	cr_assert_null(made->qp);
	be_slow(0, false);
	fab_pd_destroy(pd);
	fab_cm_destroy(cm);
	wait_for("cm0");
}

/* The last id of a removed device needs the channel of the cm. */
Test(verbs_reap, a_cm_outlives_the_id_of_a_removed_device)
{
	struct fab_pd *pd = NULL;
	struct fab_conn *conn = connection(0, &pd);

	drain(conn);
	be_slow(0, true);
	fab_conn_destroy(conn);
	fab_pd_destroy(pd);
	wait_until_stuck(0);
	tell_removed();
	slow_id = true;
	be_slow(0, false);
	pthread_mutex_lock(&lock);
	while (!ids_waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	fab_cm_destroy(cm);
	expect_done("qp0 cq0 pd0 ");
	pthread_mutex_lock(&lock);
	slow_id = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	wait_for("cm0");
	expect_done("qp0 cq0 pd0 id0 cm0 ");
}

/* The kernel waits until the device is closed, which librdmacm does behind the last id. */
Test(verbs_reap, an_idle_device_that_goes_has_no_id)
{
	struct fab_pd *pd = NULL;

	fab_conn_destroy(connection(0, &pd));
	fab_pd_destroy(pd);
	expect_done("qp0 cq0 pd0 ");
	tell_removed();
	expect_done("qp0 cq0 pd0 id0 ");
	fab_cm_destroy(cm);
	expect_done("qp0 cq0 pd0 id0 cm0 ");
}

/* The record of a device that is gone is not for the next one at its address. */
Test(verbs_reap, a_device_that_comes_back)
{
	struct fab_conn *conn = resolved(0);

	tell(RDMA_CM_EVENT_DEVICE_REMOVAL, FAB_EVENT_UNREACHABLE);
	fab_conn_destroy(conn);
	expect_done("id0 ");
	fab_conn_destroy(resolved(0));
	expect_done("id0 ");
	fab_cm_destroy(cm);
	expect_done("id0 id0 cm0 ");
}

/* The thread of a device belongs to the cm of the pd, which waits for it. */
Test(verbs_reap, a_pd_is_for_connections_of_its_cm)
{
	struct fab_cm *first = cm;
	struct fab_pd *pd = NULL;
	struct fab_conn *conn = connection(0, &pd), *other;

	cr_assert_eq(create_qp(conn, pd), -EINVAL);
	cr_assert_eq(fab_cm_create(&(struct fab_cm_conf){ .provider = fab_provider_find("rdma") },
				   &cm), 0);
	other = resolved(0);
	cr_assert_eq(create_qp(other, pd), -EINVAL);
	fab_conn_destroy(other);
	fab_cm_destroy(cm);
	fab_conn_destroy(conn);
	fab_pd_destroy(pd);
	fab_cm_destroy(first);
}

Test(verbs_reap, a_pd_needs_a_device)
{
	struct fab_conn *conn;
	struct fab_pd *pd;

	cr_assert_eq(fab_conn_create(cm, NULL, &conn), 0);
	cr_assert_eq(fab_pd_create(conn, &pd), -EINVAL);
	fab_conn_destroy(conn);
	conn = resolved(0);
	cr_assert_eq(fab_pd_create(conn, &pd), 0);
	cr_assert(fcntl(devices[0].async_fd, F_GETFL) & O_NONBLOCK, "verbs_dev_events() reads");
	fab_pd_destroy(pd);
	fab_conn_destroy(conn);
	fab_cm_destroy(cm);
}

/* Memory that paths leave behind has a bound: no further one comes, until the device goes on. */
Test(verbs_reap, a_device_that_stands_still_takes_no_path)
{
	struct fab_pd *pds_of[3] = { NULL, NULL, NULL };
	struct fab_conn *conn = connection(0, &pds_of[0]), *other = connection(0, &pds_of[1]);

	drain(conn);
	be_slow(0, true);
	fab_conn_destroy(conn);
	wait_until_stuck(0);
	now_ms += DRAIN_MS - 1;
	cr_assert_eq(fab_pd_create(other, &pds_of[2]), 0);
	fab_pd_destroy(pds_of[2]);
	now_ms++;
	cr_assert_eq(fab_pd_create(other, &pds_of[2]), -EBUSY);
	now_ms += 3 * DRAIN_MS;
	cr_assert_eq(fab_pd_create(other, &pds_of[2]), -EBUSY);
	be_slow(0, false);
	wait_for("cq0");
	fab_pd_destroy(pds_of[0]);
	while (fab_pd_create(other, &pds_of[2]) == -EBUSY)
		;			/* the thread has yet to say that it is done */
	fab_pd_destroy(pds_of[2]);
	drain(other);
	fab_conn_destroy(other);
	fab_pd_destroy(pds_of[1]);
	fab_cm_destroy(cm);
	wait_for("cm0");
}

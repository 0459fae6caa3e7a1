/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection of the verbs provider fails and drains, over a device that does what a test
 * says: refuse a post, report a failure, forget its queues, be gone; and what of windows gets
 * through to it.  verbs-conn.c, verbs-post.c, verbs-poll.c, verbs-mw.c, fab-mem.c and fabric.c
 * are all that is real here. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "clock.h"
#include "fsm-rules.h"
#include "log.h"
#include "verbs-priv.h"

#define ROOM 512

/* ---- the device ---- */

static struct ibv_device hw;
static struct ibv_context device = { .device = &hw };
static struct ibv_comp_channel channel = { .context = &device };
static struct ibv_cq cq = { .context = &device };
static struct ibv_qp qp = { .context = &device };
static struct rdma_cm_id id = { .verbs = &device };
static struct ibv_pd hw_pd = { .context = &device };
static struct verbs_cm cm;
static struct verbs_pd pd = { .cm = &cm };

static struct ibv_wc wcs[ROOM];		/* completions to be polled */
static unsigned nwcs;
static uint64_t posted[ROOM];		/* in the queues */
static unsigned nposted;
static unsigned refuse_after;		/* posts of requests until one is refused */
static bool mute;			/* flushes nothing */
static int refusal;			/* of windows, by a device that offers them: errno */
static bool keeps_key;			/* a window of type 1 has the key that it had */
static bool broken_cq, removed, no_memory, in_error;
static unsigned destroyed;
static bool keeps_qp;			/* refuses to destroy it */
static bool freed_qp;
static uint64_t last_flush;		/* comes while the queue pair is being destroyed; 0: none */
static uint64_t now_ms = 1;
static char lines[1000];		/* of the log */
static unsigned notifies, event_reads;	/* system calls of verbs_poll_arm() */
static int pipe_fds[2];
static unsigned nchannels, ncqs;	/* that the device has */

uint64_t clock_now_ms(void)
{
	return now_ms;
}

uint64_t clock_now_ns(void)
{
	return now_ms * 1000000;
}

static void keep_line(enum log_level level, const char *line)
{
	cr_assert_lt(strlen(lines) + strlen(line), sizeof(lines));
	strcat(lines, line);
}

/* What verbs-conn.c gets (the compiler is told so); it only ever doubles. */
void *fake_realloc(void *p, size_t n)
{
	void *to = no_memory ? NULL : malloc(n);

	if (to && p) {
		memcpy(to, p, n / 2);
		free(p);
	}
	return to;
}

static void complete(uint64_t wr_id, enum ibv_wc_status status)
{
	cr_assert_lt(nwcs, ROOM);
	wcs[nwcs++] = (struct ibv_wc){ .wr_id = wr_id, .status = status };
}

static void flush_posted(void)
{
	if (mute)
		return;
	for (unsigned i = 0; i < nposted; i++)
		complete(posted[i], IBV_WC_WR_FLUSH_ERR);
	nposted = 0;
}

static bool post(uint64_t wr_id)
{
	if (!refuse_after)
		return false;
	refuse_after--;
	posted[nposted++] = wr_id;
	return true;
}

static uint32_t inline_room = 256;	/* the device has so much, and refuses more */
static unsigned flags_of[ROOM], nflags;	/* of the requests that it was given */
static char calls[400];			/* what it was asked to do, a bracket for each call */

static void call(const char *word)
{
	cr_assert_lt(strlen(calls) + strlen(word), sizeof(calls));
	strcat(calls, word);
}

static const char *word_of(const struct ibv_send_wr *wr)
{
	/* A library may look at these. */
	if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV)
		cr_assert(!wr->sg_list && !wr->num_sge);
	if (wr->opcode == IBV_WR_BIND_MW) {
		cr_assert_eq(wr->imm_data, 0);
		cr_assert_neq(wr->bind_mw.mw->rkey, wr->bind_mw.rkey);
		cr_assert_eq(wr->bind_mw.mw->type, IBV_MW_TYPE_2);
	}
	return wr->opcode == IBV_WR_BIND_MW ? " bind-2" : wr->opcode == IBV_WR_LOCAL_INV ? " inv" :
		" send";
}

static int bell_error;		/* of the call that tells the device of what is in the queue */

static int post_send(struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (struct ibv_send_wr *w = in_error ? NULL : wr; w; w = w->next) {
		cr_assert_lt(nflags, ROOM);
		flags_of[nflags++] = w->send_flags;
		call(w == wr ? "[" : "");
		call(word_of(w));
		call(w->next ? "" : " ]");
	}
	for (*bad = wr; *bad; *bad = (*bad)->next) {
		if (refusal && (*bad)->opcode == IBV_WR_BIND_MW)
			return refusal;
		if (!in_error && !post((*bad)->wr_id))
			return ENOMEM;
		if (in_error && !mute)
			complete((*bad)->wr_id, IBV_WC_WR_FLUSH_ERR);
	}
	return bell_error;
}

static int post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (*bad = wr; *bad; *bad = (*bad)->next) {
		if (!post((*bad)->wr_id))
			return -ENOMEM;	/* as siw */
	}
	return 0;
}

static uint32_t next_rkey = 0x4200;

static struct ibv_mw *alloc_mw(struct ibv_pd *p, enum ibv_mw_type type)
{
	struct ibv_mw *mw = calloc(1, sizeof(*mw));

	/* All in one bucket. */
	*mw = (struct ibv_mw){ .context = &device, .pd = p, .type = type, .rkey = next_rkey };
	next_rkey += 64 << 8;
	return mw;
}

/* As the drivers: what was not given back is still theirs. */
static struct ibv_mw *kept[2];

static int dealloc_mw(struct ibv_mw *mw)
{
	if (removed) {
		kept[kept[0] ? 1 : 0] = mw;
		return EIO;
	}
	free(mw);
	return 0;
}

static int bind_mw(struct ibv_qp *q, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	cr_assert(bind->bind_info.mr);
	call("[ bind-1 ]");
	if (refusal)
		return refusal;
	if (keeps_key)
		return 0;
	if (!post(bind->wr_id))
		return ENOMEM;
	mw->rkey = ibv_inc_rkey(mw->rkey);
	return 0;
}

static int poll_cq(struct ibv_cq *q, int n, struct ibv_wc *wc)
{
	int got = 0;

	if (broken_cq)
		return -1;
	while (got < n && (unsigned)got < nwcs) {
		wc[got] = wcs[got];
		got++;
	}
	nwcs -= (unsigned)got;
	memmove(wcs, wcs + got, nwcs * sizeof(*wcs));
	return got;
}

static int req_notify_cq(struct ibv_cq *q, int solicited)
{
	notifies++;
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	channel.fd = pipe_fds[0];
	nchannels++;
	return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	cr_assert_eq(ncqs, 0, "would be refused");
	nchannels--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *c, int vector)
{
	cr_assert(cqe == 137 && c == &channel);
	ncqs++;
	return &cq;
}

int ibv_destroy_cq(struct ibv_cq *q)
{
	ncqs--;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **q, void **context)
{
	event_reads++;
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *q, unsigned int n)
{
}

int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	cr_assert_eq(attr->qp_state, IBV_QPS_ERR);
	in_error = true;
	flush_posted();
	return 0;
}

int ibv_query_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	*attr = (struct ibv_qp_attr){ .qp_state = in_error ? IBV_QPS_ERR : IBV_QPS_RTS,
				      .path_mtu = IBV_MTU_2048 };
	return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_PROT_ERR ? "local protection error" : "?";
}

int rdma_create_qp(struct rdma_cm_id *i, struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
	cr_assert(attr->qp_type == IBV_QPT_RC && !attr->sq_sig_all);
	cr_assert(attr->send_cq == &cq && attr->recv_cq == &cq);
	cr_assert(attr->cap.max_send_wr == 73 && attr->cap.max_recv_wr == 64);
	cr_assert(attr->cap.max_send_sge == 2 && attr->cap.max_recv_sge == 4);
	if (attr->cap.max_inline_data > inline_room) {
		errno = EINVAL;
		return -1;
	}
	i->qp = &qp;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *q)
{
	destroyed++;
	if (last_flush)
		complete(last_flush, IBV_WC_WR_FLUSH_ERR);
	cr_assert_not(freed_qp);
	freed_qp = !keeps_qp && !removed;
	return freed_qp ? 0 : EIO;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return "slow0";
}

int rdma_disconnect(struct rdma_cm_id *i)
{
	return 0;
}

/* verbs-dev.c */
int verbs_dev_query(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	*attr = (struct fab_device_attr){ .max_qp_wr = 128, .max_sge = 4 };
	return 0;
}

void verbs_dev_queues(const struct fab_qp_attr *attr, uint32_t max_sge, struct verbs_queues *q)
{
	*q = (struct verbs_queues){ .signal_every = 8, .send_wr = 73, .recv_wr = 64, .cqe = 137,
				    .recv_sge = 4 };
}

bool verbs_dev_is_removed(const struct ibv_context *d)
{
	return removed;
}

void verbs_dev_works(struct ibv_context *d)
{
}

/* verbs-reap.c, without a thread */
bool verbs_reap_follows(const struct verbs_pd *of)
{
	return false;
}

static bool reaper_is_slow;
static struct verbs_reap *reaps;	/* the job that it has */

void verbs_reap(struct verbs_pd *of, struct verbs_reap *job)
{
	cr_assert_eq(of, &pd);
	if (reaper_is_slow)
		reaps = job;
	else
		job->destroy(job);
}

static bool fatal;			/* says the device when it is asked */

void verbs_dev_events(struct ibv_context *d)
{
	removed |= fatal;
}

/* ---- a connection over it ---- */

static struct verbs_conn *c;
static struct fab_cqe cqes[ROOM];

static uint64_t number(unsigned i)
{
	return (uintptr_t)&cqes[i];
}

/* For the table in fabric.c, in which nobody looks. */
const struct fab_provider fab_tcp = { .name = "none" }, fab_verbs = { .name = "none" };

static void setup(void)
{
	const struct fab_qp_attr attr = { 64, 64, 2 };

	cr_assert_eq(pipe(pipe_fds), 0);
	device.ops.post_send = post_send;
	device.ops.post_recv = post_recv;
	device.ops.poll_cq = poll_cq;
	device.ops.req_notify_cq = req_notify_cq;
	device.ops.alloc_mw = alloc_mw;
	device.ops.dealloc_mw = dealloc_mw;
	device.ops.bind_mw = bind_mw;
	pd.pd = &hw_pd;
	refuse_after = ROOM;
	log_init(keep_line, LOG_LEVEL_WARN);
	c = verbs_conn_alloc(&cm.fab);
	c->id = &id;
	cr_assert_eq(verbs_conn_create_qp(&c->fab, &pd.fab, &attr), 0);
	verbs_conn_step(c, VERBS_CONN_EV_CONNECTED);
}

static void teardown(void)
{
	verbs_conn_fini(c);
	cr_assert_eq(nchannels + ncqs, 0);
	free(c);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

TestSuite(verbs_conn, .init = setup, .fini = teardown);

/* Requests number @first.. in one chain. */
static int send_some(unsigned first, unsigned n)
{
	static struct ibv_send_wr wr[ROOM];

	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = number(first + i), .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED,
					      .next = i + 1 < n ? &wr[i + 1] : NULL };
	return verbs_post_send(&c->fab, wr);
}

static int receive_some(unsigned first, unsigned n)
{
	static struct ibv_recv_wr wr[ROOM];

	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = number(first + i),
					      .next = i + 1 < n ? &wr[i + 1] : NULL };
	return verbs_post_recv(&c->fab, wr);
}

/* Poll until drained; @flushed of each number says how often. */
static void drain(unsigned *flushed)
{
	struct ibv_wc wc[7];
	int n;

	memset(flushed, 0, ROOM * sizeof(*flushed));
	for (unsigned turn = 0; turn < 1000; turn++) {
		n = verbs_poll(&c->fab, wc, (int)ARRAY_SIZE(wc));
		if (n < 0)
			break;
		for (int i = 0; i < n; i++) {
			cr_assert_neq(wc[i].status, IBV_WC_SUCCESS);
			flushed[(struct fab_cqe *)(uintptr_t)wc[i].wr_id - cqes]++;
		}
	}
	cr_assert_eq(n, -ENOTCONN, "not drained");
	cr_assert_eq(verbs_poll(&c->fab, wc, 1), -ENOTCONN);
	cr_assert_eq(send_some(0, 1), -ENOTCONN);
	cr_assert_eq(receive_some(0, 1), -ENOTCONN);
}

static void expect_flushed(const unsigned *flushed, unsigned first, unsigned n, unsigned times)
{
	for (unsigned i = first; i < first + n; i++)
		cr_assert_eq(flushed[i], times, "number %u was flushed %u times", i, flushed[i]);
}

static const char *cause(void)
{
	return fab_conn_cause(&c->fab);
}

/* ---- tests ---- */

/* Messages of one and of two elements that wish to be copied, and the flags with which they reached
 * the device. */
static void send_inline(const uint32_t (*lengths)[2], unsigned n, const bool *copied)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge sge[2] = { { .length = lengths[i][0] },
					  { .length = lengths[i][1] } };
		struct ibv_send_wr wr = { .wr_id = number(i), .opcode = IBV_WR_SEND, .sg_list = sge,
					  .num_sge = 2,
					  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };

		nflags = 0;
		cr_assert_eq(verbs_post_send(&c->fab, &wr), 0);
		cr_assert_eq(nflags, 1);
		cr_assert_eq(flags_of[0], IBV_SEND_SIGNALED | (copied[i] ? IBV_SEND_INLINE : 0),
			     "%u + %u bytes", lengths[i][0], lengths[i][1]);
	}
}

Test(verbs_conn, what_fits_is_copied)
{
	static const uint32_t lengths[][2] = { { 1, 0 }, { 64, 64 }, { 65, 64 }, { 0, 0 },
					       { UINT32_MAX, 2 } };
	static const bool copied[] = { true, true, false, false, false };

	send_inline(lengths, ARRAY_SIZE(copied), copied);
}

/* A device that refuses a queue pair with room for inline data gives one without. */
Test(verbs_conn, device_without_inline)
{
	static const uint32_t lengths[][2] = { { 1, 0 } };
	static const bool copied[] = { false };
	const struct fab_qp_attr attr = { 64, 64, 2 };

	teardown();
	inline_room = 0;
	c = verbs_conn_alloc(&cm.fab);
	c->id = &id;
	cr_assert_eq(pipe(pipe_fds), 0);
	cr_assert_eq(verbs_conn_create_qp(&c->fab, &pd.fab, &attr), 0);
	verbs_conn_step(c, VERBS_CONN_EV_CONNECTED);
	send_inline(lengths, 1, copied);
}

Test(verbs_conn, mtu_of_a_connection_that_works)
{
	struct fab_mtu mtu = { 0 };

	verbs_conn_mtu(&c->fab, &mtu);
	cr_assert_eq(mtu.path, 2048);
	cr_assert_eq(mtu.sent, 2048);
	verbs_conn_disconnect(&c->fab, "a test");
	mtu = (struct fab_mtu){ 0 };
	verbs_conn_mtu(&c->fab, &mtu);
	cr_assert_eq(mtu.path, 0);
}

Test(verbs_conn, the_first_failure_is_the_cause)
{
	static unsigned flushed[ROOM];
	struct ibv_wc wc[8];

	cr_assert_eq(send_some(0, 3), 0);
	complete(posted[0], IBV_WC_LOC_PROT_ERR);
	complete(posted[1], IBV_WC_WR_FLUSH_ERR);
	complete(posted[2], IBV_WC_WR_FLUSH_ERR);
	nposted = 0;
	cr_assert_eq(verbs_poll(&c->fab, wc, 8), 3);
	cr_assert_str_eq(cause(), "work request failed: local protection error");
	drain(flushed);
	expect_flushed(flushed, 0, 3, 0);
}

/* Of rxe, for any failure of its own. */
Test(verbs_conn, a_flush_is_a_failure)
{
	static unsigned flushed[ROOM];

	cr_assert_eq(send_some(0, 1), 0);
	complete(posted[0], IBV_WC_WR_FLUSH_ERR);
	nposted = 0;
	drain(flushed);
	expect_flushed(flushed, 0, 1, 1);
	cr_assert_str_eq(cause(), "the queue pair broke: the peer is gone or a request was bad");
}

/* Each 8th is signaled all the same, so that whoever asks for no completion can post for ever.
 * Polls report none of these. */
Test(verbs_conn, unsignaled_sends)
{
	struct ibv_send_wr wr = { .wr_id = number(0), .opcode = IBV_WR_SEND };
	struct ibv_wc wc;

	for (unsigned i = 0; i < 200; i++) {
		calls[0] = '\0';
		cr_assert_eq(verbs_post_send(&c->fab, &wr), 0, "%u: %s", i, cause());
		cr_assert_eq(flags_of[i], i % 8 == 7 ? IBV_SEND_SIGNALED : 0, "%u", i);
		if (flags_of[i])
			complete(posted[i], IBV_WC_SUCCESS);
	}
	cr_assert_eq(verbs_poll(&c->fab, &wc, 1), 0);
}

Test(verbs_conn, refused_send)
{
	static unsigned flushed[ROOM];

	refuse_after = 5;
	cr_assert_eq(send_some(0, 8), -ENOMEM);
	cr_assert(strstr(cause(), "the device refused a send"));
	drain(flushed);
	expect_flushed(flushed, 0, 5, 1);
	expect_flushed(flushed, 5, 3, 0);
}

Test(verbs_conn, refused_receive)
{
	static unsigned flushed[ROOM];

	cr_assert_eq(receive_some(0, 4), 0);
	refuse_after = 3;
	cr_assert_eq(receive_some(4, 8), -ENOMEM);
	cr_assert(strstr(cause(), "the device refused a receive"));
	drain(flushed);
	expect_flushed(flushed, 0, 7, 1);
	expect_flushed(flushed, 7, 5, 0);
}

Test(verbs_conn, queue_overflow)
{
	static unsigned flushed[ROOM];

	cr_assert_eq(receive_some(0, 64), 0);
	cr_assert_eq(receive_some(64, 1), -ENOMEM);
	cr_assert_str_eq(cause(), "receive queue overflow");
	drain(flushed);
	expect_flushed(flushed, 0, 64, 1);
}

Test(verbs_conn, posts_behind_the_failure_flush)
{
	static unsigned flushed[ROOM];

	cr_assert_eq(send_some(0, 2), 0);
	verbs_conn_disconnect(&c->fab, "enough");
	cr_assert_eq(send_some(2, 100), 0);
	cr_assert_eq(receive_some(102, 100), 0);
	drain(flushed);
	expect_flushed(flushed, 0, 202, 1);
	cr_assert_str_eq(cause(), "enough");
}

/* Those that there was no memory for were not taken, and drained is not far. */
Test(verbs_conn, no_memory_for_posts_behind_the_failure)
{
	static unsigned flushed[ROOM];

	verbs_conn_disconnect(&c->fab, "enough");
	cr_assert_eq(send_some(0, 64), 0);
	no_memory = true;
	cr_assert_eq(send_some(64, 1), -ENOMEM);
	cr_assert_eq(receive_some(65, 3), -ENOMEM);
	drain(flushed);
	expect_flushed(flushed, 0, 64, 1);
	expect_flushed(flushed, 64, 4, 0);
}

/* Who finds completions does not sleep, so nothing has to ring. */
Test(verbs_conn, arming_is_for_an_empty_queue)
{
	struct ibv_wc wc[4];
	short events;

	cr_assert(fcntl(c->fab.fd, F_GETFL) & O_NONBLOCK, "arming reads events");
	cr_assert_eq(receive_some(0, 2), 0);
	complete(number(0), IBV_WC_SUCCESS);
	wcs[0].opcode = IBV_WC_RECV;
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 1);
	cr_assert_eq(notifies + event_reads, 0);
	cr_assert_eq(verbs_poll(&c->fab, wc, 4), 1);
	cr_assert(wc[0].wr_id == number(0) && wc[0].status == IBV_WC_SUCCESS);
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 0);
	cr_assert_eq(notifies, 1);
	cr_assert_eq(events, POLLIN);
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 0);
	cr_assert_eq(notifies, 1, "one stands already");
	cr_assert_eq(verbs_poll_need_rearm(&c->fab), 0);
	verbs_conn_disconnect(&c->fab, "a test");
	cr_assert_eq(verbs_poll_need_rearm(&c->fab), FAB_REARM_EVENTS, "late posts ring nothing");
}

/* The CQ is broken: what was posted does not come back, and nothing touches it when drained is
 * told. */
Test(verbs_conn, broken_completion_queue)
{
	static unsigned flushed[ROOM];
	short events;

	cr_assert_eq(send_some(0, 4), 0);
	cr_assert_eq(receive_some(4, 4), 0);
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 0);
	broken_cq = mute = true;
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 1);
	drain(flushed);
	cr_assert_str_eq(cause(), "the RDMA device can no longer be polled");
	cr_assert_eq(destroyed, 1);
	expect_flushed(flushed, 0, 8, 0);
}

/* As when the cm has told so; late posts flush all the same. */
Test(verbs_conn, removed_device)
{
	static unsigned flushed[ROOM];
	struct ibv_wc wc;
	short events;

	mute = true;
	cr_assert_eq(send_some(0, 4), 0);
	cr_assert_eq(receive_some(4, 4), 0);
	verbs_conn_fail(c, "the RDMA device was removed");
	cr_assert_eq(verbs_poll(&c->fab, &wc, 1), 0, "it may still flush");
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 0);
	removed = true;
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 1);
	cr_assert_eq(send_some(8, 4), 0);
	drain(flushed);
	cr_assert_str_eq(cause(), "the RDMA device was removed");
	cr_assert_eq(destroyed, 1);
	cr_assert_str_eq(lines, "");
	expect_flushed(flushed, 0, 8, 0);
	expect_flushed(flushed, 8, 4, 1);
}

/* As rxe while its device is removed: the marker is in the queue, the post fails, and the queue is
 * flushed. */
Test(verbs_conn, marker_that_was_refused_and_comes)
{
	static unsigned flushed[ROOM];

	cr_assert_eq(send_some(0, 4), 0);
	cr_assert_eq(receive_some(4, 4), 0);
	bell_error = EIO;
	verbs_conn_fail(c, "the RDMA device was removed");
	drain(flushed);
	expect_flushed(flushed, 0, 8, 1);
	cr_assert_eq(destroyed, 0);
}

static int poll_once(void)
{
	struct ibv_wc wc;

	return verbs_poll(&c->fab, &wc, 1);
}

static int arm(void)
{
	short events;

	return verbs_poll_arm(&c->fab, &events);
}

/* A thread that polls while there is work sleeps until the flushes come. */
Test(verbs_conn, sleeps_before_the_flush)
{
	static unsigned flushed[ROOM];

	mute = true;
	cr_assert_eq(send_some(0, 4), 0);
	complete(posted[0], IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(arm(), 1);
	cr_assert_eq(poll_once(), 1);
	cr_assert_eq(poll_once(), 0);
	cr_assert_eq(arm(), 0);
	for (unsigned i = 1; i < nposted; i++)
		complete(posted[i], IBV_WC_WR_FLUSH_ERR);
	complete(UINT64_MAX, IBV_WC_WR_FLUSH_ERR);	/* the marker */
	cr_assert_eq(arm(), 1);
	drain(flushed);
	expect_flushed(flushed, 1, 3, 1);
	cr_assert_eq(destroyed, 0);
}

static void fail_mute(void)
{
	mute = true;
	cr_assert_eq(send_some(0, 4), 0);
	cr_assert_eq(receive_some(4, 4), 0);
	verbs_conn_disconnect(&c->fab, "enough");
	cr_assert_eq(poll_once(), 0);
	cr_assert_eq(arm(), 0);
	now_ms += VERBS_DRAIN_MS - 1;
	cr_assert_eq(poll_once(), 0);
	cr_assert_eq(arm(), 0);
	cr_assert_eq(destroyed, 0);
	cr_assert_str_eq(lines, "");
	now_ms++;
	cr_assert_eq(arm(), 1);
}

/* As siw.  What the device completes in the last moment is not lost, nor comes behind drained. */
Test(verbs_conn, device_that_never_flushes)
{
	static unsigned flushed[ROOM];

	fail_mute();
	last_flush = number(4);
	cr_assert_eq(send_some(8, 4), 0);
	drain(flushed);
	expect_flushed(flushed, 0, 4, 0);
	expect_flushed(flushed, 4, 1, 1);
	expect_flushed(flushed, 5, 3, 0);
	expect_flushed(flushed, 8, 4, 1);
	cr_assert_eq(destroyed, 1);
	cr_assert(strstr(lines, "slow0 has not given back all requests 10 s after the failure: its "
				"queue pair is destroyed"));
}

/* Meanwhile nobody waits in a poll, and nothing has drained. */
Test(verbs_conn, device_that_is_slow_to_destroy)
{
	struct ibv_wc wc;
	short events;

	fail_mute();
	reaper_is_slow = true;
	while (!reaps)
		cr_assert_geq(verbs_poll(&c->fab, &wc, 1), 0);
	cr_assert_eq(destroyed, 0);
	cr_assert_null(id.qp, "librdmacm may still use it");
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(verbs_poll(&c->fab, &wc, 1), 0);
		cr_assert_eq(verbs_poll_arm(&c->fab, &events), 0, "who drains it spins");
	}
	reaps->destroy(reaps);
	cr_assert_eq(destroyed, 1);
	cr_assert_eq(verbs_poll_arm(&c->fab, &events), 1);
	while (verbs_poll(&c->fab, &wc, 1) != -ENOTCONN)
		;
}

/* It may write to the buffers for ever.  Nobody frees them, and nobody spins. */
Test(verbs_conn, device_that_keeps_the_queue_pair)
{
	keeps_qp = true;
	fail_mute();
	for (unsigned i = 0; i < 10; i++) {
		cr_assert_eq(poll_once(), 0);
		cr_assert_eq(arm(), 0);
		now_ms += VERBS_DRAIN_MS;
	}
	cr_assert_eq(destroyed, 1);
	cr_assert(strstr(lines, "it keeps the queue pair, and so the memory stays allocated"));
}

/* A device that was given up flushes after all: nothing of the connection is left there. */
Test(verbs_conn, device_that_flushes_late)
{
	static unsigned flushed[ROOM];

	keeps_qp = true;
	fail_mute();
	cr_assert_eq(poll_once(), 0);
	mute = false;
	complete(UINT64_MAX, IBV_WC_WR_FLUSH_ERR);	/* the marker */
	cr_assert_eq(poll_once(), 0);
	cr_assert_eq(arm(), 0, "receives are missing");
	flush_posted();
	drain(flushed);
	expect_flushed(flushed, 0, 8, 1);
	cr_assert_eq(destroyed, 1);
}

Test(verbs_conn, table)
{
	fsm_rules(&verbs_conn_fsm);
	for (unsigned s = VERBS_CONN_FAILED; s < VERBS_CONN_NSTATES; s++) {
		cr_assert(fsm_reach(&verbs_conn_fsm, s, ~0u) & 1u << VERBS_CONN_DRAINED);
		cr_assert_not(fsm_reach(&verbs_conn_fsm, s, ~0u) & ((1u << VERBS_CONN_FAILED) - 1),
			      "what has failed stays so");
	}
}

/* It tells nobody, but who fails for another reason hears of it. */
Test(verbs_conn, fatal_device)
{
	static unsigned flushed[ROOM];

	mute = fatal = true;
	cr_assert_eq(send_some(0, 4), 0);
	cr_assert_eq(receive_some(4, 4), 0);
	verbs_conn_disconnect(&c->fab, "no sign of life");
	drain(flushed);
	cr_assert_str_eq(cause(), "no sign of life");
	cr_assert_eq(destroyed, 1);
}

/* ---- windows ---- */

static struct ibv_mr hw_mr;
static struct verbs_mr region = {
	.fab = { .ibv = { .addr = (void *)0x10000, .length = 4096 }, .pd = &pd.fab,
		 .iova = 0x10000, .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND },
	.hw = &hw_mr,
};

/* A chain of: s a send, 1 a bind of mw[0], 2 one of mw[1], i an invalidate of mw[1]'s key after
 * that. */
static int chain(struct ibv_mw **mw, const char *what)
{
	static struct ibv_send_wr wr[ROOM];
	unsigned n = (unsigned)strlen(what);
	int rc;

	hw_mr.pd = pd.pd;
	calls[0] = '\0';
	memset(wr, 0, sizeof(wr));
	for (unsigned i = 0; i < n; i++) {
		wr[i].wr_id = number(i);
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].imm_data = 0xdddddddd;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		if (what[i] == 'i') {
			wr[i].opcode = IBV_WR_LOCAL_INV;
			wr[i].invalidate_rkey = strchr(what, '2') ? ibv_inc_rkey(mw[1]->rkey) :
								    mw[1]->rkey;
		} else if (what[i] != 's') {
			struct ibv_mw *m = mw[what[i] - '1'];

			wr[i].opcode = IBV_WR_BIND_MW;
			wr[i].bind_mw.mw = m;
			wr[i].bind_mw.rkey = ibv_inc_rkey(m->rkey);
			wr[i].bind_mw.bind_info = (struct ibv_mw_bind_info){
				.mr = &region.fab.ibv, .addr = 0x10000, .length = 4096,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
			};
		}
	}
	rc = verbs_post_send(&c->fab, wr);
	if (rc)
		return rc;
	for (unsigned i = 0; i < n; i++) {
		if (wr[i].opcode == IBV_WR_BIND_MW)
			wr[i].bind_mw.mw->rkey = wr[i].bind_mw.rkey;
	}
	return 0;
}

static void windows(struct ibv_mw **mw)
{
	mw[0] = verbs_mw_alloc(&pd.fab, IBV_MW_TYPE_1);
	mw[1] = verbs_mw_alloc(&pd.fab, IBV_MW_TYPE_2);
	cr_assert(mw[0] && mw[1]);
}

/* What has no place in a chain is a call of its own, in its turn; longer ones are several. */
Test(verbs_conn, chains_with_windows)
{
	struct ibv_mw *mw[2];

	windows(mw);
	cr_assert_eq(chain(mw, "ss12is"), 0);
	cr_assert_str_eq(calls, "[ send send ][ bind-1 ][ bind-2 inv send ]");
	cr_assert_eq(chain(mw, "1"), 0);
	cr_assert_str_eq(calls, "[ bind-1 ]");
	cr_assert_eq(chain(mw, "2s1"), 0);
	cr_assert_str_eq(calls, "[ bind-2 send ][ bind-1 ]");
	cr_assert_eq(chain(mw, "is"), 0);
	cr_assert_str_eq(calls, "[ inv send ]");
	cr_assert_eq(chain(mw, "ssssssssssssssssss1"), 0);
	cr_assert_str_eq(calls,
			 "[ send send send send send send send send send send send send send send "
				"send send ][ send send ][ bind-1 ]");
	cr_assert_str_eq(cause(), "");
	cr_assert_eq(verbs_mw_dealloc(mw[0]), 0);
	cr_assert_eq(verbs_mw_dealloc(mw[1]), 0);
}

/* The end of rxe's machine.  What is in front of it goes, what is behind it flushes with it. */
Test(verbs_conn, no_second_invalidate)
{
	static unsigned flushed[ROOM];
	struct ibv_mw *mw[2];

	windows(mw);
	cr_assert_eq(chain(mw, "sis"), 0);
	cr_assert_str_eq(calls, "[ send ]");
	cr_assert_str_eq(cause(), "invalidate of the key of no bound window");
	drain(flushed);
	expect_flushed(flushed, 0, 3, 1);
	cr_assert_eq(verbs_mw_dealloc(mw[0]), 0);
	cr_assert_eq(verbs_mw_dealloc(mw[1]), 0);
}

static void receive_inv(uint32_t rkey, unsigned flag)
{
	cr_assert_eq(receive_some(100, 1), 0);
	complete(number(100), IBV_WC_SUCCESS);
	wcs[nwcs - 1].opcode = IBV_WC_RECV;
	wcs[nwcs - 1].wc_flags = flag;
	wcs[nwcs - 1].invalidated_rkey = rkey;
}

/* The peer has done it, and nobody has polled that yet. */
Test(verbs_conn, no_second_invalidate_after_the_peer)
{
	struct ibv_mw *mw[2];
	struct ibv_wc wc;

	windows(mw);
	cr_assert_eq(chain(mw, "2"), 0);
	receive_inv(mw[1]->rkey, IBV_WC_IP_CSUM_OK);
	cr_assert_eq(chain(mw, "i"), 0);
	cr_assert_str_eq(calls, "");
	cr_assert_eq(verbs_poll(&c->fab, &wc, 1), 1);
	cr_assert(wc.status == IBV_WC_SUCCESS && wc.wc_flags == IBV_WC_WITH_INV);
	cr_assert_eq(verbs_mw_dealloc(mw[0]), 0);
	cr_assert_eq(verbs_mw_dealloc(mw[1]), 0);
}

/* A window of type 1, which no device should have taken. */
Test(verbs_conn, an_invalidate_that_is_not_the_peers)
{
	struct ibv_mw *mw[2];
	struct ibv_wc wc;

	windows(mw);
	cr_assert_eq(chain(mw, "1"), 0);
	receive_inv(mw[0]->rkey, IBV_WC_WITH_INV);
	cr_assert_eq(verbs_poll(&c->fab, &wc, 1), 1);
	cr_assert_eq(wc.status, IBV_WC_REM_INV_REQ_ERR);
	cr_assert_neq(cause()[0], '\0');
	cr_assert_eq(verbs_mw_dealloc(mw[0]), 0);
	cr_assert_eq(verbs_mw_dealloc(mw[1]), 0);
}

/* A device that offers windows and cannot bind them is told from other refusals. */
static void refused_window(const char *what, int err, bool keeps, int rc)
{
	struct ibv_mw *mw[2];

	windows(mw);
	refusal = err;
	keeps_key = keeps;
	cr_assert_eq(chain(mw, what), rc);
	cr_assert(strstr(cause(), rc == -EOPNOTSUPP ? "the device refused a memory window: " :
						      "the device refused a send: "));
	cr_assert_eq(verbs_mw_dealloc(mw[0]), 0);
	cr_assert_eq(verbs_mw_dealloc(mw[1]), 0);
}

Test(verbs_conn, no_bind_of_type_1) { refused_window("s1s", EOPNOTSUPP, false, -EOPNOTSUPP); }
Test(verbs_conn, no_bind_of_type_2) { refused_window("s2s", EINVAL, false, -EOPNOTSUPP); }
Test(verbs_conn, keeps_the_key) { refused_window("1", 0, true, -EOPNOTSUPP); }
Test(verbs_conn, a_bind_that_lacks_memory) { refused_window("1", ENOMEM, false, -ENOMEM); }
Test(verbs_conn, a_bind_that_meets_the_end) { refused_window("2", EIO, false, -EINVAL); }

/* Nobody can give it back, and nobody has to. */
Test(verbs_conn, windows_of_a_removed_device)
{
	struct ibv_mw *mw[2];

	windows(mw);
	removed = true;
	cr_assert_eq(verbs_mw_dealloc(mw[0]), 0);
	cr_assert_eq(verbs_mw_dealloc(mw[1]), 0);
}

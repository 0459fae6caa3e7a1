/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory and the thread that polls.  Everything is under the lock but waiting.  How it ends:
 * hsrv_stop() waits until the last connection has drained. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../peer/peer-srv.h"
#include "cleanup.h"
#include "hsrv.h"
#include "thread.h"
#include "util.h"

#define CHUNK (HSRV_IO + PEER_SRV_HDR)
#define LOCAL IBV_ACCESS_LOCAL_WRITE

struct hsrv {
	struct peer_srv peer;
	pthread_mutex_t lock;
	pthread_t thread;
	int wake_fd;
	bool stopping;
	struct ibv_mr *chunks_mr;
	/* of READs: the last, the one before it; and how the next one is answered */
	struct rtrs_desc reads[2];
	uint64_t highest_addr;
	struct peer_srv_con *read_con;
	enum hsrv_answer how;
	struct hsrv_attack attack;

	uint8_t attack_bytes[2 * HSRV_IO];
	uint8_t chunks[PEER_SRV_DEPTH][CHUNK];
};

static struct hsrv *srv_of(struct peer_srv *s)
{
	return container_of(s, struct hsrv, peer);
}

/* ---- the attack ---- */

static void attack_wr(struct hsrv *s, const struct hsrv_attack *a, struct ibv_send_wr *wr,
		      struct ibv_sge *sge)
{
	const struct rtrs_desc *desc = &s->reads[a->before_last];

	check(desc->len);
	*sge = (struct ibv_sge){ .addr = (uintptr_t)s->attack_bytes,
				 .length = desc->len + a->len_add, .lkey = s->peer.own_mr->lkey };
	check(sge->length <= sizeof(s->attack_bytes));
	*wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)&s->read_con->send_cqe,
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = sge,
		.num_sge = 1,
		.wr.rdma = { (a->addr ? a->addr : desc->addr) + (uint64_t)a->addr_add,
			     desc->key ^ a->key_xor },
	};
}

/* ---- requests ---- */

static const struct rnbd_dev_info disk = {
	.nsectors = HSRV_DISK / RNBD_SECTOR_SIZE,
	.max_hw_sectors = HSRV_IO / RNBD_SECTOR_SIZE,
	.physical_block_size = RNBD_SECTOR_SIZE,
	.logical_block_size = RNBD_SECTOR_SIZE,
	.max_segments = 1,
};

static void answer(struct peer_srv_con *con, const struct rtrs_req *req, unsigned buf, bool is_read)
{
	struct hsrv *s = srv_of(con->srv);
	enum hsrv_answer how = is_read ? s->how : HSRV_GOOD;
	struct rtrs_rsp rsp = peer_srv_rsp(con->srv, req, buf, how == HSRV_ERROR ? -EIO : 0);
	struct ibv_send_wr *head, *last, attack;
	struct rtrs_wr_rsp w;
	struct ibv_sge sge;

	head = rtrs_wr_response(&w, (uintptr_t)&con->send_cqe, &rsp);
	if (how == HSRV_NO_DATA)
		head = head->next;	/* the data is the first of the chain */
	if (how >= HSRV_ATTACK_BEFORE)
		attack_wr(s, &s->attack, &attack, &sge);
	if (how == HSRV_ATTACK_BEFORE) {
		attack.next = head;
		head = &attack;
	} else if (how == HSRV_ATTACK_BEHIND) {
		for (last = head; last->next; last = last->next)
			continue;
		last->next = &attack;
	}
	if (is_read)
		s->how = HSRV_GOOD;
	fab_post_send(con->fab, head);	/* an error is told by polling */
}

static void on_request(struct peer_srv_con *con, struct rtrs_req *req, unsigned buf)
{
	struct hsrv *s = srv_of(con->srv);
	bool is_io = peer_srv_control(req, &disk, s->chunks[buf]) == RNBD_MSG_IO;
	bool is_read = is_io && req->has_desc;

	if (is_io)
		memset(s->chunks[buf], HSRV_DATA, req->data_len);
	if (req->has_desc)
		s->highest_addr = MAX(s->highest_addr, req->desc.addr);
	if (is_read) {
		s->reads[1] = s->reads[0];
		s->reads[0] = req->desc;
		s->read_con = con;
		if (s->how == HSRV_KEEPS_KEY)
			req->need_inval = false;
	}
	answer(con, req, buf, is_read);
}

/* ---- memory ---- */

static unsigned regions(struct peer_srv_con *con, struct rtrs_region *regions)
{
	struct hsrv *s = srv_of(con->srv);

	*regions = (struct rtrs_region){ (uintptr_t)s->chunks, s->chunks_mr->rkey,
					 sizeof(s->chunks) };
	return 1;
}

static struct ibv_mr *memory(struct peer_srv *peer)
{
	struct hsrv *s = srv_of(peer);

	s->chunks_mr = fab_reg_mr(peer->pd, s->chunks, sizeof(s->chunks),
				  LOCAL | IBV_ACCESS_REMOTE_WRITE);
	check(s->chunks_mr);
	return fab_reg_mr(peer->pd, s, sizeof(*s), LOCAL);
}

static const struct peer_srv_ops ops = { .memory = memory, .regions = regions,
					 .request = on_request };

/* ---- the thread ---- */

/* Fills @pfd unless the connection has gone. */
static bool con_poll(struct hsrv *s, struct peer_srv_con *con, struct pollfd *pfd)
{
	if (s->stopping)
		fab_disconnect(con->fab);
	if (!peer_srv_poll(con, &pfd->events)) {
		if (s->read_con == con)
			s->read_con = NULL;
		return false;
	}
	pfd->fd = fab_conn_fd(con->fab);
	return true;
}

/* Returns what to wait for. */
static nfds_t work(struct hsrv *s, struct pollfd *fds)
{
	nfds_t n = 2;

	peer_srv_events(&s->peer);
	fds[0] = (struct pollfd){ .fd = fab_cm_fd(s->peer.cm), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = s->wake_fd, .events = POLLIN };
	for (unsigned i = 0; i < PEER_SRV_CONS; i++) {
		if (s->peer.cons[i].fab)
			n += con_poll(s, &s->peer.cons[i], &fds[n]);
	}
	return n;
}

static void *run(void *arg)
{
	struct pollfd fds[2 + PEER_SRV_CONS];
	struct hsrv *s = arg;
	eventfd_t count;
	nfds_t n;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		n = work(s, fds);
		if (s->stopping && n == 2)
			break;
		pthread_mutex_unlock(&s->lock);
		check(poll(fds, n, -1) >= 0 || errno == EINTR);
		if (fds[1].revents)
			eventfd_read(s->wake_fd, &count);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- from outside ---- */

struct hsrv *hsrv_start(const struct fab_addr *addr)
{
	struct hsrv *s = calloc(1, sizeof(*s));

	check(s);
	memset(s->attack_bytes, HSRV_ATTACK, sizeof(s->attack_bytes));
	s->wake_fd = eventfd(0, EFD_CLOEXEC);
	check(s->wake_fd >= 0 && !pthread_mutex_init(&s->lock, NULL));
	peer_srv_start(&s->peer, &ops, addr, s->chunks[0], HSRV_IO);
	check(!pthread_create(&s->thread, NULL, run, s));
	return s;
}

void hsrv_addr(struct hsrv *s, struct fab_addr *addr)
{
	fab_listener_addr(s->peer.listener, addr);
}

void hsrv_stop(struct hsrv *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	eventfd_write(s->wake_fd, 1);
	pthread_join(s->thread, NULL);
	fab_dereg_mr(s->chunks_mr);
	peer_srv_stop(&s->peer);
	close(s->wake_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void hsrv_answer_next(struct hsrv *s, enum hsrv_answer how, const struct hsrv_attack *attack)
{
	LOCK_SCOPE(&s->lock);
	s->how = how;
	s->attack = *attack;
}

void hsrv_attack_now(struct hsrv *s, const struct hsrv_attack *attack)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	LOCK_SCOPE(&s->lock);
	check(s->read_con && !s->read_con->failed);
	attack_wr(s, attack, &wr, &sge);
	check(!fab_post_send(s->read_con->fab, &wr));
	eventfd_write(s->wake_fd, 1);	/* it arms again */
}

uint64_t hsrv_highest_addr(struct hsrv *s)
{
	uint64_t addr;

	LOCK_SCOPE(&s->lock);
	addr = s->highest_addr;
	s->highest_addr = 0;
	return addr;
}

unsigned hsrv_lives(struct hsrv *s)
{
	LOCK_SCOPE(&s->lock);
	return s->peer.lives;
}

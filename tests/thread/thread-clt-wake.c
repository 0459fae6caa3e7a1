/* SPDX-License-Identifier: BSD-3-Clause */
/* The moments in which the thread that polls a connection could go to sleep and miss something.
 *
 * The provider of mock-hca.h with a stage in front: the second connection can keep requests back (a
 * slow link), be a full socket, and let an answer overtake the send completion of its request; and
 * it knows when the leader has armed and does not sleep yet.  One thread, the leader, has a
 * read in flight that is kept back; another one does what the leader must notice.  A missed wake-up
 * is a program that hangs, which tests/run-test.sh makes a failure. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../mock/mock-hca.h"
#include "clt-io-priv.h"
#include "clt-rig.h"
#include "dev-req.h"
#include "fabric.h"

#define HELD_MAX 4

static struct fab_provider staged;

static struct {
	pthread_mutex_t lock;			/* held[] */
	struct {
		struct ibv_send_wr wr;
		struct ibv_sge sge[2];
	} held[HELD_MAX];
	unsigned nheld;
	atomic_bool hold;			/* keep back what is posted */
	atomic_bool fill;			/* what is kept back fills the socket, too */
	atomic_bool blocked;			/* the socket is full */
	atomic_int armed;			/* as tcp_tx.armed */
	short events;				/* poller: what the last arm answered */
	atomic_bool overtake;			/* WRITEs complete after on_write() */
	atomic_bool done;			/* such a completion waits to be polled */
	uint64_t done_id;
	atomic_bool lose;			/* no: its connection fails before */
	atomic_uint writes;			/* posted */
	atomic_uint answers;			/* completions of receives that were polled */
	void (*on_write)(struct clt_con *con);
	_Atomic(void (*)(struct clt_con *con)) on_post;	/* once, under the send lock */
	atomic_uint sleeps;			/* of whoever leads */
	/* the leader armed; it goes to sleep next */
	_Atomic(void (*)(struct clt_con *con)) on_arm;
	atomic_bool on_stage;			/* on_arm() runs */
	atomic_bool role_freed;
} st = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define wait_until(cond)                                                                           \
	do {                                                                                       \
		while (!(cond))                                                                    \
			sched_yield();                                                             \
	} while (0)

static struct clt_con *io_con(void)
{
	return &run.clt.sess.paths[0]->att.cons[1];
}

static bool on_stage(const struct fab_conn *conn)
{
	return ((struct clt_con *)fab_conn_context(conn))->cid == 1;
}

/* ---- the stage ---- */

static void keep_back(const struct ibv_send_wr *wr)
{
	pthread_mutex_lock(&st.lock);
	for (; wr; wr = wr->next) {
		struct ibv_sge *sge = st.held[st.nheld].sge;

		check(st.nheld < HELD_MAX && wr->num_sge <= 2);
		st.held[st.nheld].wr = *wr;
		st.held[st.nheld].wr.next = NULL;
		st.held[st.nheld++].wr.sg_list = sge;
		memcpy(sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*sge));
	}
	pthread_mutex_unlock(&st.lock);
}

static void let_go(struct fab_conn *conn)
{
	pthread_mutex_lock(&st.lock);
	atomic_store(&st.hold, false);
	atomic_store(&st.blocked, false);
	for (unsigned i = 0; i < st.nheld; i++)
		check(!fab_mock.post_send(conn, &st.held[i].wr));
	st.nheld = 0;
	pthread_mutex_unlock(&st.lock);
}

static int staged_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	void (*on_post)(struct clt_con *con);
	struct ibv_send_wr copy = *wr;
	int r;

	if (!on_stage(conn))
		return fab_mock.post_send(conn, wr);
	on_post = atomic_exchange(&st.on_post, NULL);
	if (on_post)
		on_post(fab_conn_context(conn));
	if (wr->send_flags & IBV_SEND_SIGNALED)
		atomic_fetch_add(&st.writes, 1);
	if (atomic_load(&st.overtake) && (wr->send_flags & IBV_SEND_SIGNALED)) {
		check(!wr->next);
		copy.send_flags = 0;
		r = fab_mock.post_send(conn, &copy);
		st.on_write(fab_conn_context(conn));
		if (atomic_exchange(&st.lose, false))
			return r;
		st.done_id = wr->wr_id;
		atomic_store(&st.done, true);
		return r;
	}
	if (!atomic_load(&st.hold))
		return fab_mock.post_send(conn, wr);
	keep_back(wr);
	if (atomic_load(&st.fill))
		atomic_store(&st.blocked, true);
	return 0;
}

static int staged_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	int got = 0, r;

	if (!on_stage(conn))
		return fab_mock.poll(conn, wc, n);
	atomic_store(&st.armed, 0);
	if (atomic_load(&st.blocked) && (st.events & POLLOUT))
		let_go(conn);
	if (atomic_exchange(&st.done, false))
		wc[got++] = (struct ibv_wc){ .wr_id = st.done_id, .opcode = IBV_WC_RDMA_WRITE };
	r = fab_mock.poll(conn, wc + got, n - got);
	if (r < 0)
		return got ? got : r;
	atomic_fetch_add(&st.answers, (unsigned)r);
	return got + r;
}

static int staged_arm(struct fab_conn *conn, short *events)
{
	void (*on_arm)(struct clt_con *con) = NULL;

	if (fab_mock.arm(conn, events))
		return 1;
	if (!on_stage(conn))
		return 0;
	*events = POLLIN | (atomic_load(&st.blocked) ? POLLOUT : 0);
	st.events = *events;
	atomic_store(&st.armed, *events);
	if (atomic_load(&st.done))
		return 1;
	/* Once, and by a leader: the service loop arms, too, when it drains. */
	if (clt_sess_is_up(&run.clt.sess))
		on_arm = atomic_exchange(&st.on_arm, NULL);
	if (on_arm)
		on_arm(fab_conn_context(conn));
	return 0;
}

static int staged_need_rearm(const struct fab_conn *conn)
{
	int armed = on_stage(conn) ? atomic_load(&st.armed) : 0, need = 0;

	if (armed && atomic_load(&st.blocked) && !(armed & POLLOUT))
		need |= FAB_REARM_EVENTS;
	if (armed && atomic_load(&st.done))
		need |= FAB_REARM_DONE;
	return need;
}

static void staged_disconnect(struct fab_conn *conn, const char *cause)
{
	if (on_stage(conn)) {
		pthread_mutex_lock(&st.lock);
		atomic_store(&st.hold, false);
		st.nheld = 0;		/* reads: not signaled, so they leave no completion */
		pthread_mutex_unlock(&st.lock);
	}
	fab_mock.disconnect(conn, cause);
}

static int staged_cm_create(struct fab_cm **cm)
{
	check(!fab_mock.cm_create(cm));
	(*cm)->ops = &staged;
	return 0;
}

static int staged_conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	check(!fab_mock.conn_create(cm, conn));
	(*conn)->ops = &staged;
	return 0;
}

static void stage_build(void)
{
	staged = fab_mock;
	staged.name = "staged";
	staged.cm_create = staged_cm_create;
	staged.conn_create = staged_conn_create;
	staged.post_send = staged_post_send;
	staged.poll = staged_poll;
	staged.arm = staged_arm;
	staged.need_rearm = staged_need_rearm;
	staged.disconnect = staged_disconnect;
}

static unsigned nheld(void)
{
	unsigned n;

	pthread_mutex_lock(&st.lock);
	n = st.nheld;
	pthread_mutex_unlock(&st.lock);
	return n;
}

/* ---- the leader and what it waits for ---- */

static void *read_block(void *arg)
{
	uint8_t buf[512];

	check(!dev_call_read(&handle, buf, sizeof(buf), 0));
	return NULL;
}

static pthread_t leader_start(void (*on_arm)(struct clt_con *con))
{
	pthread_t thread;

	atomic_store(&st.on_stage, false);
	atomic_store(&st.on_arm, on_arm);
	atomic_store(&st.hold, true);
	check(!pthread_create(&thread, NULL, read_block, NULL));
	return thread;
}

static bool leader_sleeps(struct clt_con *con)
{
	return atomic_load(&con->wait.asleep) == 1;
}

/* The other thread has posted, told the leader what it had to tell, and waits. */
static bool has_follower(struct clt_con *con)
{
	bool has;

	pthread_mutex_lock(&con->wait.lock);
	has = con->wait.nfollowers > 0;
	pthread_mutex_unlock(&con->wait.lock);
	return has;
}

static void arm_until_followed(struct clt_con *con)
{
	atomic_store(&st.on_stage, true);
	wait_until(has_follower(con));
}

/* ---- the socket gets full after the leader has armed ---- */

static void full_socket(bool asleep)
{
	pthread_t leader = leader_start(asleep ? NULL : arm_until_followed);

	wait_until(asleep ? leader_sleeps(io_con()) : atomic_load(&st.on_stage));
	atomic_store(&st.fill, true);
	read_block(NULL);
	check(!pthread_join(leader, NULL));
	atomic_store(&st.fill, false);
}

/* ---- an answer overtakes the send completion ---- */

static void arm_after_answer(struct clt_con *con)
{
	if (atomic_load(&st.answers))
		arm_until_followed(con);
	else
		atomic_store(&st.on_arm, arm_after_answer);
}

static void until_leader_sleeps(struct clt_con *con)
{
	wait_until(atomic_load(&st.answers) && leader_sleeps(con));
}

static void until_leader_armed(struct clt_con *con)
{
	wait_until(atomic_load(&st.on_stage));
}

static void overtaken(bool asleep)
{
	static const uint8_t buf[16384] = { 1 };
	pthread_t leader;

	atomic_store(&st.answers, 0);
	leader = leader_start(asleep ? NULL : arm_after_answer);
	wait_until(leader_sleeps(io_con()));
	st.on_write = asleep ? until_leader_sleeps : until_leader_armed;
	atomic_store(&st.overtake, true);
	check(!dev_call_write(&handle, buf, sizeof(buf), 4096, false));
	atomic_store(&st.overtake, false);
	let_go(io_con()->fab);
	check(!pthread_join(leader, NULL));
}

/* ---- an answer was there, and the connection fails before the send completion ---- */

static void fail_after_answer(struct clt_con *con)
{
	until_leader_sleeps(con);
	atomic_store(&st.overtake, false);
	fab_disconnect(con->att->cons[0].fab);
}

/* That write is done, and not sent again. */
static void answered_before_the_end(void)
{
	static const uint8_t buf[16384] = { 1 };
	pthread_t leader;

	atomic_store(&st.answers, 0);
	atomic_store(&st.writes, 0);
	leader = leader_start(NULL);
	wait_until(leader_sleeps(io_con()));
	st.on_write = fail_after_answer;
	atomic_store(&st.lose, true);
	atomic_store(&st.overtake, true);
	check(!dev_call_write(&handle, buf, sizeof(buf), 4096, false));
	check(!pthread_join(leader, NULL));
	check(atomic_load(&st.writes) == 1);
}

/* ---- a request is queued while somebody else sends ---- */

int __real_poll(struct pollfd *fds, nfds_t nfds, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t nfds, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	if (nfds == 2 && fds[1].fd == io_con()->wait.kick_fd)
		atomic_fetch_add(&st.sleeps, 1);
	return __real_poll(fds, nfds, timeout);
}

static pthread_t queuer;

/* The leader, woken for anything, must sleep again, though it cannot send what @queuer has
 * queued. */
static void until_leader_sleeps_again(struct clt_con *con)
{
	unsigned before;

	wait_until(leader_sleeps(con));
	check(!pthread_create(&queuer, NULL, read_block, NULL));
	wait_until(has_follower(con));
	before = atomic_load(&st.sleeps);
	con->att->io->wait->con_kick(con);
	wait_until(atomic_load(&st.sleeps) != before);
}

static void busy_sender(void)
{
	pthread_t leader = leader_start(NULL);

	wait_until(leader_sleeps(io_con()));
	atomic_store(&st.on_post, until_leader_sleeps_again);
	atomic_store(&st.fill, true);
	read_block(NULL);
	check(!pthread_join(leader, NULL));
	check(!pthread_join(queuer, NULL));
	atomic_store(&st.fill, false);
}

/* ---- an answer to what is still being posted ---- */

/* In flight on @con, other than @not. */
static struct clt_slot *slot_in_flight(struct clt_con *con, const struct clt_slot *not)
{
	struct clt_slot_table *slots = &run.clt.sess.io.slots;

	for (unsigned i = 0; i < slots->n; i++) {
		struct clt_slot *slot = &slots->slot[i];

		if (slot != not && atomic_load(&slot->state) >> CLT_SLOT_KEY_SHIFT == con->key)
			return slot;
	}
	return NULL;
}

static struct clt_slot *leaders;

static void answer_and_look(struct clt_con *con)
{
	struct clt_slot *slot = slot_in_flight(con, leaders);
	unsigned before = atomic_load(&st.sleeps);

	check(slot);
	mock_server_answer(con->fab, slot->id);
	wait_until(atomic_load(&st.sleeps) != before);
	/* The answer was handled, and the slot's memory is not anybody else's. */
	check(atomic_load(&slot->state));
}

static void early_answer(void)
{
	pthread_t leader = leader_start(NULL);

	wait_until(leader_sleeps(io_con()));
	leaders = slot_in_flight(io_con(), NULL);
	check(leaders);
	atomic_store(&st.on_post, answer_and_look);
	read_block(NULL);
	pthread_mutex_lock(&st.lock);
	check(st.nheld == 2);
	st.nheld--;			/* it never comes */
	pthread_mutex_unlock(&st.lock);
	let_go(io_con()->fab);
	check(!pthread_join(leader, NULL));
}

/* ---- an answer was pushed, and is not counted yet ---- */

static struct clt_wait_ops staged_wait;
static _Atomic(struct clt_waiter *) uncounted;	/* whose */
static atomic_bool pushed, may_count, owner_yields, owner_ended;
static _Thread_local bool is_owner;

static void count_when_told(struct clt_waiter *w)
{
	if (atomic_load(&uncounted) == w) {
		atomic_store(&uncounted, NULL);
		atomic_store(&pushed, true);
		wait_until(atomic_load(&may_count));
	}
	clt_wait_threads.count(w);
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	if (is_owner)
		atomic_store(&owner_yields, true);
	return __real_sched_yield();
}

static void *read_as_owner(void *arg)
{
	is_owner = true;
	read_block(NULL);
	atomic_store(&owner_ended, true);
	return NULL;
}

/* Who takes it because of something else stays until it is counted: the waiter goes with its
 * stack. */
static void early_look(void)
{
	pthread_t leader = leader_start(NULL), owner;
	struct clt_slot *slot;

	wait_until(leader_sleeps(io_con()));
	leaders = slot_in_flight(io_con(), NULL);
	check(leaders);
	check(!pthread_create(&owner, NULL, read_as_owner, NULL));
	wait_until(has_follower(io_con()) && nheld() == 2);
	slot = slot_in_flight(io_con(), leaders);
	check(slot);
	atomic_store(&uncounted, &slot->op->waiter);
	mock_server_answer(io_con()->fab, slot->id);
	wait_until(atomic_load(&pushed));
	clt_wait_look(&slot->op->waiter);
	wait_until(atomic_load(&owner_yields) || atomic_load(&owner_ended));
	check(!atomic_load(&owner_ended));
	atomic_store(&may_count, true);
	check(!pthread_join(owner, NULL));
	pthread_mutex_lock(&st.lock);
	st.nheld--;			/* it never comes */
	pthread_mutex_unlock(&st.lock);
	let_go(io_con()->fab);
	check(!pthread_join(leader, NULL));
}

/* ---- the service loop wants the role ---- */

void __real_loop_post(struct loop *s, struct loop_msg *msg);
void __wrap_loop_post(struct loop *s, struct loop_msg *msg);

static _Thread_local bool leaves;	/* the leader, when the service loop wants its role */

/* The leader tells that the role is free.  While that is on its way to the service loop, it must
 * not get the role by other means: it would close the session and end, and the message be for
 * nobody. */
void __wrap_loop_post(struct loop *s, struct loop_msg *msg)
{
	__real_loop_post(s, msg);
	if (!leaves || msg != &run.clt.sess.paths[0]->drain_msg)
		return;
	check(pthread_mutex_trylock(&io_con()->wait.lock) == EBUSY);
	atomic_store(&st.role_freed, true);
}

static bool service_wants(struct clt_con *con)
{
	bool wants;

	pthread_mutex_lock(&con->wait.lock);
	wants = con->wait.role == CLT_ROLE_WANTED;
	pthread_mutex_unlock(&con->wait.lock);
	return wants;
}

static void arm_until_wanted(struct clt_con *con)
{
	fab_disconnect(con->att->cons[0].fab);
	wait_until(service_wants(con));
	leaves = true;
}

static void role_to_service(void)
{
	pthread_t leader = leader_start(arm_until_wanted);

	check(!pthread_join(leader, NULL));
	check(atomic_load(&st.role_freed));
}

/* ---- a request is queued while the poller is awake, which goes to sleep then ---- */

#define MANY 3				/* followers, for the poller to get the role */
/* clt-wait-threads.c: a waiter's word while it is in futex_wait() */
#define SLEEPS 0x1u

static void let_one_go(struct fab_conn *conn)
{
	pthread_mutex_lock(&st.lock);
	check(st.nheld);
	check(!fab_mock.post_send(conn, &st.held[0].wr));
	st.nheld--;
	for (unsigned i = 0; i < st.nheld; i++) {
		st.held[i] = st.held[i + 1];
		st.held[i].wr.sg_list = st.held[i].sge;
	}
	pthread_mutex_unlock(&st.lock);
}

static unsigned nfollowers(struct clt_con *con)
{
	unsigned n;

	pthread_mutex_lock(&con->wait.lock);
	n = con->wait.nfollowers;
	pthread_mutex_unlock(&con->wait.lock);
	return n;
}

static bool poller_leads(struct clt_con *con)
{
	bool leads;

	pthread_mutex_lock(&con->wait.lock);
	leads = con->wait.leader == &con->wait.poller;
	pthread_mutex_unlock(&con->wait.lock);
	return leads;
}

/* Who queues sees that the poller is awake, leaves the sending to it, and sleeps. */
static void arm_until_queued(struct clt_con *con)
{
	struct clt_slot *slot;

	if (!poller_leads(con)) {
		atomic_store(&st.on_arm, arm_until_queued);
		return;
	}
	check(clt_wait_con_awake(&con->wait));
	check(!pthread_create(&queuer, NULL, read_block, NULL));
	wait_until((slot = atomic_load(&con->sendq)));
	wait_until(atomic_load(&slot->op->waiter.word) & SLEEPS);
}

static void sleepy_poller(void)
{
	struct clt_con *con = io_con();
	pthread_t leader, many[MANY];

	read_block(NULL);		/* the path is up again */
	leader = leader_start(NULL);
	wait_until(leader_sleeps(con));
	for (unsigned i = 0; i < MANY; i++)
		check(!pthread_create(&many[i], NULL, read_block, NULL));
	wait_until(nfollowers(con) == MANY && nheld() == 1 + MANY);
	atomic_store(&st.on_arm, arm_until_queued);
	let_one_go(con->fab);
	check(!pthread_join(leader, NULL));
	/* Nothing but its own look tells the poller of what was queued. */
	wait_until(nheld() == MANY + 1);
	let_go(con->fab);
	check(!pthread_join(queuer, NULL));
	for (unsigned i = 0; i < MANY; i++)
		check(!pthread_join(many[i], NULL));
}

/* ---- */

static const char *volatile scene = "setup";

static void hang(int sig)
{
	static const char text[] = ": aborted; somebody sleeps for ever, if no assertion failed\n";
	bool told = write(STDERR_FILENO, scene, strlen(scene)) > 0 &&
		    write(STDERR_FILENO, text, sizeof(text) - 1) > 0;

	_exit(told ? 1 : 2);
}

int main(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = 16384,
					   .disk_size = 1 << 20 };

	signal(SIGABRT, hang);		/* by tests/run-test.sh */
	rig_quiet();
	mock_server_start(&server);
	stage_build();
	staged_wait = clt_wait_threads;
	staged_wait.count = count_when_told;
	rig_open(&(struct clt_sess_conf){ .wait = &staged_wait, .connections = 1 }, 1, &staged);

	scene = "socket full while the leader sleeps";
	full_socket(true);
	scene = "socket full before the leader sleeps";
	full_socket(false);
	scene = "send completion overtaken while the leader sleeps";
	overtaken(true);
	scene = "send completion overtaken before the leader sleeps";
	overtaken(false);
	scene = "request queued while somebody else sends";
	busy_sender();
	scene = "answer to what is still being posted";
	early_answer();
	scene = "answer that is not counted yet";
	early_look();
	scene = "role given to the service loop";
	role_to_service();
	scene = "request queued while the poller is awake";
	sleepy_poller();
	scene = "connection fails after the answer and before the send completion";
	answered_before_the_end();

	scene = "end";
	rig_close();
	mock_server_stop();
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and listeners that go, or whose time is over, while the thread of handshakes has a
 * step of theirs.  A step is held where it begins, so that nothing here depends on how long steps
 * take.  Brings its own clock, so that ten seconds pass at once. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "conformance.h"
#include "fab-tls.h"
#include "log.h"
#include "raw.h"
#include "tcp-cm.h"
#include "util.h"

#define HANDSHAKE_MS 10000

static struct world w;
static uint64_t skipped_ms;
static char last_line[1024];

uint64_t clock_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + skipped_ms;
}

static void keep_line(enum log_level level, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
}

/* ---- steps ---- */

static pthread_t main_thread;
static atomic_int hold;			/* the n-th step from now on; 0: none */
static sem_t held, released;		/* a step is held; it may go on */
static sem_t freed;			/* a session without a connection is freed */
static struct tcp_tls *held_tls;	/* of the step that is held */
static unsigned nlent;

int __real_tcp_tls_handshake(struct tcp_tls *t, uint32_t *events, char *why);
int __wrap_tcp_tls_handshake(struct tcp_tls *t, uint32_t *events, char *why);
int __wrap_tcp_tls_handshake(struct tcp_tls *t, uint32_t *events, char *why)
{
	char name[16] = "";
	sigset_t mask;

	check(!pthread_equal(pthread_self(), main_thread));
	check(!pthread_getname_np(pthread_self(), name, sizeof(name)));
	check(!strcmp(name, "rtrs-tls"));
	check(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
	check(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGCHLD) &&
	      sigismember(&mask, SIGUSR1));
	if (hold && atomic_fetch_sub(&hold, 1) == 1) {
		held_tls = t;
		sem_post(&held);
		check(!sem_wait(&released));
	}
	return __real_tcp_tls_handshake(t, events, why);
}

void __real_tcp_tls_free(struct tcp_tls *t);
void __wrap_tcp_tls_free(struct tcp_tls *t);
void __wrap_tcp_tls_free(struct tcp_tls *t)
{
	check(pthread_equal(pthread_self(), main_thread));
	__real_tcp_tls_free(t);
	sem_post(&freed);
}

int __real_tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
			  void (*done)(struct tcp_conn *c));
int __wrap_tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
			  void (*done)(struct tcp_conn *c));
int __wrap_tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
			  void (*done)(struct tcp_conn *c))
{
	nlent++;
	return __real_tcp_aside_lend(a, c, epoll, done);
}

static bool is_posted(sem_t *sem)
{
	return sem_trywait(sem) == 0;
}

/* Step the world until @cond, which no event of the world need tell. */
#define until(cond)                                                                                \
	do {                                                                                       \
		int i_ = 0;                                                                        \
		while (!(cond)) {                                                                  \
			check(i_++ < WAIT_LIMIT_MS);                                               \
			world_step(&w, 1);                                                         \
		}                                                                                  \
	} while (0)

/* Step the world until the thread holds a step. */
static void until_held(void)
{
	until(is_posted(&held));
}

static void release(void)
{
	sem_post(&released);
}

/* The world frees one session without a connection, and no other. */
static void is_freed(void)
{
	until(is_posted(&freed));
	check(!is_posted(&freed));
}

/* Wait until the cm of @side has something to do, without doing it. */
static void until_ready(unsigned side)
{
	struct pollfd pfd = { .fd = fab_cm_fd(w.cm[side]), .events = POLLIN };

	check_eq(poll(&pfd, 1, WAIT_LIMIT_MS), 1);
}

/* ---- peers ---- */

/* A stranger whose hello has begun. */
static int begin_hello(uint8_t host)
{
	int fd = raw_socket_from(&w, host);

	raw_send(&w, fd, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
	return fd;
}

static bool is_open(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* The other end closes the socket of @fd, and so does this one. */
static void is_closed(int fd)
{
	char buf[1024];
	ssize_t n = -1;

	for (int i = 0; i < WAIT_LIMIT_MS; i++) {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		world_step(&w, 1);
	}
	check(n == 0 || (n < 0 && errno == ECONNRESET));
	close(fd);
}

static void close_listener(void)
{
	fab_listener_destroy(w.listener);
}

static void listen_again(void)
{
	check_eq(fab_listen(w.cm[0], &w.addr, &w.listener), 0);
}

/* ---- the passive side ---- */

FAB_TEST_ALONE(listener_goes)
{
	int fd;

	hold = 1;
	fd = begin_hello(1);
	until_held();
	close_listener();
	/* The step goes on with the socket. */
	check(is_open(fd));
	release();
	is_freed();
	is_closed(fd);
	listen_again();
}

FAB_TEST_ALONE(stranger_expires)
{
	int fd;

	hold = 1;
	fd = begin_hello(1);
	until_held();
	last_line[0] = '\0';
	skipped_ms += HANDSHAKE_MS + 1;
	until(last_line[0]);
	check(strstr(last_line, "TLS: no handshake in time"));
	check(is_open(fd));
	release();
	is_freed();
	is_closed(fd);
}

/* Of three steps one runs and two wait: those come home, and are freed at once. */
FAB_TEST_ALONE(strangers_wait)
{
	int fds[3];

	hold = 1;
	fds[0] = begin_hello(1);
	until_held();
	fds[1] = begin_hello(1);
	fds[2] = begin_hello(2);
	until(nlent == 3);
	close_listener();
	is_closed(fds[1]);
	is_closed(fds[2]);
	check(is_open(fds[0]));
	release();
	is_freed();
	is_closed(fds[0]);
	listen_again();
}

/* True if the step that is held is of the unproven peer @fd. */
static bool is_held(int fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	const struct tcp_conn *c;

	check_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	list_for_each(c, &tcp_cm(w.cm[0])->handshakes, hs_link) {
		if (c->tls == held_tls)
			return fab_addr_port(&c->base.peer) == ntohs(in.sin_port);
	}
	return false;
}

/* A host with one step waits for one of two that another host had given before. */
FAB_TEST_ALONE(hosts_take_turns)
{
	int fds[4];

	hold = 1;
	fds[0] = begin_hello(1);
	until_held();
	check(is_held(fds[0]));
	for (unsigned i = 1; i < 4; i++)
		fds[i] = begin_hello(i < 3 ? 1 : 2);
	until(nlent == 4);
	hold = 2;
	release();
	check(!sem_wait(&held));
	check(is_held(fds[3]));
	world_settle(&w, 0);
	close_listener();
	release();
	is_freed();
	for (unsigned i = 0; i < 4; i++)
		is_closed(fds[i]);
	listen_again();
}

/* Here chance always picks the oldest (unproven.h). */
void random_bytes(void *buf, size_t len)
{
	memset(buf, 0, len);
}

/* A peer that others of its host push out is told so, unless a step of its own is under way. */
FAB_TEST_ALONE(told_of_others)
{
	enum { N = 64 + 2 };
	static const char why[] = "too many";
	const struct fab_cm_conf conf = { .provider = w.p, .pushed_out = why,
					  .refusal_len = sizeof(why), .tls = provider_tls[0] };
	const struct raw_frame f = raw_handshake(RAW_REJECT, sizeof(why));
	uint8_t want[RAW_HDR + sizeof(why)], got[sizeof(want) + 1];
	int fds[N];

	close_listener();
	fab_cm_destroy(w.cm[0]);
	check_eq(fab_cm_create(&conf, &w.cm[0]), 0);
	listen_again();
	hold = 1;
	fds[0] = begin_hello(1);
	until_held();
	for (unsigned i = 1; i < N; i++)
		fds[i] = begin_hello(1);
	raw_encode(want, &f);
	memcpy(want + RAW_HDR, why, sizeof(why));
	check_eq(raw_recv_all(&w, fds[1], got, sizeof(got)), sizeof(want));
	check(!memcmp(got, want, sizeof(want)));
	close_listener();
	release();
	is_freed();
	check_eq(raw_recv_all(&w, fds[0], got, sizeof(got)), 0);
	for (unsigned i = 0; i < N; i++)
		close(fds[i]);
	listen_again();
}

/* The result of a step waits for the cm, and its connection goes. */
FAB_TEST_ALONE(result_waits)
{
	struct pair pair;
	int fd;

	hold = 1;
	fd = begin_hello(1);
	until_held();
	world_settle(&w, 0);
	release();
	until_ready(0);
	close_listener();
	is_freed();
	is_closed(fd);
	listen_again();
	/* And the cm goes on. */
	pair_connect(&w, &pair, &default_attr);
	pair_close(&pair);
}

/* Two results wait for the cm, and each is taken: both strangers are heard again. */
FAB_TEST_ALONE(results_wait)
{
	int fds[3];

	hold = 1;
	for (unsigned i = 0; i < 3; i++)
		fds[i] = begin_hello(1);
	until_held();
	until(nlent == 3);
	hold = 2;
	release();
	check(!sem_wait(&held));
	for (unsigned i = 0; i < 2; i++)
		raw_send(&w, fds[i], "\x03", 1);
	until(nlent == 5);
	close_listener();
	release();
	is_freed();
	for (unsigned i = 0; i < 3; i++)
		is_closed(fds[i]);
	listen_again();
}

/* Both ends make all steps on the thread. */
FAB_TEST_ALONE(both_sides)
{
	struct pair pair[2];

	for (unsigned i = 0; i < 2; i++)
		pair_connect(&w, &pair[i], &default_attr);
	/* Two steps at least of each end. */
	check(nlent >= 8);
	for (unsigned i = 0; i < 2; i++)
		pair_close(&pair[i]);
}

/* While a step is held connections that are up do IO, and the cm serves who is new. */
FAB_TEST_ALONE(io_goes_on)
{
	struct ibv_send_wr wr;
	struct region from, to;
	struct pair pair;
	struct ibv_sge sge;
	int fd, silent;

	pair_connect(&w, &pair, &default_attr);
	from = region_create(pair.a->pd, 4096, 0);
	to = region_create(pair.b->pd, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	memset(from.mem, 0x5a, from.len);
	hold = 1;
	fd = begin_hello(1);
	until_held();
	check_eq(post_recvs(pair.b, 0, 1), 0);
	sge = region_sge(&from, 0, 4096);
	wr = wr_write_imm(0, &sge, target(&to, 0), 7);
	check_eq(post(pair.a, &wr, 1), 0);
	world_until(&w, pair.b->nrecvs == 1);
	check_eq(pair.b->recvs[0].wc.status, IBV_WC_SUCCESS);
	check_eq(memcmp(from.mem, to.mem, to.len), 0);
	/* A stranger in plain is refused. */
	silent = raw_socket(&w);
	raw_send(&w, silent, "GET / HTTP/1.1\r\n", 16);
	is_closed(silent);
	release();
	close_listener();
	is_closed(fd);
	/* The step may have been over, or not. */
	while (is_posted(&freed))
		;
	listen_again();
	region_destroy(&from);
	region_destroy(&to);
	pair_close(&pair);
}

/* ---- the active side ---- */

FAB_TEST_ALONE(active_goes)
{
	struct fab_addr addr;
	int listener = raw_listen(&w, &addr), fd;
	struct end *e;

	hold = 1;
	e = raw_dial(&w, listener, &addr, &fd);
	until_held();
	end_free(e);
	check(is_open(fd));
	release();
	is_freed();
	is_closed(fd);
	close(listener);
}

/* The user hears of it at once, keeps the connection, and the result of the step is for nobody. */
static void active_expires(bool goes_first)
{
	struct fab_addr addr;
	int listener = raw_listen(&w, &addr), fd;
	struct end *e;

	hold = 1;
	e = raw_dial(&w, listener, &addr, &fd);
	until_held();
	skipped_ms += HANDSHAKE_MS + 1;
	until(e->unreachable);
	check_eq(e->status, -ETIMEDOUT);
	check(strstr(fab_conn_cause(e->conn), "TLS: no handshake in time"));
	if (goes_first)
		end_free(e);
	release();
	if (goes_first) {
		is_freed();
	} else {
		until_ready(1);
		e->unreachable = false;
		world_settle(&w, 0);
		/* Nobody listens to the peer any more. */
		check_eq(send(fd, "\x16\x03\x03", 3, 0), 3);
		world_settle(&w, 1);
		check_eq(nlent, 1);
		check(!e->unreachable && !e->established && !e->rejected);
		end_free(e);
		check(!is_posted(&freed));
	}
	is_closed(fd);
	close(listener);
}

FAB_TEST_ALONE(active_expires_first)
{
	active_expires(false);
}

FAB_TEST_ALONE(active_expires_and_goes)
{
	active_expires(true);
}

/* The peer refuses in plain and hangs up, before the step sends the hello. */
FAB_TEST_ALONE(active_is_refused)
{
	struct tcp_frame f = { .op = TCP_FRAME_REJECT, .rkey = TCP_FRAME_VERSION,
			       .addr = TCP_FRAME_MAGIC };
	uint8_t frame[TCP_FRAME_HDR_LEN];
	struct fab_addr addr;
	int listener = raw_listen(&w, &addr), fd;
	struct end *e;

	hold = 1;
	e = raw_dial(&w, listener, &addr, &fd);
	until_held();
	tcp_frame_encode(frame, &f);
	raw_send(&w, fd, frame, sizeof(frame));
	close(fd);
	release();
	world_until(&w, e->rejected);
	end_free(e);
	close(listener);
}

/* Of two the second waits, and goes without a byte; the first sends its hello. */
FAB_TEST_ALONE(active_waits)
{
	struct fab_addr addr;
	int listener = raw_listen(&w, &addr), fds[2];
	struct end *e[2];
	char byte;

	hold = 1;
	e[0] = raw_dial(&w, listener, &addr, &fds[0]);
	until_held();
	e[1] = raw_dial(&w, listener, &addr, &fds[1]);
	until(nlent == 2);
	end_free(e[1]);
	check_eq(recv(fds[1], &byte, 1, 0), 0);
	close(fds[1]);
	release();
	check_eq(recv(fds[0], &byte, 1, 0), 1);
	check_eq(byte, 0x16);
	check(!is_posted(&freed));
	end_free(e[0]);
	is_closed(fds[0]);
	/* The step may have been over, or not. */
	while (is_posted(&freed))
		;
	close(listener);
}

/* ---- */

static struct fab_tls *make_tls(const char *file, bool server)
{
	const struct fab_tls_conf conf = { .server = server, .asked = true,
					   .mode = FAB_TLS_REQUIRE, .psk = file };
	struct fab_tls *tls = NULL;
	char err[256] = "";

	if (fab_tls_create(&conf, &tls, err, sizeof(err)))
		check_failed(__FILE__, __LINE__, err);
	return tls;
}

static void make_keys(struct fab_tls *tls[2])
{
	static const char line[] = "peer:00112233445566778899aabbccddeeff\n";
	char file[] = "/tmp/fab-tls.XXXXXX";
	int fd = mkstemp(file);

	check(fd >= 0);
	check_eq(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	close(fd);
	for (unsigned i = 0; i < 2; i++)
		provider_tls[i] = tls[i] = make_tls(file, i == 0);
	unlink(file);
}

/* The descriptors of this process. */
static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static unsigned before;

static void all_is_back(void)
{
	check_eq(count_descriptors(), before);
	check(!is_posted(&held) && !is_posted(&released) && !is_posted(&freed));
	nlent = 0;
}

int main(void)
{
	struct fab_tls *tls[2];

	main_thread = pthread_self();
	sem_init(&held, 0, 0);
	sem_init(&released, 0, 0);
	sem_init(&freed, 0, 0);
	log_init(keep_line, LOG_LEVEL_INFO);
	make_keys(tls);
	before = count_descriptors();
	fab_tests_run(fab_provider_find("tcp"), &w, NULL, all_is_back);
	for (unsigned i = 0; i < 2; i++)
		fab_tls_destroy(tls[i]);
	return 0;
}

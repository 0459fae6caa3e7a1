/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns virtual time, the event queue, the list of actors and of hosts, and the numbers that stand
 * for descriptors.  One thread.  Ends with sim_fini(), which insists that nothing is left.  Cannot
 * fail: an impossible request of a test aborts it. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "sim-core.h"

#define STEPS_AT_ONCE_MAX 1000000u	/* without time moving: somebody spins */
#define FD_BASE 1000000			/* no real descriptor is that large */

struct sim_fd {
	short (*ready)(void *arg);
	void *arg;
};

/* The kernel's answer about a real descriptor, and the number of changes before it. */
struct sim_real_fd {
	int fd;				/* + 1; 0: none */
	uint64_t changes;
	short ready;
};

static struct {
	uint64_t now_us, start_us;
	uint64_t steps_now;
	uint64_t rng;
	uint64_t steps;
	bool shuffle;
	struct list events, actors, hosts;
	struct sim_place here;
	struct sim_fd *fds;
	unsigned nfds, open_fds;
	struct sim_real_fd real_fds[512];
	unsigned nreal_fds;
	unsigned fd_users;
	uint64_t fd_changes;
	uint64_t hook_step;
	void (*hook)(void *arg);
	void *hook_arg;
} sim;

/* ---- chance ---- */

uint32_t sim_rand(uint32_t n)
{
	return n <= 1 ? 0 : (uint32_t)(random_next(&sim.rng) >> 16) % n;
}

bool sim_chance(unsigned permille)
{
	return sim_rand(1000) < permille;
}

void random_bytes(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)sim_rand(256);
}

/* ---- time and events ---- */

uint64_t clock_now_ms(void)
{
	return sim.now_us / 1000;
}

uint64_t clock_now_ns(void)
{
	return sim.now_us * 1000;
}

uint64_t sim_now_us(void)
{
	return sim.now_us;
}

uint64_t sim_age_us(void)
{
	return sim.now_us - sim.start_us;
}

void sim_event_init(struct sim_event *ev, void (*fn)(struct sim_event *ev))
{
	list_init(&ev->link);
	ev->fn = fn;
}

void sim_event_at(struct sim_event *ev, uint64_t at_us)
{
	struct list *at;

	list_del(&ev->link);
	at = sim.events.prev;
	ev->at_us = at_us < sim.now_us ? sim.now_us : at_us;
	while (at != &sim.events && list_entry(at, struct sim_event, link)->at_us > ev->at_us)
		at = at->prev;
	list_add_head(at, &ev->link);
}

void sim_event_cancel(struct sim_event *ev)
{
	list_del(&ev->link);
}

/* ---- hosts ---- */

struct sim_host *sim_host_find(const char *name)
{
	size_t len = strcspn(name, "/");
	struct sim_host *h;

	list_for_each(h, &sim.hosts, link) {
		if (strlen(h->name) == len && !strncmp(h->name, name, len))
			return h;
	}
	return NULL;
}

unsigned sim_host_addr_named(const char *name)
{
	const char *sep = strchr(name, '/');
	unsigned n = sep ? (unsigned)atoi(sep + 1) : 0;

	assert(n < sim_host_find(name)->naddrs);
	return n;
}

unsigned sim_host_addr_index(const struct sim_host *h, const struct fab_addr *addr)
{
	for (unsigned i = 0; i < h->naddrs; i++) {
		if (fab_addr_same_host(&h->addrs[i], addr))
			return i;
	}
	return 0;
}

struct sim_host *sim_host_by_addr(const struct fab_addr *addr)
{
	struct sim_host *h;

	list_for_each(h, &sim.hosts, link) {
		for (unsigned i = 0; i < h->naddrs; i++) {
			if (fab_addr_same_host(&h->addrs[i], addr))
				return h;
		}
	}
	return NULL;
}

void sim_host_add_addr(struct sim_host *h, const char *ip)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct fab_addr *addr = &h->addrs[h->naddrs];

	assert(h->naddrs < SIM_HOST_ADDRS);
	if (inet_pton(AF_INET, ip, &sin.sin_addr) != 1)
		abort();
	memset(addr, 0, sizeof(*addr));
	memcpy(&addr->ss, &sin, sizeof(sin));
	addr->len = sizeof(sin);
	h->naddrs++;
}

struct sim_host *sim_host_add(const char *name, const char *ip)
{
	struct sim_host *h = calloc(1, sizeof(*h));

	assert(h && !sim_host_find(name));
	snprintf(h->name, sizeof(h->name), "%s", name);
	sim_host_add_addr(h, ip);
	list_add_tail(&sim.hosts, &h->link);
	return h;
}

struct sim_host *sim_host(void)
{
	return sim.here.host;
}

unsigned sim_epoch(void)
{
	return sim.here.epoch;
}

struct sim_place sim_enter(struct sim_host *h, unsigned epoch)
{
	struct sim_place before = sim.here;

	sim.here = (struct sim_place){ .host = h, .epoch = epoch };
	return before;
}

void sim_leave(struct sim_place before)
{
	sim.here = before;
}

bool sim_is_ghost(const struct sim_host *h, unsigned epoch)
{
	return epoch != h->epoch;
}

/* ---- actors ---- */

void sim_actor_add(struct sim_actor *a)
{
	a->host = sim.here.host;
	a->epoch = sim.here.epoch;
	list_add_tail(&sim.actors, &a->link);
}

void sim_actor_del(struct sim_actor *a)
{
	list_del(&a->link);
}

/* A frozen host's ghosts go on: they are only being cleaned up. */
static bool actor_stands_still(const struct sim_actor *a)
{
	return a->host->frozen && !sim_is_ghost(a->host, a->epoch);
}

static bool actor_ready(struct sim_actor *a)
{
	if (actor_stands_still(a))
		return false;
	return a->ready(a) || (a->deadline_ms && a->deadline_ms(a) <= clock_now_ms());
}

/* ---- descriptors ---- */

int sim_fd_open(short (*ready)(void *arg), void *arg)
{
	unsigned i = 0;

	while (i < sim.nfds && sim.fds[i].ready)
		i++;
	if (i == sim.nfds) {
		sim.fds = reallocarray(sim.fds, ++sim.nfds, sizeof(*sim.fds));
		assert(sim.fds);
	}
	sim.fds[i] = (struct sim_fd){ .ready = ready, .arg = arg };
	sim.open_fds++;
	return FD_BASE + (int)i;
}

void sim_fd_close(int fd)
{
	unsigned i = (unsigned)(fd - FD_BASE);

	assert(i < sim.nfds && sim.fds[i].ready);
	sim.fds[i] = (struct sim_fd){ 0 };
	sim.open_fds--;
}

bool sim_fd_is_real(int fd)
{
	return fd < FD_BASE;
}

void sim_fd_use(void)
{
	sim.fd_users++;
}

void sim_fd_used(void)
{
	sim.fd_users--;
	sim.fd_changes++;
}

static short fds_poll(struct pollfd *fds, unsigned n)
{
	if (poll(fds, n, 0) < 0)
		abort();
	return fds[0].revents;
}

/* Ask the kernel about all descriptors that were asked for: the next question is of another one. */
static void real_fds_ask(void)
{
	static struct pollfd pfds[ARRAY_SIZE(sim.real_fds)];
	unsigned n = sim.nreal_fds;

	for (unsigned i = 0; i < n; i++)
		pfds[i] = (struct pollfd){ sim.real_fds[i].fd - 1, POLLIN | POLLOUT, 0 };
	fds_poll(pfds, n);
	for (unsigned i = 0; i < n; i++) {
		sim.real_fds[i].changes = sim.fd_changes;
		sim.real_fds[i].ready = pfds[i].revents;
	}
}

static short real_fd_ready(int fd)
{
	unsigned i = (unsigned)fd % ARRAY_SIZE(sim.real_fds);
	struct sim_real_fd *known = &sim.real_fds[i];

	if (sim.fd_users)
		return fds_poll(&(struct pollfd){ fd, POLLIN | POLLOUT, 0 }, 1);
	if (known->fd != fd + 1 || known->changes != sim.fd_changes) {
		known->fd = fd + 1;
		sim.nreal_fds = MAX(sim.nreal_fds, i + 1);
		real_fds_ask();
	}
	return known->ready;
}

short sim_fd_ready(int fd)
{
	unsigned i = (unsigned)(fd - FD_BASE);

	if (sim_fd_is_real(fd))
		return real_fd_ready(fd);
	assert(i < sim.nfds && sim.fds[i].ready);
	return sim.fds[i].ready(sim.fds[i].arg);
}

/* ---- running ---- */

void sim_init(uint64_t seed)
{
	/* Time goes on between worlds: what a program keeps for its process (log limits) has no
	 * reason to think that two of them are one moment. */
	uint64_t start_us = sim.now_us + 3600 * 1000000ull;

	memset(&sim, 0, sizeof(sim));
	sim.now_us = sim.start_us = start_us - start_us % 1000000;
	sim.rng = seed;
	sim.fd_changes = 1;
	list_init(&sim.events);
	list_init(&sim.actors);
	list_init(&sim.hosts);
	sim.here.host = sim_host_add("localhost", "127.0.0.1");
}

void sim_fini(void)
{
	struct list *l;

	assert(list_empty(&sim.events) && list_empty(&sim.actors) && !sim.open_fds);
	while ((l = list_pop(&sim.hosts)))
		free(list_entry(l, struct sim_host, link));
	free(sim.fds);
	sim.fds = NULL;
}

void sim_shuffle(bool on)
{
	sim.shuffle = on;
}

uint64_t sim_steps(void)
{
	return sim.steps;
}

void sim_at_step(uint64_t step, void (*fn)(void *arg), void *arg)
{
	sim.hook_step = step;
	sim.hook = fn;
	sim.hook_arg = arg;
}

static void run_hook(void)
{
	void (*fn)(void *arg) = sim.hook;

	if (!fn || sim.steps < sim.hook_step)
		return;
	sim.hook = NULL;
	fn(sim.hook_arg);
}

static void run_event(struct sim_event *ev)
{
	list_del(&ev->link);
	ev->fn(ev);
}

static void run_actor(struct sim_actor *a)
{
	struct sim_place before = sim_enter(a->host, a->epoch);

	/* To the end of the line, so that without shuffling all get their turn. */
	list_del(&a->link);
	list_add_tail(&sim.actors, &a->link);
	a->run(a);
	sim_leave(before);
}

/* Run one thing that can run now. */
static bool step_now(void)
{
	struct list *first = sim.events.next;
	bool due = first != &sim.events &&
		   list_entry(first, struct sim_event, link)->at_us <= sim.now_us;
	struct sim_actor *a, *pick = NULL;
	unsigned n = due;

	if (due && !sim.shuffle) {
		run_event(list_entry(first, struct sim_event, link));
		return true;
	}
	list_for_each(a, &sim.actors, link) {
		if (!actor_ready(a))
			continue;
		n++;
		if (!pick || sim_rand(n) == 0)
			pick = a;
		if (!sim.shuffle)
			break;
	}
	if (due && (!pick || sim_rand(n) == 0))
		run_event(list_entry(first, struct sim_event, link));
	else if (pick)
		run_actor(pick);
	return n > 0;
}

static uint64_t next_time_us(void)
{
	uint64_t at = list_empty(&sim.events) ?
			      UINT64_MAX :
			      list_entry(sim.events.next, struct sim_event, link)->at_us;
	struct sim_actor *a;

	list_for_each(a, &sim.actors, link) {
		uint64_t ms = a->deadline_ms && !actor_stands_still(a) ? a->deadline_ms(a) :
									 CLOCK_NEVER;

		if (ms != CLOCK_NEVER && ms * 1000 < at)
			at = ms * 1000;
	}
	return at;
}

bool sim_step(uint64_t until_us)
{
	for (;;) {
		uint64_t at;

		run_hook();
		if (step_now()) {
			sim.steps++;
			assert(sim.steps_now++ < STEPS_AT_ONCE_MAX);
			return true;
		}
		sim.steps_now = 0;
		at = next_time_us();
		if (at > until_us) {
			if (until_us != UINT64_MAX)
				sim.now_us = MAX(sim.now_us, until_us);
			return false;
		}
		sim.now_us = MAX(sim.now_us, at);
	}
}

void sim_run_ms(uint64_t ms)
{
	uint64_t until_us = sim.now_us + ms * 1000;

	while (sim_step(until_us))
		;
}

bool sim_run_until(bool (*cond)(void *arg), void *arg, uint64_t ms)
{
	uint64_t until_us = sim.now_us + ms * 1000;

	while (!cond(arg)) {
		if (!sim_step(until_us))
			return cond(arg);
	}
	return true;
}

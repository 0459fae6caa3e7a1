/* SPDX-License-Identifier: BSD-3-Clause */
/* Two servers before one block device (store-file-share.c), on a device that ioctl() plays
 * (pr-device.h).  tests/guest/test-shared-device.sh does the same with servers. */
#include <config.h>

#include <errno.h>

#include "clock.h"
#include "export-life.h"
#include "exports.h"
#include "log.h"
#include "loop-impl.h"
#include "pr-device.h"
#include "store-file-priv.h"
#include "store-lead.h"
#include "unit.h"

enum { A, B, C };

static struct exports all;
static struct host {
	struct store_file f;
	struct store *store;
} hosts[3];
static char why[256];
static unsigned nfenced;
static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

/* A server begins on @host. */
static void server_begins(unsigned host)
{
	struct host *h = &hosts[host];
	struct export *ex = &h->f.ex;

	*h = (struct host){ .f = { .fd = FD + (int)host } };
	ex->name = ex->path = (char *)(uintptr_t)(host == A ? "a" : host == B ? "b" : "c");
	ex->driver = &store_file_driver;
	ex->spec.shared = true;
	ex->all = &all;
	ex->id = (struct store_id){ .len = 1, .bytes = { (char)('a' + (char)host) } };
	h->store = store_create(&all, ex);
	ex->store = h->store;
	list_add_tail(&h->store->names, &ex->store_link);
	cr_assert_eq(store_file_share_begin(ex, why, sizeof(why)), 0, "%s", why);
}

static int take_since(unsigned host, uint64_t may_break_ms, uint64_t since_ms)
{
	*why = '\0';
	return store_file_share_take(&hosts[host].f.ex, may_break_ms, since_ms, why, sizeof(why));
}

static int take(unsigned host, uint64_t may_break_ms)
{
	return take_since(host, may_break_ms, 0);
}

static int yield(unsigned host)
{
	return store_file_share_yield(&hosts[host].f.ex);
}

static int renew(unsigned host)
{
	return store_file_share_renew(&hosts[host].f.ex, why, sizeof(why));
}

static void forget_stores(void)
{
	struct store *store, *next;

	list_for_each_safe(store, next, &all.stores, link)
		store_destroy(&all, store);
	exports_fini(&all);
}

static void set_up(void)
{
	if (all.stores.next)
		forget_stores();
	dev = (struct device){ .holder = -1, .scsi = true };
	exports_init(&all, 0);
	for (unsigned i = 0; i < 4; i++)
		random_numbers[i] = 0x1111 * (i + 1);
	nrandom = 0;
	server_begins(A);
	server_begins(B);
}

TestSuite(store_file_share, .init = set_up, .timeout = 60);

Test(store_file_share, the_lock_goes_to_and_fro)
{
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(take(A, CLOCK_NEVER), 0, "%s", why);
		cr_assert_eq(dev.holder, A);
		cr_assert_eq(yield(A), 0);
		cr_assert_eq(take(B, CLOCK_NEVER), 0, "%s", why);
		cr_assert_eq(dev.holder, B);
		cr_assert_eq(yield(B), 0);
		cr_assert_eq(dev.holder, -1);
	}
	cr_assert_eq(dev.aborts, 0);
}

/* An owner that lives keeps the device, unless a client has lost it. */
Test(store_file_share, an_owner_has_its_time)
{
	uint64_t since = clock_now_ms();

	cr_assert_eq(take(A, 0), 0);
	cr_assert_eq(take(B, CLOCK_NEVER), -EBUSY);
	cr_assert(strstr(why, "the host with the key 0x1111 "), "%s", why);
	cr_assert_geq(clock_now_ms() - since, STORE_LEAD_POLITE_MS);
	cr_assert_eq(take(B, clock_now_ms() + 60000), -EBUSY);
	cr_assert_eq(dev.holder, A);
	since = clock_now_ms();
	cr_assert_eq(take(B, 0), 0);
	cr_assert_geq(clock_now_ms() - since, STORE_LEAD_PATIENCE_MS);
	cr_assert_eq(dev.holder, B);
	cr_assert_eq(dev.aborts, 1);
	cr_assert_eq(dev.keys[A], 0);
	cr_assert_eq(store_file_share_owns(&hosts[B].f.ex), 0);
	cr_assert_eq(store_file_share_owns(&hosts[A].f.ex), -ESHUTDOWN);
	cr_assert_eq(yield(A), -ESHUTDOWN);
}

/* The owner has had its time already, while the client took another device over.  A server that
 * stops does not wait. */
Test(store_file_share, an_owner_has_its_time_once)
{
	uint64_t now = clock_now_ms();

	cr_assert_eq(take(A, 0), 0);
	atomic_store(&all.stopping, true);
	cr_assert_eq(take(B, 0), -ECANCELED);
	cr_assert_eq(dev.holder, A);
	cr_assert_eq(take_since(B, 0, now - STORE_LEAD_PATIENCE_MS), 0);
	cr_assert_eq(dev.holder, B);
}

/* The device is never free while a host may have late writes: one that was fenced, and has not come
 * back. */
Test(store_file_share, late_writes_meet_a_reservation)
{
	cr_assert_eq(take(A, 0), 0);
	cr_assert_eq(take(B, 0), 0);
	cr_assert_eq(yield(B), -EAGAIN);
	cr_assert_eq(dev.holder, B);
	/* Nor at the end of the server, and not by its next one. */
	store_file_share_end(hosts[B].store);
	cr_assert_eq(dev.holder, B);
	server_begins(B);
	cr_assert(store_file_share_keeps(hosts[B].store));
	cr_assert_eq(yield(B), -EAGAIN);
	cr_assert_eq(renew(A), 0);
	cr_assert_eq(dev.holder, B);
	cr_assert_eq(yield(B), 0);
	cr_assert_eq(dev.holder, -1);
	cr_assert_eq(take(A, CLOCK_NEVER), 0);
	store_file_share_end(hosts[A].store);
	cr_assert_eq(dev.holder, -1);
}

/* A name leaves its store again if there is no memory for the lead. */
Test(store_file_share, no_memory_for_a_lead)
{
	struct store_file next = { .fd = FD + A, .ex = hosts[A].f.ex };

	no_memory = true;
	cr_assert_eq(exports_join(&all, &next.ex, why, sizeof(why)), -ENOMEM);
	no_memory = false;
	cr_assert_str_eq(why, "export 'a': out of memory");
	cr_assert_null(next.ex.store);
	cr_assert_eq(store_oldest_name(hosts[A].store), &hosts[A].f.ex);
	cr_assert_eq(hosts[A].store->names.next, hosts[A].store->names.prev);
	free(next.ex.pulse);
}

static bool keeps(unsigned host)
{
	return store_file_share_keeps(hosts[host].store);
}

/* The reservation that an earlier server left is this server's to keep only until it has been given
 * back or lost: a name that is shown later does not bring it back. */
Test(store_file_share, a_lock_is_kept_from_the_start_once)
{
	for (unsigned how = 0; how < 4; how++) {
		set_up();
		cr_assert_eq(take(B, 0), 0);
		random_numbers[2] = 0x2223;
		server_begins(B);
		cr_assert(keeps(B));
		if (how == 0) {
			cr_assert_eq(yield(B), 0);
		} else if (how == 1) {
			cr_assert_eq(take(B, 0), 0);
		} else {
			cr_assert_eq(take(A, 0), 0);
			if (how == 2)
				cr_assert_eq(yield(B), -ESHUTDOWN);
			else
				cr_assert_eq(renew(B), 0);
		}
		cr_assert_not(keeps(B), "%u", how);
	}
}

/* Keys that somebody has cleared are no end. */
Test(store_file_share, a_key_that_is_not_known_is_registered_again)
{
	dev.keys[A] = dev.keys[B] = 0;
	cr_assert_eq(take(A, CLOCK_NEVER), 0, "%s", why);
	cr_assert_eq(dev.holder, A);
}

Test(store_file_share, a_third_host_is_refused)
{
	dev.keys[2] = 3;
	cr_assert_eq(take(A, 0), -EUSERS);
	cr_assert(strstr(why, "2 other hosts"), "%s", why);
	cr_assert_eq(dev.holder, -1);
}

static void note_fenced(void *arg, const struct store *store)
{
	cr_assert_eq(store, hosts[A].store);
	nfenced++;
}

/* The name that was written goes, and requests under another name of the store still run: they fail
 * as those of a store of one server.  One that had found the lock gone ends its client's paths. */
Test(store_file_share, a_name_goes_and_others_are_read)
{
	struct export *ex = &hosts[A].f.ex, *other = &hosts[B].f.ex;
	struct store *store = hosts[A].store;
	struct loop loop;
	static const struct export_users users = { .store_fenced = note_fenced };
	struct export_life life = { .loop = &loop, .users = &users };

	cr_assert_eq(loop_init(&loop), 0);
	all.life = &life;
	cr_assert_eq(store_lead_join(store, ex), 0);
	cr_assert(store_lead_fences(store) && !store_lead_is_owner(store));
	/* One name is written; the other is none of the lead's. */
	cr_assert_eq(store_lead_join(store, other), 0);
	store_lead_left(store, other);
	cr_assert(store_lead_fences(store));
	store_lead_lost(store);
	store_lead_left(store, ex);
	cr_assert(!store_lead_fences(store) && store_lead_is_owner(store));
	cr_assert(store_lead_lets(other, RNBD_ACCESS_RO));
	loop_run_inbox(&loop);
	cr_assert_eq(nfenced, 1);
	store_lead_closed(store);
	/* It comes back. */
	cr_assert_eq(store_lead_join(store, ex), 0);
	cr_assert(store_lead_fences(store) && !store_lead_is_owner(store));
	store_lead_left(store, ex);
	store_lead_lost(store);
	store_lead_destroy(store);
	loop_run_inbox(&loop);
	cr_assert_eq(nfenced, 1);
	store_lead_destroy(store);
	loop_fini(&loop);
}

static int wish_rc;

static void wish_done(struct store_lead_break *wish, int rc, const char *words)
{
	(void)wish;
	cr_assert(!rc || *words);
	wish_rc = rc;
}

/* An administrator names a store that no client can write: no name is written, or the one that is
 * comes or goes. */
Test(store_file_share, no_name_to_break_the_lock_for)
{
	struct store_lead_break wish = { .done = wish_done };
	struct export *ex = &hosts[A].f.ex;
	struct store *store = hosts[A].store;
	struct loop loop;
	struct export_life life = { .loop = &loop };

	cr_assert_eq(loop_init(&loop), 0);
	all.life = &life;
	for (enum export_rung rung = EXPORT_JOINED; rung < EXPORT_ATTACHED; rung++) {
		ex->life.rung = rung;
		cr_assert_eq(store_lead_join(store, ex), 0);
		wish_rc = 1;
		store_lead_break(store, &wish);
		cr_assert_eq(wish_rc, -ENODEV);
		store_lead_left(store, ex);
		wish_rc = 1;
		store_lead_break(store, &wish);
		cr_assert_eq(wish_rc, -ENODEV);
	}
	/* A wish that waits for the clients of a fenced server. */
	ex->life.rung = EXPORT_SHOWN;
	cr_assert_eq(store_lead_join(store, ex), 0);
	store->users = 1;
	store_lead_lost(store);
	loop_run_inbox(&loop);
	wish_rc = 1;
	store_lead_break(store, &wish);
	cr_assert_eq(wish_rc, 1);
	store_lead_left(store, ex);
	cr_assert_eq(wish_rc, -ENODEV);
	store_lead_destroy(store);
	loop_fini(&loop);
}

static void no_task(struct loop_task *task)
{
	(void)task;
}

static char logged[1024];		/* the last line */

static void keep_line(enum log_level level, const char *line)
{
	snprintf(logged, sizeof(logged), "%s", line);
}

/* While a reload gives the device another name, it has two.  The later one goes on with the lead
 * and the reservation, and the last one gives it back. */
Test(store_file_share, the_next_name_goes_on)
{
	struct export *ex = &hosts[A].f.ex;
	struct store_file next = { .fd = FD + A, .ex = *ex };
	struct store *store = hosts[A].store;
	struct loop loop;
	struct export_life life = { .loop = &loop };

	cr_assert_eq(loop_init(&loop), 0);
	loop_task_init(&life.task, no_task);
	all.life = &life;
	cr_assert(slots_take(&all.slots, &ex->index));
	store_file_desc_added(ex);
	log_init(keep_line, LOG_LEVEL_INFO);
	cr_assert_str_eq(store_lead_refusal(store), "");
	cr_assert_eq(store_lead_join(store, ex), 0);
	cr_assert_eq(exports_join(&all, &next.ex, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(store_file_share_begin(&next.ex, why, sizeof(why)), 0, "%s", why);
	cr_assert_str_eq(store_lead_refusal(store), "");
	cr_assert_eq(take(B, CLOCK_NEVER), 0);
	store_lead_want(store, false, 0);
	while (store->held)
		loop_run_inbox(&loop);
	cr_assert(strstr(store_lead_refusal(store), "the host with the key 0x2222 "), "%s",
		  store_lead_refusal(store));
	cr_assert_eq(strncmp(logged, "a: another server writes the store: the host", 44), 0, "%s",
		     logged);
	/* A device that fails is no server that keeps the lock. */
	dev.refuses = EPERM;
	store_lead_want(store, false, 0);
	while (store->held)
		loop_run_inbox(&loop);
	cr_assert_str_eq(store_lead_refusal(store), "");
	cr_assert(strstr(logged, "a: this server cannot take the lock of the store: 'a' "), "%s",
		  logged);
	dev.refuses = 0;
	cr_assert_eq(yield(B), 0);
	store->writers = 1;
	store_lead_want(store, false, 0);
	while (store->held)
		loop_run_inbox(&loop);
	cr_assert_eq(dev.holder, A);
	cr_assert_str_eq(store_lead_refusal(store), "");
	store_lead_goes(store, ex);
	exports_leave(&all, ex);
	cr_assert(store_lead_fences(store) && store_lead_is_owner(store));
	cr_assert(store_lead_lets(&next.ex, RNBD_ACCESS_RW));
	cr_assert_eq(dev.holder, A);
	store->writers = 0;
	store_lead_closed(store);
	while (store->held)
		loop_run_inbox(&loop);
	cr_assert_eq(dev.holder, -1);
	cr_assert_eq(store_file_share_take(&next.ex, CLOCK_NEVER, 0, why, sizeof(why)), 0);
	cr_assert_eq(dev.holder, A);
	store_lead_goes(store, &next.ex);
	exports_release(&all, &next.ex);
	exports_leave(&all, &next.ex);
	cr_assert_eq(dev.holder, -1);
	free(next.ex.pulse);
	loop_fini(&loop);
}

static int forget(unsigned host)
{
	*why = '\0';
	return store_file_share_forget(&hosts[host].f.ex, why, sizeof(why));
}

/* Two hosts have gone for good, one with the reservation: a server of the next pair begins, lets no
 * client write, and is no third host to servers that live. */
Test(store_file_share, a_dead_pair_is_forgotten)
{
	cr_assert_eq(take(A, 0), 0);
	server_begins(C);
	cr_assert_eq(dev.keys[C], 0);
	cr_assert_not(store_file_share_keeps(hosts[C].store));
	cr_assert_eq(take(C, 0), -EUSERS);
	cr_assert(strstr(why, "rtrsctl --force export break"), "%s", why);
	cr_assert_eq(dev.keys[C], 0);
	/* B, which does not write, is forgotten first, and then the owner gets its time. */
	cr_assert_eq(forget(C), 0, "%s", why);
	cr_assert_eq(dev.keys[B], 0);
	cr_assert_eq(dev.holder, A);
	cr_assert_eq(dev.keys[C], 0x3333);
	cr_assert_eq(take(C, 0), 0, "%s", why);
	cr_assert_eq(dev.holder, C);
	cr_assert_eq(dev.keys[A], 0);
	/* No host is known that would have no late writes. */
	cr_assert_eq(yield(C), -EAGAIN);
	cr_assert_eq(forget(C), 0);
	cr_assert_eq(dev.aborts, 2);
}

/* All keys of others go if nobody has the reservation, and none of a pair that is whole. */
Test(store_file_share, keys_without_a_reservation_are_forgotten)
{
	for (int i = C; i < 200; i++)
		dev.keys[i] = 0x100u + (unsigned)i;
	cr_assert_eq(forget(A), 0, "%s", why);
	cr_assert_eq(dev.keys[A], 0x1111);
	for (int i = B; i < 200; i++)
		cr_assert_eq(dev.keys[i], 0);
	cr_assert_eq(dev.holder, -1);
	/* A server that lives registers again, and asks for the reservation by that. */
	cr_assert_eq(take(A, 0), 0);
	cr_assert_eq(take(B, CLOCK_NEVER), -EBUSY);
	cr_assert_eq(dev.keys[B], 0x2222);
	cr_assert_eq(yield(A), 0);
	cr_assert_eq(take(B, CLOCK_NEVER), 0);
}

/* A server on a host that has the reservation begins, and a third host is known. */
Test(store_file_share, an_owner_stays_registered_beside_a_third_host)
{
	cr_assert_eq(take(A, 0), 0);
	dev.keys[C] = 3;
	random_numbers[2] = random_numbers[3] = 0x1112;
	server_begins(A);
	cr_assert_eq(dev.keys[A], 0x1112);
	cr_assert(store_file_share_keeps(hosts[A].store));
	cr_assert_eq(dev.holder, A);
	cr_assert_eq(yield(A), -EAGAIN);
	store_file_share_end(hosts[A].store);
	cr_assert_eq(dev.holder, A);
	dev.keys[C] = 0;
	server_begins(A);
	cr_assert_eq(yield(A), 0);
}

Test(store_file_share, a_device_that_does_not_forget_is_told)
{
	dev.stubborn = true;
	cr_assert_eq(forget(A), -EBUSY);
	cr_assert(strstr(why, "does not remove the key 0x2222"), "%s", why);
	dev.refuses = EPERM;
	cr_assert_eq(forget(A), -EPERM);
}

Test(store_file_share, the_end_of_the_server_ends_the_wait)
{
	cr_assert_eq(take(A, 0), 0);
	atomic_store(&all.stopping, true);
	cr_assert_eq(take(B, 0), -ECANCELED);
	cr_assert_eq(dev.holder, A);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases: connections that end with binds and invalidates in flight, and requests that do not. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "device.h"
#include "util.h"

/* ---- 24 ---- */

/* Nothing more comes: some times what the device waits before it tries again (0.65 s). */
#define STILL_MS 3000

/* How often the device was told that a receive is missing. */
static unsigned long rnr_seen(void)
{
	FILE *f = fopen("/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_rnr_err", "r");
	unsigned long n;

	check(f != NULL);
	check_eq(fscanf(f, "%lu", &n), 1);
	fclose(f);
	return n;
}

/* A message that meets no receive yet, and behind it @entry; from here on it is sent again. */
static void behind_a_retry(struct kit *k, struct frwr_entry *entry)
{
	unsigned long before = rnr_seen();
	struct ibv_send_wr wr = wr_send(0, NULL);
	uint64_t end = clock_now_ms() + WAIT_LIMIT_MS;
	int rc;

	check_eq(post(k->us, &wr, 1), 0);
	rc = fab_post_send(k->us->conn, entry->first);
	entry->posted(entry, rc);
	check_eq(rc, 0);
	while (rnr_seen() == before && !k->us->drained) {
		check(clock_now_ms() < end);
		world_step(k->w, 1);
	}
}

static void fill(struct kit *k, unsigned i, struct ibv_send_wr *wr)
{
	kit_map(k, i, SLOT, FRWR_PEER_WRITES);
	*wr = wr_send(i, NULL);
	check_eq(frwr_fill_send(&k->entry[i], k->us->conn, kit_list(k, i, i), wr, wr), 0);
}

/* Linux 6.12 fails such a connection.  On 6.1 it stands still, and is found by who misses an
 * answer: ended then, it drains. */
static void retried_bind(struct world *w, enum frwr_mode mode)
{
	struct ibv_send_wr wr;
	struct kit k;
	bool arrived;

	if (!kit_open_recvs(w, &k, mode, 0))
		return;
	fill(&k, 2, &wr);
	behind_a_retry(&k, &k.entry[2]);
	check_eq(post_recvs(k.peer, 0, 2), 0);
	while (!k.us->drained && k.peer->nrecvs < 2 && world_step(w, STILL_MS))
		;
	arrived = k.peer->nrecvs == 2 && k.peer->recvs[1].wc.status == IBV_WC_SUCCESS;
	if (k.caps.quirks & FRWR_QUIRK_RETRIED_BIND) {
		if (arrived)
			check_failed(__FILE__, __LINE__,
				     "XPASS: this device can retry in front of a bind: "
							 "FRWR_QUIRK_RETRIED_BIND is to go");
		known_failure(k.us->drained ? "a retry in front of a bind costs the connection" :
					      "a retry in front of a bind stops the connection");
	} else {
		check(arrived);
	}
	/* The path is lost and comes back. */
	kit_reconnect(&k);
	kit_bind(&k, 2);
	kit_write(&k, k.h[2].rkey, 2, 0, SLOT, 1);
	kit_wrote(&k, 2, 0, SLOT, 1);
	check_eq(kit_unmap(&k, 2), 0);
	kit_close(&k);
}

FAB_TEST(t24_retried_binds)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1 };

	for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
		printf("  %s\n", frwr_mode_name(modes[i]));
		fflush(stdout);
		if (provider_retries_rnr)
			retried_bind(w, modes[i]);
	}
}

/* ---- 25 ---- */

/* What the kernel has of this machine's devices.  It counts no windows; but a domain cannot go
 * before its windows, and is counted.  "" where there are no devices. */
static void resources(char *buf, size_t len)
{
	size_t n = 0;
	FILE *f;

	buf[0] = '\0';
	if (!on_device)
		return;
	f = popen("rdma resource show", "r");
	check(f != NULL);
	n = fread(buf, 1, len - 1, f);
	buf[n] = '\0';
	check_eq(pclose(f), 0);
	check(strstr(buf, " qp ") && strstr(buf, " mr ") && strstr(buf, " pd "));
}

/* Binds of all slots in front of one message, or of each, that nobody waits for. */
static void binds_in_flight(struct kit *k)
{
	static struct ibv_send_wr wr[SLOTS];

	for (unsigned i = 0; i < SLOTS; i++) {
		fill(k, i, &wr[i]);
		check_eq(kit_post(k->us, &k->entry[i]), 0);
	}
}

static void invalidates_in_flight(struct kit *k)
{
	binds_in_flight(k);
	for (unsigned i = 0; i < SLOTS; i++)
		check_eq(kit_recv(k, k->peer).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < SLOTS; i++) {
		check_eq(frwr_fill_unmap(&k->entry[i], k->us->conn, kit_list(k, i, i), kit_done,
					 k), 0);
		check_eq(kit_post(k->us, &k->entry[i]), 0);
	}
}

static void one_end(struct world *w, unsigned n)
{
	bool inv = n & 1, theirs = n & 2;
	struct kit k;

	if (!kit_open(w, &k, n & 4 ? FRWR_MW1 : FRWR_MW2))
		return;
	if (inv)
		invalidates_in_flight(&k);
	else
		binds_in_flight(&k);
	fab_disconnect(theirs ? k.peer->conn : k.us->conn);
	world_until(w, k.us->drained && k.peer->drained);
	check(k.ndone <= (inv ? SLOTS : 0));
	frwr_pool_kill(k.pool);
	/* Each once, with or without its completion. */
	check_eq(k.ndone, inv ? SLOTS : 0);
	kit_close(&k);
	check_eq(k.ndone, inv ? SLOTS : 0);
}

FAB_TEST(t25_ends_with_requests_in_flight)
{
	char before[512], after[512];

	/* A library opens a device when it is used first. */
	one_end(w, 0);
	resources(before, sizeof(before));
	for (unsigned n = 0; n < 100; n++)
		one_end(w, n);
	resources(after, sizeof(after));
	printf("%s", after);
	if (strcmp(before, after) != 0)
		check_failed(__FILE__, __LINE__, before);
}

/* ---- 26 ---- */

/* The caller is answered and its memory, which is not the slot, its own again.  The slot is
 * nobody's, whatever the peer goes on to write there, until the path has ended: the peer may be
 * invalidating the key just now. */
FAB_TEST(t26_given_up)
{
	struct frwr_handle h;
	struct kit k;

	if (!kit_open(w, &k, FRWR_MW2))
		return;
	kit_map(&k, 5, SLOT, FRWR_PEER_WRITES);
	check_eq(frwr_expect_reminv(kit_at(&k, 5)), 0);
	kit_tell(&k, 5);
	kit_write(&k, k.h[5].rkey, 5, 0, SLOT / 2, 1);
	kit_wrote(&k, 5, 0, SLOT / 2, 1);
	/* Given up. */
	check_eq(kit_unmap(&k, 5), -EBUSY);
	check_eq(frwr_map(kit_at(&k, 5), k.mr[5], k.h[5].addr, SLOT, FRWR_PEER_WRITES, &h), -EBUSY);
	check_eq(frwr_map_end(kit_at(&k, 5)), -EINVAL);
	check_eq(frwr_state(kit_at(&k, 5)), FRWR_VALID);
	kit_write(&k, k.h[5].rkey, 5, 0, SLOT, 2);
	kit_wrote(&k, 5, 0, SLOT, 2);
	/* Others go on. */
	kit_bind(&k, 6);
	kit_write(&k, k.h[6].rkey, 6, 0, SLOT, 3);
	kit_wrote(&k, 6, 0, SLOT, 3);
	check_eq(kit_unmap(&k, 6), 0);
	/* The path ends, and the peer does not know yet. */
	fab_disconnect(k.us->conn);
	kit_write(&k, k.h[5].rkey, 5, 0, SLOT, 4);
	check_eq(frwr_map(kit_at(&k, 5), k.mr[5], k.h[5].addr, SLOT, FRWR_PEER_WRITES, &h), -EBUSY);
	world_until(w, k.us->drained);
	kit_remember(&k);
	world_until(w, k.peer->drained);
	frwr_pool_kill(k.pool);
	check_eq(frwr_map(kit_at(&k, 5), k.mr[5], k.h[5].addr, SLOT, FRWR_PEER_WRITES, &h),
		 -ENOTCONN);
	check(memcmp(k.before, k.arena, SLOTS * SLOT) == 0);
	/* And the slot is of use again on the next path. */
	kit_reconnect(&k);
	kit_bind(&k, 5);
	kit_write(&k, k.h[5].rkey, 5, 0, SLOT, 5);
	kit_wrote(&k, 5, 0, SLOT, 5);
	check_eq(kit_unmap(&k, 5), 0);
	kit_close(&k);
}

/* ---- 28 ---- */

/* A hostile peer gives one key back twice.  It costs the connection; on rxe the machine, so there
 * only tests/guest/manual-t28-double-invalidate.sh asks for it. */
FAB_TEST(t28_double_invalidate)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct kit k;

	if (!kit_open(w, &k, FRWR_MW2))
		return;
	if ((k.caps.quirks & FRWR_QUIRK_INV_FATAL) && !getenv("FRWR_DOUBLE_INVALIDATE")) {
		printf("  SKIPPED: it would stop this machine\n");
		kit_close(&k);
		return;
	}
	kit_bind(&k, 1);
	wr = wr_send_inv(0, NULL, k.h[1].rkey);
	check_eq(post(k.peer, &wr, 1), 0);
	wc = kit_recv(&k, k.us);
	check(frwr_reminv(k.pool, k.us->conn, &wc) == kit_at(&k, 1));
	kit_remember(&k);
	check_eq(post(k.peer, &wr, 1), 0);
	kit_refused(&k);
	check_eq(k.us->recvs[0].wc.status, IBV_WC_REM_INV_REQ_ERR);
	check_eq(frwr_state(kit_at(&k, 1)), FRWR_FREE);
	kit_close(&k);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases: what a peer must not be able to do with keys, and what each side hears of it. */
#include <string.h>

#include "device.h"
#include "util.h"

/* The peer's window is on slot 1 unless said otherwise. */
enum violation {
	BEHIND, IN_FRONT, OTHER_TAG, OTHER_INDEX, NO_RIGHT, REVOKED, NOT_BOUND, REGION_KEY,
	ELSEWHERE,
	INV_OTHER_TAG, INV_OTHER_INDEX, INV_REGION, INV_TYPE_1,
};

static const struct row {
	const char *what;
	enum violation violation;
	enum frwr_mode mode;
} rows[] = {
	{ "behind the slot", BEHIND, FRWR_MW2 },
	{ "behind the slot", BEHIND, FRWR_MW1 },
	{ "in front of the slot", IN_FRONT, FRWR_MW2 },
	{ "in front of the slot", IN_FRONT, FRWR_MW1 },
	{ "another tag", OTHER_TAG, FRWR_MW2 },
	{ "another tag", OTHER_TAG, FRWR_MW1 },
	{ "another index", OTHER_INDEX, FRWR_MW2 },
	{ "another index", OTHER_INDEX, FRWR_MW1 },
	{ "without the right to write", NO_RIGHT, FRWR_MW2 },
	{ "without the right to write", NO_RIGHT, FRWR_MW1 },
	{ "taken away", REVOKED, FRWR_MW2 },
	{ "taken away", REVOKED, FRWR_MW1 },
	{ "taken away", REVOKED, FRWR_REREG },
	{ "mapped, not yet posted", NOT_BOUND, FRWR_MW2 },
	{ "mapped, not yet posted", NOT_BOUND, FRWR_MW1 },
	{ "the key of the region", REGION_KEY, FRWR_MW2 },
	{ "on another connection", ELSEWHERE, FRWR_MW2 },
	{ "invalidate of another tag", INV_OTHER_TAG, FRWR_MW2 },
	{ "invalidate of another index", INV_OTHER_INDEX, FRWR_MW2 },
	{ "invalidate of a region", INV_REGION, FRWR_MW2 },
	{ "invalidate of type 1", INV_TYPE_1, FRWR_MW1 },
};

/* What the peer writes to, with which key. */
static struct ibv_send_wr write_of(struct kit *k, const struct row *row, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = wr_write(0, sge, k->h[1].addr, k->h[1].rkey);

	switch (row->violation) {
	case BEHIND:
		wr.wr.rdma.remote_addr += SLOT - 15;
		break;
	case IN_FRONT:
		wr.wr.rdma.remote_addr -= 1;
		break;
	case OTHER_TAG:
		wr.wr.rdma.rkey ^= 0x01;
		break;
	case OTHER_INDEX:
		wr.wr.rdma.rkey ^= 0xff000000;
		break;
	case REGION_KEY:
		wr.wr.rdma.rkey = k->mr[1]->rkey;
		break;
	default:
		break;
	}
	return wr;
}

/* Slot 1 as the row wants it. */
static void prepare(struct kit *k, const struct row *row)
{
	kit_map(k, 1, SLOT, row->violation == NO_RIGHT ? FRWR_PEER_READS : FRWR_PEER_WRITES);
	if (row->violation != NOT_BOUND)
		kit_tell(k, 1);
	if (row->violation == REVOKED)
		check_eq(kit_unmap(k, 1), row->mode == FRWR_REREG ? 1 : 0);
	kit_remember(k);
}

/* Requests of the peer that were answered before the connection was over. */
static unsigned nanswered;

static void check_statuses(struct end *peer, enum ibv_wc_status peer_status, struct end *us,
			   enum ibv_wc_status our_status)
{
	enum ibv_wc_status status = peer->sends[0].wc.status;

	check_eq(peer->nsends, 1);
	/* On a device the end of the connection may overtake the ACK or NAK, because they come by
	 * different ways. */
	check(status == peer_status || (on_device && status == IBV_WC_WR_FLUSH_ERR));
	nanswered += status == peer_status;
	check(us->nrecvs > 0);
	check_eq(us->recvs[0].wc.status, our_status);
	for (unsigned i = 1; i < us->nrecvs; i++)
		check_eq(us->recvs[i].wc.status, IBV_WC_WR_FLUSH_ERR);
	check(fab_conn_cause(peer->conn)[0] != '\0');
	check(fab_conn_cause(us->conn)[0] != '\0');
}

/* A device tells who wrote what was wrong; over sockets a write is done when it has left.  Who was
 * written to hears of it with the receive that an immediate would have completed, else only that
 * all is over. */
static void refused_write(struct world *w, const struct row *row, bool imm)
{
	struct end *a2 = NULL, *b2 = NULL;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct kit k;

	if (!kit_open(w, &k, row->mode))
		return;
	prepare(&k, row);
	if (row->violation == ELSEWHERE)
		kit_second(&k, &a2, &b2);
	memset(k.src.mem, 0xee, SLOT);
	sge = region_sge(&k.src, 0, 16);
	wr = write_of(&k, row, &sge);
	if (imm)
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(b2 ? b2 : k.peer, &wr, 1), 0);
	if (b2) {
		world_until(w, a2->drained && b2->drained);
		check(memcmp(k.before, k.arena, SLOTS * SLOT) == 0);
	} else {
		kit_refused(&k);
	}
	check_statuses(b2 ? b2 : k.peer, on_device ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS,
		       a2 ? a2 : k.us,
		       imm ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
	if (a2) {
		/* And is as good as before where it belongs. */
		kit_write(&k, k.h[1].rkey, 1, 0, SLOT, 5);
		kit_wrote(&k, 1, 0, SLOT, 5);
		end_free(a2);
		end_free(b2);
	}
	if (row->violation == NOT_BOUND) {
		check_eq(frwr_map_end(kit_at(&k, 1)), 0);
		check_eq(frwr_state(kit_at(&k, 1)), FRWR_FREE);
	}
	kit_close(&k);
}

/* The message of an invalidate goes; where it arrives it is an error. */
static void refused_inv(struct world *w, const struct row *row)
{
	struct ibv_send_wr wr;
	struct kit k;

	if (!kit_open(w, &k, row->mode))
		return;
	prepare(&k, row);
	wr = wr_send_inv(0, NULL, row->violation == INV_REGION ? k.mr[1]->rkey :
		row->violation == INV_OTHER_TAG ? k.h[1].rkey ^ 0x01 :
		row->violation == INV_OTHER_INDEX ? k.h[1].rkey ^ 0xff000000 : k.h[1].rkey);
	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(k.peer, &wr, 1), 0);
	kit_refused(&k);
	check_statuses(k.peer, IBV_WC_SUCCESS, k.us, IBV_WC_REM_INV_REQ_ERR);
	kit_close(&k);
}

FAB_TEST(t21_violations)
{
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		printf("  %s, %s\n", rows[i].what, frwr_mode_name(rows[i].mode));
		fflush(stdout);
		if (rows[i].violation >= INV_OTHER_TAG) {
			refused_inv(w, &rows[i]);
		} else {
			refused_write(w, &rows[i], true);
			refused_write(w, &rows[i], false);
		}
	}
	check(nanswered > 0);
}

/* ---- 22 ---- */

/* A window on the first quarter of a slot.  It ends there; on rxe it ends with the region, and so a
 * region is a slot: the neighbour is out of reach. */
static void bounds(struct world *w, enum frwr_mode mode)
{
	struct kit k;

	if (!kit_open(w, &k, mode))
		return;
	kit_map(&k, 1, SLOT / 4, FRWR_PEER_WRITES);
	kit_tell(&k, 1);
	kit_remember(&k);
	kit_write(&k, k.h[1].rkey, 1, SLOT / 2, 16, 7);
	if (k.caps.quirks & FRWR_QUIRK_MR_BOUNDS) {
		world_until(w, k.us->nrecvs || (k.us->drained && k.peer->drained));
		if (!k.us->nrecvs || k.us->recvs[0].wc.status != IBV_WC_SUCCESS)
			check_failed(__FILE__, __LINE__,
				     "XPASS: this device keeps the bounds of windows: "
							 "FRWR_QUIRK_MR_BOUNDS is to go");
		kit_wrote(&k, 1, SLOT / 2, 16, 7);
		known_failure("a peer writes beyond a window, inside of its slot");
	} else {
		kit_refused(&k);
		kit_reconnect(&k);
		kit_map(&k, 1, SLOT / 4, FRWR_PEER_WRITES);
		kit_tell(&k, 1);
	}
	kit_remember(&k);
	kit_write(&k, k.h[1].rkey, 1, SLOT - 8, 16, 7);
	kit_refused(&k);
	kit_close(&k);
}

FAB_TEST(t22_slots_bound_windows)
{
	bounds(w, FRWR_MW2);
	bounds(w, FRWR_MW1);
}

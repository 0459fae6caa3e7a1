/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of paths that flap, with a clock that the test turns. */
#include <netinet/in.h>

#include "unit.h"

#include "clock.h"
#include "srv-log.h"
#include "srv-sess.h"
#include "util.h"

#define STEADY_MS SRV_FLAP_STEADY_MS
#define AWAY_MS SRV_FLAP_AWAY_MS

static uint64_t now_ms;
static struct srv_flaps flaps;
static struct srv_sess sess;
static struct srv_path paths[8 * SRV_FLAPS_MAX + 2];
static unsigned npaths;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

static void setup(void)
{
	now_ms = 1000000;
	npaths = 0;
	memset(&flaps, 0, sizeof(flaps));
	snprintf(sess.name, sizeof(sess.name), "vm");
}

TestSuite(srv_flaps, .init = setup);

/* A path of the host @host. */
static struct srv_path *path_of(uint32_t host)
{
	struct srv_path *path = &paths[npaths++];
	struct sockaddr_in *in = (struct sockaddr_in *)&path->client.ss;

	*path = (struct srv_path){ .sess = &sess, .client.len = sizeof(*in) };
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 + host);
	memcpy(path->uuid, &npaths, sizeof(npaths));
	snprintf(path->name, sizeof(path->name), "vm/p%u", npaths);
	return path;
}

static void come_up(struct srv_path *path)
{
	path->up_since_ms = now_ms;
	srv_flaps_up(&flaps, path);
}

static void lose(struct srv_path *path)
{
	srv_flaps_lost(&flaps, path, "connection 1: Connection timed out");
}

/* @path comes up, and is lost after @up_ms. */
static void flap(struct srv_path *path, uint64_t up_ms)
{
	come_up(path);
	now_ms += up_ms;
	lose(path);
}

static unsigned count(void)
{
	const struct srv_flap *f = NULL;
	unsigned n = 0;

	while ((f = srv_flaps_next(&flaps, f)))
		n++;
	return n;
}

static const struct srv_flap *find(const struct srv_path *path)
{
	const struct srv_flap *f = NULL;

	while ((f = srv_flaps_next(&flaps, f))) {
		if (!memcmp(f->uuid, path->uuid, sizeof(f->uuid)))
			return f;
	}
	return NULL;
}

Test(srv_flaps, times_up_to_the_limit)
{
	struct srv_path *path = path_of(1);
	const struct srv_flap *f;

	for (unsigned i = 1; i <= 4 * SRV_FLAP_UPS; i++) {
		now_ms += 1000;
		come_up(path);
		f = find(path);
		cr_assert_eq(f != NULL, i >= SRV_FLAP_UPS, "%u", i);
		cr_assert(!f || f->ups == i);
		now_ms += 2000;
		lose(path);
		cr_assert_eq(find(path), f);
	}
	cr_assert_eq(now_ms - f->since_ms, 4 * SRV_FLAP_UPS * 3000 - 1000);
	cr_assert_eq(f->up_ms, now_ms - 2000);
	cr_assert_eq(f->lost_ms, now_ms);
	cr_assert_str_eq(f->path, "vm/p1");
	cr_assert_str_eq(f->session, "vm");
	cr_assert_str_eq(f->cause, "connection 1: Connection timed out");
	cr_assert_eq(count(), 1);
}

/* The longest pauses and the longest service of a path that still flaps. */
Test(srv_flaps, pauses_and_service_up_to_the_limit)
{
	struct srv_path *path = path_of(1);

	for (unsigned i = 0; i < 4; i++) {
		flap(path, STEADY_MS - 1);
		now_ms += AWAY_MS - 1;
	}
	cr_assert(find(path));
	now_ms++;
	cr_assert_not(find(path));
}

static void never_flaps(uint64_t up_ms, uint64_t away_ms)
{
	struct srv_path *path = path_of(1);

	setup();
	for (unsigned i = 0; i < 2 * SRV_FLAP_UPS; i++) {
		flap(path, up_ms);
		cr_assert_not(find(path), "%u", i);
		now_ms += away_ms;
	}
}

Test(srv_flaps, longer_ones_begin_again)
{
	for (unsigned beyond = 0; beyond < 2; beyond++) {
		never_flaps(STEADY_MS + beyond, 0);
		never_flaps(1, AWAY_MS + beyond);
	}
	never_flaps(4 * STEADY_MS, 0);
	never_flaps(1, 4 * AWAY_MS);
}

/* It goes by itself once the path stays up. */
Test(srv_flaps, steady_path)
{
	struct srv_path *path = path_of(1);

	for (unsigned i = 0; i < SRV_FLAP_UPS; i++)
		flap(path, 1);
	come_up(path);
	now_ms += STEADY_MS - 1;
	cr_assert(find(path));
	now_ms++;
	cr_assert_not(find(path));
	/* Days later the count begins again. */
	now_ms += 4 * (uint64_t)STEADY_MS;
	lose(path);
	for (unsigned i = 1; i < SRV_FLAP_UPS; i++)
		flap(path, 1);
	cr_assert_not(find(path));
	flap(path, 1);
	cr_assert(find(path));
}

/* A gateway that was restarted has another path; so has another client that chose this uuid. */
Test(srv_flaps, other_path_of_the_name)
{
	struct srv_path *path = path_of(1), *other = path_of(1), *same = path_of(1);

	snprintf(other->name, sizeof(other->name), "%s", path->name);
	memcpy(same->uuid, path->uuid, sizeof(same->uuid));
	snprintf(same->identity, sizeof(same->identity), "psk:other");
	for (unsigned i = 1; i < SRV_FLAP_UPS; i++) {
		flap(path, 1);
		flap(other, 1);
		flap(same, 1);
	}
	cr_assert_eq(count(), 0);
	flap(other, 1);
	cr_assert_eq(count(), 1);
	cr_assert(find(other));
}

/* @n paths flap in turn, each of a host of its own unless @one_host. */
static unsigned reported_of(unsigned n, bool one_host)
{
	setup();
	for (unsigned i = 0; i < n; i++)
		path_of(one_host ? 1 : i);
	for (unsigned round = 0; round < 2 * SRV_FLAP_UPS; round++) {
		for (unsigned i = 0; i < n; i++)
			flap(&paths[i], 1);
	}
	return count();
}

/* Of more paths than there are entries nearly all entries have one. */
Test(srv_flaps, paths_up_to_the_limit)
{
	cr_assert_eq(reported_of(SRV_FLAPS_MAX - 1, false), SRV_FLAPS_MAX - 1);
	cr_assert_eq(reported_of(SRV_FLAPS_MAX, false), SRV_FLAPS_MAX);
	cr_assert_eq(reported_of(SRV_FLAPS_MAX + 1, false), SRV_FLAPS_MAX - 1);
	cr_assert_eq(reported_of(4 * SRV_FLAPS_MAX, false), SRV_FLAPS_MAX - 1);
}

Test(srv_flaps, paths_of_a_host_up_to_the_limit)
{
	cr_assert_eq(reported_of(SRV_FLAPS_NET_MAX - 1, true), SRV_FLAPS_NET_MAX - 1);
	cr_assert_eq(reported_of(SRV_FLAPS_NET_MAX, true), SRV_FLAPS_NET_MAX);
	cr_assert_eq(reported_of(SRV_FLAPS_NET_MAX + 1, true), SRV_FLAPS_NET_MAX - 1);
	cr_assert_eq(reported_of(4 * SRV_FLAPS_NET_MAX, true), SRV_FLAPS_NET_MAX - 1);
}

/* Paths of one host, or that were lost once, do not hide a path that flaps. */
Test(srv_flaps, others_hide_nothing)
{
	struct srv_path *path = path_of(1000), *other;

	for (unsigned i = 0; i < 4 * SRV_FLAPS_MAX; i++) {
		other = path_of(1);
		for (unsigned again = 0; again < 2 * SRV_FLAP_UPS; again++)
			flap(other, 1);
	}
	for (unsigned i = 0; i < SRV_FLAP_UPS; i++)
		flap(path, 1);
	cr_assert(find(path));
	for (unsigned i = 0; i < 4 * SRV_FLAPS_MAX; i++) {
		other = path_of(2000 + i);
		flap(other, 1);
	}
	cr_assert(find(path));
	/* What is over makes room. */
	now_ms += AWAY_MS;
	cr_assert_eq(count(), 0);
	for (unsigned i = 0; i < SRV_FLAP_UPS; i++)
		flap(path, 1);
	cr_assert(find(path));
}

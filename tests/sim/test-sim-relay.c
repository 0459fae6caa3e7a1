/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody between client and server who passes some connections of a path through and ends TLS on
 * others: all that this relay can do to the connections of an attempt, with the real client and the
 * real server.  The oracle: no byte of a path is read whose first connection has TLS. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

/* The connection of the proof, and two of the path. */
#define CONNS 3u

static char file[] = "/tmp/test-sim-relay.XXXXXX";
static const char key_text[] =
	"alice:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
static const enum fab_tls_mode modes[] = { FAB_TLS_ON, FAB_TLS_REQUIRE };

struct attempt {
	enum fab_tls_mode client, server;
	enum auth_mode auth;		/* of both */
	struct sim_relay relay;
	bool up;			/* its requests were answered */
};

/* Plan number @n of SIM_BETWEENS ** CONNS. */
static void plan(struct sim_relay *relay, unsigned n)
{
	for (unsigned i = CONNS; i--; n /= SIM_BETWEENS)
		relay->plan[i] = n % SIM_BETWEENS;
}

static bool all(const struct attempt *a, enum sim_between how)
{
	for (unsigned i = 0; i < a->relay.met; i++) {
		if (a->relay.plan[i] != how)
			return false;
	}
	return true;
}

static struct auth_creds *creds_of(enum auth_mode mode)
{
	const struct auth_conf conf = { .asked = true, .mode = mode,
					.psk = mode == AUTH_MODE_NONE ? NULL : file };
	struct auth_creds *creds;
	char err[256];

	CHECK(auth_creds_create(&conf, &creds, err, sizeof(err)) == 0);
	return creds;
}

/* One attempt of a client to connect, and its IO. */
static void try_out(struct attempt *a)
{
	struct world_server_conf server = world_server_defaults;
	struct world_client_conf client = world_client_defaults;
	struct auth_creds *creds = creds_of(a->auth);
	struct world *w = world_create(1);
	struct world_client *c;

	if (a->auth != AUTH_MODE_NONE)
		server.auth = (struct auth_conf){ .server = true, .asked = true, .mode = a->auth,
						  .psk = file };
	client.auth = creds;
	client.once = true;
	client.connections = 1;
	sim_tls("clt", a->client);
	sim_tls("srv", a->server);
	world_server_start(w, &server);
	sim_put_between(&a->relay);
	c = world_client_start(w, &client);
	world_run_ms(w, 3000);
	a->up = !world_client_opened(c) && !world_write(c, 0, 4096, 's') &&
		!world_read(c, 0, 4096, 's');
	world_client_stop(w, c);
	sim_put_between(NULL);
	world_destroy(w);
	auth_creds_destroy(creds);
}

static void tell(const struct attempt *a, unsigned conn)
{
	static const char *const names[SIM_BETWEENS] = {
		"passes", "TLS/TLS", "TLS/plain", "plain/TLS", "plain/plain" };

	fprintf(stderr, "read %llu bytes of connection %u: client tls=%s, server tls=%s, auth=%s:",
		(unsigned long long)a->relay.conn[conn].read, conn, fab_tls_mode_names[a->client],
		fab_tls_mode_names[a->server], auth_mode_names[a->auth]);
	for (unsigned i = 0; i < a->relay.met && i < CONNS; i++)
		fprintf(stderr, " %s", names[a->relay.plan[i]]);
	fprintf(stderr, "\n");
}

/* The relay has read nothing of connection @conn or of a later one. */
static void nothing_read_from(const struct attempt *a, unsigned conn)
{
	for (; conn < a->relay.met; conn++) {
		if (a->relay.conn[conn].read)
			tell(a, conn);
		CHECK(!a->relay.conn[conn].read);
	}
}

static bool begins_with_tls(const struct attempt *a)
{
	return a->relay.conn[0].client_tls || a->relay.conn[0].server_tls;
}

/* With a proof: whatever the relay does, a path is up as a whole or not at all. */
SIM_TEST(proven)
{
	unsigned n = 1, up = 0;

	for (unsigned i = 0; i < CONNS; i++)
		n *= SIM_BETWEENS;
	for (unsigned i = 0; i < n * ARRAY_SIZE(modes) * ARRAY_SIZE(modes) * 2; i++) {
		struct attempt a = { .client = modes[i / n % 2], .server = modes[i / n / 2 % 2],
				     .auth = i / n / 4 ? AUTH_MODE_REQUIRE : AUTH_MODE_PSK };

		plan(&a.relay, i % n);
		try_out(&a);
		/* The connection of the proof carries no data. */
		if (begins_with_tls(&a))
			nothing_read_from(&a, 1);
		CHECK(!a.up || all(&a, SIM_PASSES) || all(&a, SIM_PLAIN_PLAIN));
		CHECK(a.up || !all(&a, SIM_PASSES));
		up += a.up;
	}
	CHECK(up);
}

/* Without a proof nobody sees that TLS was ended, but that one connection lacks it. */
SIM_TEST(unproven)
{
	for (unsigned i = 0; i < SIM_BETWEENS * ARRAY_SIZE(modes); i++) {
		struct attempt a = { .client = FAB_TLS_ON, .server = modes[i / SIM_BETWEENS],
				     .relay.plan = { SIM_PASSES, i % SIM_BETWEENS } };

		try_out(&a);
		CHECK(begins_with_tls(&a));
		if (!a.relay.conn[1].client_tls || !a.relay.conn[1].server_tls)
			nothing_read_from(&a, 1);
		CHECK(a.up || !all(&a, SIM_PASSES));
	}
}

int main(int argc, char **argv)
{
	int fd = mkstemp(file), rc;

	CHECK(fd >= 0 && write(fd, key_text, strlen(key_text)) == (ssize_t)strlen(key_text));
	close(fd);
	rc = sim_test_main(argc, argv);
	unlink(file);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What lasts for all runs: keys, credentials and listeners, in a directory of their own.  The key
 * exchange of a session is as the flags of the run say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "log.h"
#include "tls-rig.h"

/* A side of all runs, by its mode. */
struct side {
	struct fab_tls *tls;
	struct fab_cm *cm;
	struct fab_listener *listener;
	struct fab_addr addr;
};

static struct side servers[2], clients[2];
static int plain_listener;		/* of the peer, for our active end */
static struct fab_addr plain_addr;
static struct fab_tls *peer_tls[2];	/* as a client, as a server */

/* ---- sessions ---- */

int __real_fab_tls_session(struct fab_tls_end *end, const char *address,
			   struct gnutls_session_int **session);
int __wrap_fab_tls_session(struct fab_tls_end *end, const char *address,
			   struct gnutls_session_int **session);

/* Keys alone, without a Diffie-Hellman exchange, are five times as many runs. */
int __wrap_fab_tls_session(struct fab_tls_end *end, const char *address,
			   struct gnutls_session_int **session)
{
	static const char *const quick[] = {
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-KX-ALL:+PSK",
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305:-KX-ALL:+PSK",
	};
	static gnutls_priority_t priority[2];
	unsigned which = !!(run.flags & FLAG_CHACHA);
	int rc = __real_fab_tls_session(end, address, session);

	if (rc || (run.flags & (FLAG_WITH_DH | FLAG_CHACHA)) == (FLAG_WITH_DH | FLAG_CHACHA))
		return rc;
	if (!priority[which])
		must(gnutls_priority_init(&priority[which], quick[which], NULL) == 0);
	must(gnutls_priority_set(*session, priority[which]) == 0);
	return 0;
}

/* ---- sides ---- */

static void no_line(enum log_level level, const char *line)
{
}

static struct fab_tls *make_tls(const char *keys, bool server, enum fab_tls_mode mode)
{
	const struct fab_tls_conf conf = { .server = server, .asked = true, .mode = mode,
					   .psk = keys };
	struct fab_tls *tls = NULL;
	char err[256];

	must(fab_tls_create(&conf, &tls, err, sizeof(err)) == 0);
	return tls;
}

static int listen_plain(const char *path, struct fab_addr *addr)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&addr->ss;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct fab_addr){ .provider = fab_provider_find("tcp"), .len = sizeof(*un) };
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
	must(fd >= 0 && bind(fd, (struct sockaddr *)un, addr->len) == 0 && listen(fd, 4) == 0);
	return fd;
}

static void make_side(struct side *s, const char *keys, bool server, bool on, const char *socket)
{
	char err[256];

	s->tls = make_tls(keys, server, on ? FAB_TLS_ON : FAB_TLS_REQUIRE);
	must(fab_cm_create(&(struct fab_cm_conf){ .provider = fab_provider_find("tcp"),
						  .tls = s->tls }, &s->cm) == 0);
	if (!server)
		return;
	must(fab_addr_parse(socket, fab_provider_find("tcp"), 0, &s->addr, err, sizeof(err)) == 0);
	must(fab_listen(s->cm, &s->addr, &s->listener) == 0);
}

/* Files are gone when all is made: connections need the names of the sockets, which lie in a
 * directory that is removed at the end of the process. */
static char dir[] = "/tmp/fuzz-tls.XXXXXX";

static void remove_dir(void)
{
	static const char *const names[] = { "keys", "require", "on", "plain" };
	char path[64];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

void sides_make(void)
{
	static const char line[] = "peer/1:00112233445566778899aabbccddeeff\n";
	char keys[64], path[64];
	FILE *f;

	must(mkdtemp(dir));
	atexit(remove_dir);
	umask(077);
	log_init(no_line, LOG_LEVEL_DEBUG);
	snprintf(keys, sizeof(keys), "%s/keys", dir);
	f = fopen(keys, "w");
	must(f && fputs(line, f) >= 0 && fclose(f) == 0);
	for (int on = 0; on < 2; on++) {
		snprintf(path, sizeof(path), "unix:%s/%s", dir, on ? "on" : "require");
		make_side(&servers[on], keys, true, on, path);
		make_side(&clients[on], keys, false, on, NULL);
	}
	peer_tls[0] = make_tls(keys, false, FAB_TLS_REQUIRE);
	peer_tls[1] = make_tls(keys, true, FAB_TLS_REQUIRE);
	snprintf(path, sizeof(path), "%s/plain", dir);
	plain_listener = listen_plain(path, &plain_addr);
}

/* ---- for a run ---- */

static const struct side *our_side(unsigned flags)
{
	return &(flags & FLAG_ACTIVE ? clients : servers)[!!(flags & FLAG_ON)];
}

struct fab_cm *sides_cm(unsigned flags)
{
	return our_side(flags)->cm;
}

const struct fab_addr *sides_dial(void)
{
	return &plain_addr;
}

int sides_accept(void)
{
	int fd = accept(plain_listener, NULL, NULL);

	must(fd >= 0);
	return fd;
}

int sides_connect(unsigned flags)
{
	const struct fab_addr *addr = &our_side(flags)->addr;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && connect(fd, (const struct sockaddr *)&addr->ss, addr->len) == 0);
	return fd;
}

const struct fab_tls *sides_peer(unsigned flags)
{
	return peer_tls[!!(flags & FLAG_ACTIVE)];
}

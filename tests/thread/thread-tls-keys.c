/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and certificates are replaced, and those of before freed, while handshakes take them on
 * other threads.  Who has a key, or trusts a certificate, before and after a replacement gets
 * through. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "fab-tls-stream.h"
#include "fabric.h"
#include "secrets-set.h"
#include "thread.h"
#include "util.h"

#define ROUNDS 100
#define ALICE "alice:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define BOB "bob:ff112233445566778899aabbccddeeff00112233445566778899aabbccddee00\n"
#define GUEST "guest:aa112233445566778899aabbccddeeff00112233445566778899aabbccddee11\n"

static char dir[] = "/tmp/thread-tls-keys.XXXXXX";
static struct fab_tls *psk_server, *psk_client, *psk_guest, *cert_server, *cert_client;
static uint64_t alice_serial, bob_serial;
static atomic_uint nworking = NTHREADS - 1;
static atomic_uint nguests_in, nguests_out;
static atomic_bool replacing;		/* the owner is in a replacement, or waits for its lock */
static _Thread_local bool shaking;

/* ---- files ---- */

/* The path of @name in @dir; one text at a time for a thread. */
static const char *in_dir(const char *name)
{
	static _Thread_local char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *name, const void *data, size_t len)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_APPEND, 0600);

	check(fd >= 0);
	check(write(fd, data, len) == (ssize_t)len);
	close(fd);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* Write to the folder @name a certificate, which signs itself, and its key; the certificate is an
 * authority of both folders. */
static void write_certificate(const char *name, const char *other)
{
	static char pem[4096];
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	size_t len = sizeof(pem);
	char path[64];

	check(!gnutls_x509_privkey_init(&key) && !gnutls_x509_crt_init(&crt));
	check(!gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					    GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
	check(!gnutls_x509_crt_set_version(crt, 3));
	check(!gnutls_x509_crt_set_serial(crt, "\1", 1));
	check(!gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60));
	check(!gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600));
	check(!gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
					     (unsigned)strlen(name)));
	check(!gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "server", 6,
						    GNUTLS_FSAN_SET));
	check(!gnutls_x509_crt_set_basic_constraints(crt, 1, 0));
	check(!gnutls_x509_crt_set_key(crt, key));
	check(!gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0));
	check(!gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, pem, &len));
	snprintf(path, sizeof(path), "%s/server-cert.pem", name);
	write_file(path, pem, len);
	snprintf(path, sizeof(path), "%s/ca-cert.pem", name);
	write_file(path, pem, len);
	snprintf(path, sizeof(path), "%s/ca-cert.pem", other);
	write_file(path, pem, len);
	len = sizeof(pem);
	check(!gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, pem, &len));
	snprintf(path, sizeof(path), "%s/server-key.pem", name);
	write_file(path, pem, len);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

static void write_files(void)
{
	check(mkdtemp(dir));
	write_text("server-0", ALICE BOB);
	write_text("server-1", GUEST BOB ALICE);
	write_text("client-0", BOB);
	write_text("client-1", ALICE);
	write_text("guest", GUEST);
	check(!mkdir(in_dir("certs-0"), 0700) && !mkdir(in_dir("certs-1"), 0700));
	write_certificate("certs-0", "certs-1");
	write_certificate("certs-1", "certs-0");
}

static void remove_files(void)
{
	static const char *const names[] = {
		"server-0", "server-1", "client-0", "client-1", "guest",
		"certs-0/ca-cert.pem", "certs-0/server-cert.pem", "certs-0/server-key.pem",
		"certs-1/ca-cert.pem", "certs-1/server-cert.pem", "certs-1/server-key.pem",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		check(!unlink(in_dir(names[i])));
	check(!rmdir(in_dir("certs-0")) && !rmdir(in_dir("certs-1")) && !rmdir(dir));
}

static struct fab_tls *make(bool server, const char *psk, const char *certs)
{
	char file[128], err[512];
	struct fab_tls_conf conf = { .server = server, .psk = psk ? file : NULL,
				     .certificates = certs ? file : NULL,
				     .verify_peer = !server,
				     .hostname = certs && !server ? "server" : NULL };
	struct fab_tls *tls;

	snprintf(file, sizeof(file), "%s", in_dir(psk ? psk : certs));
	if (fab_tls_create(&conf, &tls, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	return tls;
}

/* ---- the owner, and handshakes that stand in its way ---- */

/* A handshake has found what it is to take: let the owner begin a replacement, and give it the
 * processor for a while.  A lock is all that stops the owner there. */
static void let_replace(void)
{
	if (!shaking)
		return;
	while (!replacing)
		sched_yield();
	for (unsigned i = 0; i < 100; i++)
		sched_yield();
}

const struct psk *__real_psk_find(const struct psks *psks, const void *name, size_t len);
const struct psk *__wrap_psk_find(const struct psks *psks, const void *name, size_t len);
const struct psk *__wrap_psk_find(const struct psks *psks, const void *name, size_t len)
{
	const struct psk *psk = __real_psk_find(psks, name, len);

	let_replace();
	return psk;
}

struct certs *__real_certs_get(struct certs *certs);
struct certs *__wrap_certs_get(struct certs *certs);
struct certs *__wrap_certs_get(struct certs *certs)
{
	let_replace();
	return __real_certs_get(certs);
}

static void replace_by(struct fab_tls *tls, const char *name)
{
	struct secrets *s = fab_tls_secrets(tls);
	FILE *out = fopen("/dev/null", "w");
	struct secrets_set set = { 0 };
	char err[512];

	check(out);
	secrets_set_add(&set, s, in_dir(name));
	/* Who asks for the certificates of before takes the lock, which a handshake may hold until
	 * they are being replaced. */
	if (s->kind == SECRETS_CERTS)
		check(!certs_read(in_dir(name), s->server, NULL, &set.all[0].certs, err,
				  sizeof(err)));
	else
		check(secrets_set_read(&set, stderr));
	replacing = true;
	secrets_set_replace(&set, out);
	secrets_set_free(&set);
	replacing = false;
	fclose(out);
}

static void replace(void)
{
	for (unsigned i = 1; nworking; i++) {
		replace_by(psk_server, i % 2 ? "server-1" : "server-0");
		replace_by(psk_client, i / 2 % 2 ? "client-1" : "client-0");
		replace_by(cert_server, i % 2 ? "certs-1" : "certs-0");
		replace_by(cert_client, i / 2 % 2 ? "certs-1" : "certs-0");
	}
}

/* ---- handshakes ---- */

struct pair {
	struct fab_tls_stream *server, *client;
	int fds[2];
	int rc;				/* of the server */
	char why[FAB_TLS_WHY_LEN];
};

/* Both ends go on until both are done or one has failed. */
static void shake(struct pair *p, const struct fab_tls *server, const struct fab_tls *client)
{
	char why[FAB_TLS_WHY_LEN] = "";
	int rc = -EAGAIN;

	p->rc = -EAGAIN;
	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fds));
	p->server = fab_tls_stream_create(server, p->fds[0], "", false);
	p->client = fab_tls_stream_create(client, p->fds[1], "", false);
	check(p->server && p->client);
	while ((p->rc == -EAGAIN || p->rc == 0) && (rc == -EAGAIN || (rc == 0 && p->rc))) {
		if (rc == -EAGAIN)
			rc = fab_tls_stream_handshake(p->client, why);
		if (p->rc == -EAGAIN)
			p->rc = fab_tls_stream_handshake(p->server, p->why);
	}
	if (rc && rc != -EAGAIN && !(p->rc && p->rc != -EAGAIN)) {
		fprintf(stderr, "client: %s\n", why);
		exit(1);
	}
}

static void hang_up(struct pair *p)
{
	fab_tls_stream_destroy(p->server);
	fab_tls_stream_destroy(p->client);
	close(p->fds[0]);
	close(p->fds[1]);
}

static void identify(const struct pair *p, struct fab_identity *id)
{
	*id = (struct fab_identity){ 0 };
	fab_tls_identity(fab_tls_stream_end(p->server), fab_tls_stream_session(p->server), id);
}

/* A client whose key changes, and the server has both keys all the time. */
static void shake_keys(void)
{
	struct fab_identity id;
	struct pair p;

	shake(&p, psk_server, psk_client);
	if (p.rc)
		fprintf(stderr, "server: %s\n", p.why);
	check(p.rc == 0);
	identify(&p, &id);
	check(!strcmp(fab_tls_stream_end(p.server)->identity,
		      fab_tls_stream_end(p.client)->identity));
	check(!strcmp(id.name, "psk:alice") ? id.key == alice_serial :
	      !strcmp(id.name, "psk:bob") && id.key == bob_serial);
	hang_up(&p);
}

/* A client whose key the server has at times: a key that comes back is another one. */
static void shake_guest(uint64_t *last)
{
	struct fab_identity id;
	struct pair p;

	shake(&p, psk_server, psk_guest);
	if (p.rc) {
		check(!strcmp(p.why, "TLS: no key has the name 'guest'"));
		nguests_out++;
	} else {
		identify(&p, &id);
		check(!strcmp(id.name, "psk:guest"));
		check(id.key != alice_serial && id.key != bob_serial && id.key >= *last);
		*last = id.key;
		nguests_in++;
	}
	hang_up(&p);
}

static void shake_certs(void)
{
	struct pair p;

	shake(&p, cert_server, cert_client);
	if (p.rc)
		fprintf(stderr, "server: %s\n", p.why);
	check(p.rc == 0);
	check(fab_tls_trusts(fab_tls_stream_end(p.client), fab_tls_stream_session(p.client)));
	hang_up(&p);
}

static void *work(void *arg)
{
	uint64_t last = 0;

	pthread_barrier_wait(&thread_start);
	if (*(int *)arg == 0) {
		replace();
		return NULL;
	}
	shaking = true;
	for (unsigned i = 0; i < ROUNDS; i++) {
		shake_keys();
		shake_guest(&last);
		shake_certs();
	}
	nworking--;
	return NULL;
}

/* ---- the choice of a client ---- */

/* A client keeps to the name that it began with, and takes no file without it. */
static void keep_name(void)
{
	char file[128], err[512];
	struct fab_tls_conf conf = { .psk = file, .username = "bob" };
	struct secrets_next next = { .file = file };
	struct fab_tls *tls;

	snprintf(file, sizeof(file), "%s", in_dir("server-0"));
	check(!fab_tls_create(&conf, &tls, err, sizeof(err)));
	next.of = fab_tls_secrets(tls);
	snprintf(file, sizeof(file), "%s", in_dir("client-1"));
	check(secrets_read(&next, err, sizeof(err)) == -EINVAL);
	check(strstr(err, "tls-username=bob: no key in ") && strstr(err, "has this name"));
	check(!next.psks.n && !next.psks.all);
	snprintf(file, sizeof(file), "%s", in_dir("server-1"));
	check(!secrets_read(&next, err, sizeof(err)));
	check(next.psks.n == 1 && !strcmp(next.psks.all[0].name, "bob") &&
	      next.psks.all[0].key[0] == 0xff);
	/* Keys of others are wiped. */
	for (size_t i = sizeof(next.psks.all[0]); i < next.psks.room; i++)
		check(!((const char *)next.psks.all)[i]);
	secrets_next_free(&next);
	check(next.of->psks.n == 1 && !strcmp(secrets_own(next.of)->name, "bob"));
	fab_tls_destroy(tls);
	next.of = fab_tls_secrets(psk_guest);
	check(secrets_read(&next, err, sizeof(err)) == -EINVAL);
	check(strstr(err, "has 3 keys: expected tls-username=NAME"));
}

int main(void)
{
	write_files();
	psk_server = make(true, "server-0", NULL);
	psk_client = make(false, "client-0", NULL);
	psk_guest = make(false, "guest", NULL);
	cert_server = make(true, NULL, "certs-0");
	cert_client = make(false, NULL, "certs-0");
	alice_serial = psk_find(&fab_tls_secrets(psk_server)->psks, "alice", 5)->serial;
	bob_serial = psk_find(&fab_tls_secrets(psk_server)->psks, "bob", 3)->serial;
	keep_name();
	run_threads(work);
	/* Both happened. */
	check(nguests_in && nguests_out);
	fab_tls_destroy(psk_server);
	fab_tls_destroy(psk_client);
	fab_tls_destroy(psk_guest);
	fab_tls_destroy(cert_server);
	fab_tls_destroy(cert_client);
	remove_files();
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of a client is judged before its signature is verified.  The signatures here are
 * no signatures: a handshake that gets as far as to verify one says so. */
#include <config.h>

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "fab-tls-stream.h"
#include "unit.h"
#include "util.h"

static char dir[] = "/tmp/test-tls-judge.XXXXXX", why[FAB_TLS_WHY_LEN];
static gnutls_x509_crt_t authority, other;	/* the server knows the first one alone */
static gnutls_x509_privkey_t authority_key, other_key;
static struct fab_tls *tls;

/* ---- certificates ---- */

static void sign(gnutls_x509_crt_t crt, const char *name, gnutls_x509_crt_t by,
		 gnutls_x509_privkey_t key)
{
	cr_assert_eq(gnutls_x509_crt_set_version(crt, 3), 0);
	cr_assert_eq(gnutls_x509_crt_set_serial(crt, "\1", 1), 0);
	cr_assert_eq(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60), 0);
	cr_assert_eq(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600), 0);
	cr_assert_eq(gnutls_x509_crt_set_dn(crt, name, NULL), 0);
	cr_assert_eq(gnutls_x509_crt_sign2(crt, by, key, GNUTLS_DIG_SHA256, 0), 0);
}

static void make_authority(gnutls_x509_crt_t *crt, gnutls_x509_privkey_t *key)
{
	cr_assert_eq(gnutls_x509_privkey_init(key), 0);
	cr_assert_eq(gnutls_x509_privkey_generate(*key, GNUTLS_PK_ECDSA,
						  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
						  0), 0);
	cr_assert_eq(gnutls_x509_crt_init(crt), 0);
	cr_assert_eq(gnutls_x509_crt_set_key(*crt, *key), 0);
	cr_assert_eq(gnutls_x509_crt_set_basic_constraints(*crt, 1, -1), 0);
	/* Both have one name: a stranger calls its own authority as it likes. */
	sign(*crt, "CN=authority", *crt, *key);
}

/* A certificate by @by for a key of RSA whose modulus and exponent have so many bytes. */
static gnutls_x509_crt_t make_large(size_t modulus, size_t exponent, gnutls_x509_crt_t by,
				    gnutls_x509_privkey_t key)
{
	static uint8_t bytes[2048];
	gnutls_datum_t m = { bytes, (unsigned)modulus };
	gnutls_datum_t e = { bytes + sizeof(bytes) - exponent, (unsigned)exponent };
	gnutls_pubkey_t pub;
	gnutls_x509_crt_t crt;

	memset(bytes, 0xa5, sizeof(bytes));
	cr_assert_eq(gnutls_pubkey_init(&pub), 0);
	cr_assert_eq(gnutls_pubkey_import_rsa_raw(pub, &m, &e), 0);
	cr_assert_eq(gnutls_x509_crt_init(&crt), 0);
	cr_assert_eq(gnutls_x509_crt_set_pubkey(crt, pub), 0);
	sign(crt, "CN=gw", by, key);
	gnutls_pubkey_deinit(pub);
	return crt;
}

/* ---- a key that does not sign ---- */

static size_t signature_len;

static int no_signature(gnutls_privkey_t key, gnutls_sign_algorithm_t algo, void *arg,
			unsigned flags, const gnutls_datum_t *data, gnutls_datum_t *signature)
{
	signature->data = gnutls_calloc(1, signature_len);
	signature->size = (unsigned)signature_len;
	return signature->data ? 0 : GNUTLS_E_MEMORY_ERROR;
}

static int about_key(gnutls_privkey_t key, unsigned flags, void *arg)
{
	if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO)
		return GNUTLS_PK_RSA;
	if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO_BITS)
		return (int)signature_len * 8;
	return flags & GNUTLS_PRIVKEY_INFO_HAVE_SIGN_ALGO ? 1 : -1;
}

/* ---- handshakes ---- */

static void write_pem(const char *name, const gnutls_datum_t *pem)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	cr_assert_eq(fwrite(pem->data, 1, pem->size, f), pem->size);
	cr_assert_eq(fclose(f), 0);
}

static void begin(void)
{
	struct fab_tls_conf conf = { .server = true, .protocol = FAB_TLS_NBD, .certificates = dir,
				     .verify_peer = true };
	gnutls_datum_t pem;
	char err[512];

	make_authority(&authority, &authority_key);
	make_authority(&other, &other_key);
	umask(077);
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(gnutls_x509_crt_export2(authority, GNUTLS_X509_FMT_PEM, &pem), 0);
	write_pem("ca-cert.pem", &pem);
	write_pem("server-cert.pem", &pem);
	gnutls_free(pem.data);
	cr_assert_eq(gnutls_x509_privkey_export2(authority_key, GNUTLS_X509_FMT_PEM, &pem), 0);
	write_pem("server-key.pem", &pem);
	gnutls_free(pem.data);
	cr_assert_eq(fab_tls_create(&conf, &tls, err, sizeof(err)), 0, "%s", err);
}

static void end(void)
{
	static const char *const names[] = { "ca-cert.pem", "server-cert.pem", "server-key.pem" };
	char path[64];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	fab_tls_destroy(tls);
	gnutls_x509_crt_deinit(authority);
	gnutls_x509_crt_deinit(other);
	gnutls_x509_privkey_deinit(authority_key);
	gnutls_x509_privkey_deinit(other_key);
}

TestSuite(tls_judge, .init = begin, .fini = end);

static gnutls_certificate_credentials_t make_credentials(gnutls_x509_crt_t crt)
{
	gnutls_certificate_credentials_t cred;
	gnutls_privkey_t key;
	gnutls_pcert_st pcert;

	cr_assert_eq(gnutls_certificate_allocate_credentials(&cred), 0);
	gnutls_certificate_set_flags(cred, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
	cr_assert_eq(gnutls_privkey_init(&key), 0);
	cr_assert_eq(gnutls_privkey_import_ext4(key, NULL, no_signature, no_signature, NULL, NULL,
						about_key, 0), 0);
	cr_assert_eq(gnutls_pcert_import_x509(&pcert, crt, 0), 0);
	cr_assert_geq(gnutls_certificate_set_key(cred, NULL, 0, &pcert, 1, key), 0);
	return cred;
}

/* A client with @crt and no key for it: the server's @why of the refusal. */
static void refused(gnutls_x509_crt_t crt, size_t len)
{
	gnutls_certificate_credentials_t cred;
	int fds[2], rc = GNUTLS_E_AGAIN, r = -EAGAIN;
	struct fab_tls_stream *server;
	gnutls_session_t client;

	signature_len = len;
	cred = make_credentials(crt);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	server = fab_tls_stream_create(tls, fds[0], "", false);
	cr_assert_not_null(server);
	cr_assert_eq(gnutls_init(&client, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
	cr_assert_eq(gnutls_priority_set_direct(client, "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL), 0);
	gnutls_credentials_set(client, GNUTLS_CRD_CERTIFICATE, cred);
	gnutls_transport_set_int(client, fds[1]);
	for (unsigned i = 0; i < 100 && r == -EAGAIN; i++) {
		if (rc == GNUTLS_E_AGAIN)
			rc = gnutls_handshake(client);
		r = fab_tls_stream_handshake(server, why);
	}
	cr_assert_eq(r, -EPROTO, "%d, client: %s", r, gnutls_strerror(rc));
	fab_tls_stream_destroy(server);
	gnutls_deinit(client);
	gnutls_certificate_free_credentials(cred);
	gnutls_x509_crt_deinit(crt);
	close(fds[0]);
	close(fds[1]);
}

#define NOT_CHEAP "TLS: the peer's certificate has too long a key or chain"

Test(tls_judge, of_a_stranger)
{
	refused(make_large(256, 3, other, other_key), 256);
	cr_assert(strstr(why, "the client's certificate is refused: no authority in ca-cert.pem"),
		  "%s", why);
}

Test(tls_judge, long_key)
{
	refused(make_large(1025, 3, authority, authority_key), 1025);
	cr_assert_str_eq(why, NOT_CHEAP);
	refused(make_large(2048, 3, other, other_key), 2048);
	cr_assert_str_eq(why, NOT_CHEAP);
}

Test(tls_judge, long_exponent)
{
	refused(make_large(1024, 1024, authority, authority_key), 1024);
	cr_assert_str_eq(why, NOT_CHEAP);
}

/* What is trusted and cheap gets as far as its signature. */
Test(tls_judge, signature)
{
	refused(make_large(1024, 3, authority, authority_key), 1024);
	cr_assert(!strstr(why, "certificate"), "%s", why);
	cr_assert(strstr(why, "ignature"), "%s", why);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How many certificates a peer may send that is judged again after its handshake, and whom a list
 * of revocations refuses then; how long the file of an authority may be, which files may be left
 * out, which pairs are none, and whose end comes first (certs.h). */
#include "unit.h"

#include <errno.h>
#include <malloc.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "certs.h"
#include "secrets.h"

#define CHAIN_MAX    16u /* as certs.c has it */
#define ALL (4 * CHAIN_MAX)
#define PEM_FILE_MAX (16 << 20)		/* likewise */

static gnutls_x509_privkey_t key;	/* of everybody */
static gnutls_datum_t sent[ALL];	/* by the peer: its own, and who signed the one before */
static unsigned nsent;
static time_t life_s = 36000;		/* of new certificates */

const gnutls_datum_t *__wrap_gnutls_certificate_get_peers(gnutls_session_t session, unsigned *n);

const gnutls_datum_t *__wrap_gnutls_certificate_get_peers(gnutls_session_t session, unsigned *n)
{
	*n = nsent;
	return sent;
}

#define ok(call) cr_assert_geq((call), 0, "%s", #call)

/* @by: NULL for one that signs itself. */
static gnutls_x509_crt_t certificate(unsigned serial, gnutls_x509_crt_t by, bool ca)
{
	gnutls_x509_crt_t crt;
	char name[32];

	snprintf(name, sizeof(name), "CN=number %u", serial);
	ok(gnutls_x509_crt_init(&crt));
	ok(gnutls_x509_crt_set_version(crt, 3));
	ok(gnutls_x509_crt_set_serial(crt, &serial, sizeof(serial)));
	ok(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 3600));
	ok(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + life_s));
	ok(gnutls_x509_crt_set_dn(crt, name, NULL));
	ok(gnutls_x509_crt_set_key(crt, key));
	ok(gnutls_x509_crt_set_basic_constraints(crt, ca, -1));
	ok(gnutls_x509_crt_set_key_usage(crt, ca ? GNUTLS_KEY_KEY_CERT_SIGN |
					      GNUTLS_KEY_CRL_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE));
	ok(gnutls_x509_crt_sign2(crt, by ? by : crt, key, GNUTLS_DIG_UNKNOWN, 0));
	return crt;
}

static char err[512];
/* Beside the authority: the name of a link, and where it leads. */
static const char *link_name, *link_to;

/* A set of certificates with the authority @ca alone, in a file that zero bytes make @len bytes
 * long; 0: no more than it takes.  NULL: refused, with @err. */
static struct certs *trusting(gnutls_x509_crt_t ca, off_t len)
{
	char dir[] = "/tmp/test-certs.XXXXXX", path[64], link[64];
	struct certs *certs = NULL;
	gnutls_datum_t pem;
	FILE *f;

	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/ca-cert.pem", dir);
	ok(gnutls_x509_crt_export2(ca, GNUTLS_X509_FMT_PEM, &pem));
	f = fopen(path, "w");
	cr_assert(f && fwrite(pem.data, pem.size, 1, f) == 1 && !fclose(f));
	cr_assert(!len || !truncate(path, len));
	gnutls_free(pem.data);
	snprintf(link, sizeof(link), "%s/%s", dir, link_name ? link_name : "");
	cr_assert(!link_name || !symlink(link_to, link));
	if (certs_read(dir, false, NULL, &certs, err, sizeof(err)))
		certs = NULL;
	unlink(path);
	if (link_name)
		unlink(link);
	rmdir(dir);
	return certs;
}

static void begin(void)
{
	ok(gnutls_x509_privkey_init(&key));
	ok(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
}

static void end(void)
{
	gnutls_x509_privkey_deinit(key);
}

TestSuite(certs, .init = begin, .fini = end);

Test(certs, files_up_to_the_limit)
{
	static const off_t lens[] = { PEM_FILE_MAX - 1, PEM_FILE_MAX, PEM_FILE_MAX + 1,
				      4 * PEM_FILE_MAX };
	gnutls_x509_crt_t ca = certificate(1, NULL, true);

	for_each_case(len, lens) {
		struct certs *certs = trusting(ca, *len);

		cr_assert_eq(!!certs, *len <= PEM_FILE_MAX, "%lld: %s", (long long)*len, err);
		cr_assert(certs || strstr(err, "ca-cert.pem: "), "%s", err);
		certs_put(certs);
	}
	gnutls_x509_crt_deinit(ca);
}

Test(certs, chains_up_to_the_limit)
{
	gnutls_x509_crt_t signers[ALL], leaf;
	struct certs *certs;

	for (unsigned i = 0; i < ALL; i++)
		signers[i] = certificate(i + 1, i ? signers[i - 1] : NULL, true);
	certs = trusting(signers[0], 0);
	cr_assert(certs, "%s", err);
	for (nsent = 1; nsent <= ALL; nsent++) {
		leaf = certificate(1000, signers[nsent - 1], false);
		ok(gnutls_x509_crt_export2(leaf, GNUTLS_X509_FMT_DER, &sent[0]));
		for (unsigned i = 1; i < nsent; i++)
			ok(gnutls_x509_crt_export2(signers[nsent - i], GNUTLS_X509_FMT_DER,
						   &sent[i]));
		cr_assert_eq(certs_trust(certs, NULL, NULL, true, false), nsent <= CHAIN_MAX, "%u",
			     nsent);
		for (unsigned i = 0; i < nsent; i++)
			gnutls_free(sent[i].data);
		gnutls_x509_crt_deinit(leaf);
	}
	certs_put(certs);
	for (unsigned i = 0; i < ALL; i++)
		gnutls_x509_crt_deinit(signers[i]);
}

/* A link to a file that is not there, as on a file system that is not mounted, is no file that was
 * left out. */
Test(certs, links_that_lead_nowhere)
{
	static const char *const names[] = { "ca-crl.pem", "client-cert.pem" };
	gnutls_x509_crt_t ca = certificate(1, NULL, true);

	for_each_case(name, names) {
		link_name = *name;
		link_to = "/nonexistent/certs";
		cr_assert(!trusting(ca, 0), "%s", *name);
		cr_assert(strstr(err, *name) && strstr(err, "No such file"), "%s", err);
	}
	gnutls_x509_crt_deinit(ca);
}

/* A file without a byte is no list without entries. */
Test(certs, revocations_of_no_byte)
{
	gnutls_x509_crt_t ca = certificate(1, NULL, true);

	link_name = "ca-crl.pem";
	link_to = "/dev/null";
	cr_assert(!trusting(ca, 0));
	link_to = "ca-cert.pem";
	cr_assert(!trusting(ca, 0));
	cr_assert(strstr(err, "ca-crl.pem: ") && strstr(err, "expected a revocation list"), "%s",
		  err);
	cr_assert(!strstr(err, "no list:"), "%s", err);
	gnutls_x509_crt_deinit(ca);
}

/* Append to the file, or with the mode "w" begin it. */
static void put_more(const char *dir, const char *name, const char *mode, gnutls_datum_t pem)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, mode);
	cr_assert(f && !fchmod(fileno(f), 0600) && fwrite(pem.data, pem.size, 1, f) == 1 &&
		  !fclose(f));
	gnutls_free(pem.data);
}

static void put(const char *dir, const char *name, gnutls_datum_t pem)
{
	put_more(dir, name, "w", pem);
}

static void put_key(const char *dir, gnutls_x509_privkey_t of)
{
	gnutls_datum_t pem;

	ok(gnutls_x509_privkey_export2_pkcs8(of, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
					     &pem));
	put(dir, "server-key.pem", pem);
}

/* Remove the files that there are, and @dir. */
static void remove_all(const char *dir)
{
	static const char *const names[] = { "ca-cert.pem", "ca-crl.pem", "server-cert.pem",
					     "server-key.pem" };
	char path[64];

	for_each_case(name, names) {
		snprintf(path, sizeof(path), "%s/%s", dir, *name);
		unlink(path);
	}
	cr_assert(!rmdir(dir));
}

static gnutls_datum_t crt_pem(gnutls_x509_crt_t crt)
{
	gnutls_datum_t pem;

	ok(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem));
	gnutls_x509_crt_deinit(crt);
	return pem;
}

/* A certificate, and the key of another one of its kind. */
Test(certs, pairs_that_do_not_match)
{
	static const gnutls_pk_algorithm_t kinds[] = { GNUTLS_PK_EDDSA_ED25519,
						       GNUTLS_PK_EDDSA_ED448, GNUTLS_PK_ECDSA };
	char dir[] = "/tmp/test-certs.XXXXXX";
	gnutls_x509_privkey_t former = key, other;
	struct certs *certs;

	cr_assert(mkdtemp(dir));
	for_each_case(kind, kinds) {
		for (unsigned match = 0; match < 2; match++) {
			ok(gnutls_x509_privkey_init(&other));
			ok(gnutls_x509_privkey_generate(other, *kind, 256, 0));
			key = other;
			put(dir, "server-cert.pem", crt_pem(certificate(1, NULL, false)));
			put(dir, "ca-cert.pem", crt_pem(certificate(2, NULL, true)));
			key = former;
			if (!match) {
				gnutls_x509_privkey_deinit(other);
				ok(gnutls_x509_privkey_init(&other));
				ok(gnutls_x509_privkey_generate(other, *kind, 256, 0));
			}
			put_key(dir, other);
			gnutls_x509_privkey_deinit(other);
			cr_assert_eq(certs_read(dir, true, NULL, &certs, err, sizeof(err)),
				     match ? 0 : -EINVAL, "%s: %s", gnutls_pk_get_name(*kind), err);
			cr_assert(match || strstr(err, "expected a certificate and its own key"),
				  "%s", err);
			certs_put(certs);
		}
	}
	remove_all(dir);
}

/* A list of @ca that revokes @crt; NULL: nobody. */
static gnutls_datum_t list_pem(gnutls_x509_crt_t ca, gnutls_x509_crt_t crt)
{
	gnutls_x509_crl_t crl;
	gnutls_datum_t pem;

	ok(gnutls_x509_crl_init(&crl));
	ok(gnutls_x509_crl_set_version(crl, 2));
	ok(gnutls_x509_crl_set_this_update(crl, time(NULL) - 3600));
	ok(gnutls_x509_crl_set_next_update(crl, time(NULL) + 36000));
	if (crt)
		ok(gnutls_x509_crl_set_crt(crl, crt, time(NULL) - 60));
	ok(gnutls_x509_crl_sign2(crl, ca, key, GNUTLS_DIG_SHA256, 0));
	ok(gnutls_x509_crl_export2(crl, GNUTLS_X509_FMT_PEM, &pem));
	gnutls_x509_crl_deinit(crl);
	return pem;
}

/* A list without entries refuses nobody, and one with the peer's certificate the peer. */
Test(certs, lists_of_revocations)
{
	gnutls_x509_crt_t ca = certificate(1, NULL, true), crt = certificate(2, ca, false);
	char dir[] = "/tmp/test-certs.XXXXXX";
	gnutls_datum_t pem;
	struct certs *certs;

	cr_assert(mkdtemp(dir));
	ok(gnutls_x509_crt_export2(ca, GNUTLS_X509_FMT_PEM, &pem));
	put(dir, "ca-cert.pem", pem);
	ok(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_DER, &sent[0]));
	nsent = 1;
	for (unsigned revoked = 0; revoked < 2; revoked++) {
		put(dir, "ca-crl.pem", list_pem(ca, revoked ? crt : NULL));
		cr_assert(!certs_read(dir, false, NULL, &certs, err, sizeof(err)), "%s", err);
		cr_assert_eq(certs_trust(certs, NULL, NULL, true, false), !revoked);
		cr_assert(revoked || certs_trust(certs, NULL, NULL, true, true));
		certs_put(certs);
	}
	gnutls_free(sent[0].data);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_crt_deinit(ca);
	remove_all(dir);
}

#define READS 256			/* each leaves 32 bytes or more, if it leaves anything */

/* The first end is that of the own certificate, or of its signer.  Files that are read often leave
 * nothing behind; the free list of malloc() may differ by a few chunks. */
Test(certs, the_end_of_a_pair)
{
	static const time_t lives[][2] = { { 1000, 2000 }, { 2000, 1000 } };
	struct secrets s = { .kind = SECRETS_CERTS, .server = true,
			     .lock = PTHREAD_MUTEX_INITIALIZER };
	char dir[] = "/tmp/test-certs.XXXXXX";
	struct secrets_next next = { .of = &s, .file = dir };
	gnutls_x509_crt_t ca = certificate(1, NULL, true), signer, own;
	struct secrets_dates dates;
	gnutls_datum_t pem;
	size_t before = 0;
	time_t ends;

	cr_assert(mkdtemp(dir));
	ok(gnutls_x509_crt_export2(ca, GNUTLS_X509_FMT_PEM, &pem));
	put(dir, "ca-cert.pem", pem);
	put(dir, "ca-crl.pem", list_pem(ca, NULL));
	put_key(dir, key);
	for_each_case(life, lives) {
		life_s = (*life)[1];
		signer = certificate(2, ca, true);
		life_s = (*life)[0];
		own = certificate(3, signer, false);
		ends = MIN(gnutls_x509_crt_get_expiration_time(own),
			   gnutls_x509_crt_get_expiration_time(signer));
		put(dir, "server-cert.pem", crt_pem(own));
		put_more(dir, "server-cert.pem", "a", crt_pem(signer));
		cr_assert(!secrets_look_certs(dir, true, &dates, err, sizeof(err)), "%s", err);
		cr_assert_str_eq(dates.end_file, "server-cert.pem");
		cr_assert_eq(dates.end_s, ends);
	}
	for (unsigned i = 0; i < 64 + READS; i++) {
		if (i == 64)
			before = mallinfo2().uordblks;
		cr_assert(!secrets_read(&next, err, sizeof(err)), "%s", err);
		secrets_next_free(&next);
	}
	cr_assert_leq(mallinfo2().uordblks, before + READS * 16);
	gnutls_x509_crt_deinit(ca);
	remove_all(dir);
}

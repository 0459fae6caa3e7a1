/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the credentials of GnuTLS, and a digest of the bytes that they were read from.  Each file is
 * read once, so the digest is of what is used.  Fails with one line that names the file. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "certs.h"
#include "log.h"
#include "number.h"
#include "psk.h"
#include "util.h"

#define PATH_LEN 1024u
#define PEM_FILE_MAX (16u << 20)	/* a list of all that was revoked may be long */
#define KEY_BITS_MAX 8192u		/* a signature by such a key takes 2 ms to verify */
#define RSA_EXPONENT_MAX 8u		/* bytes; all that is in use has 3 */
#define CHAIN_MAX 16u			/* certificates that a peer may send; GnuTLS has the same */

struct certs {
	atomic_uint refs;
	gnutls_certificate_credentials_t cred;
	gnutls_hash_hd_t hash;		/* while files are read */
	uint8_t digest[32];
	struct secrets_dates dates;
	bool revokes;			/* ca-crl.pem was there */
};

/* ---- the first end and the last begin ---- */

/* @file of @certs is valid from @from to @to. */
static void note_dates(struct certs *certs, const char *file, time_t from, time_t to)
{
	struct secrets_dates *d = &certs->dates;

	if (to != (time_t)-1 && (!d->end_file || d->end_s > to)) {
		d->end_file = file;
		d->end_s = to;
	}
	if (from != (time_t)-1 && (!d->begin_file || d->begin_s < from)) {
		d->begin_file = file;
		d->begin_s = from;
	}
}

/* Note the dates of all certificates that this end sends. */
static void note_pair(struct certs *certs, const char *file)
{
	gnutls_x509_crt_t *crts;
	unsigned n;

	if (gnutls_certificate_get_x509_crt(certs->cred, 0, &crts, &n) < 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		note_dates(certs, file, gnutls_x509_crt_get_activation_time(crts[i]),
			   gnutls_x509_crt_get_expiration_time(crts[i]));
		gnutls_x509_crt_deinit(crts[i]);
	}
	gnutls_free(crts);
}

/* Note when the first authority begins, and the last one ends: a file may have the next authority
 * beside the one of today. */
static void note_authorities(struct certs *certs)
{
	gnutls_x509_trust_list_iter_t iter = NULL;
	gnutls_x509_trust_list_t trusted;
	gnutls_x509_crt_t crt;
	time_t first = -1, last = 0, from;

	gnutls_certificate_get_trust_list(certs->cred, &trusted);
	while (gnutls_x509_trust_list_iter_get_ca(trusted, &iter, &crt) >= 0) {
		from = gnutls_x509_crt_get_activation_time(crt);
		first = first == (time_t)-1 ? from : MIN(first, from);
		last = MAX(last, gnutls_x509_crt_get_expiration_time(crt));
		gnutls_x509_crt_deinit(crt);
	}
	note_dates(certs, "ca-cert.pem", first, last);
}

/* Note from when on the lists in @data hold, and when the first is to be followed by another. */
static void note_revocations(struct certs *certs, const gnutls_datum_t *data)
{
	gnutls_x509_crl_t *crls;
	unsigned n;

	if (gnutls_x509_crl_list_import2(&crls, &n, data, GNUTLS_X509_FMT_PEM, 0) < 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		note_dates(certs, "ca-crl.pem", gnutls_x509_crl_get_this_update(crls[i]),
			   gnutls_x509_crl_get_next_update(crls[i]));
		gnutls_x509_crl_deinit(crls[i]);
	}
	gnutls_free(crls);
}

static void tell_date(const char *file, const char *what, time_t at)
{
	struct tm tm;

	if (gmtime_r(&at, &tm))
		log_warn(NULL, "tls-certificates: %s %s %04d-%02d-%02d: peers that verify it "
			 "refuse new connections", file, what, tm.tm_year + 1900, tm.tm_mon + 1,
			 tm.tm_mday);
}

/* An end that is over, or a begin to come, is no mistake of the file: whoever does not verify goes
 * on. */
static void tell_dates(const struct secrets_dates *d)
{
	time_t now = time(NULL);

	if (d->end_file && d->end_s <= now)
		tell_date(d->end_file, "has ended on", d->end_s);
	if (d->begin_file && d->begin_s > now)
		tell_date(d->begin_file, "is not valid before", d->begin_s);
}

struct secrets_dates certs_dates(const struct certs *certs)
{
	return certs ? certs->dates : (struct secrets_dates){ 0 };
}

/* ---- files ---- */

static int join(char path[PATH_LEN], const char *dir, const char *name, char *err, size_t len)
{
	if ((size_t)snprintf(path, PATH_LEN, "%s/%s", dir, name) < PATH_LEN)
		return 0;
	return fmt_error(-ENAMETOOLONG, err, len, "tls-certificates: name too long");
}

/* Read the file @name of @dir, which is @path then, and whose bytes count for the digest of @certs,
 * into @file.  Give @file to plain_file_free(). */
static int read_file(struct certs *certs, const char *dir, const char *name,
		     enum secret_file_kind kind, char path[PATH_LEN], struct plain_file *file,
		     char *err, size_t len)
{
	char why[256];
	uint64_t size;
	int rc = join(path, dir, name, err, len);

	if (rc)
		return rc;
	rc = secret_file_read(path, kind, geteuid(), PEM_FILE_MAX, file, why, sizeof(why));
	if (rc)
		return fmt_error(rc, err, len, "tls-certificates: %s: %s", path, why);
	size = file->n;
	if (gnutls_hash(certs->hash, &size, sizeof(size)) < 0 ||
	    gnutls_hash(certs->hash, file->text, file->n) < 0) {
		plain_file_free(file);
		return fmt_error(-ENOMEM, err, len, "out of memory");
	}
	return 0;
}

/* The bytes of @file as GnuTLS takes them. */
static gnutls_datum_t datum(const struct plain_file *file)
{
	return (gnutls_datum_t){ (unsigned char *)file->text, (unsigned)file->n };
}

/* GnuTLS takes no pair from the files @cert and @key. */
static int pair_refused(int rc, const char *cert, const char *key, char *err, size_t len)
{
	const char *expected = NULL;

	if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE || rc == GNUTLS_E_BASE64_DECODING_ERROR ||
	    rc == GNUTLS_E_NO_CERTIFICATE_FOUND || rc == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR)
		expected = "a certificate in the first file, and its key in the second";
	else if (rc == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		expected = "a certificate and its own key";
	if (!expected)
		return fmt_error(-EINVAL, err, len, "tls-certificates: %s, %s: %s", cert, key,
				 gnutls_strerror(rc));
	return fmt_error(-EINVAL, err, len, "tls-certificates: %s, %s: expected %s (%s)", cert, key,
			 expected, gnutls_strerror(rc));
}

/* Is the key of @cred that of its certificate?  0, or an error of GnuTLS.  GnuTLS itself takes any
 * Ed25519 or Ed448 key for a certificate of another one: it tries a signature with a hash, which
 * such keys refuse, and lets that pass (3.7.9, _gnutls_check_key_cert_match()). */
static int check_match(gnutls_certificate_credentials_t cred)
{
	uint8_t of_cert[64], of_key[64];
	size_t ncert = sizeof(of_cert), nkey = sizeof(of_key);
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t *crts;
	unsigned n;
	int rc = gnutls_certificate_get_x509_key(cred, 0, &key);

	if (rc < 0)
		return rc;
	rc = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &nkey);
	gnutls_x509_privkey_deinit(key);
	if (rc >= 0)
		rc = gnutls_certificate_get_x509_crt(cred, 0, &crts, &n);
	if (rc < 0)
		return rc;
	rc = gnutls_x509_crt_get_key_id(crts[0], GNUTLS_KEYID_USE_SHA256, of_cert, &ncert);
	for (unsigned i = 0; i < n; i++)
		gnutls_x509_crt_deinit(crts[i]);
	gnutls_free(crts);
	if (rc < 0)
		return rc;
	return ncert == nkey && !memcmp(of_cert, of_key, nkey) ? 0 :
	       GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
}

/* Use NAME-cert.pem and NAME-key.pem. */
static int load_pair(struct certs *certs, const char *dir, const char *name, char *err, size_t len)
{
	char cert[PATH_LEN], key[PATH_LEN], file[64];
	struct plain_file cert_file, key_file;
	gnutls_datum_t cert_data, key_data;
	int rc;

	snprintf(file, sizeof(file), "%s-cert.pem", name);
	rc = read_file(certs, dir, file, SECRET_FILE_PUBLIC, cert, &cert_file, err, len);
	if (rc)
		return rc;
	snprintf(file, sizeof(file), "%s-key.pem", name);
	rc = read_file(certs, dir, file, SECRET_FILE_SECRET, key, &key_file, err, len);
	if (rc) {
		plain_file_free(&cert_file);
		return rc;
	}
	cert_data = datum(&cert_file);
	key_data = datum(&key_file);
	rc = gnutls_certificate_set_x509_key_mem(certs->cred, &cert_data, &key_data,
						 GNUTLS_X509_FMT_PEM);
	if (rc >= 0)
		rc = check_match(certs->cred);
	plain_file_free(&cert_file);
	plain_file_free(&key_file);
	return rc < 0 ? pair_refused(rc, cert, key, err, len) : 0;
}

/* True if @path names something, be it a link to a file that is not there: nobody has left the file
 * out. */
static bool is_named(const char *path)
{
	struct stat st;

	return !lstat(path, &st) || errno != ENOENT;
}

/* Load ca-crl.pem.  A list that @before has, too, may not go: who was revoked would be accepted
 * again. */
static int load_revocations(struct certs *certs, const struct certs *before, const char *dir,
			    char *err, size_t len)
{
	struct plain_file file;
	char path[PATH_LEN];
	gnutls_datum_t data;
	int rc;

	rc = read_file(certs, dir, "ca-crl.pem", SECRET_FILE_PUBLIC, path, &file, err, len);
	if (rc == -ENOENT && !is_named(path)) {
		if (!before || !before->revokes)
			return 0;
		return fmt_error(rc, err, len, "tls-certificates: %s is gone: expected a list, "
				 "without entries if no certificate is revoked", path);
	}
	if (rc)
		return rc;
	data = datum(&file);
	rc = gnutls_certificate_set_x509_crl_mem(certs->cred, &data, GNUTLS_X509_FMT_PEM);
	note_revocations(certs, &data);
	plain_file_free(&file);
	if (rc <= 0)
		return fmt_error(-EINVAL, err, len, "tls-certificates: %s: %s: expected a "
				 "revocation list in PEM, without entries if no certificate is "
				 "revoked", path, rc ? gnutls_strerror(rc) : "no list");
	certs->revokes = true;
	return 0;
}

static int load_authorities(struct certs *certs, const char *dir, char *err, size_t len)
{
	struct plain_file file;
	char path[PATH_LEN];
	gnutls_datum_t data;
	int rc;

	rc = read_file(certs, dir, "ca-cert.pem", SECRET_FILE_PUBLIC, path, &file, err, len);
	if (rc)
		return rc;
	data = datum(&file);
	rc = gnutls_certificate_set_x509_trust_mem(certs->cred, &data, GNUTLS_X509_FMT_PEM);
	plain_file_free(&file);
	if (rc <= 0)
		return fmt_error(-EINVAL, err, len, "tls-certificates: %s: %s", path,
				 rc ? gnutls_strerror(rc) : "no certificate in the file");
	note_authorities(certs);
	return 0;
}

/* False: a client has no certificate of its own, which it need not.  A file that cannot be read is
 * one. */
static bool has_client_pair(const char *dir)
{
	char file[PATH_LEN], err[64];

	return !join(file, dir, "client-cert.pem", err, sizeof(err)) && is_named(file);
}

/* ---- life ---- */

static int load_all(struct certs *certs, const struct certs *before, const char *dir, bool server,
		    char *err, size_t len)
{
	int rc = load_authorities(certs, dir, err, len);

	if (!rc)
		rc = load_revocations(certs, before, dir, err, len);
	if (!rc && (server || has_client_pair(dir)))
		rc = load_pair(certs, dir, server ? "server" : "client", err, len);
	if (!rc)
		note_pair(certs, server ? "server-cert.pem" : "client-cert.pem");
	return rc;
}

int certs_read(const char *dir, bool server, const struct certs *before, struct certs **out,
	       char *err, size_t len)
{
	struct certs *certs = calloc(1, sizeof(*certs));
	int rc;

	*out = NULL;
	if (!certs || gnutls_certificate_allocate_credentials(&certs->cred) < 0) {
		free(certs);
		return fmt_error(-ENOMEM, err, len, "out of memory");
	}
	atomic_init(&certs->refs, 1);
	gnutls_certificate_set_verify_limits(certs->cred, KEY_BITS_MAX, CHAIN_MAX);
	if (gnutls_hash_init(&certs->hash, GNUTLS_DIG_SHA256) < 0) {
		certs_put(certs);
		return fmt_error(-ENOMEM, err, len, "out of memory");
	}
	rc = load_all(certs, before, dir, server, err, len);
	gnutls_hash_deinit(certs->hash, certs->digest);
	if (rc) {
		certs_put(certs);
		return rc;
	}
	tell_dates(&certs->dates);
	*out = certs;
	return 0;
}

struct certs *certs_get(struct certs *certs)
{
	atomic_fetch_add(&certs->refs, 1);
	return certs;
}

void certs_put(struct certs *certs)
{
	if (!certs || atomic_fetch_sub(&certs->refs, 1) > 1)
		return;
	gnutls_certificate_free_credentials(certs->cred);
	free(certs);
}

bool certs_same(const struct certs *a, const struct certs *b)
{
	return !memcmp(a->digest, b->digest, sizeof(a->digest));
}

struct gnutls_certificate_credentials_st *certs_credentials(const struct certs *certs)
{
	return certs->cred;
}

/* ---- trust ---- */

static void free_chain(gnutls_x509_crt_t crts[CHAIN_MAX], unsigned n)
{
	while (n)
		gnutls_x509_crt_deinit(crts[--n]);
}

/* Import the certificates that the peer of @session has sent.  Returns their number, 0: none, or
 * they cannot be read. */
static unsigned import_chain(gnutls_session_t session, gnutls_x509_crt_t crts[CHAIN_MAX])
{
	unsigned n = 0, done = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);

	if (!chain || n > CHAIN_MAX)
		return 0;
	for (; done < n; done++) {
		if (gnutls_x509_crt_init(&crts[done]) < 0)
			break;
		if (gnutls_x509_crt_import(crts[done], &chain[done], GNUTLS_X509_FMT_DER) < 0) {
			gnutls_x509_crt_deinit(crts[done]);
			break;
		}
	}
	if (done == n)
		return n;
	free_chain(crts, done);
	return 0;
}

/* Write to @data what a certificate of a peer has to be for.  Returns the number of elements. */
static unsigned purposes(gnutls_typed_vdata_st data[2], const char *hostname, bool of_server)
{
	const char *purpose = of_server ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;

	data[0] = (gnutls_typed_vdata_st){ .type = GNUTLS_DT_KEY_PURPOSE_OID,
					   .data = (unsigned char *)(uintptr_t)purpose };
	data[1] = (gnutls_typed_vdata_st){ .type = GNUTLS_DT_DNS_HOSTNAME,
					   .data = (unsigned char *)(uintptr_t)hostname };
	return hostname ? 2 : 1;
}

/* True if signatures by @key cost little to verify. */
static bool is_cheap(gnutls_pubkey_t key)
{
	gnutls_datum_t m, e;
	unsigned bits = 0;
	bool cheap;

	if (gnutls_pubkey_get_pk_algorithm(key, &bits) < 0 || bits > KEY_BITS_MAX)
		return false;
	/* No RSA: curves are of the priorities. */
	if (gnutls_pubkey_export_rsa_raw2(key, &m, &e, GNUTLS_EXPORT_FLAG_NO_LZ) < 0)
		return true;
	cheap = e.size <= RSA_EXPONENT_MAX;
	gnutls_free(m.data);
	gnutls_free(e.data);
	return cheap;
}

bool certs_cheap(gnutls_session_t session)
{
	gnutls_x509_crt_t crts[CHAIN_MAX];
	unsigned n = import_chain(session, crts);
	gnutls_pubkey_t key;
	bool cheap;

	cheap = n && gnutls_pubkey_init(&key) == 0;
	if (cheap) {
		cheap = gnutls_pubkey_import_x509(key, crts[0], 0) == 0 && is_cheap(key);
		gnutls_pubkey_deinit(key);
	}
	free_chain(crts, n);
	return cheap;
}

int certs_verify(gnutls_session_t session, const char *hostname, bool of_server, unsigned *status)
{
	gnutls_typed_vdata_st data[2];
	unsigned n = purposes(data, hostname, of_server);
	int rc;

	*status = 0;
	rc = gnutls_certificate_verify_peers(session, data, n, status);
	return rc == 0 && *status ? GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR : rc;
}

bool certs_trust(const struct certs *certs, gnutls_session_t session, const char *hostname,
		 bool of_server, bool seen)
{
	const unsigned flags = seen ? GNUTLS_VERIFY_DISABLE_CRL_CHECKS : 0;
	gnutls_typed_vdata_st data[2];
	unsigned ndata = purposes(data, hostname, of_server);
	gnutls_x509_crt_t crts[CHAIN_MAX];
	gnutls_x509_trust_list_t trusted;
	unsigned n = import_chain(session, crts), status = 0;
	bool good = false;

	if (!n)
		return false;
	gnutls_certificate_get_trust_list(certs->cred, &trusted);
	good = gnutls_x509_trust_list_verify_crt2(trusted, crts, n, data, ndata, flags,
						  &status, NULL) == 0 && !status;
	free_chain(crts, n);
	return good;
}

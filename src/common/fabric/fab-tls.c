/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the credentials of an end.  Reads files when made, and none later: others give new ones.
 *
 * RACE: a handshake looks for a key, or takes a reference to certificates, while the owner replaces
 * them; creds.lock keeps the two apart.  Under the lock bytes are copied and references taken:
 * GnuTLS makes no step there, nothing is read and nothing freed. */
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "cleanup.h"
#include "fab-certs.h"
#include "fab-ktls.h"
#include "fab-secret.h"
#include "fab-tls.h"
#include "fabric.h"
#include "util.h"

/* The protocol in TLS (ALPN): a key that nbdkit has, too, does not connect to an NBD server. */
#define TLS_ALPN "rtrs"
#define TLS_ALPN_NBD "nbd"

#define TLS_RECORD_SIZE_LIMIT 28	/* extension, RFC 8449: GnuTLS knows and does not tell it */

/* An external key goes with SHA-256, and so not with AES-256-GCM. */
#define TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:" \
	"+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:-KX-ALL:"
#define TLS_PRIORITY_PSK TLS_PRIORITY "+ECDHE-PSK:%SERVER_PRECEDENCE"
#define TLS_PRIORITY_CERT TLS_PRIORITY "+ECDHE-ECDSA:+ECDHE-RSA:%SERVER_PRECEDENCE"

const char *const fab_tls_mode_names[FAB_TLS_MODES] = {
	[FAB_TLS_OFF] = "off", [FAB_TLS_ON] = "on", [FAB_TLS_REQUIRE] = "require",
};

const char *const fab_ktls_mode_names[FAB_KTLS_MODES] = {
	[FAB_KTLS_OFF] = "off", [FAB_KTLS_AUTO] = "auto",
};

struct creds {
	struct fab_tls base;
	bool server, verify_peer, nbd;
	gnutls_priority_t priority;
	/* of both kinds one is not NULL */
	gnutls_psk_server_credentials_t psk_server;
	gnutls_psk_client_credentials_t psk_client;
	char *username;				/* client: whose key; NULL: the only one */
	char *hostname;				/* NULL: the address */

	pthread_mutex_t lock;			/* of what follows; innermost */
	struct fab_certs *certs;		/* NULL from the start on, or never */
	struct fab_psks psks;			/* of a client its key alone */
};

bool fab_tls_parse_bool(const char *text, bool *value)
{
	static const char *const words[] = { "false", "no", "off", "0", "true", "yes", "on", "1" };

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(text, words[i]))
			continue;
		*value = i >= ARRAY_SIZE(words) / 2;
		return true;
	}
	return false;
}

/* Not constant: also a reader takes the lock. */
static struct creds *creds_of(const struct fab_tls *tls)
{
	return container_of(tls, struct creds, base);
}

__attribute__((format(printf, 4, 5)))
static int tls_error(int rc, char *err, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, len, fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- memory of gnutls ---- */

static atomic_uint users;

/* gnutls (3.7, 3.8) gives copies of keys back without wiping them: zeroize_temp_key() is empty
 * outside of its FIPS mode. */
static void wipe_and_free(void *ptr)
{
	if (ptr)
		explicit_bzero(ptr, malloc_usable_size(ptr));
	free(ptr);
}

/* The functions of gnutls' memory are variables, those of the C library by default.  While there
 * are credentials, all that gnutls frees in this process is wiped. */
static void wipe_begin(void)
{
	if (!users++)
		gnutls_free = wipe_and_free;
}

static void wipe_end(void)
{
	/* ORDER: the code of a plugin may go before gnutls does. */
	if (!--users)
		gnutls_free = free;
}

/* ---- keys ---- */

/* Give gnutls a copy of the key of @psk.  gnutls frees the copy, and so wipes it, when the
 * handshake has ended. */
static int lend_key(const struct fab_psk *psk, gnutls_datum_t *key)
{
	key->size = psk->len;
	key->data = gnutls_malloc(key->size);
	if (!key->data)
		return -1;
	memcpy(key->data, psk->key, key->size);
	return 0;
}

/* Give gnutls the key of @name, and note in @end which key that is.  0 or -1; 1: no key has the
 * name. */
static int lend_key_of(struct fab_tls_end *end, const gnutls_datum_t *name, gnutls_datum_t *key)
{
	struct creds *tls = creds_of(end->tls);
	const struct fab_psk *psk;

	LOCK_SCOPE(&tls->lock);
	psk = fab_psk_find(&tls->psks, name->data, name->size);
	end->unknown = !psk;
	end->key = psk ? psk->serial : 0;
	end->key_since_s = psk ? psk->since_s : 0;
	return psk ? lend_key(psk, key) : 1;
}

/* Give gnutls the key of @name.  An unknown name gets a key of chance, so that a stranger does not
 * learn which names there are. */
static int psk_of_name(gnutls_session_t session, const gnutls_datum_t *name, gnutls_datum_t *key)
{
	struct fab_tls_end *end = gnutls_session_get_ptr(session);
	int rc;

	/* A name that is not known is the peer's text, for a log. */
	snprintf(end->identity, sizeof(end->identity), "%.*s",
		 (int)MIN(name->size, (unsigned)FAB_PSK_NAME_MAX), (const char *)name->data);
	for (char *c = end->identity; *c; c++) {
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	rc = lend_key_of(end, name, key);
	if (rc <= 0)
		return rc;
	key->size = FAB_PSK_KEY_NEW;
	key->data = gnutls_malloc(key->size);
	if (!key->data)
		return -1;
	return gnutls_rnd(GNUTLS_RND_KEY, key->data, key->size) < 0 ? -1 : 0;
}

/* Give gnutls the key of this client, and its name.  Credentials that gnutls keeps would have the
 * key in the heap, and so in a core file. */
static int psk_of_client(gnutls_session_t session, gnutls_datum_t *name, gnutls_datum_t *key)
{
	struct fab_tls_end *end = gnutls_session_get_ptr(session);
	struct creds *tls = creds_of(end->tls);
	const struct fab_psk *psk;

	LOCK_SCOPE(&tls->lock);
	psk = &tls->psks.all[0];
	snprintf(end->identity, sizeof(end->identity), "%s", psk->name);
	name->size = (unsigned)strlen(psk->name);
	name->data = gnutls_malloc(name->size + 1);
	if (!name->data)
		return -1;
	memcpy(name->data, psk->name, name->size + 1);
	return lend_key(psk, key);
}

static int use_psk_server(struct creds *tls)
{
	if (gnutls_psk_allocate_server_credentials(&tls->psk_server) < 0)
		return -ENOMEM;
	gnutls_psk_set_server_credentials_function2(tls->psk_server, psk_of_name);
	return 0;
}

static int use_psk_client(struct creds *tls)
{
	if (gnutls_psk_allocate_client_credentials(&tls->psk_client) < 0)
		return -ENOMEM;
	gnutls_psk_set_client_credentials_function2(tls->psk_client, psk_of_client);
	return 0;
}

/* The key of @psks, which @file has, that a client is to use; NULL with a line in @err. */
static const struct fab_psk *choose_psk(const struct creds *tls, const char *file,
					const struct fab_psks *psks, char *err, size_t len)
{
	const struct fab_psk *psk = NULL;

	if (tls->username) {
		psk = fab_psk_find(psks, tls->username, strlen(tls->username));
		if (!psk)
			tls_error(0, err, len, "tls-username=%s: no key in %s has this name",
				  tls->username, file);
	} else if (psks->n == 1) {
		psk = &psks->all[0];
	} else {
		tls_error(0, err, len, "tls-psk=%s: has %u keys: expected tls-username=NAME", file,
			  psks->n);
	}
	return psk;
}

/* Leave @psks the key @own alone: keys of others are no business of a client. */
static void keep_own(struct fab_psks *psks, const struct fab_psk *own)
{
	if (own != &psks->all[0])
		psks->all[0] = *own;
	explicit_bzero(&psks->all[1], (psks->n - 1) * sizeof(psks->all[0]));
	psks->n = 1;
}

int fab_tls_read_keys(const struct fab_tls *tls, const char *file, struct fab_psks *psks,
		      char *err, size_t len)
{
	const struct creds *creds = creds_of(tls);
	const struct fab_psk *own;
	char why[256];
	int rc = fab_psk_read(file, psks, why, sizeof(why));

	if (rc)
		return tls_error(rc, err, len, "tls-psk=%s: %s", file, why);
	if (creds->server)
		return 0;
	own = choose_psk(creds, file, psks, err, len);
	if (own)
		keep_own(psks, own);
	else
		fab_psk_free(psks);
	return own ? 0 : -EINVAL;
}

static int use_psk(struct creds *tls, const char *file, char *err, size_t len)
{
	int rc = fab_tls_read_keys(&tls->base, file, &tls->psks, err, len);

	if (rc)
		return rc;
	rc = tls->server ? use_psk_server(tls) : use_psk_client(tls);
	return rc ? tls_error(rc, err, len, "out of memory") : 0;
}

/* ---- the whole ---- */

/* Check the options against each other; each alone is good. */
static int check_together(const struct fab_tls_conf *conf, enum fab_tls_mode mode, char *err,
			  size_t len)
{
	if (conf->username && !conf->psk)
		return tls_error(-EINVAL, err, len,
				 "tls-username=%s: expected tls-psk=FILE beside it",
				 conf->username);
	if (conf->hostname && !conf->certificates)
		return tls_error(-EINVAL, err, len,
				 "tls-hostname=%s: expected tls-certificates=DIR beside it",
				 conf->hostname);
	if (conf->psk && conf->certificates)
		return tls_error(-EINVAL, err, len,
				 "tls-psk=%s and tls-certificates=%s: expected one of them",
				 conf->psk, conf->certificates);
	if (mode != FAB_TLS_OFF && !conf->psk && !conf->certificates)
		return tls_error(-EINVAL, err, len,
				 "tls=%s: expected tls-psk=FILE or tls-certificates=DIR beside it",
				 fab_tls_mode_names[mode]);
	return 0;
}

static enum fab_tls_mode mode_of(const struct fab_tls_conf *conf)
{
	if (conf->asked)
		return conf->mode;
	return conf->psk || conf->certificates ? FAB_TLS_ON : FAB_TLS_OFF;
}

/* Copy to *@copy the option @text, if it was given.  0 or -ENOMEM. */
static int copy_text(const char *text, char **copy)
{
	*copy = text ? strdup(text) : NULL;
	return text && !*copy ? -ENOMEM : 0;
}

/* Fill @tls as @conf says.  0, or -errno with a line in @err. */
static int fill(struct creds *tls, const struct fab_tls_conf *conf, char *err, size_t len)
{
	int rc;

	tls->base.ktls = conf->ktls == FAB_KTLS_AUTO;
	tls->server = conf->server;
	tls->verify_peer = conf->verify_peer;
	tls->nbd = conf->nbd;
	if (copy_text(conf->username, &tls->username) || copy_text(conf->hostname, &tls->hostname))
		return tls_error(-ENOMEM, err, len, "out of memory");
	rc = gnutls_priority_init(&tls->priority, conf->psk ? TLS_PRIORITY_PSK : TLS_PRIORITY_CERT,
				  NULL);
	if (rc < 0)
		return tls_error(-ENOTSUP, err, len,
				 "tls=%s: this machine's GnuTLS allows no TLS 1.3 with AES-128-GCM "
				 "or ChaCha20-Poly1305: %s", fab_tls_mode_names[tls->base.mode],
				 gnutls_strerror(rc));
	if (conf->psk)
		return use_psk(tls, conf->psk, err, len);
	return fab_certs_read(conf->certificates, conf->server, &tls->certs, err, len);
}

int fab_tls_create(const struct fab_tls_conf *conf, struct fab_tls **out, char *err, size_t len)
{
	enum fab_tls_mode mode = mode_of(conf);
	int rc = check_together(conf, mode, err, len);
	struct creds *tls;

	*out = NULL;
	if (rc || mode == FAB_TLS_OFF)
		return rc;
	tls = calloc(1, sizeof(*tls));
	if (!tls)
		return tls_error(-ENOMEM, err, len, "out of memory");
	wipe_begin();
	fab_secret_no_core_file();
	pthread_mutex_init(&tls->lock, NULL);
	tls->base.mode = mode;
	rc = fill(tls, conf, err, len);
	if (rc) {
		fab_tls_destroy(&tls->base);
		return rc;
	}
	if (tls->base.ktls)
		fab_ktls_ask();
	*out = &tls->base;
	return 0;
}

const struct fab_psks *fab_tls_keys(const struct fab_tls *tls)
{
	static const struct fab_psks none;

	return tls ? &creds_of(tls)->psks : &none;
}

void fab_tls_take_keys(struct fab_tls *tls, struct fab_psks *psks)
{
	struct creds *creds = creds_of(tls);
	struct fab_psks before;

	assert(creds->server || psks->n == 1);
	/* This thread alone replaces keys, and so reads the old ones without the lock: a handshake
	 * need not wait while two long files are compared. */
	fab_psk_adopt(psks, &creds->psks);
	LOCK_SCOPE(&creds->lock);
	before = creds->psks;
	creds->psks = *psks;
	*psks = before;
}

bool fab_tls_has_key(const struct fab_tls *tls, uint64_t serial)
{
	struct creds *creds = creds_of(tls);

	LOCK_SCOPE(&creds->lock);
	return fab_psk_by_serial(&creds->psks, serial);
}

struct fab_certs *fab_tls_certs(const struct fab_tls *tls)
{
	return tls ? creds_of(tls)->certs : NULL;
}

void fab_tls_take_certs(struct fab_tls *tls, struct fab_certs *certs)
{
	struct creds *creds = creds_of(tls);
	struct fab_certs *before;

	pthread_mutex_lock(&creds->lock);
	before = creds->certs;
	creds->certs = certs;
	pthread_mutex_unlock(&creds->lock);
	fab_certs_put(before);
}

/* A reference to the certificates of now; NULL: there are none. */
static struct fab_certs *get_certs(struct creds *tls)
{
	LOCK_SCOPE(&tls->lock);
	return tls->certs ? fab_certs_get(tls->certs) : NULL;
}

void fab_tls_destroy(struct fab_tls *tls)
{
	struct creds *creds = creds_of(tls);

	if (!tls)
		return;
	if (creds->psk_server)
		gnutls_psk_free_server_credentials(creds->psk_server);
	if (creds->psk_client)
		gnutls_psk_free_client_credentials(creds->psk_client);
	fab_certs_put(creds->certs);
	if (creds->priority)
		gnutls_priority_deinit(creds->priority);
	wipe_end();
	fab_psk_free(&creds->psks);
	pthread_mutex_destroy(&creds->lock);
	free(creds->username);
	free(creds->hostname);
	free(creds);
}

/* ---- records that the peer takes ---- */

/* Take a limit of records out of an extension of the peer: with the type of the record's content in
 * TLS 1.3. */
static int note_limit(void *arg, unsigned id, const unsigned char *data, unsigned len)
{
	struct fab_tls_end *end = arg;
	uint32_t limit = len == 2 ? (uint32_t)data[0] << 8 | data[1] : 0;

	if (id == TLS_RECORD_SIZE_LIMIT && limit)
		end->record = MIN(limit - 1, FAB_TLS_RECORD);
	return 0;
}

/* The peer's extensions have come.  A fault in them is GnuTLS's to find. */
static int note_extensions(gnutls_session_t session, unsigned type, unsigned when,
			   unsigned incoming, const gnutls_datum_t *message)
{
	unsigned flags = type == GNUTLS_HANDSHAKE_CLIENT_HELLO ?
				 GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO : 0;

	if (incoming)
		gnutls_ext_raw_parse(gnutls_session_get_ptr(session), note_limit, message, flags);
	return 0;
}

/* ---- sessions ---- */

/* The name that has to stand in the certificate of a peer at @address; NULL: any. */
static const char *name_wanted(const struct creds *tls, const char *address)
{
	return tls->server ? NULL : tls->hostname ? tls->hostname : address;
}

/* The certificate of the peer has come. */
static int verify_peer(gnutls_session_t session)
{
	struct fab_tls_end *end = gnutls_session_get_ptr(session);
	const struct creds *tls = creds_of(end->tls);

	return fab_certs_verify(session, name_wanted(tls, end->address), !tls->server,
				&end->faults) ? 0 : GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

static int set_credentials(const struct creds *tls, const struct fab_certs *certs,
			   gnutls_session_t session)
{
	int rc;

	if (tls->psk_server)
		return gnutls_credentials_set(session, GNUTLS_CRD_PSK, tls->psk_server);
	if (tls->psk_client)
		return gnutls_credentials_set(session, GNUTLS_CRD_PSK, tls->psk_client);
	rc = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE,
				    fab_certs_credentials(certs));
	if (!tls->verify_peer)
		return rc;
	if (tls->server)
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_function(session, verify_peer);
	return rc;
}

int fab_tls_session(struct fab_tls_end *end, const char *address,
		    struct gnutls_session_int **out)
{
	static const gnutls_datum_t alpn[] = {
		{ (unsigned char *)TLS_ALPN, sizeof(TLS_ALPN) - 1 },
		{ (unsigned char *)TLS_ALPN_NBD, sizeof(TLS_ALPN_NBD) - 1 },
	};
	struct creds *tls = creds_of(end->tls);
	gnutls_session_t session;

	if (gnutls_init(&session, (tls->server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK |
			GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0)
		return -ENOMEM;
	end->certs = get_certs(tls);
	if (gnutls_priority_set(session, tls->priority) < 0 ||
	    set_credentials(tls, end->certs, session) < 0 ||
	    gnutls_alpn_set_protocols(session, &alpn[tls->nbd], 1, GNUTLS_ALPN_MANDATORY) < 0) {
		fab_tls_session_end(end, session);
		return -ENOMEM;
	}
	*end->identity = '\0';
	gnutls_session_set_ptr(session, end);
	end->address = address;
	end->record = FAB_TLS_RECORD;
	gnutls_handshake_set_hook_function(session,
					   tls->server ? GNUTLS_HANDSHAKE_CLIENT_HELLO :
							 GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS,
					   GNUTLS_HOOK_POST, note_extensions);
	/* The cm has a deadline for the whole set-up. */
	gnutls_handshake_set_timeout(session, 0);
	*out = session;
	return 0;
}

void fab_tls_session_end(struct fab_tls_end *end, gnutls_session_t session)
{
	gnutls_deinit(session);
	fab_certs_put(end->certs);
	end->certs = NULL;
}

/* ---- who the peer is ---- */

bool fab_tls_trusts(const struct fab_tls_end *end, gnutls_session_t session)
{
	struct creds *tls = creds_of(end->tls);
	struct fab_certs *certs = tls->verify_peer ? get_certs(tls) : NULL;
	bool trusts = !certs || certs == end->certs ||
		      fab_certs_trust(certs, session, name_wanted(tls, end->address),
				      !tls->server);

	fab_certs_put(certs);
	return trusts;
}

/* The common name in the certificate of the peer.  GnuTLS has verified the certificate: else the
 * handshake had failed. */
static void name_by_certificate(gnutls_session_t session, struct fab_identity *id)
{
	char name[FAB_PSK_NAME_MAX + 1];
	const gnutls_datum_t *chain;
	gnutls_x509_crt_t crt;
	size_t len = sizeof(name);
	unsigned n = 0;

	chain = gnutls_certificate_get_peers(session, &n);
	if (!chain || !n || gnutls_x509_crt_init(&crt) < 0)
		return;
	/* A name with a zero byte is longer than its text. */
	if (gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
	    gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name,
					  &len) == 0 &&
	    strnlen(name, sizeof(name)) == len && !fab_psk_name_fault(name) && !strchr(name, ','))
		snprintf(id->name, sizeof(id->name), "cert:%s", name);
	gnutls_x509_crt_deinit(crt);
}

void fab_tls_identity(const struct fab_tls_end *end, gnutls_session_t session,
		      struct fab_identity *id)
{
	const struct creds *tls = creds_of(end->tls);

	snprintf(id->cipher, sizeof(id->cipher), "TLS1.3 %s",
		 gnutls_cipher_get_name(gnutls_cipher_get(session)));
	if (!tls->server)
		return;
	if (!tls->psk_server) {
		if (tls->verify_peer)
			name_by_certificate(session, id);
		return;
	}
	/* As the key was found in the handshake: the keys may be others by now. */
	if (end->unknown || !end->key)
		return;
	fab_psk_identity(end->identity, id->name, sizeof(id->name));
	id->key = end->key;
	id->key_since_s = end->key_since_s;
}

/* ---- words for a log ---- */

/* Put the cause of @rc, of a server, into words. */
static bool server_cause(const struct fab_tls_end *end, int rc, char *why, size_t len)
{
	if (end->unknown)
		snprintf(why, len, "TLS: no key has the name '%s'", end->identity);
	else if (*end->identity && rc == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER)
		snprintf(why, len, "TLS: wrong key of '%s'", end->identity);
	else
		return false;
	return true;
}

/* Put the faults of the peer's certificate into words. */
static bool certificate_cause(const struct fab_tls_end *end, int rc, char *why, size_t len)
{
	gnutls_datum_t text;

	if (rc != GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR || !end->faults)
		return false;
	if (gnutls_certificate_verification_status_print(end->faults, GNUTLS_CRT_X509, &text,
							 0) < 0)
		return false;
	snprintf(why, len, "TLS: %s %s", gnutls_strerror(rc), (const char *)text.data);
	gnutls_free(text.data);
	/* GnuTLS ends each of its sentences with ". ". */
	for (size_t n = strlen(why); n && strchr(". ", why[n - 1]); n--)
		why[n - 1] = '\0';
	return true;
}

void fab_tls_handshake_cause(const struct fab_tls_end *end, gnutls_session_t session, int rc,
			     char *why, size_t len)
{
	const char *name;

	if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		name = gnutls_alert_get_name(gnutls_alert_get(session));
		snprintf(why, len, "TLS: the peer refused%s%s: %s",
			 *end->identity ? " the key of " : "", end->identity,
			 name ? name : "unknown alert");
	} else if (rc == GNUTLS_E_PREMATURE_TERMINATION || rc == GNUTLS_E_PULL_ERROR) {
		snprintf(why, len, "TLS: peer closed");
	} else if (!server_cause(end, rc, why, len) && !certificate_cause(end, rc, why, len)) {
		snprintf(why, len, "TLS: %s", gnutls_strerror(rc));
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session of GnuTLS on behalf of the caller's struct fab_tls_end, with its reference to
 * certificates. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "fab-tls.h"
#include "fabric.h"
#include "names.h"
#include "number.h"
#include "secrets.h"
#include "util.h"

/* Extensions that GnuTLS knows and does not tell. */
#define TLS_RECORD_SIZE_LIMIT 28	/* RFC 8449 */
#define TLS_SUPPORTED_VERSIONS 43	/* RFC 8446, 4.2.1 */
#define TLS_1_2 0x0303u

/* ---- what the peer says of itself ---- */

static uint16_t be16(const unsigned char *data)
{
	return (uint16_t)(data[0] << 8 | data[1]);
}

/* With the type of the record's content in TLS 1.3. */
static void note_limit(struct fab_tls_end *end, const unsigned char *data, unsigned len)
{
	uint32_t limit = len == 2 ? be16(data) : 0;

	if (limit)
		end->record = MIN(limit - 1, FAB_TLS_RECORD);
}

/* Versions of TLS begin with the byte 3; others stand there to keep servers flexible (RFC 8701). */
static void note_versions(struct fab_tls_end *end, const unsigned char *data, unsigned len)
{
	end->offers = 0;
	for (unsigned i = 1; i + 1 < len; i += 2) {
		if (data[i] == TLS_1_2 >> 8)
			end->offers = MAX(end->offers, be16(data + i));
	}
}

static int note_extension(void *arg, unsigned id, const unsigned char *data, unsigned len)
{
	struct fab_tls_end *end = arg;

	if (id == TLS_RECORD_SIZE_LIMIT)
		note_limit(end, data, len);
	else if (id == TLS_SUPPORTED_VERSIONS && end->tls->server)
		note_versions(end, data, len);
	return 0;
}

/* The peer's extensions have come.  A fault in them is GnuTLS's to find. */
static void note_extensions(struct fab_tls_end *end, unsigned type, const gnutls_datum_t *message)
{
	bool hello = type == GNUTLS_HANDSHAKE_CLIENT_HELLO;

	/* A client without the extension says its version in front. */
	if (hello && message->size >= 2)
		end->offers = be16(message->data);
	gnutls_ext_raw_parse(end, note_extension, message,
			     hello ? GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO : 0);
}

/* ---- sessions ---- */

/* The name that has to stand in the certificate of a peer at @address; NULL: any. */
static const char *name_wanted(const struct fab_tls *tls, const char *address)
{
	return tls->server ? NULL : tls->hostname ? tls->hostname : address;
}

/* The certificate of the peer has come, and its signature, which GnuTLS verifies next: judge the
 * certificate first, because the work for a signature is the choice of whoever has sent the key.
 * GnuTLS's verify function comes behind the signature, and the hook of the message with the
 * certificates before GnuTLS has their list (3.7.9). */
static int judge_peer(gnutls_session_t session)
{
	struct fab_tls_end *end = gnutls_session_get_ptr(session);
	const struct fab_tls *tls = end->tls;
	int rc = certs_cheap(session) ? 0 : GNUTLS_E_CONSTRAINT_ERROR;

	if (!rc && tls->verify_peer)
		rc = certs_verify(session, name_wanted(tls, end->address), !tls->server,
				  &end->faults);
	end->judged = !rc;
	return rc;
}

/* A message of the handshake has come, and is not used yet. */
static int message_came(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
			const gnutls_datum_t *message)
{
	if (!incoming)
		return 0;
	if (type == GNUTLS_HANDSHAKE_CLIENT_HELLO || type == GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS)
		note_extensions(gnutls_session_get_ptr(session), type, message);
	return type == GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY ? judge_peer(session) : 0;
}

/* The certificate of the peer is good: no handshake goes on without judge_peer(). */
static int verify_peer(gnutls_session_t session)
{
	const struct fab_tls_end *end = gnutls_session_get_ptr(session);

	return end->judged ? 0 : GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

static int set_credentials(const struct fab_tls *tls, const struct certs *certs,
			   gnutls_session_t session)
{
	int rc;

	if (tls->psk_server)
		return gnutls_credentials_set(session, GNUTLS_CRD_PSK, tls->psk_server);
	if (tls->psk_client)
		return gnutls_credentials_set(session, GNUTLS_CRD_PSK, tls->psk_client);
	rc = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, certs_credentials(certs));
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
	static const gnutls_datum_t alpn[FAB_TLS_PROTOCOLS] = {
		[FAB_TLS_RTRS] = { (unsigned char *)"rtrs", 4 },
		[FAB_TLS_NBD] = { (unsigned char *)"nbd", 3 },
	};
	const struct fab_tls *tls = end->tls;
	gnutls_session_t session;

	/* A client with a certificate sends it to a server, too, that names other authorities: both
	 * ends say then that it is refused, and not that there is none. */
	if (gnutls_init(&session, (tls->server ? GNUTLS_SERVER :
				   GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT) |
			GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0)
		return -ENOMEM;
	end->certs = secrets_get_certs(tls->secrets);
	if (gnutls_priority_set(session, tls->priority) < 0 ||
	    set_credentials(tls, end->certs, session) < 0 ||
	    gnutls_alpn_set_protocols(session, &alpn[tls->protocol], 1,
				      GNUTLS_ALPN_MANDATORY) < 0) {
		fab_tls_session_end(end, session);
		return -ENOMEM;
	}
	*end->identity = '\0';
	gnutls_session_set_ptr(session, end);
	end->address = address;
	end->record = FAB_TLS_RECORD;
	end->judged = false;
	gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_PRE,
					   message_came);
	/* The cm has a deadline for the whole set-up. */
	gnutls_handshake_set_timeout(session, 0);
	*out = session;
	return 0;
}

void fab_tls_session_end(struct fab_tls_end *end, gnutls_session_t session)
{
	gnutls_deinit(session);
	certs_put(end->certs);
	end->certs = NULL;
}

/* ---- who the peer is ---- */

bool fab_tls_trusts(const struct fab_tls_end *end, gnutls_session_t session)
{
	const struct fab_tls *tls = end->tls;
	struct certs *certs = tls->verify_peer ? secrets_get_certs(tls->secrets) : NULL;
	bool trusts = !certs || certs_trust(certs, session, name_wanted(tls, end->address),
					    !tls->server, certs == end->certs);

	certs_put(certs);
	return trusts;
}

/* The common name in the certificate of the peer.  GnuTLS has verified the certificate: else the
 * handshake had failed. */
static void name_by_certificate(gnutls_session_t session, struct fab_identity *id)
{
	char name[PSK_NAME_MAX + 1];
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
	    strnlen(name, sizeof(name)) == len && !secret_name_fault(name) && !strchr(name, ','))
		snprintf(id->name, sizeof(id->name), "cert:%s", name);
	gnutls_x509_crt_deinit(crt);
}

void fab_tls_identity(const struct fab_tls_end *end, gnutls_session_t session,
		      struct fab_identity *id)
{
	const struct fab_tls *tls = end->tls;

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
	secret_name_identity(end->identity, id->name, sizeof(id->name));
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
	else if (rc == GNUTLS_E_CERTIFICATE_REQUIRED)
		snprintf(why, len, "TLS: the client sends no certificate: expected client-cert.pem "
			 "and client-key.pem of an authority in ca-cert.pem of this end");
	else if (end->offers >= TLS_1_2 - 2 && end->offers <= TLS_1_2)
		snprintf(why, len, "TLS: the client offers TLS 1.%u at most, and this end accepts "
			 "only TLS 1.3", end->offers - (TLS_1_2 - 2));
	else
		return false;
	return true;
}

/* The faults of the certificate of a server, or else of a client.  Short: FAB_TLS_WHY_LEN. */
static void add_faults(unsigned rest, bool of_server, char *why, size_t len)
{
	const struct {
		unsigned fault;
		const char *words;
	} faults[] = {
		{ GNUTLS_CERT_SIGNER_NOT_FOUND, "its issuer is not in ca-cert.pem of this end" },
		{ GNUTLS_CERT_SIGNER_NOT_CA, "its issuer is no authority" },
		{ GNUTLS_CERT_EXPIRED, "it has ended, by the clock of this machine" },
		{ GNUTLS_CERT_NOT_ACTIVATED,
		  "it is not valid yet, by the clock of this machine" },
		{ GNUTLS_CERT_REVOKED, "ca-crl.pem of this end revokes it" },
		{ GNUTLS_CERT_PURPOSE_MISMATCH, of_server ? "it is not for a server" :
		  "it is not for a client" },
		{ GNUTLS_CERT_UNEXPECTED_OWNER, "it is for another name" },
		{ GNUTLS_CERT_SIGNATURE_FAILURE,
		  "no authority in ca-cert.pem of this end has signed it" },
	};
	const char *before = "";

	rest &= ~(unsigned)GNUTLS_CERT_INVALID;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!(rest & faults[i].fault))
			continue;
		fmt_add(why, len, "%s%s", before, faults[i].words);
		rest &= ~faults[i].fault;
		before = ", and ";
	}
	if (rest)
		fmt_add(why, len, "%sGnuTLS reports fault 0x%x", before, rest);
}

/* Write the @n bytes @san, an alternative name of the kind @type, to @text.  False: no host. */
static bool san_text(int type, const unsigned char *san, size_t n, char *text, size_t len)
{
	if (type == GNUTLS_SAN_DNSNAME) {
		snprintf(text, len, "%.*s", (int)n, (const char *)san);
		mask_control(text);
		return true;
	}
	if (type != GNUTLS_SAN_IPADDRESS || (n != 4 && n != 16))
		return false;
	return inet_ntop(n == 4 ? AF_INET : AF_INET6, san, text, (socklen_t)len);
}

static void list_names(gnutls_x509_crt_t crt, char *buf, size_t len)
{
	size_t at = 0;

	for (unsigned i = 0; ; i++) {
		unsigned char san[256];
		char text[257];
		size_t n = sizeof(san);
		int type = gnutls_x509_crt_get_subject_alt_name(crt, i, san, &n, NULL);

		if (type < 0 && type != GNUTLS_E_SHORT_MEMORY_BUFFER)
			break;
		if (type < 0 || !san_text(type, san, n, text, sizeof(text)))
			continue;
		if (at + strlen(text) + sizeof(", , ...") > len) {
			snprintf(buf + at, len - at, "%s...", at ? ", " : "");
			break;
		}
		at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", text);
	}
}

/* Write to @buf the names of hosts and the addresses in the certificate of the peer of @session,
 * "disks.test, 192.0.2.10": those of subjectAltName (RFC 5280, 4.2.1.6).  "": there are none, or
 * no certificate.  A list that is longer than @buf ends in "...".  Returns @buf. */
static const char *cert_names(gnutls_session_t session, char *buf, size_t len)
{
	unsigned n = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
	gnutls_x509_crt_t crt;

	snprintf(buf, len, "%s", "");
	if (!n || gnutls_x509_crt_init(&crt) < 0)
		return buf;
	if (gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER) == 0)
		list_names(crt, buf, len);
	gnutls_x509_crt_deinit(crt);
	return buf;
}

/* Put the faults of the peer's certificate into words. */
static bool certificate_cause(const struct fab_tls_end *end, gnutls_session_t session, int rc,
			      char *why, size_t len)
{
	const struct fab_tls *tls = end->tls;
	const char *wanted = name_wanted(tls, end->address);
	char names[256];

	if (rc != GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR || !end->faults)
		return false;
	if (end->faults == (GNUTLS_CERT_INVALID | GNUTLS_CERT_UNEXPECTED_OWNER) && wanted) {
		snprintf(why, len, "TLS: the server's certificate is for %s, and not for '%s': "
			 "expected one of these names as tls-hostname=",
			 *cert_names(session, names, sizeof(names)) ? names : "no name", wanted);
		return true;
	}
	snprintf(why, len, "TLS: the %s's certificate is refused: ",
		 tls->server ? "client" : "server");
	add_faults(end->faults, !tls->server, why, len);
	return true;
}

static bool is_of_certificate(unsigned alert)
{
	switch (alert) {
	case GNUTLS_A_BAD_CERTIFICATE: case GNUTLS_A_UNSUPPORTED_CERTIFICATE:
	case GNUTLS_A_CERTIFICATE_REVOKED: case GNUTLS_A_CERTIFICATE_EXPIRED:
	case GNUTLS_A_CERTIFICATE_UNKNOWN: case GNUTLS_A_UNKNOWN_CA:
		return true;
	default:
		return false;
	}
}

static const char *alert_name(unsigned alert)
{
	const char *name = gnutls_alert_get_name((gnutls_alert_description_t)alert);

	return name ? name : "unknown alert";
}

void fab_tls_alert_text(unsigned alert, char *why, size_t len)
{
	snprintf(why, len, "peer failed the connection: TLS alert: %s%s", alert_name(alert),
		 is_of_certificate(alert) ? ": it refuses the certificate of this end, and its log "
		 "has the reason" :
		 alert == GNUTLS_A_CERTIFICATE_REQUIRED ? ": expected client-cert.pem and "
		 "client-key.pem in tls-certificates= of this end" : "");
}

/* The peer has sent the alert @alert in the handshake. */
static void alert_cause(const struct fab_tls_end *end, unsigned alert, char *why, size_t len)
{
	if (*end->identity)
		snprintf(why, len, "TLS: the peer refused the key of %s: %s: does its file have "
			 "this line, too?", end->identity, alert_name(alert));
	else
		snprintf(why, len, "TLS: the peer refused%s: %s%s",
			 is_of_certificate(alert) ? " the certificate of this end" : "",
			 alert_name(alert),
			 is_of_certificate(alert) ? ": its log has the reason" : "");
}

void fab_tls_handshake_cause(const struct fab_tls_end *end, gnutls_session_t session, int rc,
			     char *why, size_t len)
{
	if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		alert_cause(end, gnutls_alert_get(session), why, len);
	} else if (rc == GNUTLS_E_PREMATURE_TERMINATION || rc == GNUTLS_E_PULL_ERROR) {
		snprintf(why, len, "TLS: peer closed");
	} else if (rc == GNUTLS_E_CONSTRAINT_ERROR) {
		snprintf(why, len, "TLS: the peer's certificate has too long a key or chain");
	} else if (!server_cause(end, rc, why, len) &&
		   !certificate_cause(end, session, rc, why, len)) {
		snprintf(why, len, "TLS: %s", gnutls_strerror(rc));
	}
}

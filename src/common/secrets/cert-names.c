/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "cert-names.h"
#include "names.h"

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

const char *cert_names(gnutls_session_t session, char *buf, size_t len)
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

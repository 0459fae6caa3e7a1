/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program shows of its keys and certificates: names of files and a date, never a key.  Any
 * thread. */
#ifndef CTL_SECRETS_H
#define CTL_SECRETS_H

#include <stdint.h>

#include <jansson.h>

struct ctl_secrets {
	const char *tls;		/* the mode, "off", "on" or "require" */
	/* files and a directory, as the user gave them; NULL: none */
	const char *tls_psk, *tls_certificates, *auth_psk;
	/* of the certificates, the file that ends first, and the one that begins last; NULL:
	 * none; and when, since 1970 */
	const char *end_file, *begin_file;
	int64_t end_s, begin_s;
};

/* The members "tls", "tls_psk", "tls_certificates", "auth_psk", "tls_certificates_end" and
 * "tls_certificates_begin", with the absolute names of files; of "tls" alone none is missing. */
json_t *ctl_secrets_json(const struct ctl_secrets *secrets);
/* A JSON string of the absolute name of the file @path.  A relative @path is in the working
 * directory of the process, which has not left the directory of its start. */
json_t *ctl_path_json(const char *path);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the credentials of an end: its secrets, and what GnuTLS makes of them; and the kernel's
 * answers about TLS of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <linux/tls.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "fab-tls.h"
#include "fabric.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "util.h"

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

enum fab_tls_mode fab_tls_conf_mode(const struct fab_tls_conf *conf)
{
	if (conf->asked)
		return conf->mode;
	return conf->psk || conf->certificates ? FAB_TLS_REQUIRE : FAB_TLS_OFF;
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
static int lend_key(const struct psk *psk, gnutls_datum_t *key)
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
	struct secrets *secrets = end->tls->secrets;
	const struct psk *psk;

	LOCK_SCOPE(&secrets->lock);
	psk = psk_find(&secrets->psks, name->data, name->size);
	end->unknown = !psk;
	end->key = psk ? psk->serial : 0;
	end->key_since_s = psk ? psk->since_s : 0;
	return psk ? lend_key(psk, key) : 1;
}

/* Give gnutls the key of @name.  An unknown name gets a key of chance, so that an unauthenticated
 * client does not learn which names there are. */
static int psk_of_name(gnutls_session_t session, const gnutls_datum_t *name, gnutls_datum_t *key)
{
	struct fab_tls_end *end = gnutls_session_get_ptr(session);
	int rc;

	/* A name that is not known is the peer's text, for a log. */
	snprintf(end->identity, sizeof(end->identity), "%.*s",
		 (int)MIN(name->size, (unsigned)PSK_NAME_MAX), (const char *)name->data);
	for (char *c = end->identity; *c; c++) {
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	rc = lend_key_of(end, name, key);
	if (rc <= 0)
		return rc;
	key->size = PSK_KEY_NEW;
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
	struct secrets *secrets = end->tls->secrets;
	const struct psk *psk;

	LOCK_SCOPE(&secrets->lock);
	psk = &secrets->psks.all[0];
	snprintf(end->identity, sizeof(end->identity), "%s", psk->name);
	name->size = (unsigned)strlen(psk->name);
	name->data = gnutls_malloc(name->size + 1);
	if (!name->data)
		return -1;
	memcpy(name->data, psk->name, name->size + 1);
	return lend_key(psk, key);
}

static int use_psk_server(struct fab_tls *tls)
{
	if (gnutls_psk_allocate_server_credentials(&tls->psk_server) < 0)
		return -ENOMEM;
	gnutls_psk_set_server_credentials_function2(tls->psk_server, psk_of_name);
	return 0;
}

static int use_psk_client(struct fab_tls *tls)
{
	if (gnutls_psk_allocate_client_credentials(&tls->psk_client) < 0)
		return -ENOMEM;
	gnutls_psk_set_client_credentials_function2(tls->psk_client, psk_of_client);
	return 0;
}

/* ---- the whole ---- */

/* Check the options against each other; each alone is good. */
static int check_together(const struct fab_tls_conf *conf, enum fab_tls_mode mode, char *err,
			  size_t len)
{
	if (conf->username && !conf->psk)
		return fmt_error(-EINVAL, err, len,
				 "tls-username=%s: expected tls-psk=FILE beside it",
				 conf->username);
	if (conf->hostname && !conf->certificates)
		return fmt_error(-EINVAL, err, len,
				 "tls-hostname=%s: expected tls-certificates=DIR beside it",
				 conf->hostname);
	if (conf->psk && conf->certificates)
		return fmt_error(-EINVAL, err, len,
				 "tls-psk=%s and tls-certificates=%s: expected one of them",
				 conf->psk, conf->certificates);
	/* This server would have no TLS, and let everybody in.  A client verifies by default. */
	if (conf->server && conf->verify_peer && !conf->asked && !fab_tls_conf_file(conf))
		return fmt_error(-EINVAL, err, len,
				 "tls-verify-peer: expected tls-certificates=DIR beside it");
	if (mode != FAB_TLS_OFF && !conf->psk && !conf->certificates)
		return fmt_error(-EINVAL, err, len,
				 "tls=%s: expected tls-psk=FILE or tls-certificates=DIR beside it",
				 fab_tls_mode_names[mode]);
	return 0;
}

/* Fill @tls as @conf says.  0, or -errno with a line in @err. */
static int fill(struct fab_tls *tls, const struct fab_tls_conf *conf, char *err, size_t len)
{
	const struct secrets_conf secrets = {
		.kind = conf->psk ? SECRETS_TLS_KEYS : SECRETS_CERTS, .server = conf->server,
		.nbd = conf->protocol == FAB_TLS_NBD, .file = fab_tls_conf_file(conf),
		.username = conf->username,
	};
	int rc;

	tls->ktls = conf->ktls == FAB_KTLS_AUTO;
	tls->server = conf->server;
	tls->verify_peer = conf->verify_peer;
	tls->protocol = conf->protocol;
	tls->hostname = conf->hostname ? strdup(conf->hostname) : NULL;
	if (conf->hostname && !tls->hostname)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	rc = gnutls_priority_init(&tls->priority, conf->psk ? TLS_PRIORITY_PSK : TLS_PRIORITY_CERT,
				  NULL);
	if (rc < 0)
		return fmt_error(-ENOTSUP, err, len,
				 "tls=%s: this machine's GnuTLS allows no TLS 1.3 with AES-128-GCM "
				 "or ChaCha20-Poly1305: %s", fab_tls_mode_names[tls->mode],
				 gnutls_strerror(rc));
	rc = secrets_create(&secrets, &tls->secrets, err, len);
	if (rc || !conf->psk)
		return rc;
	rc = tls->server ? use_psk_server(tls) : use_psk_client(tls);
	return rc ? fmt_error(rc, err, len, "out of memory") : 0;
}

int fab_tls_create(const struct fab_tls_conf *conf, struct fab_tls **out, char *err, size_t len)
{
	enum fab_tls_mode mode = fab_tls_conf_mode(conf);
	int rc = check_together(conf, mode, err, len);
	struct fab_tls *tls;

	*out = NULL;
	if (rc || mode == FAB_TLS_OFF)
		return rc;
	tls = calloc(1, sizeof(*tls));
	if (!tls)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	wipe_begin();
	secret_no_core_file();
	tls->mode = mode;
	tls->spares_rdma = conf->auth && !conf->asked;
	rc = fill(tls, conf, err, len);
	if (rc) {
		fab_tls_destroy(tls);
		return rc;
	}
	if (tls->ktls)
		fab_ktls_ask();
	if (mode == FAB_TLS_ON)
		log_warn(NULL, "tls=on: an active attacker can remove TLS (tls=require refuses "
			 "peers without it)");
	*out = tls;
	return 0;
}

void fab_tls_destroy(struct fab_tls *tls)
{
	if (!tls)
		return;
	if (tls->psk_server)
		gnutls_psk_free_server_credentials(tls->psk_server);
	if (tls->psk_client)
		gnutls_psk_free_client_credentials(tls->psk_client);
	secrets_destroy(tls->secrets);
	if (tls->priority)
		gnutls_priority_deinit(tls->priority);
	wipe_end();
	free(tls->hostname);
	free(tls);
}

/* ---- TLS of the kernel ----
 *
 * Each cipher is tried with a key of zeroes on a connection over loopback, on which no byte is
 * sent. */

static const struct tls12_crypto_info_aes_gcm_128 gcm = {
	.info = { .version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
};
static const struct tls12_crypto_info_chacha20_poly1305 chacha = {
	.info = { .version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_CHACHA20_POLY1305 },
};

static const struct cipher {
	const struct tls_crypto_info *info;
	socklen_t len;
} ciphers[] = {
	{ &gcm.info, sizeof(gcm) },
	{ &chacha.info, sizeof(chacha) },
};

static int module_error, cipher_errors[ARRAY_SIZE(ciphers)];

/* A listener on loopback at @addr, or -1. */
static int listen_here(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd >= 0 && !bind(fd, (struct sockaddr *)addr, len) &&
	    !listen(fd, ARRAY_SIZE(ciphers)) &&
	    !getsockname(fd, (struct sockaddr *)addr, &len))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Try @cipher on a connection to @addr.  0, or errno for which the kernel refuses the key. */
static int try_cipher(const struct cipher *cipher, const struct sockaddr_in *addr)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return 0;
	module_error = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) ? errno : 0;
	if (module_error)
		return module_error;
	return setsockopt(fd, SOL_TLS, TLS_TX, cipher->info, cipher->len) ? errno : 0;
}

static void ask(void)
{
	struct sockaddr_in addr;
	int listener = listen_here(&addr);

	if (listener < 0)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(ciphers) && !module_error; i++)
		cipher_errors[i] = try_cipher(&ciphers[i], &addr);
	close(listener);
}

void fab_ktls_ask(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, ask);
}

int fab_ktls_module_error(void)
{
	return module_error;
}

int fab_ktls_cipher_error(uint16_t cipher)
{
	for (unsigned i = 0; i < ARRAY_SIZE(ciphers); i++) {
		if (ciphers[i].info->cipher_type == cipher)
			return module_error ? module_error : cipher_errors[i];
	}
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the keys of an end, and the copy of a key that a path has. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth-creds.h"
#include "clock.h"
#include "fabric.h"
#include "number.h"
#include "process.h"

const char *const auth_mode_names[AUTH_MODES] = {
	[AUTH_MODE_NONE] = "none", [AUTH_MODE_PSK] = "psk", [AUTH_MODE_REQUIRE] = "require",
};

enum auth_mode auth_conf_mode(const struct auth_conf *conf)
{
	if (conf->asked)
		return conf->mode;
	return conf->psk ? AUTH_MODE_REQUIRE : AUTH_MODE_NONE;
}

/* Check the options against each other; each alone is good. */
static int check_together(const struct auth_conf *conf, char *err, size_t len)
{
	if (conf->username && !conf->psk)
		return fmt_error(-EINVAL, err, len,
				 "auth-username=%s: expected auth-psk=FILE beside it",
				 conf->username);
	/* A server that need not prove itself has no name to compare. */
	if (conf->hostname && auth_conf_mode(conf) != AUTH_MODE_REQUIRE)
		return fmt_error(-EINVAL, err, len,
				 "auth-hostname=%s: expected auth-psk=FILE beside it, and "
				 "auth=require", conf->hostname);
	if (auth_conf_mode(conf) != AUTH_MODE_NONE && !conf->psk)
		return fmt_error(-EINVAL, err, len,
				 "auth=%s: expected auth-psk=FILE beside it",
				 auth_mode_names[auth_conf_mode(conf)]);
	return 0;
}

/* ---- the whole ---- */

/* The name that a server tells: the machine's, of characters that a name may have. */
static void name_machine(char name[PSK_NAME_MAX + 1])
{
	if (gethostname(name, PSK_NAME_MAX) || !*name)
		snprintf(name, PSK_NAME_MAX, "?");
	name[PSK_NAME_MAX] = '\0';
	for (char *c = name; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			*c = '?';
	}
}

int auth_creds_create(const struct auth_conf *conf, struct auth_creds **out, char *err, size_t len)
{
	const struct secrets_conf secrets = {
		.kind = SECRETS_AUTH_KEYS, .server = conf->server, .file = conf->psk,
		.username = conf->username,
	};
	struct auth_creds *creds;
	int rc = check_together(conf, err, len);

	*out = NULL;
	/* A listener of a server may ask where others do not. */
	if (rc || (auth_conf_mode(conf) == AUTH_MODE_NONE && !(conf->server && conf->psk)))
		return rc;
	creds = calloc(1, sizeof(*creds));
	if (!creds)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	creds->mode = auth_conf_mode(conf);
	secret_no_core_file();
	rc = secrets_create(&secrets, &creds->secrets, err, len);
	if (!rc && conf->server)
		name_machine(creds->name);
	if (!rc && conf->hostname) {
		creds->hostname = strdup(conf->hostname);
		rc = creds->hostname ? 0 : fmt_error(-ENOMEM, err, len, "out of memory");
	}
	if (rc) {
		auth_creds_destroy(creds);
		return rc;
	}
	*out = creds;
	return 0;
}

/* ---- files that a later start is to read ---- */

static bool same_file(const char *a, const char *b)
{
	return !a == !b && (!a || !strcmp(a, b));
}

bool auth_files_same(const struct fab_tls_conf *tls_a, const struct auth_conf *auth_a,
		     const struct fab_tls_conf *tls_b, const struct auth_conf *auth_b)
{
	return same_file(tls_a->psk, tls_b->psk) && same_file(auth_a->psk, auth_b->psk) &&
	       same_file(tls_a->certificates, tls_b->certificates);
}

static int try_psk(const char *dashes, const char *option, const char *path, FILE *errors)
{
	struct secrets_keys_seen seen;
	char why[256];
	int rc = path ? secrets_look_keys(path, geteuid(), &seen, why, sizeof(why)) : 0;

	if (rc)
		fprintf(errors, "%s%s=%s: %s\n", dashes, option, path, why);
	return rc;
}

static int try_certs(const char *dashes, const struct fab_tls_conf *tls, FILE *errors)
{
	struct secrets_dates dates;
	char why[512];
	int rc = tls->certificates ? secrets_look_certs(tls->certificates, tls->server, &dates, why,
							sizeof(why)) : 0;

	if (rc)
		fprintf(errors, "%s%s\n", dashes, why);
	return rc;
}

int auth_files_try(const struct fab_tls_conf *tls, const struct auth_conf *auth, const char *dashes,
		   FILE *errors)
{
	int psk = try_psk(dashes, "tls-psk", tls->psk, errors);
	int proof = try_psk(dashes, "auth-psk", auth->psk, errors);
	int certs = try_certs(dashes, tls, errors);

	return psk ? psk : proof ? proof : certs;
}

bool auth_creds_want(const struct auth_creds *creds, const char *name)
{
	const char *word = creds->hostname;

	while (word) {
		size_t len = strcspn(word, ",");

		if (len == strlen(name) && !memcmp(word, name, len))
			return true;
		word = word[len] ? word + len + 1 : NULL;
	}
	return !creds->hostname;
}

void auth_creds_destroy(struct auth_creds *creds)
{
	if (!creds)
		return;
	secrets_destroy(creds->secrets);
	free(creds->hostname);
	free(creds);
}

/* ---- the key that a client proves ---- */

struct auth_key {
	struct psk psk;
};

static struct auth_key *copy_of(const struct psk *psk)
{
	struct auth_key *key = secret_alloc(sizeof(*key));

	if (key)
		key->psk = *psk;
	return key;
}

struct auth_key *auth_key_own(const struct auth_creds *creds)
{
	return copy_of(secrets_own(creds->secrets));
}

struct auth_key *auth_key_copy(const struct auth_key *key)
{
	return copy_of(&key->psk);
}

void auth_key_free(struct auth_key *key)
{
	secret_free(key, sizeof(*key));
}

bool auth_key_is_own(const struct auth_key *key, const struct auth_creds *creds)
{
	return psk_same(&key->psk, secrets_own(creds->secrets));
}

const char *auth_key_name(const struct auth_key *key)
{
	return key->psk.name;
}

void auth_key_prove(const struct auth_key *key, const struct auth_where *where,
		    struct auth_chap *chap, struct auth_reply *hello)
{
	struct auth_chance chance;

	random_bytes(&chance, sizeof(chance));
	auth_chap_client(chap, where, &key->psk, &chance, hello);
	explicit_bzero(&chance, sizeof(chance));
}

/* ---- CONN_REQ and CONN_RSP ---- */

/* The connection manager may write the first two bytes of a CONN_REQ. */
#define REQ_SKIPPED 2u
#define REQ_TAGGED (offsetof(struct rtrs_msg_conn_req, auth_data) - REQ_SKIPPED)

_Static_assert(sizeof(((struct auth_where *)0)->conn_req) ==
	       sizeof(struct rtrs_msg_conn_req) - REQ_SKIPPED, "all of it");
_Static_assert(sizeof(((struct auth_where *)0)->conn_rsp) == sizeof(struct rtrs_msg_conn_rsp),
	       "all of it");
_Static_assert(AUTH_TAG_LEN == RTRS_AUTH_TAG_LEN && AUTH_PROOF_LEN == RTRS_AUTH_PROOF_LEN,
	       "the places in CONN_REQ and CONN_RSP");

void auth_conn_channel(struct auth_channel *channel, const struct fab_conn *conn)
{
	const char *transport;
	struct fab_addr peer;

	memset(channel, 0, sizeof(*channel));
	fab_conn_addrs(conn, NULL, &peer);
	transport = fab_addr_transport(&peer);
	memcpy(channel->transport, transport, strnlen(transport, sizeof(channel->transport)));
	fab_conn_binding(conn, channel->binding);
}

uint8_t auth_conn_version(const struct fab_conn *conn)
{
	struct auth_channel channel;

	auth_conn_channel(&channel, conn);
	return auth_chap_version(&channel);
}

void auth_conn_where(struct auth_where *where, const struct rtrs_msg_conn_req *req,
		     const struct rtrs_msg_conn_rsp *rsp, const struct fab_conn *conn)
{
	memcpy(where->conn_req, (const uint8_t *)req + REQ_SKIPPED, sizeof(where->conn_req));
	memcpy(where->conn_rsp, rsp, sizeof(where->conn_rsp));
	auth_conn_channel(&where->channel, conn);
}

static void tag_of(const struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
		   const uint8_t conn_key[AUTH_HASH_LEN], uint8_t tag[AUTH_TAG_LEN])
{
	auth_chap_tag(conn_key, channel, (const uint8_t *)req + REQ_SKIPPED, REQ_TAGGED, tag);
}

void auth_conn_req_seal(struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
			const uint8_t conn_key[AUTH_HASH_LEN])
{
	tag_of(req, channel, conn_key, req->auth_data);
}

bool auth_conn_req_ok(const struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
		      const uint8_t conn_key[AUTH_HASH_LEN])
{
	uint8_t tag[AUTH_TAG_LEN];

	tag_of(req, channel, conn_key, tag);
	return req->auth == RTRS_AUTH_TAG && auth_crypto_same(tag, req->auth_data, sizeof(tag));
}

static void proof_of(const struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
		     const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN],
		     uint8_t proof[AUTH_PROOF_LEN])
{
	auth_chap_accept_proof(conn_key, channel, tag, AUTH_TAG_LEN, (const uint8_t *)rsp,
			       offsetof(struct rtrs_msg_conn_rsp, auth_data), proof);
}

void auth_conn_rsp_seal(struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
			const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN])
{
	proof_of(rsp, channel, tag, conn_key, rsp->auth_data);
}

bool auth_conn_rsp_ok(const struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
		      const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN])
{
	uint8_t proof[AUTH_PROOF_LEN];

	proof_of(rsp, channel, tag, conn_key, proof);
	return rsp->auth == RTRS_AUTH_TAG && auth_crypto_same(proof, rsp->auth_data, sizeof(proof));
}

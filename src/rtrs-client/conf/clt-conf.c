/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets a parameter, and checks several parameters together.  Main thread, before the fork. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "clt-conf.h"
#include "clt-sess.h"
#include "process.h"

/* ---- a parameter ---- */

/* Set @err to the text, which is the caller's; NULL: no memory.  Returns @rc. */
static int __attribute__((format(printf, 3, 4)))
conf_error(int rc, char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(err, fmt, ap) < 0)
		*err = NULL;
	va_end(ap);
	return rc;
}

/* Refuse a second value, except of a path: of two values the first would be ignored. */
static int check_once(const struct clt_conf *conf, const struct opt *row, const char *value,
		      char **err)
{
	const char *key = row->name, *first = NULL;

	for (unsigned i = 0; i < conf->nwords && !first; i++)
		first = conf->words[i].row == row ? conf->words[i].value : NULL;
	if (!first || row->many)
		return 0;
	if (!strcmp(key, "server") && value[strspn(value, "0123456789")] == '\0')
		return conf_error(-EINVAL, err,
				  "server=%s: given twice, "
				  "the first is server=%s (server=%s:%s has a port)",
				  value, first, first, value);
	if (!strcmp(key, "server"))
		return conf_error(-EINVAL, err,
				  "server=%s: given twice, the first is server=%s "
				  "(export=%s names an export, path=%s is one more path)",
				  value, first, value, value);
	return conf_error(-EINVAL, err, "%s=%s: given twice, the first is %s=%s", key, value, key,
			  first);
}

/* Parameters of other NBD programs, with the one to use here, and the begin of its value. */
static const struct foreign {
	const char *key, *ours, *begin;
} foreign[] = {
	{ "port", "server", "HOST:" }, { "hostname", "server", "" }, { "host", "server", "" },
	{ "socket", "server", "unix:" }, { "exportname", "export", "" },
	{ "timeout", "io-timeout", "" }, { "reconnect-delay", "io-timeout", "" },
};

static const struct foreign *foreign_find(const char *key)
{
	for (unsigned i = 0; i < ARRAY_SIZE(foreign); i++) {
		if (!strcmp(key, foreign[i].key))
			return &foreign[i];
	}
	return NULL;
}

const char *clt_conf_meant(const char *key)
{
	const struct foreign *f = foreign_find(key);

	return f ? f->ours : NULL;
}

/* The option of the front end that @key lacks the dashes of; NULL: none. */
static const struct opt *own_option(const struct clt_front *front, const char *key)
{
	const struct opt_table own = { .rows = front->options ? front->options->rows : NULL,
				       .n = front->options ? front->options->n : 0 };

	return opt_find(&own, key);
}

static int unknown_parameter(const struct clt_conf *conf, const char *key, const char *value,
			     char **err)
{
	const char *meant = opt_suggest(&clt_conf_options, OPT_AT_START, key, strlen(key));
	const struct foreign *f = foreign_find(key);
	const struct opt *own = own_option(conf->front, key);

	if (f && own)
		return conf_error(-EINVAL, err, "unknown parameter '%s': write %s=%s%s, or --%s=%s "
				  "for NBD clients", key, f->ours, f->begin, value, key, value);
	if (f)
		return conf_error(-EINVAL, err, "unknown parameter '%s': write %s=%s%s", key,
				  f->ours, f->begin, value);
	if (own)
		return conf_error(-EINVAL, err, "unknown parameter '%s': the option is --%s", key,
				  key);
	for (const char *const *of = conf->front->others; of && *of; of++) {
		if (!strcmp(key, *of))
			return conf_error(-EINVAL, err, "unknown parameter '%s': it is %s", key,
					  conf->front->others_are);
	}
	if (meant)
		return conf_error(-EINVAL, err, "unknown parameter '%s' (did you mean %s=?)", key,
				  meant);
	return conf_error(-EINVAL, err, "unknown parameter '%s': see %s", key, conf->front->help);
}

int clt_conf_set(struct clt_conf *conf, const char *key, const char *value, char **err)
{
	const struct opt *row = opt_find(&clt_conf_options, key);
	char why[256];

	if (!row)
		return unknown_parameter(conf, key, value, err);
	if (check_once(conf, row, value, err) < 0)
		return -EINVAL;
	if (conf->nwords == ARRAY_SIZE(conf->words))
		return conf_error(-EINVAL, err, "%s=%s: too many parameters", key, value);
	conf->words[conf->nwords++] = (struct clt_conf_word){ row, value };
	conf->values[row - clt_conf_options.rows] = value;
	if (!opt_read(row, conf, value, why, sizeof(why)))
		return 0;
	return conf_error(-EINVAL, err, "%s=%s: %s", key, value, why);
}

bool clt_conf_given(const struct clt_conf *conf, const char *key)
{
	return conf->values[opt_find(&clt_conf_options, key) - clt_conf_options.rows];
}

/* ---- paths ---- */

/* The parameter of @text, a member of path_texts. */
static const char *key_of(const struct clt_conf *conf, const char *text)
{
	return text == conf->server ? "server" : "path";
}

/* rdma://HOST means the same as transport=rdma: refuse two different transports. */
static int check_transports(const struct clt_conf *conf, const char *text, char **err)
{
	if (!conf->provider || fab_addr_text_agrees(text, conf->provider))
		return 0;
	return conf_error(-EINVAL, err,
			  "transport=%s contradicts %s=%s: give one of them, or the same twice",
			  fab_provider_name(conf->provider), key_of(conf, text), text);
}

static int complete_path(struct clt_conf *conf, unsigned i, char **err)
{
	const struct fab_provider *provider = conf->provider ? conf->provider :
		fab_provider_find("tcp");
	const char *text = conf->path_texts[i];
	char why[256];
	int r;

	r = check_transports(conf, text, err);
	if (r < 0)
		return r;
	r = clt_paths_parse(text, provider, &conf->paths[i], why, sizeof(why));
	if (r < 0)
		return conf_error(-EINVAL, err, "%s=%s: %s", key_of(conf, text), text, why);
	conf->chooses[i] = !conf->provider && clt_paths_is_open(text);
	conf->automatic |= conf->chooses[i];
	return r;
}

/* Are @a and @b, "FILE:LINE" or NULL for the command line, in one file? */
static bool same_file(const char *a, const char *b)
{
	size_t n = a ? (size_t)(strrchr(a, ':') - a) : 0, m = b ? (size_t)(strrchr(b, ':') - b) : 0;

	return n == m && !strncmp(a ? a : "", b ? b : "", n);
}

/* Refuse the path @last if an earlier path of its file has the same addresses.  KNOWN: another file
 * has this path. */
#define KNOWN 1
static int check_twice(const struct clt_conf *conf, unsigned last, char **err)
{
	const char *text = conf->path_texts[last], *other;

	for (unsigned i = 0; i < last; i++) {
		if (!clt_paths_same(&conf->paths[i], &conf->paths[last]))
			continue;
		if (!same_file(conf->path_wheres[i], conf->path_wheres[last]))
			return KNOWN;
		other = conf->path_texts[i];
		return conf_error(-EINVAL, err,
				  "%s=%s and %s=%s are one path: give each path once, "
				  "or another SOURCE@ to each",
				  key_of(conf, other), other, key_of(conf, text), text);
	}
	return 0;
}

static int complete_auth(struct clt_conf *conf, char **err)
{
	char why[512];
	int rc = 0;

	if (conf->now)
		conf->auth = conf->now->auth;
	else
		rc = auth_creds_create(&conf->auth_conf, &conf->auth, why, sizeof(why));
	return rc ? conf_error(exit_file_error(rc), err, "%s", why) : 0;
}

/* A path or transport @key=@value, of @where, "FILE:LINE" or NULL, has no TLS, which is
 * required. */
static int no_tls(const struct clt_conf *conf, const char *where, const char *key,
		  const char *value, char **err)
{
	const char *colon = where ? ": " : "";

	where = where ? where : "";
	if (conf->tls_conf.asked)
		return conf_error(-EINVAL, err,
				  "%s%stls=require and %s=%s: there is no TLS over RDMA",
				  where, colon, key, value);
	return conf_error(-EINVAL, err, "%s%stls-%s=%s and %s=%s: there is no TLS over RDMA: "
			  "expected auth=require beside it, or tls=on", where, colon,
			  conf->tls_conf.psk ? "psk" : "certificates",
			  conf->tls_conf.psk ? conf->tls_conf.psk : conf->tls_conf.certificates,
			  key, value);
}

/* Read keys and certificates.  RDMA has no TLS: behind complete_auth(). */
static int complete_tls(struct clt_conf *conf, char **err)
{
	char why[512];
	int rc;

	conf->tls_conf.auth = auth_mode(conf->auth) == AUTH_MODE_REQUIRE;
	if (conf->now)
		conf->tls = conf->now->tls;
	rc = conf->now ? 0 : fab_tls_create(&conf->tls_conf, &conf->tls, why, sizeof(why));
	if (rc)
		return conf_error(exit_file_error(rc), err, "%s", why);
	if (fab_tls_mode(conf->tls) != FAB_TLS_REQUIRE || conf->tls->spares_rdma)
		return 0;
	for (unsigned i = 0; i < conf->npaths; i++) {
		if (!fab_addr_text_agrees(conf->path_texts[i], fab_provider_find("tcp")))
			return no_tls(conf, conf->path_wheres[i],
				      key_of(conf, conf->path_texts[i]), conf->path_texts[i], err);
	}
	if (conf->transport == CLT_TRANSPORT_AUTO)
		conf->provider = fab_provider_find("tcp");
	if (conf->provider == fab_provider_find("tcp"))
		return 0;
	return no_tls(conf, conf->transport_where, "transport",
		      fab_provider_name(conf->provider), err);
}

/* Files that are read again later have absolute names: a daemon leaves its directory. */
static int complete_names(struct clt_conf *conf, char **err)
{
	const char **names[] = { &conf->tls_conf.psk, &conf->tls_conf.certificates,
				 &conf->auth_conf.psk, &conf->config };

	conf->dir = conf->now ? conf->now->dir : opt_texts_directory(&conf->texts);
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		if (opt_texts_absolute(&conf->texts, conf->dir, names[i]))
			return conf_error(-ENOMEM, err, "no memory");
	}
	return 0;
}

static int too_many_paths(const struct clt_conf *conf, char **err)
{
	const char *text = conf->path_texts[CLT_PATHS_MAX];
	const char *where = conf->path_wheres[CLT_PATHS_MAX];

	if (where)
		return conf_error(-EINVAL, err, "%s: path '%s': a session has at most %d paths, "
				  "those of all files together", where, text, CLT_PATHS_MAX);
	return conf_error(-EINVAL, err, "%s=%s: a session has at most %d paths",
			  key_of(conf, text), text, CLT_PATHS_MAX);
}

/* A path that two files have is one path. */
static int complete_paths(struct clt_conf *conf, char **err)
{
	const unsigned n = conf->npaths;
	int r = 0;

	conf->npaths = 0;
	for (unsigned i = 0; r >= 0 && i < n; i++) {
		const unsigned at = conf->npaths;

		conf->path_texts[at] = conf->path_texts[i];
		conf->path_wheres[at] = conf->path_wheres[i];
		r = complete_path(conf, at, err);
		if (r == 0)
			r = check_twice(conf, at, err);
		conf->npaths += r == 0;
	}
	if (r < 0)
		return r;
	return conf->npaths > CLT_PATHS_MAX && !conf->saved ? too_many_paths(conf, err) : 0;
}

static int complete_front(struct clt_conf *conf, char **err)
{
	char why[512];
	int r = conf->front->complete ? conf->front->complete(conf, why, sizeof(why)) : 0;

	return r ? conf_error(r, err, "%s", why) : 0;
}

int clt_conf_complete(struct clt_conf *conf, char **err)
{
	int r = conf->config ? clt_conf_file_read(conf, err) : 0;

	if (r == 0 && !conf->npaths)
		r = conf_error(-EINVAL, err, "server= is missing: give the address of an "
			       "rtrs-server, HOST[:PORT]");
	if (r == 0)
		r = complete_auth(conf, err);
	if (r == 0)
		r = complete_tls(conf, err);
	if (r == 0)
		r = complete_paths(conf, err);
	if (r < 0)
		return r;
	if (!conf->server)
		conf->server = conf->path_texts[0];
	/* ORDER: a mistake is told with the name that the user gave. */
	r = complete_names(conf, err);
	return r == 0 ? complete_front(conf, err) : r;
}

/* ---- once more ---- */

/* Keys and certificates in other files than those of conf->now take effect after a restart, which
 * is not to fail because of them. */
static int try_other_keys(const struct clt_conf *conf, char **err)
{
	const struct clt_conf *now = conf->now;
	size_t len = 0;
	FILE *errors;
	int r;

	if (auth_files_same(&now->tls_conf, &now->auth_conf, &conf->tls_conf, &conf->auth_conf))
		return 0;
	errors = open_memstream(err, &len);
	if (!errors)
		return conf_error(-ENOMEM, err, "no memory");
	r = auth_files_try(&conf->tls_conf, &conf->auth_conf, "", errors);
	if (fclose(errors) == 0 && r == 0) {
		free(*err);
		*err = NULL;
	} else if (*err && len) {
		(*err)[len - 1] = '\0';	/* the last newline */
	}
	return r;
}

/* Have @conf the front end's own options of the command line, which @now has. */
static void own_words_again(struct clt_conf *conf, const struct clt_conf *now)
{
	const struct opt_table *own = conf->front->options;

	conf->own_words = conf->own_given = now->own_words;
	for (unsigned i = 0; own && i < own->n; i++) {
		const struct opt *row = &own->rows[i];

		if (now->own_words >> i & 1)
			memcpy((char *)conf + row->offset, (const char *)now + row->offset,
			       row->size);
	}
}

int clt_conf_again(struct clt_conf *now, const char *saved, struct clt_conf **out, char **err)
{
	struct clt_conf *conf = calloc(1, clt_conf_size(now->front));
	int r = 0;

	*out = NULL;
	if (!conf)
		return conf_error(-ENOMEM, err, "no memory");
	clt_conf_init(conf, now->front);
	conf->now = now;
	conf->saved = saved;
	for (unsigned i = 0; r == 0 && i < now->nwords; i++)
		r = clt_conf_set(conf, now->words[i].row->name, now->words[i].value, err);
	conf->config = now->config;
	own_words_again(conf, now);
	if (r == 0)
		r = clt_conf_complete(conf, err);
	if (r == 0 && !saved)
		r = try_other_keys(conf, err);
	if (r == 0)
		*out = conf;
	else
		clt_conf_free(conf);
	return r;
}

void clt_conf_free(struct clt_conf *conf)
{
	if (!conf)
		return;
	clt_conf_fini(conf);
	free(conf);
}

/* Whether @conf was given @row.  A default may follow from another option. */
static bool is_given(const struct clt_conf *conf, const struct opt *row)
{
	const struct opt_table *table = &clt_conf_options;

	if (row >= table->rows && row < table->rows + table->n)
		return conf->values[row - table->rows];
	return conf->own_given >> (row - conf->front->options->rows) & 1;
}

bool clt_conf_same(const struct clt_conf *a, const struct clt_conf *b, const struct opt *row)
{
	unsigned i = (unsigned)(row - clt_conf_options.rows);

	/* A change at run time leaves no word behind: its value alone tells. */
	if (!(row->holds & OPT_AT_RUN_TIME) && !is_given(a, row) && !is_given(b, row))
		return true;
	if (row->size || row->same)
		return opt_same(row, a, b);
	return a->values[i] && b->values[i] && !strcmp(a->values[i], b->values[i]);
}

const struct fab_provider *clt_conf_chosen(const struct clt_conf *conf)
{
	const struct fab_provider *chosen = NULL;

	for (unsigned i = 0; i < conf->npaths; i++) {
		if (conf->chooses[i])
			chosen = conf->paths[i].dst.provider;
	}
	return chosen;
}

void clt_conf_choose(struct clt_conf *conf, const struct fab_provider *provider)
{
	for (unsigned i = 0; i < conf->npaths; i++) {
		if (!conf->chooses[i])
			continue;
		conf->paths[i].src.provider = provider;
		conf->paths[i].dst.provider = provider;
	}
}

void clt_conf_sessname(const struct clt_conf *conf, char name[RTRS_NAME_MAX])
{
	char host[128] = "";
	uint32_t salt;

	if (conf->sessname[0]) {
		memcpy(name, conf->sessname, RTRS_NAME_MAX);
		return;
	}
	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++) {
		if (*c == '.' || *c == '/')
			*c = '-';
	}
	random_bytes(&salt, sizeof(salt));
	snprintf(name, RTRS_NAME_MAX, "%s-%s-%d-%08x", conf->front->name, host, (int)getpid(),
		 salt);
}

void clt_conf_fini(struct clt_conf *conf)
{
	opt_texts_free(&conf->texts);
	if (!conf->now) {
		fab_tls_destroy(conf->tls);
		auth_creds_destroy(conf->auth);
	}
	conf->tls = NULL;
	conf->auth = NULL;
}

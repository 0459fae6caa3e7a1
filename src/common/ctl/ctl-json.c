/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "ctl-json.h"
#include "names.h"
#include "number.h"

json_t *ctl_json_text(const char *text)
{
	json_t *string = json_string(text);
	char *copy;

	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	mask_control(copy);
	string = json_string(copy);
	free(copy);
	return string;
}

json_t *ctl_json_uuid(const uint8_t id[16])
{
	char text[2 * 16 + 5], *to = text;

	for (unsigned i = 0; i < 16; i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
	return ctl_json_text(text);
}

json_t *ctl_json_bits(uint32_t bits, const char *const names[], unsigned n)
{
	json_t *array = json_array();
	bool ok = true;

	for (unsigned i = 0; i < n; i++)
		ok = ok && (!(bits >> i & 1) || ctl_json_add(array, ctl_json_text(names[i])));
	return ctl_json_whole(array, ok);
}

bool ctl_json_add(json_t *array, json_t *item)
{
	return !json_array_append_new(array, item);	/* frees @item without an array, too */
}

json_t *ctl_json_whole(json_t *value, bool complete)
{
	if (complete)
		return value;
	json_decref(value);
	return NULL;
}

json_t *ctl_json_with(json_t *object, json_t *more)
{
	int rc = object && more ? json_object_update(object, more) : -1;

	json_decref(more);
	return ctl_json_whole(object, !rc);
}

/* ---- keys and certificates ---- */

json_t *ctl_path_json(const char *path)
{
	_cleanup_free_ char *dir = *path == '/' ? NULL : getcwd(NULL, 0), *text = NULL;

	/* The directory may have been removed. */
	if (!dir)
		return ctl_json_text(path);
	text = fmt_new("%s/%s", strcmp(dir, "/") ? dir : "", path);
	return text ? ctl_json_text(text) : NULL;
}

/* @object with @path as @member; NULL: without. */
static json_t *with_path(json_t *object, const char *member, const char *path)
{
	if (!path)
		return object;
	return ctl_json_with(object, json_pack("{s:o}", member, ctl_path_json(path)));
}

/* @object with the date @at_s of @file as @member; NULL: without. */
static json_t *with_date(json_t *object, const char *member, const char *file, int64_t at_s)
{
	if (!file)
		return object;
	return ctl_json_with(object, json_pack("{s:{s:o,s:I}}", member, "file",
					       ctl_json_text(file), "time", (json_int_t)at_s));
}

json_t *ctl_secrets_json(const struct ctl_secrets *secrets)
{
	json_t *object = json_pack("{s:o}", "tls", ctl_json_text(secrets->tls));

	object = with_path(object, "tls_psk", secrets->tls_psk);
	object = with_path(object, "tls_certificates", secrets->tls_certificates);
	object = with_path(object, "auth_psk", secrets->auth_psk);
	object = with_date(object, "tls_certificates_end", secrets->end_file, secrets->end_s);
	return with_date(object, "tls_certificates_begin", secrets->begin_file, secrets->begin_s);
}

json_t *ctl_digest_errors_json(uint64_t n, uint64_t ago_ms)
{
	json_t *object = json_pack("{s:I}", "digest_errors", (json_int_t)n);

	if (!n)
		return object;
	return ctl_json_with(object, json_pack("{s:I}", "digest_error_ns",
					       (json_int_t)ago_ms * 1000000));
}

/* ---- counters ---- */

/* The number of times from 2^i to 2^(i+1) ns, for each i up to the last number that is not 0. */
static json_t *stat_buckets(const struct hist *h)
{
	json_t *array = json_array();
	unsigned n = HIST_BUCKETS;
	bool ok = true;

	while (n && !counter_get(&h->n[n - 1]))
		n--;
	for (unsigned i = 0; i < n; i++)
		ok = ok && ctl_json_add(array, json_integer((json_int_t)counter_get(&h->n[i])));
	return ctl_json_whole(array, ok);
}

json_t *ctl_stat_hist(const struct hist *h)
{
	return json_pack("{s:I,s:I,s:I,s:o}",
			 "p50_ns", (json_int_t)hist_quantile(h, 500),
			 "p99_ns", (json_int_t)hist_quantile(h, 990),
			 "p999_ns", (json_int_t)hist_quantile(h, 999),
			 "log2_ns", stat_buckets(h));
}

static json_t *op_stat(const struct io_stat_count *c)
{
	return ctl_json_with(json_pack("{s:I,s:I,s:I}",
				       "count", (json_int_t)counter_get(&c->count),
				       "bytes", (json_int_t)counter_get(&c->bytes),
				       "errors", (json_int_t)counter_get(&c->errors)),
			     ctl_stat_hist(&c->latency));
}

json_t *ctl_stat_io(const struct io_stat *stat)
{
	json_t *ops = json_object();
	bool ok = ops;

	for (unsigned op = 0; op < IO_STAT_NOPS && ok; op++)
		ok = !json_object_set_new(ops, io_stat_name(op), op_stat(&stat->op[op]));
	return json_pack("{s:o}", "stats", ctl_json_whole(ops, ok));
}

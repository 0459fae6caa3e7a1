/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds answers out of JSON values: texts, counters, and what a program shows of its secrets.  If
 * memory runs out in the middle, the whole answer becomes
 * NULL, so a reader never takes a part of an answer for the whole.  Every function takes NULL for a
 * value that could not be built.  Any thread. */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "counter.h"

/* The version of answers and commands, "control_version" in the answer of a program.  Raise the
 * number when a member or a command goes or changes its meaning.  A new member leaves the number
 * (doc/versions.md). */
#define CTL_VERSION 1

/* A JSON string of @text.  jansson refuses text that is no UTF-8, such as names of files and of
 * peers may be; then each byte that mask_control() masks becomes a '?'.  All text becomes JSON
 * here, or an answer would be NULL although memory was left.  Write "s:o", not "s:s"
 * (tests/house.py, layers). */
json_t *ctl_json_text(const char *text);
/* A JSON string of @id, "00112233-4455-...". */
json_t *ctl_json_uuid(const uint8_t id[16]);
/* The array of those of the @n @names whose bits of @bits are set. */
json_t *ctl_json_bits(uint32_t bits, const char *const names[], unsigned n);
/* Append @item, whose reference is taken.  False: no memory. */
bool ctl_json_add(json_t *array, json_t *item);
/* Returns @value if @complete; else drops @value and returns NULL. */
json_t *ctl_json_whole(json_t *value, bool complete);
/* Returns @object with the members of @more, whose reference is taken. */
json_t *ctl_json_with(json_t *object, json_t *more);

/* ---- keys and certificates: names of files and a date, never a key ---- */

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

/* "digest_errors": @n; and "digest_error_ns" since the last one, @ago_ms, if there was any. */
json_t *ctl_digest_errors_json(uint64_t n, uint64_t ago_ms);

/* ---- counters (man/rtrsctl.pod, "stats") ---- */

/* The histogram @h: {"p50_ns": ..., "log2_ns": [...]}. */
json_t *ctl_stat_hist(const struct hist *h);
/* The counters of @stat: {"stats": a member for each operation}. */
json_t *ctl_stat_io(const struct io_stat *stat);

#endif

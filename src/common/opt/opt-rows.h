/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of options that several programs have: in_ is the member of a struct type_ with the values,
 * as fab-tls.h, auth-creds.h and metric-sock.h have them.  What differs stands behind: .help, a
 * .shown or .file_name. */
#ifndef OPT_ROWS_H
#define OPT_ROWS_H

#include "opt.h"

#define OPT_IN_FILE_TOO (OPT_AT_START | OPT_IN_FILE)

/* struct fab_tls_conf */
#define OPT_ROW_TLS(type_, in_) \
	.name = "tls", .type = OPT_WORD, OPT_FIELD(type_, in_.mode), \
	.words = fab_tls_mode_names, .nwords = FAB_TLS_MODES, OPT_ASKED(type_, in_.asked), \
	.shown = "require with keys, else off", .holds = OPT_IN_FILE_TOO
#define OPT_ROW_TLS_PSK(type_, in_) \
	.name = "tls-psk", .type = OPT_TEXT, OPT_FIELD(type_, in_.psk), .arg = "FILE", \
	.of = "a file", .holds = OPT_IN_FILE_TOO
#define OPT_ROW_TLS_CERTIFICATES(type_, in_) \
	.name = "tls-certificates", .type = OPT_TEXT, OPT_FIELD(type_, in_.certificates), \
	.arg = "DIR", .of = "a directory", .holds = OPT_IN_FILE_TOO
#define OPT_ROW_TLS_KTLS(type_, in_) \
	.name = "tls-ktls", .type = OPT_WORD, OPT_FIELD(type_, in_.ktls), \
	.words = fab_ktls_mode_names, .nwords = FAB_KTLS_MODES, .fallback = "off", \
	.holds = OPT_IN_FILE_TOO, .help = "have the kernel encrypt"

/* struct auth_conf */
#define OPT_ROW_AUTH(type_, in_) \
	.name = "auth", .type = OPT_WORD, OPT_FIELD(type_, in_.mode), .words = auth_mode_names, \
	.nwords = AUTH_MODES, OPT_ASKED(type_, in_.asked), \
	.shown = "require with keys, else none", .holds = OPT_IN_FILE_TOO
#define OPT_ROW_AUTH_PSK(type_, in_) \
	.name = "auth-psk", .type = OPT_TEXT, OPT_FIELD(type_, in_.psk), .arg = "FILE", \
	.of = "a file", .holds = OPT_IN_FILE_TOO, .help = "pre-shared keys, NAME:KEY"

/* const char *metrics, *metrics_host; enum metric_page_wanted metrics_page */
#define OPT_ROW_METRICS(type_) \
	.name = "metrics", .type = OPT_TEXT, OPT_FIELD(type_, metrics), \
	.arg = "ADDR:PORT|unix:PATH", .of = "an address", .call = metric_sock_check, \
	.holds = OPT_IN_FILE_TOO, .help = "serve metrics over HTTP"
#define OPT_ROW_METRICS_PAGE(type_) \
	.name = "metrics-page", .type = OPT_WORD, OPT_FIELD(type_, metrics_page), \
	.words = metric_page_names, .nwords = METRIC_PAGE_N, .fallback = "yes", \
	.holds = OPT_IN_FILE_TOO, .help = "a status page beside the metrics"
#define OPT_ROW_METRICS_HOST(type_) \
	.name = "metrics-host", .type = OPT_TEXT, OPT_FIELD(type_, metrics_host), \
	.arg = "NAME[,NAME...]", .of = "names", .call = metric_host_check, \
	.holds = OPT_IN_FILE_TOO, .help = "more names of this machine for HTTP"

/* Of each program. */
#define OPT_ROW_HELP \
	.name = "help", .letter = 'h', .type = OPT_HELP, .holds = OPT_AT_START, \
	.help = "print this, and exit"
#define OPT_ROW_VERSION \
	.name = "version", .letter = 'V', .type = OPT_VERSION, .holds = OPT_AT_START, \
	.help = "print the version, and exit"

#endif

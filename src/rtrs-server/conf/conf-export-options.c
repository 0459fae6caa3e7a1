/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of an export as a table.  Limits change while the server runs, by the same rows.
 * Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf-priv.h"
#include "number.h"
#include "util.h"

/* ---- values with rules of their own ---- */

static int check_bps(void *arg, const char *text, char *why, size_t len)
{
	const struct conf_export_lines *lines = arg;

	for (unsigned i = LIMIT_BPS; i < LIMITS; i++) {
		uint64_t rate = lines->limits.rate[i];

		if (!rate || rate >= LIMIT_BPS_MIN)
			continue;
		snprintf(why, len, "expected 4K or more bytes a second, or none");
		return -EINVAL;
	}
	return 0;
}

static int read_burst(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export_lines *lines = arg;
	const char *rest;
	uint64_t n;

	if (!strcmp(text, "none")) {
		n = 0;
	} else if (!number_prefix(text, &rest, &n) || n > LIMIT_BURST_MAX ||
		   (*rest && strcmp(rest, "s"))) {
		snprintf(why, len, "expected a number of seconds from 1 to %u, like 10s, or none",
			 LIMIT_BURST_MAX);
		return -EINVAL;
	}
	lines->limits.burst_s = (unsigned)n;
	return 0;
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct conf_export_lines, field)
#define IOPS(i) \
	.type = OPT_NUMBER, FIELD(limits.rate[i]), .arg = "N", .most = LIMIT_IOPS_MAX, \
	.of = "requests a second", .special = "none", .holds = OPT_IN_FILE | OPT_AT_RUN_TIME
#define BPS(i) \
	.type = OPT_SIZE, FIELD(limits.rate[i]), .arg = "SIZE", .most = LIMIT_BPS_MAX, \
	.of = "bytes a second", .special = "none", .call = check_bps, \
	.holds = OPT_IN_FILE | OPT_AT_RUN_TIME

static const struct opt rows[] = {
	{ .name = "path", .type = OPT_TEXT, FIELD(path), .arg = "PATH|mem:SIZE|rbd:POOL/IMAGE",
	  .of = "a path", .holds = OPT_IN_FILE, .help = "file, block device, memory, Ceph image" },
	{ .name = "mode", .type = OPT_WORD, FIELD(mode), .words = rnbd_access_names,
	  .nwords = RNBD_ACCESS_RW + 1, .fallback = "rw", .holds = OPT_IN_FILE,
	  .help = "what clients may do" },
	{ .name = "direct", .type = OPT_FLAG, FIELD(direct), .holds = OPT_IN_FILE,
	  .help = "use O_DIRECT" },
	{ .name = "force", .type = OPT_FLAG, FIELD(force), .holds = OPT_IN_FILE,
	  .help = "a device in use, too" },
	{ .name = "conf", .type = OPT_TEXT, FIELD(conf), .arg = "FILE", .of = "a path",
	  .holds = OPT_IN_FILE, .help = "Ceph image: Ceph's configuration" },
	{ .name = "id", .type = OPT_TEXT, FIELD(id), .arg = "USER", .of = "a user of Ceph",
	  .holds = OPT_IN_FILE, .help = "Ceph image: the user, without client." },
	{ .name = "luks", .type = OPT_TEXT, FIELD(luks), .arg = "FILE", .of = "a path",
	  .holds = OPT_IN_FILE, .help = "Ceph image: file with the passphrase" },
	{ .name = "iops", IOPS(LIMIT_IOPS), .help = "requests a second" },
	{ .name = "iops-read", IOPS(LIMIT_IOPS_READ), .help = "reads" },
	{ .name = "iops-write", IOPS(LIMIT_IOPS_WRITE), .help = "writes, zeroes, discards" },
	{ .name = "bps", BPS(LIMIT_BPS), .help = "bytes a second" },
	{ .name = "bps-read", BPS(LIMIT_BPS_READ), .help = "read" },
	{ .name = "bps-write", BPS(LIMIT_BPS_WRITE), .help = "written" },
	{ .name = "burst", .type = OPT_OTHER, .call = read_burst, .arg = "SECONDS",
	  .holds = OPT_IN_FILE | OPT_AT_RUN_TIME,
	  .help = "what was not used is saved for so long" },
};

const struct opt_table conf_export_options = {
	.program = "rtrs-server", .rows = rows, .n = ARRAY_SIZE(rows), .dashes = "", .column = 34,
};

/* ---- limits at run time ---- */

/* Read @word, "KEY=VALUE", into @lines. */
static int read_limit(struct conf_export_lines *lines, char *word, char *err, size_t len)
{
	const struct opt_table *table = &conf_export_options;
	char *value = strchr(word, '='), why[192];
	const struct opt *row;
	const char *meant;

	if (value)
		*value++ = '\0';
	row = opt_find(table, word);
	if (row && !(row->holds & OPT_AT_RUN_TIME)) {
		snprintf(err, len, "'%s' is no limit: remove the export and add it again", word);
		return -EINVAL;
	}
	if (!row) {
		meant = opt_suggest(table, word, strlen(word));
		snprintf(err, len, "there is no limit '%s'%s%s%s", word,
			 meant ? " (did you mean " : ": expected iops, bps or burst",
			 meant ? meant : "", meant ? "?)" : "");
		return -EINVAL;
	}
	if (!value || !*value) {
		snprintf(err, len, "'%s' has no value: expected %s=VALUE", word, word);
		return -EINVAL;
	}
	if (opt_read(row, lines, value, why, sizeof(why))) {
		snprintf(err, len, "%s '%s': %s", word, value, why);
		return -EINVAL;
	}
	return 0;
}

/* Set the limits of @ex as @words says, "KEY=VALUE[,KEY=VALUE]...", which is cut up. */
static int set_limits(struct conf_export *ex, char *words, char *err, size_t len)
{
	struct conf_export_lines lines = { .limits = ex->limits };
	char *save, *word = strtok_r(words, ",", &save);
	int rc = 0;

	while (word && !rc) {
		rc = read_limit(&lines, word, err, len);
		word = strtok_r(NULL, ",", &save);
	}
	if (!rc)
		ex->limits = lines.limits;
	return rc;
}

/* The ',' behind NAME, which has no '='.  NULL: none is there. */
static char *name_end(char *text)
{
	char *equals = strchr(text, '=');

	return equals ? memrchr(text, ',', (size_t)(equals - text)) : NULL;
}

int conf_export_options_set(struct srv_conf *conf, const char *text, char *err, size_t len)
{
	char *copy = strdup(text), *words = copy ? name_end(copy) : NULL;
	const struct conf_export *ex;
	int rc = -EINVAL;

	if (!copy) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	if (!words) {
		snprintf(err, len, "'%s': expected NAME and at least one KEY=VALUE", text);
		free(copy);
		return rc;
	}
	*words++ = '\0';
	ex = conf_export_find(conf, copy);
	if (ex) {
		rc = set_limits(&conf->exports[ex - conf->exports], words, err, len);
	} else {
		snprintf(err, len, "there is no export '%s'", copy);
		rc = -ENOENT;
	}
	free(copy);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's lines of the start.  Owns nothing; main thread, before the server reports ready. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "export.h"
#include "machine.h"
#include "store.h"
#include "tell.h"
#include "util.h"

/* "10 GiB", "1.5 TiB"; tenths are cut off. */
static const char *human_size(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t tenths = 0;
	unsigned u = 0;

	while (bytes >= 1024 && u + 1 < ARRAY_SIZE(units)) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
		u++;
	}
	if (tenths)
		snprintf(buf, len, "%llu.%llu %s", (unsigned long long)bytes,
			 (unsigned long long)tenths, units[u]);
	else
		snprintf(buf, len, "%llu %s", (unsigned long long)bytes, units[u]);
	return buf;
}

/* A name of the store of @ex that came before @ex, can be written, and is not an export of the same
 * name, which is removed and still in use; NULL: none. */
static const struct export *earlier_name(const struct export *ex)
{
	const struct export *other;

	list_for_each(other, &ex->store->names, store_link) {
		if (other == ex)
			break;
		if (!other->spec.readonly && strcmp(other->name, ex->name))
			return other;
	}
	return NULL;
}

/* A mistake most often; a second name for reading is none. */
static void tell_second_name(const struct export *ex)
{
	const struct export *other = earlier_name(ex);

	if (other && !ex->spec.readonly)
		log_warn(ex->name, "'%s' and '%s' of export '%s' are the same storage: while a "
			 "client writes to one of them, the other one refuses writers", ex->path,
			 other->path, other->name);
}

/* Writes behind the limit fail, and so do clients that trust the size. */
static void tell_file_limit(const struct export *ex)
{
	struct rlimit limit;

	if (ex->spec.readonly || strcmp(ex->kind, "file") || getrlimit(RLIMIT_FSIZE, &limit) < 0 ||
	    limit.rlim_cur >= export_size(ex))
		return;
	log_warn(ex->name, "writes at and after byte %llu will fail: the limit of a file's size "
		 "(RLIMIT_FSIZE: LimitFSIZE= of systemd, ulimit -f) is below the export's",
		 (unsigned long long)limit.rlim_cur);
}

void tell_export(const struct export *ex)
{
	const struct rnbd_dev_info *g = &ex->geometry;
	char size[32];

	log_event(LOG_LEVEL_INFO, LOG_FIELDS(EXPORT_ADDED, .export = ex->name), ex->name,
		  "exports %s '%s', %llu bytes (%s), %s, %s, block size %u (logical) "
		  "and %u (physical)%s",
		  ex->kind_text, ex->path, (unsigned long long)export_size(ex),
		  human_size(export_size(ex), size, sizeof(size)),
		  ex->spec.readonly ? "readonly" : "rw", ex->direct ? "direct" : "buffered",
		  g->logical_block_size, g->physical_block_size,
		  ex->spec.readonly || g->max_discard_sectors ? "" :
		  "; no TRIM: the storage does not support discard");
	tell_second_name(ex);
	tell_file_limit(ex);
}

void tell_exports(const struct exports *exports)
{
	const struct export *ex;

	list_for_each(ex, &exports->list, link)
		tell_export(ex);
}

void tell_protection(const struct srv_conf *conf)
{
	static const char *const what[] = {
		[SRV_INVALIDATE_AUTO] = "are protected from clients by keys or copies, as the "
					"device permits",
		[SRV_INVALIDATE_ALWAYS] = "are protected from clients by per-request keys",
		[SRV_INVALIDATE_COPY] = "are protected from clients by copies",
		[SRV_INVALIDATE_NEVER] = "are not protected from clients, which must be trusted",
	};

	log_info(NULL, "write buffers %s (--invalidate=%s)",
		 what[conf->invalidate], srv_invalidate_names[conf->invalidate]);
}

/* A limit beyond the process's own: the process meets the other one first. */
static void tell_far_limits(const struct srv_conf *conf)
{
	char ours[32], all[32];
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < conf->max_cons)
		log_warn(NULL, "--max-connections is %u, and each connection is a descriptor: "
			 "RLIMIT_NOFILE allows %llu (LimitNOFILE= of systemd, ulimit -n)",
			 conf->max_cons, (unsigned long long)limit.rlim_cur);
	if (conf->max_memory > machine()->memory)
		log_warn(NULL, "--max-memory is %s, and this machine, or its control group, "
			 "allows %s", human_size(conf->max_memory, ours, sizeof(ours)),
			 human_size(machine()->memory, all, sizeof(all)));
}

void tell_limits(const struct srv_conf *conf)
{
	uint64_t path = (uint64_t)conf->queue_depth * (conf->max_io_size + CONF_HDR_SIZE);
	char all[32], one[32], host[32];

	log_info(NULL, "limits: %u sessions, %u paths, %u connections, %s for paths of %s; of them "
		 "one host may have %u connections and %s", conf->max_sessions, conf->max_paths,
		 conf->max_cons, human_size(conf->max_memory, all, sizeof(all)),
		 human_size(path, one, sizeof(one)), conf_host_cons(conf),
		 human_size(conf->max_memory / CONF_HOST_MEMORY_SHARE, host, sizeof(host)));
	tell_far_limits(conf);
}

void tell_mistakes(const char *text)
{
	log_lines(LOG_LEVEL_ERROR, "", text);
}

void tell_changes(const char *text)
{
	log_lines(LOG_LEVEL_INFO, "reload: ", text);
}

void tell_plan(const struct srv_conf *conf, const struct plan *plan, FILE *out)
{
	char text[PLAN_TEXT_MAX];

	for (unsigned i = 0; i < conf->nlisteners; i++)
		fprintf(out, "listen on %s\n",
			fab_addr_url(&conf->listeners[i].addr, text, sizeof(text)));
	for (unsigned i = 0; i < plan->n; i++)
		fprintf(out, "%s\n", plan_step_text(&plan->steps[i], text, sizeof(text)));
}

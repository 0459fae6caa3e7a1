/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines and their limit, with a clock that the test turns. */
#include <errno.h>

#include "unit.h"

#include "clock.h"
#include "log.h"

static uint64_t now_ms;
static char last[2048];
static enum log_level last_level;
static unsigned lines;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

static void sink(enum log_level level, const char *line)
{
	snprintf(last, sizeof(last), "%s", line);
	last_level = level;
	lines++;
	errno = ENOSPC;
}

static void setup(void)
{
	now_ms = 1000000;
	lines = 0;
	log_init(sink, LOG_LEVEL_INFO);
}

TestSuite(log, .init = setup);

Test(log, names_the_object)
{
	log_err("path 10.0.0.1", "cid %d missing", 3);
	cr_assert_str_eq(last, "path 10.0.0.1: cid 3 missing");
	cr_assert_eq(last_level, LOG_LEVEL_ERROR);
	log_warn(NULL, "a");
	cr_assert_str_eq(last, "a");
	cr_assert_eq(last_level, LOG_LEVEL_WARN);
	log_info("", "b");
	cr_assert_str_eq(last, "b");
}

Test(log, level)
{
	int evaluated = 0;

	log_dbg("x", "%d", evaluated++);
	cr_assert_eq(lines, 0);
	cr_assert_eq(evaluated, 0);
	log_info("x", "y");
	cr_assert_eq(lines, 1);
	log_init(sink, LOG_LEVEL_DEBUG);
	log_dbg("x", "%d", evaluated++);
	cr_assert_eq(lines, 2);
	cr_assert_eq(evaluated, 1);
	log_init(sink, LOG_LEVEL_ERROR);
	log_warn("x", "y");
	cr_assert_eq(lines, 2);
	cr_assert(log_wants(LOG_LEVEL_ERROR));
	cr_assert_not(log_wants(LOG_LEVEL_WARN));
	cr_assert_eq(log_level(), LOG_LEVEL_ERROR);
	log_set_level(LOG_LEVEL_WARN);
	cr_assert_eq(log_level(), LOG_LEVEL_WARN);
	cr_assert(log_wants(LOG_LEVEL_WARN));
	log_set_level(LOG_LEVEL_ERROR);
}

static bool taken;
static struct log_fields recorded;
static unsigned records;

static bool record(enum log_level level, const char *line, const struct log_fields *fields)
{
	(void)level;
	(void)line;
	recorded = *fields;
	records++;
	return taken;
}

Test(log, record_comes_before_the_sink)
{
	log_init_record(record);
	taken = true;
	log_event(LOG_LEVEL_WARN, LOG_FIELDS(PATH_DOWN, .session = "s", .peer = "p"), "o", "%d", 1);
	cr_assert_eq(recorded.id, LOG_ID_PATH_DOWN);
	cr_assert_str_eq(recorded.session, "s");
	cr_assert_str_eq(recorded.peer, "p");
	cr_assert_null(recorded.export);
	cr_assert_eq(lines, 0);
	taken = false;
	log_err("o", "no fields");
	cr_assert_eq(recorded.id, LOG_ID_NONE);
	cr_assert_null(recorded.session);
	cr_assert_eq(lines, 1, "what the record does not take goes to the sink");
	cr_assert_str_eq(last, "o: no fields");
	log_write(LOG_LEVEL_DEBUG, "o", "below the level");
	cr_assert_eq(records, 2);
	log_init_record(NULL);
}

Test(log, ids_have_rows)
{
	cr_assert_null(log_id_rows[LOG_ID_NONE].hex);
	for (unsigned i = LOG_ID_NONE + 1; i < LOG_IDS; i++) {
		cr_assert_not_null(log_id_rows[i].name, "id %u", i);
		cr_assert_eq(strlen(log_id_rows[i].hex), 32);
		cr_assert_not_null(log_id_rows[i].means);
	}
}

Test(log, keeps_errno)
{
	errno = EBADF;
	log_err("x", "y");
	cr_assert_eq(errno, EBADF);
}

Test(log, long_line_is_cut)
{
	char obj[3000];

	memset(obj, 'o', sizeof(obj) - 1);
	obj[sizeof(obj) - 1] = '\0';
	log_err("x", "%s", obj);
	cr_assert_eq(strlen(last), 1023);
	log_err(obj, "text");
	cr_assert_eq(lines, 2);
	cr_assert_not_null(strstr(last, "text"), "the text is worth more than the object's name");
}

Test(log, peers_cannot_forge_lines)
{
	log_err("sess\x1b[2Jion", "name %s", "a\nerror: b\r\tc\x7f\x80\xc2\x9b");
	cr_assert_str_eq(last, "sess?[2Jion: name a?error: b??c????");
}

Test(log, limit)
{
	struct log_limit limit = LOG_LIMIT_INIT(3, 1000);

	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(log_limit_pass(&limit, "p"), i < 3, "line %u", i);
	cr_assert_eq(lines, 0);
	now_ms += 999;
	cr_assert_not(log_limit_pass(&limit, "p"));
	now_ms += 1;
	cr_assert(log_limit_pass(&limit, "p"));
	cr_assert_eq(lines, 1);
	cr_assert_str_eq(last, "p: 8 similar lines were suppressed");
	now_ms += 1000;
	log_limited(&limit, LOG_LEVEL_ERROR, "p", "n %d", 1);
	cr_assert_eq(lines, 2, "nothing was held back, so nothing is told");
	cr_assert_str_eq(last, "p: n 1");
}

Test(log, limit_of_none)
{
	struct log_limit limit = LOG_LIMIT_INIT(0, 1000);

	log_limited(&limit, LOG_LEVEL_ERROR, "p", "x");
	cr_assert_eq(lines, 0);
}

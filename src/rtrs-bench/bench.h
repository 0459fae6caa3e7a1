/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of rtrs-bench: the load, and what the user says and sees.  Main thread, unless
 * a function says otherwise. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clt-conf.h"
#include "dev.h"
#include "loop.h"
#include "opt.h"

/* The load generator keeps a number of IOs of a device in flight, on the loop of the session, and
 * measures how long IOs take. */

/* ---- blocks that describe themselves: load.c ----
 *
 * A block has a head with the offset, the writer and the number of the write.  The rest follows
 * from the head, so that any wrong byte is found. */

#define VERIFY_MIN 512			/* bytes of a block */

/* The writer of a block, and the number of the write. */
struct verify_id {
	uint64_t writer;
	uint64_t seq;
};

/* ---- times of IOs: lat.c ----
 *
 * Counted in buckets with a width of 1/64 of the value: finer than counter.h, and for a single
 * thread with a few histograms. */

#define LAT_SUB 64			/* buckets of a power of two; each value below LAT_SUB has a
					 * bucket */
#define LAT_BUCKETS (LAT_SUB * 42)	/* the last: a day and more */

struct lat {				/* all 0: empty */
	uint64_t n[LAT_BUCKETS];
	uint64_t count, sum_ns, max_ns;
};

/* Count an IO that took @ns. */
void lat_count(struct lat *l, uint64_t ns);
/* The time in which @permille of 1000 IOs ended, with the precision of a bucket; 0: empty. */
uint64_t lat_quantile(const struct lat *l, unsigned permille);
/* The exact mean; 0: empty. */
uint64_t lat_mean(const struct lat *l);
/* Add @l to @sum. */
void lat_add(struct lat *sum, const struct lat *l);
/* Subtract @l, which was added before, from @sum.  @sum->max_ns stays, an upper limit. */
void lat_sub(struct lat *sum, const struct lat *l);
#define LAT_TEXT_MAX 32
/* Write @ns as "812.5 us": in us, ms or s, with up to 4 digits in front of the point (s: more).
 * Returns @buf. */
const char *lat_text(uint64_t ns, char buf[LAT_TEXT_MAX]);

/* ---- the load: load.c ---- */

enum { LOAD_READ, LOAD_WRITE, LOAD_NDIRS };

struct load_conf {
	bool random;			/* else block after block, and around */
	unsigned read_percent;
	uint32_t block;			/* bytes of an IO */
	unsigned depth;
	uint64_t off, size;		/* the part of the device to use */
	uint64_t runtime_s;		/* 0: no end */
	uint64_t ios;			/* 0: no end */
	uint64_t seed;
	bool fua;
	bool verify;
};

struct load_side {
	uint64_t ios;
	struct lat lat;
};

struct load_io;

enum load_phase {
	LOAD_RUNS,
	LOAD_READS_BACK,		/* verify: reads all written blocks */
	LOAD_ENDS,			/* begins nothing new */
	LOAD_ENDED,
};

#define LOOK_UNKNOWN UINT64_MAX
#define LOOK_TEXT_MAX 80

/* The state of a load, with rates since the previous look. */
struct look {
	enum load_phase phase;
	uint64_t left_s;		/* RUNS: at this rate, or LOOK_UNKNOWN */
	unsigned percent;		/* READS_BACK: of the blocks */
	unsigned inflight;
	uint64_t iops;
	uint64_t p99_ns;		/* 0: no IO has ended */
};

/* The previous look. */
struct look_back {
	uint64_t at_ns, ended;
	struct lat all;			/* of all IOs that had ended */
	struct lat since;		/* of IOs that have ended since: too large for a stack */
};

/* Called with the state of the load, at most once a second, on the thread in load_run(). */
typedef void load_look_fn(const struct look *now);

struct load {
	/* result, when load_run() has returned */
	struct load_side side[LOAD_NDIRS];
	uint64_t elapsed_ns, cpu_ns;	/* without the reading back; CPU time of this process */
	uint64_t verified, differing;	/* blocks */
	int status;			/* 0, or the first error: -errno, with @error */
	char error[256];

	/* private */
	struct load_conf conf;
	struct dev_handle *h;
	struct loop *loop;
	struct verify_id id;
	struct load_io *ios;		/* [conf.depth] */
	uint8_t *mem;
	uint32_t *written;		/* verify: [nblocks], load_io.seq of the block's last write
					 * by this load, or 0 */
	uint64_t nblocks;
	enum load_phase phase;
	unsigned inflight;
	uint64_t begun, next, random, began_ns, began_cpu_ns;
	struct list ready;		/* IOs to be stepped */
	struct loop_task step;
	struct loop_timer timer, look_timer;
	struct loop_msg stop_msg;
	struct look_back back;
	load_look_fn *look;
	struct loop_call *hearer;	/* load_run() waits for @look_now, or the end; or NULL */
	struct look look_now;
};

/* Make the IOs.  @conf fits the device of @h (target_fit()); @h outlives @l.  0 or
 * -ENOMEM. */
int load_init(struct load *l, struct loop *loop, struct dev_handle *h,
	      const struct load_conf *conf);
/* Free the IOs; load_run() has returned, or was not called. */
void load_fini(struct load *l);
/* Run the load; any thread but the loop's.  Blocks until nothing is in flight.  @look: NULL for
 * none. */
void load_run(struct load *l, load_look_fn *look);
/* End the load early, or the reading back, after the IOs in flight.  Any thread; from a signal
 * handler, too. */
void load_stop(struct load *l);

/* Look at @l, which has run since l->began_ns, at @now_ns.  @back is all 0 at the first look, and
 * kept between looks.  The thread of @l. */
void lat_look(struct look *now, struct look_back *back, const struct load *l, uint64_t now_ns);
/* Write @now as "7 s left, 44864 IOPS, p99 7274 us".  Any thread.  Returns @buf. */
const char *lat_look_text(const struct look *now, char buf[LOOK_TEXT_MAX]);

/* ---- options.c: the command line; errors go to stderr, and name the option, the value and the
 * expected values ---- */

struct options {
	struct clt_conf session;	/* ORDER: the first: clt_front.options */
	unsigned rw;			/* the index of --rw's value in the names */
	unsigned mix_percent;		/* percentage of reads, if the load reads and writes */
	bool json;
	struct load_conf load;		/* size 0: to the end */
};

/* clt_front.options, once options_table_fill() was called. */
extern const struct opt_table options_table;
void options_table_fill(void);
/* clt_front.defaults(). */
void options_defaults(struct clt_conf *conf);

/* Read the command line, and the keys that the command line names, into @o, for @front.  -1: go on;
 * else the exit status of the program.  o->session is to be freed, after a failure, too. */
int options_parse(struct options *o, const struct clt_front *front, int argc, char **argv);

/* ---- report.c: what a user sees of a load, its progress and its result ----
 *
 * Stderr: lines that stay, and, on a terminal, a line below, which is written again and again.  Any
 * thread. */

/* Is stderr a terminal? */
bool report_progress_possible(void);
/* Show @text in place of the previous text. */
void report_progress(const char *text);
/* Clear the shown text. */
void report_progress_end(void);
/* Write a line that stays, with the program's name in front. */
void report_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print the result to stdout, for people. */
void report_text(const struct options *o, const struct load *l);
/* Print the result to stdout as JSON.  0, or -ENOMEM after a message on stderr. */
int report_json(const struct options *o, const struct load *l);

#endif

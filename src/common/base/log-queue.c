/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the lines that wait and the thread that writes them.  Everything but the lines in the hands
 * of the thread is under a lock, innermost, which nobody holds while a line is written. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "list.h"
#include "log.h"
#include "signals.h"
#include "util.h"

#define LOG_QUEUE_MAX 4096u		/* lines; further ones are lost */
#define LOG_WAIT_MS 200
#define LOG_END_MS 1000

struct line {
	struct list link;
	enum log_level level;
	struct timespec at;
	struct log_fields fields;	/* in @text */
	char text[];
};

enum queue_state {
	QUEUE_NONE,			/* no thread */
	QUEUE_PROMPT,			/* who logs waits until the line is written */
	QUEUE_SLOW,			/* nobody waits until all lines are written */
	QUEUE_FULL,			/* further lines are lost until all are written */
	QUEUE_ENDING,			/* the thread ends with the last line; nobody waits */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t come;		/* a line, or the end */
	pthread_cond_t gone;		/* a line, or the thread */
	enum queue_state state;
	struct list lines;		/* line.link */
	unsigned n;			/* of @lines */
	unsigned lost;			/* lines after the last of @lines */
	unsigned long long put, written;	/* lines ever */
	bool writing;			/* the thread is in @write, as long as a reader lets it */
	struct timespec patience;	/* CLOCK_MONOTONIC: LOG_END_MS after the thread woke */
	log_write_fn *write;
	pthread_t thread;
} q = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.come = PTHREAD_COND_INITIALIZER,
	.gone = PTHREAD_COND_INITIALIZER,
	.lines = LIST_INIT(q.lines),
};

/* When the line that this thread writes was logged. */
static _Thread_local struct timespec line_at;

struct timespec log_line_time(void)
{
	struct timespec now = line_at;

	if (!now.tv_sec)
		clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

/* ---- lines ---- */

static const char **field_of(struct log_fields *fields, unsigned i)
{
	const char **const all[] = { &fields->session, &fields->export, &fields->peer,
				     &fields->identity, &fields->mode, &fields->reason };

	return i < ARRAY_SIZE(all) ? all[i] : NULL;
}

static struct line *line_make(enum log_level level, const char *text,
			      const struct log_fields *fields)
{
	struct log_fields copy = *fields;
	size_t len = strlen(text) + 1;
	struct line *line;
	const char **field;
	char *to;

	for (unsigned i = 0; (field = field_of(&copy, i)); i++)
		len += *field ? strlen(*field) + 1 : 0;
	line = malloc(sizeof(*line) + len);
	if (!line)
		return NULL;
	line->level = level;
	clock_gettime(CLOCK_REALTIME, &line->at);
	to = stpcpy(line->text, text) + 1;
	for (unsigned i = 0; (field = field_of(&copy, i)); i++) {
		if (!*field)
			continue;
		*field = strcpy(to, *field);
		to += strlen(to) + 1;
	}
	line->fields = copy;
	return line;
}

/* ---- the thread ---- */

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Called with the lock, which is dropped meanwhile. */
static void write_line(enum log_level level, const char *text, const struct log_fields *fields)
{
	q.writing = true;
	pthread_mutex_unlock(&q.lock);
	q.write(level, text, fields);
	pthread_mutex_lock(&q.lock);
	q.writing = false;
}

/* As write_line(), and tell_lost(), too. */
static void write_first(void)
{
	struct line *line = list_entry(q.lines.next, struct line, link);

	list_del(&line->link);
	q.n--;
	line_at = line->at;
	write_line(line->level, line->text, &line->fields);
	line_at = (struct timespec){ 0 };
	free(line);
	q.written++;
	pthread_cond_broadcast(&q.gone);
}

static void tell_lost(void)
{
	static const struct log_fields none;
	char text[80];

	snprintf(text, sizeof(text), "%u lines of the log were lost, because the log was not read",
		 q.lost);
	q.lost = 0;
	if (q.state == QUEUE_FULL)
		q.state = QUEUE_SLOW;
	write_line(LOG_LEVEL_WARN, text, &none);
}

static void *queue_main(void *arg)
{
	pthread_mutex_lock(&q.lock);
	q.patience = clock_in_ms(LOG_END_MS);
	for (;;) {
		if (q.n) {
			write_first();
		} else if (q.lost) {
			tell_lost();
		} else if (q.state == QUEUE_ENDING) {
			break;
		} else {
			q.state = QUEUE_PROMPT;
			pthread_cond_wait(&q.come, &q.lock);
			q.patience = clock_in_ms(LOG_END_MS);
		}
	}
	q.state = QUEUE_NONE;
	pthread_cond_broadcast(&q.gone);
	pthread_mutex_unlock(&q.lock);
	return NULL;
}

/* ---- all threads ---- */

/* Called with the lock. */
static void wait_written(unsigned long long number)
{
	struct timespec until = clock_in_ms(LOG_WAIT_MS);

	int r = 0;

	while (q.state == QUEUE_PROMPT && q.written < number) {
		if (r == ETIMEDOUT) {
			q.state = QUEUE_SLOW;
			pthread_cond_broadcast(&q.gone);
			return;
		}
		r = pthread_cond_clockwait(&q.gone, &q.lock, CLOCK_MONOTONIC, &until);
	}
}

/* Called with the lock.  Takes @line, which may be NULL for want of memory. */
static void put_line(struct line *line)
{
	if (!line || q.state == QUEUE_FULL || q.n >= LOG_QUEUE_MAX) {
		free(line);
		q.lost++;
		if (q.state != QUEUE_ENDING)
			q.state = QUEUE_FULL;
		pthread_cond_signal(&q.come);
		return;
	}
	list_add_tail(&q.lines, &line->link);
	q.n++;
	pthread_cond_signal(&q.come);
	wait_written(++q.put);
}

bool log_queue_put(enum log_level level, const char *text, const struct log_fields *fields)
{
	struct line *line = NULL;
	bool running;

	pthread_mutex_lock(&q.lock);
	running = q.state != QUEUE_NONE;
	if (running) {
		/* ORDER: in the lock, so that lines have the order of their times. */
		if (q.state != QUEUE_FULL)
			line = line_make(level, text, fields);
		put_line(line);
	}
	pthread_mutex_unlock(&q.lock);
	return running;
}

int log_queue_begin(log_write_fn *write)
{
	int r;

	q.write = write;
	q.state = QUEUE_PROMPT;
	r = signals_thread(&q.thread, queue_main, NULL);
	if (r < 0)
		q.state = QUEUE_NONE;
	else
		pthread_setname_np(q.thread, "rtrs-log");
	return r;
}

void log_end(log_left_fn *left)
{
	struct timespec until = clock_in_ms(LOG_END_MS);
	int r = 0;

	pthread_mutex_lock(&q.lock);
	if (q.state == QUEUE_NONE) {
		pthread_mutex_unlock(&q.lock);
		return;
	}
	q.state = QUEUE_ENDING;
	pthread_cond_signal(&q.come);
	pthread_cond_broadcast(&q.gone);
	while (q.state != QUEUE_NONE && r == 0) {
		r = pthread_cond_clockwait(&q.gone, &q.lock, CLOCK_MONOTONIC, &until);
		/* It waits for a processor, or waited for one until now, and not for a reader: the
		 * last lines say why we end. */
		if (r == ETIMEDOUT && (!q.writing || later(q.patience, until))) {
			until = q.writing ? q.patience : clock_in_ms(LOG_END_MS);
			r = 0;
		}
	}
	r = q.state == QUEUE_NONE ? 0 : ETIMEDOUT;
	pthread_mutex_unlock(&q.lock);
	if (r == 0) {
		pthread_join(q.thread, NULL);
		return;
	}
	if (left)
		left(q.thread);
	pthread_detach(q.thread);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the reactors and the threads.  Reactors are made before any thread starts, so that a host
 * that forbids io_uring is found out first; each thread takes its own, because a ring belongs to
 * who enabled it. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export-ring.h"
#include "log.h"
#include "process.h"
#include "program.h"

#define RING_ENTRIES 256

struct thread {
	unsigned index;
	struct exports *exports;
	struct reactor *reactor;
	pthread_t id;
	bool running;
	sem_t attached;
	int status;			/* of attaching; before @attached */
	char err[256];
};

static void thread_attach(struct thread *t)
{
	bool control = !t->index;

	t->status = export_ring_attach(t->reactor, t->index, t->exports, control, t->err,
				       sizeof(t->err));
	sem_post(&t->attached);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	thread_attach(t);
	if (t->status)
		return NULL;
	if (reactor_run(t->reactor)) {
		/* The requests of this thread are never answered, and the rest cannot do without
		 * it. */
		log_err(reactor_name(t->reactor), "the reactor has failed: giving up");
		_exit(1);
	}
	export_ring_let_go(t->reactor);
	return NULL;
}

int reactors_create(struct reactors *r, const struct srv_conf *conf, struct exports *exports)
{
	unsigned n = conf->threads + 1;

	r->all = calloc(n, sizeof(*r->all));
	r->threads = calloc(n, sizeof(*r->threads));
	if (!r->all || !r->threads) {
		log_err(NULL, "out of memory");
		return -ENOMEM;
	}
	r->conf = conf;
	r->n = n;
	for (unsigned i = 0; i < r->n; i++) {
		char name[32];
		int rc;

		snprintf(name, sizeof(name), "reactor %u", i);
		rc = reactor_create(name, RING_ENTRIES, &r->all[i]);
		if (rc)
			return rc;
		if (i)			/* the control thread has no need to be quick */
			reactor_set_poll(r->all[i], conf->poll_us);
		r->threads[i].index = i;
		r->threads[i].exports = exports;
		r->threads[i].reactor = r->all[i];
		sem_init(&r->threads[i].attached, 0, 0);
	}
	return 0;
}

/* On the CPUs of the configuration, if there are any.  0 or -errno. */
static int thread_start(const struct srv_conf *conf, struct thread *th)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	if (CPU_COUNT(&conf->cpus))
		rc = pthread_attr_setaffinity_np(&attr, sizeof(conf->cpus), &conf->cpus);
	if (!rc)
		rc = pthread_create(&th->id, &attr, thread_main, th);
	pthread_attr_destroy(&attr);
	return -rc;
}

int reactors_start(struct reactors *r)
{
	for (unsigned i = 1; i < r->n; i++) {
		struct thread *th = &r->threads[i];
		int rc = thread_start(r->conf, th);

		if (rc) {
			log_err(NULL, "cannot start thread %u: %s", i, threads_strerror(rc));
			return rc;
		}
		pthread_setname_np(th->id, reactor_name(th->reactor));
		th->running = true;
	}
	thread_attach(&r->threads[0]);
	for (unsigned i = 0; i < r->n; i++) {
		struct thread *th = &r->threads[i];

		while (sem_wait(&th->attached))
			;		/* a signal */
		if (th->status) {
			log_err(NULL, "%s", th->err);
			return th->status;
		}
	}
	return 0;
}

void reactors_join(struct reactors *r)
{
	for (unsigned i = 1; i < r->n; i++) {
		if (r->threads[i].running)
			reactor_stop(r->all[i]);
	}
	for (unsigned i = 1; i < r->n; i++) {
		if (r->threads[i].running)
			pthread_join(r->threads[i].id, NULL);
		r->threads[i].running = false;
	}
}

void reactors_detach(struct reactors *r)
{
	reactors_join(r);
	if (r->n && r->all[0])
		export_ring_let_go(r->all[0]);
	/* ORDER: the control thread opens exports again, and looks at the descriptions of all rings
	 * then: none is detached until that thread, too, has ended. */
	for (unsigned i = 0; i < r->n; i++) {
		if (r->all[i])
			export_ring_detach(r->all[i]);
	}
}

void reactors_destroy(struct reactors *r)
{
	reactors_detach(r);
	for (unsigned i = 0; i < r->n; i++)
		reactor_destroy(r->all[i]);
	free(r->all);
	free(r->threads);
}

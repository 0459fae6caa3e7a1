/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of src/rtrs-ublk over a kernel that does nothing: what the engine costs beside
 * rtrs-bench, which has no front end.
 *
 *	ublk-null OPS DEPTH BYTES COUNT KEY=VALUE...
 *
 * OPS is read or write; keys are those of rtrs-attach.  The kernel has DEPTH requests of BYTES at
 * random places in flight until COUNT were answered: a tag that is given back has its next request
 * at once.  Each call of the ring is a call into the real kernel, of an eventfd.  It copies no
 * data, as the real one does.  Prints IOPS, and the CPU time of one request in microseconds.
 *
 * The ring belongs to the loop; the main thread waits for the end of the queue. */
#include <config.h>

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "clt-export.h"
#include "clt-loop.h"
#include "clt-start.h"
#include "log.h"
#include "number.h"
#include "ublk-queue.h"
#include "util.h"

#define SECTOR 512u

/* ---- the kernel ---- */

static struct {
	uint32_t op, sectors;
	uint64_t blocks;		/* of the disk, of @sectors */
	uint64_t wanted, begun, answered;
	uint64_t random;
	sem_t done;			/* all are answered */
} load;

struct ublk_ring {
	int eventfd;
	uint16_t depth;
	uint32_t io_bytes;
	uint8_t *mem;			/* [depth][io_bytes] */
	struct ublk_abi_desc *descs;	/* [depth] */
	/* Tags in order: those that were given since the last call, those of it, and those of them
	 * that were taken. */
	uint16_t *given, *came;
	unsigned ngiven, ncame, ntaken;
	bool fetched;
};

int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth,
		     uint32_t io_bytes)
{
	struct ublk_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*out = r;
	r->depth = depth;
	r->io_bytes = io_bytes;
	r->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->mem = aligned_alloc(4096, (size_t)depth * io_bytes);
	r->descs = calloc(depth, sizeof(*r->descs));
	r->given = calloc(depth, sizeof(*r->given));
	r->came = calloc(depth, sizeof(*r->came));
	if (r->eventfd < 0 || !r->mem || !r->descs || !r->given || !r->came) {
		ublk_ring_destroy(r);
		return -ENOMEM;
	}
	memset(r->mem, 1, (size_t)depth * io_bytes);
	return 0;
}

void ublk_ring_destroy(struct ublk_ring *r)
{
	if (!r)
		return;
	close(r->eventfd);
	free(r->mem);
	free(r->descs);
	free(r->given);
	free(r->came);
	free(r);
}

void ublk_ring_leave(struct ublk_ring *r)
{
	ublk_ring_destroy(r);
}

int ublk_ring_fd(const struct ublk_ring *r)
{
	return r->eventfd;
}

void *ublk_ring_buf(const struct ublk_ring *r, uint16_t tag)
{
	return r->mem + (size_t)tag * r->io_bytes;
}

void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag)
{
	if (load.begun == load.wanted)
		return;
	load.begun++;
	r->descs[tag] = (struct ublk_abi_desc){
		.op_flags = load.op, .sectors = load.sectors,
		.start = random_next(&load.random) % load.blocks * load.sectors,
	};
	r->given[r->ngiven++] = tag;
}

void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result)
{
	if (result != (int32_t)(load.sectors * SECTOR)) {
		fprintf(stderr, "ublk-null: a request failed: %s\n", strerror(-result));
		exit(1);
	}
	if (++load.answered == load.wanted)
		sem_post(&load.done);
	ublk_ring_fetch(r, tag);
}

/* The first call has the FETCH of all tags, whose requests come later. */
int ublk_ring_submit(struct ublk_ring *r)
{
	eventfd_t count;

	if (!r->fetched) {
		r->fetched = true;
		return eventfd_write(r->eventfd, 1) < 0 ? -errno : 0;
	}
	eventfd_read(r->eventfd, &count);
	r->ncame -= r->ntaken;
	memmove(r->came, r->came + r->ntaken, r->ncame * sizeof(*r->came));
	r->ntaken = 0;
	memcpy(r->came + r->ncame, r->given, r->ngiven * sizeof(*r->came));
	r->ncame += r->ngiven;
	r->ngiven = 0;
	return 0;
}

bool ublk_ring_ready(const struct ublk_ring *r)
{
	return r->ntaken < r->ncame;
}

bool ublk_ring_next(struct ublk_ring *r, uint16_t *tag, int *result)
{
	if (!ublk_ring_ready(r))
		return false;
	*tag = r->came[r->ntaken++];
	*result = 0;
	return true;
}

const struct ublk_abi_desc *ublk_ring_desc(const struct ublk_ring *r, uint16_t tag)
{
	return &r->descs[tag];
}

/* ---- the program ---- */

static const struct clt_front front = {
	.name = "ublk-null", .program = "ublk-null", .help = "the head of bench/ublk-null.c",
	.wait = &clt_loop_wait, .start_fds = 4, .client_fds = 1,
};

static struct ublk_queue queue;
static sem_t queue_is_over;

static void log_line(enum log_level level, const char *line)
{
	fprintf(stderr, "ublk-null: %s\n", line);
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "ublk-null: %s\n", what);
	exit(1);
}

static void queue_over(struct ublk_queue *q, int status)
{
	if (status)
		die("the queue has failed");
	sem_post(&queue_is_over);
}

static void begin_call(struct loop_call *call)
{
	call->rc = ublk_queue_begin(&queue);
	loop_call_end(call);
}

static void leave_call(struct loop_call *call)
{
	ublk_queue_leave(&queue);
	loop_call_end(call);
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;		/* a signal */
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run(struct loop *loop, struct dev *dev, unsigned depth, unsigned bytes)
{
	struct dev_handle h;
	double cpu, s;
	uint64_t at_ns;

	dev_handle_init(&h, dev);
	load.sectors = bytes / SECTOR;
	load.blocks = dev_size(dev) / bytes;
	load.random = 1;
	sem_init(&load.done, 0, 0);
	sem_init(&queue_is_over, 0, 0);
	queue = (struct ublk_queue){ .loop = loop, .h = &h, .depth = (uint16_t)depth,
				     .io_bytes = bytes, .over = queue_over };
	cpu = cpu_s();
	at_ns = clock_measure_ns();
	if (loop_call(loop, begin_call, NULL) < 0)
		die("the queue does not begin");
	wait_for(&load.done);
	s = (double)(clock_measure_ns() - at_ns) / 1e9;
	cpu = cpu_s() - cpu;
	loop_call(loop, leave_call, NULL);
	wait_for(&queue_is_over);
	dev_handle_fini(&h);
	printf("%.0f %.2f\n", (double)load.wanted / s, cpu * 1e6 / (double)load.wanted);
}

int main(int argc, char **argv)
{
	char err[CLT_FRONT_ERR] = "", *why = NULL;
	static struct clt_start start;
	static struct clt_conf conf;
	unsigned depth, bytes;
	struct dev *dev;

	if (argc < 6 || (strcmp(argv[1], "read") && strcmp(argv[1], "write")) ||
	    !number_parse_u(argv[2], 1, UBLK_TAGS, &depth) ||
	    !number_parse_u(argv[3], SECTOR, 1 << 20, &bytes) || bytes % SECTOR ||
	    !number_parse(argv[4], 1, UINT64_MAX, &load.wanted))
		die("expected read|write DEPTH BYTES COUNT server=ADDRESS export=NAME "
		    "[KEY=VALUE]...");
	load.op = strcmp(argv[1], "read") ? UBLK_OP_WRITE : UBLK_OP_READ;
	log_init(log_line, LOG_LEVEL_WARN);
	clt_conf_init(&conf, &front);
	for (int i = 5; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			die("expected KEY=VALUE");
		*value++ = '\0';
		if (clt_conf_set(&conf, argv[i], value, &why) < 0)
			die(why);
	}
	conf.sess.nloops = 1;
	if (clt_conf_complete(&conf, &why) < 0)
		die(why);
	clt_start_init(&start, &conf);
	if (clt_probe(&start, err) < 0 || clt_start_session(&start, err) < 0 ||
	    clt_export_open(&start.run.clt, &conf, conf.export_name, &dev, err) < 0)
		die(err);
	run(start.run.loop, dev, depth, bytes);
	dev_close(dev);
	clt_start_end(&start);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target without libFuzzer: every file of the corpus, then seeded mutations of them.
 * Same arguments as libFuzzer as far as run-fuzz.sh uses them:
 *
 *	target [-runs=N] [-max_total_time=SECONDS] [-seed=S] [-max_len=N] DIR|FILE...
 *
 * One thread.  Ends with status 0; a crash prints the input in hex first, to be fed in again. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fuzz.h"

#define CORPUS_MAX 1024

struct input {
	uint8_t *bytes;
	size_t len;
};

static struct input corpus[CORPUS_MAX];
static unsigned ncorpus;
static size_t max_len = 4096;
static const struct input *volatile current;	/* what the signal handler prints */

/* A sanitizer's report is to end in SIGABRT, for on_crash(). */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "abort_on_error=1:handle_segv=0:handle_sigbus=0";
}

const char *__ubsan_default_options(void)
{
	return "abort_on_error=1:print_stacktrace=1";
}

static void die(const char *what, const char *name)
{
	fprintf(stderr, "%s: %s: %s\n", what, name, strerror(errno));
	exit(99);
}

static void on_crash(int sig)
{
	static const char head[] = "\ninput that crashed, in hex:\n";
	static const char digits[] = "0123456789abcdef";
	const struct input *in = current;
	ssize_t n = write(STDERR_FILENO, head, sizeof(head) - 1);

	for (size_t i = 0; in && i < in->len && n > 0; i++) {
		char hex[2] = { digits[in->bytes[i] >> 4], digits[in->bytes[i] & 15] };

		n = write(STDERR_FILENO, hex, sizeof(hex));
	}
	n = write(STDERR_FILENO, "\n", 1);
	(void)n;
	signal(sig, SIG_DFL);
	raise(sig);
}

static void load_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	struct input *in = &corpus[ncorpus];

	if (!f)
		die("cannot open", name);
	in->bytes = malloc(max_len);
	must(in->bytes);
	in->len = fread(in->bytes, 1, max_len, f);
	if (ferror(f))
		die("cannot read", name);
	fclose(f);
	if (++ncorpus == CORPUS_MAX) {
		fprintf(stderr, "%s: more than %d files\n", name, CORPUS_MAX - 1);
		exit(99);
	}
}

static void load(const char *name)
{
	struct dirent **entries;
	struct stat st;
	char path[1024];
	int n;

	if (stat(name, &st))
		die("cannot find", name);
	if (!S_ISDIR(st.st_mode)) {
		load_file(name);
		return;
	}
	/* sorted: the mutations must not depend on the order of a directory */
	n = scandir(name, &entries, NULL, alphasort);
	if (n < 0)
		die("cannot list", name);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", name, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			load_file(path);
		free(entries[i]);
	}
	free(entries);
}

static uint64_t rng_state;

static uint32_t rng(uint32_t below)
{
	return (uint32_t)(random_next(&rng_state) % below);
}

static uint64_t interesting(void)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 36, 56, 64, 127,
					   128,
		255, 256, 264, 272, 511, 512, 513, 4095, 4096, 8191, 8192, INT16_MAX, 1u << 15,
		UINT16_MAX, 1u << 16, INT32_MAX, 1u << 31, UINT32_MAX, 1ull << 32, INT64_MAX,
		1ull << 63, UINT64_MAX };
	uint64_t v = values[rng(ARRAY_SIZE(values))];

	return rng(4) ? v : v + rng(3) - 1;
}

static void put_number(struct input *in)
{
	unsigned width = 1u << rng(4);
	uint64_t v = interesting();
	size_t at;

	if (in->len < width)
		return;
	at = rng((uint32_t)(in->len - width + 1));
	for (unsigned i = 0; i < width; i++)
		in->bytes[at + i] = (uint8_t)(v >> 8 * i);
}

static void resize(struct input *in)
{
	size_t len = rng(4) ? in->len : max_len;

	len = rng((uint32_t)MIN(len + 16, max_len) + 1);
	for (; in->len < len; in->len++)
		in->bytes[in->len] = (uint8_t)rng(256);
	in->len = len;
}

static void splice(struct input *in)
{
	const struct input *other = &corpus[rng(ncorpus)];
	size_t n, from, to;

	if (!other->len || !in->len)
		return;
	from = rng((uint32_t)other->len);
	to = rng((uint32_t)in->len);
	n = MIN(other->len - from, in->len - to);
	memcpy(in->bytes + to, other->bytes + from, n);
}

static void mutate(struct input *in)
{
	for (unsigned i = 1 + rng(6); i; i--) {
		switch (rng(6)) {
		case 0:
			if (in->len)
				in->bytes[rng((uint32_t)in->len)] ^= (uint8_t)(1u << rng(8));
			break;
		case 1:
			if (in->len)
				in->bytes[rng((uint32_t)in->len)] = (uint8_t)rng(256);
			break;
		case 2:
		case 3:
			put_number(in);
			break;
		case 4:
			resize(in);
			break;
		default:
			splice(in);
		}
	}
}

static void run(const struct input *in)
{
	uint8_t *tight = malloc(in->len ? in->len : 1);

	must(tight);
	if (in->len)
		memcpy(tight, in->bytes, in->len);
	current = in;
	LLVMFuzzerTestOneInput(tight, in->len);
	current = NULL;
	free(tight);
}

/* At most @runs, and no longer than @seconds unless that is 0; returns how many. */
static unsigned long run_mutations(unsigned long runs, long seconds)
{
	struct input work = { .bytes = malloc(max_len) };
	time_t end = time(NULL) + seconds;
	unsigned long i;

	must(work.bytes);
	for (i = 0; i < runs && (!seconds || i % 1024 || time(NULL) < end); i++) {
		const struct input *base = &corpus[rng(ncorpus)];

		memcpy(work.bytes, base->bytes, base->len);
		work.len = base->len;
		mutate(&work);
		run(&work);
	}
	free(work.bytes);
	return i;
}

int main(int argc, char **argv)
{
	static const int crashes[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	unsigned long runs = 0;
	long seconds = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(crashes); i++)
		signal(crashes[i], on_crash);
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "-runs=", 6))
			runs = strtoul(argv[i] + 6, NULL, 10);
		else if (!strncmp(argv[i], "-max_total_time=", 16))
			seconds = strtol(argv[i] + 16, NULL, 10);
		else if (!strncmp(argv[i], "-seed=", 6))
			rng_state = strtoull(argv[i] + 6, NULL, 10);
		else if (!strncmp(argv[i], "-max_len=", 9))
			max_len = strtoul(argv[i] + 9, NULL, 10);
		else
			load(argv[i]);
	}
	if (!ncorpus || !max_len) {
		fprintf(stderr, "usage: %s [-runs=N] [-max_total_time=SECONDS] [-seed=S] "
			"[-max_len=N] DIR|FILE...\n", argv[0]);
		return 99;
	}
	for (unsigned i = 0; i < ncorpus; i++)
		run(&corpus[i]);
	runs = run_mutations(runs, seconds);
	printf("%u inputs of the corpus, %lu mutations\n", ncorpus, runs);
	for (unsigned i = 0; i < ncorpus; i++)
		free(corpus[i].bytes);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread reads a line of a stream, to which nothing is written yet, and main() calls exit().  A
 * second thread writes the line a while later: whoever sees the word of that, sees that exit() has
 * waited. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fds[2];

static void *reads(void *stream)
{
	char line[16];

	fgets(line, sizeof(line), stream);
	return NULL;
}

static void *writes_later(void *arg)
{
	sleep(3);
	write(STDOUT_FILENO, "waits ", 6);
	write(fds[1], "line\n", 5);
	return arg;
}

int main(void)
{
	pthread_t reader, writer;

	if (pipe(fds))
		return 1;
	pthread_create(&reader, NULL, reads, fdopen(fds[0], "r"));
	pthread_create(&writer, NULL, writes_later, NULL);
	sleep(1);
	exit(0);
}

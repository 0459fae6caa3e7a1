/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  One thread. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cleanup.h"
#include "resolve.h"

/* Print @sa as "192.0.2.1", "[2001:db8::1]" or "[fe80::1%2]". */
static void print_address(FILE *out, const struct sockaddr *sa)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
	char host[INET6_ADDRSTRLEN];

	if (sa->sa_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, host, sizeof(host));
		fputs(host, out);
		return;
	}
	inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
	fprintf(out, "[%s", host);
	if (v6->sin6_scope_id)
		fprintf(out, "%%%u", v6->sin6_scope_id);
	fputc(']', out);
}

/* Print the first address of @host.  False: @err has the reason. */
static bool print_resolved(FILE *out, const char *host, char *err, size_t errlen)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list;
	int rc = getaddrinfo(host, NULL, &hints, &list);

	if (rc) {
		snprintf(err, errlen, "cannot resolve '%s': %s", host,
			 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return false;
	}
	print_address(out, list->ai_addr);
	freeaddrinfo(list);
	return true;
}

static bool is_name(const char *host)
{
	struct in_addr addr;

	return *host && !strchr(host, '[') && inet_pton(AF_INET, host, &addr) != 1;
}

/* Print the address of an end, "HOST[:PORT]", @text of @len bytes.  False: @err has the reason. */
static bool print_end(FILE *out, const char *text, size_t len, char *err, size_t errlen)
{
	_cleanup_free_ char *end = strndup(text, len);
	char *port;

	if (!end) {
		snprintf(err, errlen, "out of memory");
		return false;
	}
	port = strchr(end, ':');
	if (port && strchr(port + 1, ':')) {
		fputs(end, out);
		return true;
	}
	if (port)
		*port++ = '\0';
	if (!is_name(end))
		fputs(end, out);
	else if (!print_resolved(out, end, err, errlen))
		return false;
	if (port)
		fprintf(out, ":%s", port);
	return true;
}

/* Print @text with addresses for names.  False: @err has the reason. */
static bool print_path(FILE *out, const char *text, char *err, size_t errlen)
{
	const char *scheme = strstr(text, "://"), *rest = scheme ? scheme + 3 : text, *sep;

	if (!strncmp(text, "unix:", 5)) {
		fputs(text, out);
		return true;
	}
	fprintf(out, "%.*s", (int)(rest - text), text);
	sep = strpbrk(rest, "@,");
	if (sep) {
		if (!print_end(out, rest, (size_t)(sep - rest), err, errlen))
			return false;
		fputc(*sep, out);
		rest = sep + 1;
	}
	return print_end(out, rest, strlen(rest), err, errlen);
}

char *resolve_path(const char *text, char *err, size_t errlen)
{
	char *path = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&path, &len);
	bool ok;

	snprintf(err, errlen, "out of memory");
	if (!out)
		return NULL;
	ok = print_path(out, text, err, errlen);
	/* The stream notes an allocation that failed. */
	if (!fclose(out) && ok)
		return path;
	free(path);
	return NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a connection to a server for the time of a look: it sends nothing, and is closed at once. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "cleanup.h"
#include "doctor.h"
#include "fabric.h"
#include "number.h"
#include "rtrs-proto.h"
#include "state.h"
#include "util.h"

#define CONNECT_MS 3000
#define LARGEST_PACKET 65535u		/* of IP: loopback has a larger MTU */
#define PACKET_SLACK 64u		/* options of IP and TCP, which no segment shows */

/* ---- MTU ---- */

/* The MTU of the interface @name; 0: not known. */
static unsigned mtu_of_interface(const char *name)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { 0 };

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFMTU, &req))
		return 0;
	return (unsigned)req.ifr_mtu;
}

/* Find the interface with the address @addr: write its name to @name, and return its MTU.  0: no
 * interface here has the address. */
static unsigned find_interface(const struct fab_addr *addr, char name[IF_NAMESIZE])
{
	struct ifaddrs *all, *one;
	unsigned mtu = 0;

	if (getifaddrs(&all))
		return 0;
	for (one = all; one && !mtu; one = one->ifa_next) {
		struct fab_addr its = { .provider = addr->provider };

		if (!one->ifa_addr || one->ifa_addr->sa_family != addr->ss.ss_family)
			continue;
		its.len = one->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
			  sizeof(struct sockaddr_in6);
		if (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6)
			continue;
		memcpy(&its.ss, one->ifa_addr, its.len);
		if (!fab_addr_same_host(&its, addr))
			continue;
		snprintf(name, IF_NAMESIZE, "%s", one->ifa_name);
		mtu = mtu_of_interface(name);
	}
	freeifaddrs(all);
	return mtu;
}

/* @path: the name of the way. */
static void judge_mtu(struct doctor *doctor, const char *path, const struct fab_addr *local,
		      const struct fab_mtu *mtu)
{
	char name[IF_NAMESIZE] = "";
	unsigned here = MIN(find_interface(local, name), LARGEST_PACKET);

	if (here && mtu->path < here)
		doctor_note(doctor, CHECK_WARNING, "mtu",
			    "%s: the network takes packets of %u bytes, and %s has an MTU of %u: "
			    "give "
			    "all interfaces and switches of this network the same MTU", path,
			    mtu->path, name, here);
	else if (mtu->sent + PACKET_SLACK < mtu->path)
		doctor_note(doctor, CHECK_WARNING, "mtu",
			    "%s: the other end takes packets of %u bytes only, and %s has an MTU "
			    "of %u: give both ends the same MTU", path, mtu->sent,
			    *name ? name : "this end", mtu->path);
	else if (here)
		doctor_note(doctor, CHECK_OK, "mtu", "%s: packets of %u bytes, as %s has them",
			    path, mtu->path, name);
	else
		doctor_note(doctor, CHECK_OK, "mtu", "%s: packets of %u bytes", path, mtu->path);
}

/* ---- a program that runs ---- */

/* A path in @state, without a cause of an attempt before, waits for its server. */
static bool is_first_attempt(const char *state)
{
	return !strcmp(state, "connecting") || !strcmp(state, "resolving");
}

static void look_at_path(struct doctor *doctor, const struct doctor_subject *s, const char *name,
			 const json_t *path)
{
	const char *end = s->kind == SUBJECT_SERVER ? "dst_addr" : "src_addr";
	const struct fab_mtu mtu = { .path = (uint32_t)answer_number(path, "path_mtu"),
				     .sent = (uint32_t)answer_number(path, "sent_mtu") };
	struct fab_addr local = { 0 };
	char why[256];

	if (!state_path_works(path)) {
		const char *cause = answer_string(path, "cause");
		const char *state = answer_string(path, "state");
		bool known = strcmp(cause, "-");
		bool waits = !known && is_first_attempt(state);

		doctor_note(doctor, waits ? CHECK_WARNING : CHECK_CRITICAL, "path",
			    "%s is not up (%s): %s", name, state,
			    known ? cause :
			    waits ? "no answer yet: look again in some seconds" :
			    "the log has the reason");
		return;
	}
	if (!mtu.path)
		doctor_note(doctor, CHECK_OK, "path", "%s is up, over %s", name,
			    answer_string(path, "transport"));
	else if (!strcmp(answer_string(path, "transport"), "rdma"))
		doctor_note(doctor, CHECK_OK, "mtu", "%s: %u bytes of data in a packet of RDMA",
			    name, mtu.path);
	else if (!fab_addr_parse_text(answer_string(path, end), fab_provider_find("tcp"), 0,
				      &local, why, sizeof(why)))
		judge_mtu(doctor, name, &local, &mtu);
}

/* A session whose paths are all up may have an export that is not open. */
static void look_at_session(struct doctor *doctor, const json_t *names, const json_t *sess)
{
	const struct state_paths paths = state_paths(sess);
	char cell[TEXT_CELL], name[256], why[STATE_WHY];
	enum health health = state_of_session(sess, cell);

	if (health == HEALTH_UP || !paths.all || paths.up < paths.all)
		return;
	state_name(names, sess, answer_string(sess, "name"), name, sizeof(name));
	doctor_note(doctor, check_level_of(health), "session", "%s %s%s", name, cell,
		    state_meaning(sess, cell, why));
}

static void look_at_running(struct doctor *doctor, const struct doctor_subject *s)
{
	json_t *names = state_index_names(s->answer), *sess, *path, *flap;
	char name[256];
	size_t i, j;

	json_array_foreach(json_object_get(s->answer, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "paths"), j, path) {
			if (!state_is_path(path))
				continue;
			state_name(names, sess, answer_string(path, "name"), name, sizeof(name));
			look_at_path(doctor, s, name, path);
		}
		look_at_session(doctor, names, sess);
	}
	json_array_foreach(json_object_get(s->answer, "flaps"), i, flap) {
		char why[STATE_WHY];

		state_of_flap(names, flap, name, sizeof(name), why);
		doctor_note(doctor, CHECK_WARNING, "path", "%s %s", name, why);
	}
	json_decref(names);
}

/* ---- a file ---- */

/* Connect to @addr.  A descriptor, or -errno. */
static int try_connect(const struct fab_addr *addr)
{
	int fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int err = 0, n;
	socklen_t len = sizeof(err);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr->ss, addr->len)) {
		err = errno;
		if (err == EINPROGRESS) {
			do
				n = poll(&pfd, 1, CONNECT_MS);
			while (n < 0 && errno == EINTR);
			err = n ? 0 : ETIMEDOUT;
			if (n && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
				err = errno;
		}
	}
	if (!err)
		return fd;
	close(fd);
	return -err;
}

static void try_server(struct doctor *doctor, const char *text, const struct fab_addr *addr)
{
	struct fab_addr local = { .provider = addr->provider, .len = sizeof(local.ss) };
	_cleanup_close_ int fd = try_connect(addr);
	char name[FAB_ADDR_STRLEN];
	struct fab_mtu mtu;

	fab_addr_format(addr, name, sizeof(name));
	if (fd < 0) {
		doctor_note(doctor, CHECK_WARNING, "path", "%s: %s does not take a connection: %s",
			    text, name, strerror(-fd));
		return;
	}
	doctor_note(doctor, CHECK_OK, "path", "%s: %s takes connections", text, name);
	fab_mtu_of_socket(fd, &mtu);
	if (mtu.path && !getsockname(fd, (struct sockaddr *)&local.ss, &local.len))
		judge_mtu(doctor, name, &local, &mtu);
}

/* The address of the server in @text, "[tcp://|rdma://][SRC@|SRC,]DST[:PORT]" or "unix:PATH", with
 * its transport, for free(); NULL: no memory. */
static char *address_of(const struct doctor_subject *s, const char *text)
{
	const char *scheme = strstr(text, "://"), *transport, *host, *sep;

	if (fab_addr_text_is_unix(text))
		return strdup(text);
	host = scheme ? scheme + 3 : text;
	sep = strpbrk(host, "@,");
	transport = doctor_conf_of(&s->conf, "", "transport");
	return fmt_new("%.*s%s%s", (int)(host - text), text,
		       !scheme && transport && !strcmp(transport, "rdma") ? "rdma://" : "",
		       sep ? sep + 1 : host);
}

static void look_at_server(struct doctor *doctor, const struct doctor_subject *s, const char *text)
{
	_cleanup_free_ char *address = address_of(s, text);
	struct fab_addr addr;
	char why[256];

	if (!address || fab_addr_parse(address, fab_provider_find("tcp"), RTRS_PORT, &addr, why,
				       sizeof(why)))
		doctor_note(doctor, CHECK_CRITICAL, "path", "%s: %s", text,
			    address ? why : strerror(ENOMEM));
	else if (addr.provider != fab_provider_find("tcp"))
		doctor_note(doctor, CHECK_OK, "path", "%s: over RDMA, which only a start tries",
			    text);
	else
		try_server(doctor, text, &addr);
}

static void look_at_configured(struct doctor *doctor, const struct doctor_subject *s)
{
	static const char *const names[] = { "server", "path" };
	bool any = false;

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value;
		size_t at = 0;

		while ((value = doctor_conf_next(&s->conf, names[i], &at, NULL))) {
			look_at_server(doctor, s, value);
			any = true;
		}
	}
	if (!any)
		doctor_note(doctor, CHECK_CRITICAL, "path",
			    "the file names no server: expected server=HOST or path=HOST");
}

/* ---- where a server listens ---- */

/* 0; or -errno: the kernel lets nobody listen at @addr, whatever the port. */
static int try_address(const struct fab_addr *addr)
{
	_cleanup_close_ int fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage ss = addr->ss;

	if (ss.ss_family == AF_INET)
		((struct sockaddr_in *)&ss)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&ss)->sin6_port = 0;
	return fd < 0 || bind(fd, (struct sockaddr *)&ss, addr->len) ? -errno : 0;
}

/* A name, and an address with a scope, is for the start. */
static void look_at_listener(struct doctor *doctor, const char *value)
{
	_cleanup_free_ char *text = strndup(value, strcspn(value, ","));
	struct fab_addr addr;
	char why[256];
	int rc;

	if (!text || fab_addr_text_is_unix(text) ||
	    fab_addr_parse_text(text, fab_provider_find("tcp"), 0, &addr, why, sizeof(why)) ||
	    !addr.len)
		return;
	rc = try_address(&addr);
	if (rc == -EADDRNOTAVAIL)
		doctor_note(doctor, CHECK_CRITICAL, "listen",
			    "%s: no interface of this machine has the address: correct it, or set "
			    "the interface up (ip addr)", text);
	else if (rc)
		doctor_note(doctor, CHECK_CRITICAL, "listen", "%s: %s", text, strerror(-rc));
	else
		doctor_note(doctor, CHECK_OK, "listen", "%s: this machine has the address", text);
}

static void look_at_listeners(struct doctor *doctor, const struct doctor_subject *s)
{
	const char *value;
	size_t at = 0;

	while ((value = doctor_conf_next(&s->conf, "listen", &at, NULL)))
		look_at_listener(doctor, value);
}

void doctor_subject_paths(struct doctor *doctor, const struct doctor_subject *s)
{
	if (s->answer)
		look_at_running(doctor, s);
	else if (s->kind == SUBJECT_GATEWAY)
		look_at_configured(doctor, s);
	else
		look_at_listeners(doctor, s);
}

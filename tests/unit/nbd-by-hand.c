/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but the rig of the test.  What should not be fails the test. */
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "nbd-by-hand.h"
#include "unit.h"

#define MEMORY (256u << 20)

struct rig rig;
unsigned nlines;
char last_line[256];

static void sink(enum log_level level, const char *line)
{
	nlines++;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

void by_hand_begin(void)
{
	log_init(sink, LOG_LEVEL_INFO);
	nlines = 0;
	rig_begin(&rig, MEMORY);
}

void by_hand_end(void)
{
	rig_run(&rig);
	rig_end(&rig);
}

void say(int fd, const void *bytes, size_t len)
{
	cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
	rig_run(&rig);
}

ssize_t hear(int fd, void *buf, size_t room)
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, (char *)buf + len, room - len, 0)) > 0) {
		len += (size_t)n;
		rig_run(&rig);
	}
	return n == 0 && !len ? -1 : (ssize_t)len;
}

size_t put_option(uint8_t *buf, uint32_t option, const void *data, uint32_t len)
{
	struct nbd_msg_option m = { be64_put(NBD_OPT_MAGIC), be32_put(option), be32_put(len) };

	memcpy(buf, &m, sizeof(m));
	if (len)
		memcpy(buf + sizeof(m), data, len);
	return sizeof(m) + len;
}

uint32_t put_go(uint8_t *buf, const char *name)
{
	be32 len = be32_put((uint32_t)strlen(name));

	memcpy(buf, &len, 4);
	memcpy(buf + 4, name, strlen(name));
	memset(buf + 4 + strlen(name), 0, 2);
	return (uint32_t)strlen(name) + 6;
}

void greet(int fd)
{
	be32 flags = be32_put(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);

	say(fd, &flags, 4);
}

int serve(const char *name)
{
	uint8_t buf[512], data[64];
	int fd = rig_connect(&rig);
	size_t len;

	cr_assert_eq(hear(fd, buf, sizeof(buf)), (ssize_t)sizeof(struct nbd_msg_greeting));
	greet(fd);
	len = put_option(buf, NBD_OPT_GO, data, put_go(data, name));
	say(fd, buf, len);
	cr_assert_gt(hear(fd, buf, sizeof(buf)), 60);
	return fd;
}

struct nbd_msg_request request(uint16_t type, uint64_t cookie, uint64_t off, uint32_t len)
{
	return (struct nbd_msg_request){
		.magic = be32_put(NBD_REQUEST_MAGIC), .type = be16_put(type),
		.cookie = be64_put(cookie), .offset = be64_put(off), .length = be32_put(len),
	};
}

void ask(int fd, uint16_t type, uint64_t cookie, uint64_t off, uint32_t len)
{
	struct nbd_msg_request m = request(type, cookie, off, len);

	say(fd, &m, sizeof(m));
}

void expect_reply(int fd, uint64_t cookie, uint32_t error)
{
	struct nbd_msg_simple_reply m;

	cr_assert_eq(recv(fd, &m, sizeof(m), 0), (ssize_t)sizeof(m), "cookie %u: no reply",
		     (unsigned)cookie);
	cr_assert_eq(be32_get(m.magic), NBD_SIMPLE_REPLY_MAGIC);
	cr_assert_eq(be64_get(m.cookie), cookie);
	cr_assert_eq(be32_get(m.error), error, "cookie %u: error %u", (unsigned)cookie,
		     be32_get(m.error));
}

void expect_end(int fd)
{
	char bytes[16];

	cr_assert_eq(hear(fd, bytes, sizeof(bytes)), -1);
}

void leave(int fd)
{
	close(fd);
	rig_run(&rig);
}

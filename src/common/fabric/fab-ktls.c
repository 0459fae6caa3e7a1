/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the kernel's answers.  Each cipher is tried with a key of zeroes on a connection over
 * loopback, on which no byte is sent. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/tls.h>

#include "cleanup.h"
#include "fab-ktls.h"
#include "util.h"

static const struct tls12_crypto_info_aes_gcm_128 gcm = {
	.info = { .version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
};
static const struct tls12_crypto_info_chacha20_poly1305 chacha = {
	.info = { .version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_CHACHA20_POLY1305 },
};

static const struct cipher {
	const struct tls_crypto_info *info;
	socklen_t len;
} ciphers[] = {
	{ &gcm.info, sizeof(gcm) },
	{ &chacha.info, sizeof(chacha) },
};

static int module_error, cipher_errors[ARRAY_SIZE(ciphers)];

/* A listener on loopback at @addr, or -1. */
static int listen_here(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd >= 0 && !bind(fd, (struct sockaddr *)addr, len) &&
	    !listen(fd, ARRAY_SIZE(ciphers)) &&
	    !getsockname(fd, (struct sockaddr *)addr, &len))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Try @cipher on a connection to @addr.  0, or errno for which the kernel refuses the key. */
static int try_cipher(const struct cipher *cipher, const struct sockaddr_in *addr)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return 0;
	module_error = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) ? errno : 0;
	if (module_error)
		return module_error;
	return setsockopt(fd, SOL_TLS, TLS_TX, cipher->info, cipher->len) ? errno : 0;
}

static void ask(void)
{
	struct sockaddr_in addr;
	int listener = listen_here(&addr);

	if (listener < 0)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(ciphers) && !module_error; i++)
		cipher_errors[i] = try_cipher(&ciphers[i], &addr);
	close(listener);
}

void fab_ktls_ask(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, ask);
}

int fab_ktls_module_error(void)
{
	return module_error;
}

int fab_ktls_cipher_error(uint16_t cipher)
{
	for (unsigned i = 0; i < ARRAY_SIZE(ciphers); i++) {
		if (ciphers[i].info->cipher_type == cipher)
			return module_error ? module_error : cipher_errors[i];
	}
	return 0;
}

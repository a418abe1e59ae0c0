/* listen.c - a listening socket from the address that a person wrote. */
#include "httpd/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/mem.h"
#include "httpd/unixsock.h"

#define LISTEN_BACKLOG 511
#define UNIX "unix:"

/* "host:port" into parts; host may be empty or in brackets. */
static bool split_address(const char *address, char **host, char **port)
{
    const char *colon = strrchr(address, ':');
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1)
        || strtoul(colon + 1, NULL, 10) > 65535)
        return false;
    size_t n = (size_t)(colon - address);
    if (n >= 2 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    } else if (memchr(address, ':', n)) {
        return false;
    }
    *host = n ? kl_strndup(address, n) : NULL;
    *port = kl_strdup(colon + 1);
    return true;
}

static int listen_on(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) /* ":8080" means both families */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, LISTEN_BACKLOG))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

bool kl_listen_loopback_name(const char *host)
{
    size_t n = !host ? 0 : *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    bool four = n > 4 && !strncmp(host, "127.", 4) && strspn(host, "0123456789.") == n;
    bool six = n == 5 && !strncmp(host, "[::1]", 5) && (!host[n] || host[n] == ':');
    return four || six || (n == 9 && !strncmp(host, "localhost", 9));
}

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n > m && !strncasecmp(s + n - m, end, m);
}

bool kl_listen_own_name(const char *host)
{
    size_t n = host ? strcspn(host, ":") : 0;
    bool address = host && (*host == '[' || (n && strspn(host, "0123456789.") == n));
    return address || kl_listen_loopback_name(host) || (host && ends_with(host, n, ".svc"))
        || (host && ends_with(host, n, ".svc.cluster.local"));
}

bool kl_listen_loopback(const char *address)
{
    return kl_listen_loopback_name(address) || (address && !strncmp(address, UNIX, strlen(UNIX)));
}

/* The first address of an interface that is up and no loopback. */
static bool own_address(struct in_addr *out)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all))
        return false;
    for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
        found = a->ifa_addr && a->ifa_addr->sa_family == AF_INET && (a->ifa_flags & IFF_UP)
            && !(a->ifa_flags & IFF_LOOPBACK);
        if (found)
            *out = ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr;
    }
    freeifaddrs(all);
    return found;
}

bool kl_listen_elsewhere(const char *address, char ip[INET_ADDRSTRLEN], uint16_t *port)
{
    char *host = NULL, *number = NULL;
    struct in_addr at = {0};
    *port = 0;
    if (!split_address(address, &host, &number))
        return false;
    *port = (uint16_t)strtoul(number, NULL, 10);
    bool given = host && inet_pton(AF_INET, host, &at) == 1 && at.s_addr && !kl_listen_loopback_name(host),
         found = given || own_address(&at);
    kl_free(host);
    kl_free(number);
    return found && inet_ntop(AF_INET, &at, ip, INET_ADDRSTRLEN);
}

kl_status kl_listen(const char *address, int *out, kl_err *err)
{
    char *host = NULL, *port = NULL;
    if (address && !strncmp(address, UNIX, strlen(UNIX)))
        return kl_unixsock_listen(address + strlen(UNIX), out, err);
    if (!address || !split_address(address, &host, &port))
        return kl_fail(err, KL_EINVAL,
            "cannot listen on \"%s\": write host:port, for example 127.0.0.1:8080 or :8080",
            address ? address : "");
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *all = NULL;
    int rc = getaddrinfo(host, port, &hints, &all), fd = -1, why = 0;
    /* without a host: IPv6 first, it takes both */
    for (int family = 0; !rc && fd < 0 && family < 2; family++)
        for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
            if (host ? family == 0 : (a->ai_family == AF_INET6) == (family == 0)) {
                fd = listen_on(a);
                why = errno;
            }
    if (all)
        freeaddrinfo(all);
    kl_free(host);
    kl_free(port);
    if (rc)
        return kl_fail(err, KL_EINVAL, "cannot listen on \"%s\": %s", address, gai_strerror(rc));
    if (fd < 0)
        return kl_fail(err, KL_EIO, "cannot listen on %s: %s%s", address, strerror(why),
            why == EADDRINUSE ? "; choose another port, or port 0 for any" : "");
    *out = fd;
    return KL_OK;
}

char *kl_listen_address(int fd, uint16_t *port)
{
    struct sockaddr_storage sa;
    socklen_t n = sizeof sa;
    char text[INET6_ADDRSTRLEN] = "";
    getsockname(fd, (struct sockaddr *)&sa, &n);
    if (sa.ss_family == AF_UNIX) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)&sa;
        *port = 0;
        return kl_sprintf("%s%.*s", UNIX, (int)sizeof un->sun_path, un->sun_path);
    }
    if (sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&sa;
        *port = ntohs(in->sin6_port);
        if (IN6_IS_ADDR_UNSPECIFIED(&in->sin6_addr))
            return kl_sprintf("127.0.0.1:%u", *port);
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
        return kl_sprintf("[%s]:%u", text, *port);
    }
    const struct sockaddr_in *in = (const struct sockaddr_in *)&sa;
    *port = ntohs(in->sin_port);
    if (in->sin_addr.s_addr == htonl(INADDR_ANY))
        return kl_sprintf("127.0.0.1:%u", *port);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    return kl_sprintf("%s:%u", text, *port);
}

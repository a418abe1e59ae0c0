/* telemetry_process.c - metrics of this process from /proc. Unreadable values are omitted. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "metrics/metrics.h"
#include "observe/telemetry.h"

typedef enum fact {
    CPU,
    RESIDENT,
    VIRTUAL,
    VIRTUAL_MAX,
    OPEN,
    OPEN_MAX_,
    STARTED,
    RECEIVED,
    SENT,
    FACTS
} fact;

static const struct {
    const char *name, *type, *help;
} FAMILIES[FACTS] = {
    {"process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds."},
    {"process_resident_memory_bytes", "gauge", "Resident memory size in bytes."},
    {"process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes."},
    {"process_virtual_memory_max_bytes", "gauge", "Maximum amount of virtual memory available in bytes."},
    {"process_open_fds", "gauge", "Number of open file descriptors."},
    {"process_max_fds", "gauge", "Maximum number of open file descriptors."},
    {"process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds."},
    {"process_network_receive_bytes_total", "counter",
        "Number of bytes received by the process over the network."},
    {"process_network_transmit_bytes_total", "counter",
        "Number of bytes sent by the process over the network."},
};

static char *read_file(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

/* Reads fields 3.. of /proc/self/stat. The name before them may hold anything, and ends with the last ")". */
static void from_stat(double v[FACTS])
{
    char text[1024];
    const char *p = strrchr(read_file("/proc/self/stat", text, sizeof text), ')');
    long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    unsigned long long utime, stime, started, vsize;
    long long rss;
    if (!p || tick <= 0
        || sscanf(p + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %llu "
               "%lld",
               &utime, &stime, &started, &vsize, &rss)
            != 5)
        return;
    kl_clock *c = kl_clock_real();
    v[CPU] = (double)(utime + stime) / (double)tick;
    v[RESIDENT] = (double)rss * (double)page;
    v[VIRTUAL] = (double)vsize;
    v[STARTED] = (double)(kl_clock_wall(c) - kl_clock_boot(c)) / 1e9 + (double)started / (double)tick;
}

static void from_limits(double v[FACTS])
{
    struct rlimit files, memory;
    if (!getrlimit(RLIMIT_NOFILE, &files))
        v[OPEN_MAX_] = (double)files.rlim_cur;
    if (!getrlimit(RLIMIT_AS, &memory))
        v[VIRTUAL_MAX] = memory.rlim_cur == RLIM_INFINITY ? (double)UINT64_MAX : (double)memory.rlim_cur;
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return;
    double n = -3; /* ".", ".." and the directory itself */
    while (readdir(d))
        n++;
    closedir(d);
    v[OPEN] = n;
}

/* One number of the two lines "IpExt: names" and "IpExt: numbers". */
static double octets(const char *text, const char *name)
{
    const char *names = strstr(text, "IpExt:"), *numbers = names ? strstr(names + 1, "\nIpExt:") : NULL;
    if (!numbers)
        return NAN;
    numbers += strlen("\nIpExt:");
    for (names += strlen("IpExt:"); *names == ' ' && *numbers == ' ';) {
        size_t n = strcspn(++names, " \n");
        char *end;
        double value = strtod(numbers, &end);
        if (n == strlen(name) && !strncmp(names, name, n))
            return value;
        names += n;
        numbers = end;
    }
    return NAN;
}

void kl_telemetry_process(kl_buf *out)
{
    double v[FACTS];
    char text[8192];
    for (int f = 0; f < FACTS; f++)
        v[f] = NAN;
    from_stat(v);
    from_limits(v);
    read_file("/proc/self/net/netstat", text, sizeof text);
    v[RECEIVED] = octets(text, "InOctets");
    v[SENT] = octets(text, "OutOctets");
    for (int f = 0; f < FACTS; f++)
        if (!isnan(v[f])) {
            kl_metrics_head(out, FAMILIES[f].name, FAMILIES[f].type, FAMILIES[f].help);
            kl_metrics_sample(out, FAMILIES[f].name, v[f], NULL);
        }
}

/* figures.h - what our measuring programs in C read about their own process. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* User + system seconds of the whole process. */
static inline double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec)
        + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* A field of /proc/self/status in MB: "VmRSS", "VmHWM", "RssAnon". */
static inline double memory_mb(const char *field)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kb = 0;
    size_t n = strlen(field);
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, n) && line[n] == ':')
            kb = atof(line + n + 1);
    if (f)
        fclose(f);
    return kb / 1024;
}

#endif

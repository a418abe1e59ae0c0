/* stepped.h - what the programs have in common that step a worker without a thread: the objects, what its
 * owner says, and the processor time. The `arg` of an owner begins with its kl_logic. */
#ifndef BENCH_STEPPED_H
#define BENCH_STEPPED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "run/worker.h"

#define OBJECTS 500 /* keys in the queue at a time */

static const char OBJECT[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%d\",\"namespace\":\"ns\","
    "\"labels\":{\"app\":\"app-%d\"},"
    "\"resourceVersion\":\"%d\"},\"spec\":{\"nodeName\":\"node-%d\",\"priority\":0,\"serviceAccountName\":"
    "\"default\",\"containers\":[{\"name\":\"main\","
    "\"image\":\"example.com/"
    "main:1\"}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.%d\",\"qosClass\":\"Burstable\"}}";

static const kl_value *objects[OBJECTS];
static char keys[OBJECTS][32];

static kl_logic *logic(void *arg) { return arg; }
static void logic_unref(void *arg, kl_logic *l) { (void)arg, (void)l; }
static bool is_current(void *arg, const kl_logic *l) { return l == arg; }
static void event(void *arg, const kl_news *n) { (void)arg, (void)n; }
static const kl_value *object(void *arg, kl_logic *l, const char *key)
{
    (void)arg, (void)l;
    return kl_value_ref(objects[atoi(strrchr(key, '-') + 1)]);
}

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec)
        + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* Makes the objects, and calls bench for each argument. The program's exit status. */
static int bench_all(int argc, char **argv, void (*bench)(const char *path))
{
    for (int i = 0; i < OBJECTS; i++) {
        char text[sizeof OBJECT + 64];
        kl_err err = KL_ERR_INIT;
        snprintf(text, sizeof text, OBJECT, i, i % 20, i, i % 50, i % 250);
        snprintf(keys[i], sizeof keys[i], "ns/pod-%d", i);
        if (kl_value_decode(text, strlen(text), &objects[i], &err))
            return 1;
    }
    for (int i = 1; i < argc; i++)
        bench(argv[i]);
    for (int i = 0; i < OBJECTS; i++)
        kl_value_unref(objects[i]);
    return 0;
}

#endif

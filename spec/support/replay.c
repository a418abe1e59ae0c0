/* replay.c - runs a fuzz target without a fuzzer: over its seeds, and over a fixed number of mutations of
 * each with fixed random numbers. So every build, and every sanitizer, holds the laws that the fuzzer
 * holds, in the same order each time.
 *
 *   build/fuzzers/json [-n MUTATIONS] [-t DICTIONARY] FILE...
 *
 * The input that is being tried lies in the file KL_REPLAY_INPUT names, so that it is there when the
 * target dies of it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

#define INPUT_MAX (1 << 16)
#define WORDS_MAX 256
#define SAVE "KL_REPLAY_INPUT"

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

static uint64_t state;
static bytes words[WORDS_MAX];
static size_t nwords;
static int save = -1;

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % n;
}

static void die(const char *what, const char *name)
{
    fprintf(stderr, "replay: %s %s: %s\n", what, name, strerror(errno));
    exit(2);
}

static bytes read_file(const char *path)
{
    bytes b = {malloc(INPUT_MAX), 0};
    FILE *f = fopen(path, "rb");
    if (!f || !b.p)
        die("cannot read", path);
    b.n = fread(b.p, 1, INPUT_MAX, f);
    fclose(f);
    return b;
}

/* libFuzzer's dictionaries: a quoted word per line, with \xAB and backslashes before quotes. */
static void read_words(const char *path)
{
    bytes text = read_file(path);
    const char *p = (const char *)text.p, *end = p + text.n;
    while (p < end && nwords < WORDS_MAX) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        if (!line)
            line = end;
        const char *open = *p == '#' ? NULL : memchr(p, '"', (size_t)(line - p));
        if (open) {
            bytes w = {malloc((size_t)(line - open)), 0};
            if (!w.p)
                die("no memory for", path);
            for (p = open + 1; p < line && *p != '"'; p++) {
                if (*p == '\\' && p + 3 < line && p[1] == 'x') {
                    w.p[w.n++] = (uint8_t)strtoul((char[]){p[2], p[3], '\0'}, NULL, 16);
                    p += 3;
                } else {
                    p += *p == '\\' && p + 1 < line;
                    w.p[w.n++] = (uint8_t)*p;
                }
            }
            words[nwords++] = w;
        }
        p = line + 1;
    }
    free(text.p);
}

/* Puts `with` in place of `cut` bytes at `at`. */
static void put_instead(bytes *b, size_t at, size_t cut, const uint8_t *with, size_t n)
{
    if (b->n - cut + n > INPUT_MAX)
        return;
    memmove(b->p + at + n, b->p + at + cut, b->n - at - cut);
    if (n)
        memcpy(b->p + at, with, n);
    b->n += n - cut;
}

static void mutate(bytes *b, const bytes *other)
{
    static const uint8_t odd[] = {0, 1, 0x1f, ' ', '"', '\\', '{', '}', '[', ']', ',', ':', '-', '0', '9',
        '.', '/', '%', '=', '!', '~', '$', 0x7f, 0x80, 0xbf, 0xc0, 0xed, 0xf4, 0xff, '\n'};
    size_t at = b->n ? below((uint32_t)b->n) : 0,
           n = b->n - at < 1 ? 0 : 1 + below(b->n - at < 8 ? (uint32_t)(b->n - at) : 8);
    uint8_t byte = below(2) ? (uint8_t)below(256) : odd[below(sizeof odd)], chunk[64];
    switch (below(8)) {
    case 0: put_instead(b, at, n, NULL, 0); break;
    case 1: put_instead(b, at, 0, &byte, 1); break;
    case 2: put_instead(b, at, n ? 1 : 0, &byte, 1); break;
    case 3: put_instead(b, at, b->n - at, NULL, 0); break;
    case 4:
    case 5:
        if (nwords) {
            const bytes *w = &words[below((uint32_t)nwords)];
            put_instead(b, at, below(2) ? n : 0, w->p, w->n);
            break;
        }
        /* fall through */
    case 6: /* a part of itself, again */
        memcpy(chunk, b->p + at, n);
        put_instead(b, below((uint32_t)b->n + 1), 0, chunk, n);
        break;
    default: /* the tail of another seed */
        if (other->n) {
            size_t from = below((uint32_t)other->n);
            put_instead(b, at, b->n - at, other->p + from, other->n - from);
        }
        break;
    }
}

static void try(const bytes *b)
{
    uint8_t *exact = malloc(b->n ? b->n : 1); /* so that a read beyond it is caught */
    if (!exact)
        die("no memory for", "an input");
    memcpy(exact, b->p, b->n);
    if (save >= 0 && (ftruncate(save, 0) || pwrite(save, b->p, b->n, 0) != (ssize_t)b->n))
        die("cannot write", getenv(SAVE));
    LLVMFuzzerTestOneInput(exact, b->n);
    free(exact);
}

int main(int argc, char **argv)
{
    unsigned mutations = 0, tried = 0;
    int first = 1;
    for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
        if (!strcmp(argv[first], "-n"))
            mutations = (unsigned)atoi(argv[first + 1]);
        else
            read_words(argv[first + 1]);
    }
    if (first >= argc) {
        fprintf(stderr, "usage: %s [-n MUTATIONS] [-t DICTIONARY] FILE...\n", argv[0]);
        return 2;
    }
    if (getenv(SAVE) && (save = open(getenv(SAVE), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
        die("cannot open", getenv(SAVE));
    for (int i = first; i < argc; i++) {
        bytes seed = read_file(argv[i]), other = read_file(argv[i + 1 < argc ? i + 1 : first]),
              b = {malloc(INPUT_MAX), 0};
        if (!b.p)
            die("no memory for", argv[i]);
        try(&seed);
        state = 0x9e3779b97f4a7c15u * (uint64_t)(i - first + 1);
        for (unsigned k = 0; k < mutations; k++) {
            memcpy(b.p, seed.p, b.n = seed.n);
            for (unsigned times = 1 + below(4); times; times--)
                mutate(&b, &other);
            try(&b);
        }
        tried += mutations + 1;
        free(seed.p);
        free(other.p);
        free(b.p);
    }
    for (size_t i = 0; i < nwords; i++)
        free(words[i].p);
    if (save >= 0) {
        close(save);
        unlink(getenv(SAVE));
    }
    printf("%u inputs\n", tried);
    return 0;
}

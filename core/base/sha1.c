/* sha1.c - FIPS 180-4, section 6.1, over one piece of memory: whole blocks, then the tail with its length. */
#include "base/sha1.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64

static uint32_t rotate(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void add_block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 ? b ^ c ^ d : i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
        uint32_t t = rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void kl_sha1(const void *data, size_t n, unsigned char out[20])
{
    uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    const unsigned char *p = data;
    size_t left = n;
    for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
        add_block(h, p);
    unsigned char tail[2 * BLOCK] = {0};
    if (left)
        memcpy(tail, p, left);
    tail[left] = 0x80;
    size_t len = left + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    for (int i = 0; i < 8; i++)
        tail[len - 1 - i] = (unsigned char)((uint64_t)n * 8 >> (8 * i));
    for (size_t at = 0; at < len; at += BLOCK)
        add_block(h, tail + at);
    for (int i = 0; i < 20; i++)
        out[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}

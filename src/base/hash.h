/* Hashes. FNV-1a (Fowler, Noll, Vo) is for what is stored or decides an order, so its values never change:
 *   h_0 = AT_HASH_START,  h_n = (h_(n-1) xor x_n) * prime. */
#ifndef AT_HASH_H
#define AT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AT_HASH_START UINT64_C(0xcbf29ce484222325)

/* One step of FNV-1a; x_n is usually a byte. */
static inline uint64_t at_hash_step(uint64_t hash, uint64_t x)
{
    return (hash ^ x) * UINT64_C(0x100000001b3);
}

static inline uint64_t at_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = at_hash_step(hash, byte[i]);
    return hash;
}

static inline uint64_t at_hash_text(const char *text)
{
    return at_hash_bytes(AT_HASH_START, text, strlen(text));
}

/* The finaliser of MurmurHash3, a bijection of 64 bits: different numbers have different hashes. For tables in memory
 * only. */
static inline uint64_t at_hash_mix(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

/* Eight bytes at a time, several times faster than FNV-1a. For tables in memory only. */
static inline uint64_t at_hash_quick(const void *bytes, size_t size)
{
    const char *from = bytes;
    uint64_t hash = size, word;
    for (; size >= sizeof word; from += sizeof word, size -= sizeof word) {
        memcpy(&word, from, sizeof word);
        hash = at_hash_mix(hash ^ word);
    }
    word = 0;
    if (size > 0)
        memcpy(&word, from, size);
    return at_hash_mix(hash ^ word);
}

#endif

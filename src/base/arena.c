#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Under the address sanitizer, memory that is not allocated is poisoned: reading past a piece, or after its release, is
 * caught as it would be with malloc. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(start, bytes)   ASAN_POISON_MEMORY_REGION(start, bytes)
#define UNPOISON(start, bytes) ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#else
#define POISON(start, bytes)   ((void)(start), (void)(bytes))
#define UNPOISON(start, bytes) ((void)(start), (void)(bytes))
#endif

#ifndef AT_FIRST_BLOCK /* the fuzzers take less: they make many small arenas */
#define AT_FIRST_BLOCK (1 << 20)
#endif

/* Large blocks ask for huge pages: the processor prefetches only up to the end of a page, so reading weights in order is
 * faster by a seventh as floats and by a third as bytes. */
enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 2 * HUGE_PAGE };

/* Blocks form a list in the order of their allocation, each twice as large as the one before. The ones after `current`
 * are empty: they stay after a release and are used again. */
typedef struct block {
    struct block *next;
    size_t size; /* bytes for pieces */
    char *bytes; /* aligned to AT_ALIGN */
} block;

struct at_arena {
    block *first, *last, *current;
    size_t used;   /* of the current block */
    size_t record; /* bytes of this record and the gap before it */
    size_t total;  /* `record` and what is allocated, in whole AT_ALIGNs */
    size_t peak;   /* the most `total` ever was */
    size_t system; /* allocations from the system */
    bool grows;
    block own; /* the one block of an arena over the caller's memory */
};

static size_t round_up(size_t bytes)
{
    return (bytes + AT_ALIGN - 1) / AT_ALIGN * AT_ALIGN;
}

/* The record counts as held, so an arena over `at_arena_peak` bytes of aligned memory holds what this one held. */
static void start(at_arena *arena, size_t gap)
{
    size_t record = gap + round_up(sizeof *arena);
    *arena = (at_arena){.record = record, .total = record, .peak = record};
}

at_arena *at_arena_new(void)
{
    at_arena *arena = malloc(sizeof *arena);
    if (!arena)
        return NULL;
    start(arena, 0);
    arena->system = 1;
    arena->grows = true;
    return arena;
}

at_arena *at_arena_over(void *memory, size_t bytes)
{
    size_t gap = round_up((uintptr_t)memory) - (uintptr_t)memory;
    if (!memory || bytes < gap || bytes - gap < round_up(sizeof(at_arena)))
        return NULL;
    at_arena *arena = (at_arena *)((char *)memory + gap);
    start(arena, gap);
    arena->own =
        (block){.size = (bytes - arena->record) / AT_ALIGN * AT_ALIGN, .bytes = (char *)memory + arena->record};
    arena->first = arena->last = arena->current = &arena->own;
    POISON(arena->own.bytes, arena->own.size);
    return arena;
}

void at_arena_free(at_arena *arena)
{
    if (!arena)
        return;
    if (!arena->grows) {
        UNPOISON(arena->own.bytes, arena->own.size);
        return;
    }
    for (block *b = arena->first, *next; b; b = next) {
        next = b->next;
        UNPOISON(b->bytes, b->size);
        free(b);
    }
    free(arena);
}

/* Uninitialised memory for a block, to be released with free. */
static void *allocate(size_t bytes)
{
    const size_t alignment = bytes >= HUGE_FROM ? HUGE_PAGE : AT_ALIGN;
    const size_t whole = (bytes + alignment - 1) / alignment * alignment;
    void *memory = whole >= bytes ? aligned_alloc(alignment, whole) : NULL;
#ifdef MADV_HUGEPAGE
    if (memory && alignment == HUGE_PAGE)
        (void)madvise(memory, whole, MADV_HUGEPAGE); /* a hint */
#endif
    return memory;
}

static block *grow(at_arena *arena, size_t bytes)
{
    size_t size = arena->last ? 2 * arena->last->size : AT_FIRST_BLOCK;
    size_t head = round_up(sizeof(block));
    if (size < bytes)
        size = bytes;
    block *b = allocate(head + size);
    if (!b && size > bytes) { /* twice as much was too much: the needed size may still fit */
        size = bytes;
        b = allocate(head + size);
    }
    if (!b)
        return NULL;
    *b = (block){.size = size, .bytes = (char *)b + head};
    POISON(b->bytes, b->size);
    arena->system++;
    if (arena->last)
        arena->last->next = b;
    else
        arena->first = b;
    arena->last = b;
    return b;
}

/* Makes the next block with room the current one. */
static bool find_room(at_arena *arena, size_t bytes)
{
    block *b = arena->current ? arena->current->next : arena->first;
    while (b && b->size < bytes)
        b = b->next;
    if (!b && arena->grows)
        b = grow(arena, bytes);
    if (!b)
        return false;
    arena->current = b;
    arena->used = 0;
    return true;
}

void *at_arena_take(at_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return NULL;
    size_t rounded = bytes ? round_up(bytes) : AT_ALIGN;
    if (!arena->current || arena->current->size - arena->used < rounded) {
        if (!find_room(arena, rounded))
            return NULL;
    }
    char *piece = arena->current->bytes + arena->used;
    arena->used += rounded;
    arena->total += rounded;
    if (arena->total > arena->peak)
        arena->peak = arena->total;
    UNPOISON(piece, bytes);
    return piece;
}

void *at_arena_zeros(at_arena *arena, size_t bytes)
{
    void *piece = at_arena_take(arena, bytes);
    return piece ? memset(piece, 0, bytes) : NULL;
}

at_mark at_arena_mark(const at_arena *arena)
{
    return (at_mark){.block = arena->current, .used = arena->used, .total = arena->total};
}

void at_arena_release(at_arena *arena, at_mark mark)
{
    block *b = mark.block ? mark.block : arena->first;
    if (b)
        POISON(b->bytes + mark.used, b->size - mark.used);
#ifdef __SANITIZE_ADDRESS__
    for (b = b ? b->next : NULL; b; b = b->next)
        POISON(b->bytes, b->size);
#endif
    arena->current = mark.block;
    arena->used = mark.used;
    arena->total = mark.total;
}

void at_arena_reset(at_arena *arena)
{
    at_arena_release(arena, (at_mark){.block = arena->first, .used = 0, .total = arena->record});
}

size_t at_arena_peak(const at_arena *arena)
{
    return arena->peak;
}

size_t at_arena_system(const at_arena *arena)
{
    return arena->system;
}

/* An arena: memory that is allocated in order and released all at once. In the steady state it allocates nothing from the
 * system, because a reset keeps the blocks. Not for several threads at once: allocate before the parallel part. */
#ifndef AT_ARENA_H
#define AT_ARENA_H

#include "attend.h"

enum { AT_ALIGN = 64 }; /* every piece starts on a cache line */

typedef struct at_arena at_arena;

at_arena *at_arena_new(void);                        /* grows as needed; NULL if out of memory */
at_arena *at_arena_over(void *memory, size_t bytes); /* lives inside the caller's memory and never grows */
void at_arena_free(at_arena *arena);

/* `bytes` of uninitialised memory aligned to AT_ALIGN; NULL if out of memory (the caller records the error). */
void *at_arena_take(at_arena *arena, size_t bytes);
void *at_arena_zeros(at_arena *arena, size_t bytes);

/* A release frees everything allocated after the mark. Marks nest. */
typedef struct at_mark {
    void *block;
    size_t used;
    size_t total;
} at_mark;
at_mark at_arena_mark(const at_arena *arena);
void at_arena_release(at_arena *arena, at_mark mark);
void at_arena_reset(at_arena *arena);

size_t at_arena_peak(const at_arena *arena);   /* the most bytes ever held at once */
size_t at_arena_system(const at_arena *arena); /* how many times the system was asked for memory */

#endif

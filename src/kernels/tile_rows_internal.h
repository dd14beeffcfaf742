/* Shared by the isa_tile*.c files: where a row's keys are in a tile, and the row functions' declarations. */
#ifndef AT_TILE_ROWS_INTERNAL_H
#define AT_TILE_ROWS_INTERNAL_H

#include "kernels/activate_internal.h"
#include "kernels/micro_internal.h"
#include "kernels/tile.h"

/* The columns [a, b) that row r uses in this tile; false if none. */
INLINE bool row_columns(const tile *t, int64_t r, int64_t *a, int64_t *b)
{
    int64_t lo = t->lo[r] > t->from ? t->lo[r] : t->from, hi = t->hi[r] < t->to ? t->hi[r] : t->to;
    *a = lo - t->from;
    *b = hi - t->from;
    return lo < hi;
}

/* Asks for the next few rows of what will be needed soon, into L2: L1 is full of what is needed now. */
INLINE void fetch_ahead(tile_fetch *f)
{
    if (!f)
        return;
    for (int64_t n = 0; n < f->rows_a_time && f->region < f->regions; n++) {
        const at_real *row = f->list[f->region].at + f->done * f->list[f->region].row;
        for (int64_t d = 0; d < f->list[f->region].size; d += 64 / (int64_t)sizeof *row)
            __builtin_prefetch(row + d, 0, 2);
        if (++f->done == f->list[f->region].rows) {
            f->region++;
            f->done = 0;
        }
    }
}

/* [a,b) widened to whole panels, which is what the score kernel has filled. */
INLINE int64_t panel_floor(int64_t a)
{
    return a & ~(int64_t)(WIDTH - 1);
}
INLINE int64_t panel_ceil(int64_t b)
{
    return (b + WIDTH - 1) & ~(int64_t)(WIDTH - 1);
}

/* All ones in the lanes of columns [c, c + LANES) inside [a, b). */
INLINE veci inside(int64_t c, int64_t a, int64_t b)
{
    veci at = v_lanes() + (at_index)c;
    return (veci)(at >= (at_index)a) & (veci)(at < (at_index)b);
}

/* Sets the lanes of row[from, from + LANES) outside [a, b) to `fill`. */
INLINE void fence_lanes(at_real *row, int64_t from, int64_t a, int64_t b, at_real fill)
{
    v_store(row + from, v_pick(inside(from, a, b), v_load(row + from), v_set(fill)));
}

/* Sets what the first and last panel of [a, b) hold outside of it to `fill`. */
INLINE void fence(at_real *row, int64_t a, int64_t b, at_real fill)
{
    int64_t first = panel_floor(a), last = panel_ceil(b) - WIDTH;
    if (first < a) {
        fence_lanes(row, first, a, b, fill);
        fence_lanes(row, first + LANES, a, b, fill);
    }
    if (last + WIDTH > b) {
        fence_lanes(row, last, a, b, fill);
        fence_lanes(row, last + LANES, a, b, fill);
    }
}

/* Row i's table entry for LANES keys from column c on. */
INLINE vec table_lanes(const tile_table *table, int64_t i, int64_t offset)
{
    int64_t least = -table->reach - LANES, most = table->reach + 1;
    offset = offset < least ? least : offset > most ? most : offset;
    return v_load(table->at + i * table->row + table->reach + offset);
}

#define TILE_ROW_FUNCTIONS(isa)                                                                                        \
    void at_tile_additive_##isa(const tile *, const tile_additive *);                                                  \
    void at_tile_additive_back_##isa(const tile *, const tile_additive *);                                             \
    void at_tile_covered_##isa(const tile_covered *, at_real *);                                                       \
    void at_tile_covered_back_##isa(const tile_covered *, const at_real *);                                            \
    void at_tile_look_up_##isa(const tile *, const tile_table *);                                                      \
    void at_tile_tops_##isa(const tile *, at_real *);                                                                  \
    void at_tile_relate_##isa(const tile *, const at_real *, at_real, const tile_table *);                             \
    void at_tile_blank_##isa(const tile *, bool);                                                                      \
    void at_tile_softmax_##isa(const tile *, const tile_table *, const tile_state *);                                  \
    void at_tile_sigmoid_##isa(const tile *);                                                                          \
    void at_tile_relu_##isa(const tile *, const tile_state *);                                                         \
    at_real at_tile_threshold_##isa(const at_real *, int64_t, int64_t, tile_rule);                                     \
    void at_tile_prior_##isa(const tile *, const at_real *, at_real);                                                  \
    void at_tile_by_offset_##isa(const tile *, const int32_t *, int64_t, at_real *, int64_t);                          \
    void at_tile_weights_##isa(const tile *, const tile_back *);                                                       \
    void at_tile_dscore_##isa(const tile *, at_real *, const tile_back *);                                             \
    void at_tile_delta_##isa(const tile *, const at_real *, const tile_back *, at_real *, at_real *);
TILE_ROW_FUNCTIONS(plain)
TILE_ROW_FUNCTIONS(avx2)
TILE_ROW_FUNCTIONS(neon)

#endif

/* The products on a tile: scores, weighted sums, and their transposes. All of them are the micro kernel. */
#include "kernels/isa_internal.h"
#include "kernels/pack_internal.h"
#include "kernels/tile_rows_internal.h"

static void begin(tile *t)
{
    int64_t columns = t->to - t->from;
    t->groups = (int)((t->rows + ROWS - 1) / ROWS);
    t->full = true;
    t->start[0] = 0;
    for (int g = 0; g < t->groups; g++) {
        int64_t first = columns, last = 0;
        t->start[g + 1] = (int32_t)(t->rows * (g + 1) / t->groups);
        for (int64_t r = t->start[g]; r < t->start[g + 1]; r++) {
            int64_t a, b;
            if (!row_columns(t, r, &a, &b)) {
                t->full = false;
                continue;
            }
            t->full = t->full && a == 0 && b == columns;
            first = a < first ? a : first;
            last = b > last ? b : last;
        }
        t->first[g] = (int32_t)first;
        t->last[g] = (int32_t)last;
    }
}

static void score(const tile *t, int64_t size, const at_real *q, int64_t q_row, const at_real *kt)
{
    for (int64_t c = 0; c < t->to - t->from; c += WIDTH) {
        const at_real *panel = kt + (t->from + c) * size; /* [size][WIDTH] */
        for (int g = 0; g < t->groups; g++) {
            if (t->first[g] >= c + WIDTH || t->last[g] <= c)
                continue;
            int64_t i = t->start[g];
            micro((int)(t->start[g + 1] - i), &(micro_block){.k = size,
                                                             .a = q + i * q_row,
                                                             .a_row = q_row,
                                                             .a_col = 1,
                                                             .b = panel,
                                                             .b_row = WIDTH,
                                                             .c = t->s + i * t->s_row + c,
                                                             .c_row = t->s_row});
            fetch_ahead(t->fetch);
        }
    }
}

static void zero_rows(at_real *x, int64_t row, int64_t from, int64_t to, int64_t size)
{
    for (; from < to; from++)
        memset(x + from * row, 0, (size_t)panel_ceil(size) * sizeof *x);
}

/* Rows [i, i + rows) of the weights, columns [first, last), times the values of those columns. */
INLINE void weigh_rows(int rows, const tile *t, int64_t i, int64_t first, int64_t last, micro_block block)
{
    block.k = last - first;
    block.a = t->s + i * t->s_row + first;
    block.a_row = t->s_row;
    block.a_col = 1;
    block.b += first * WIDTH;
    block.b_row = WIDTH;
    micro(rows, &block);
}

static void weigh(const tile *t, int64_t size, const at_real *v, int64_t keys, at_real *out, int64_t out_row,
                  bool fresh, bool own_keys_only)
{
    if (fresh && own_keys_only)
        zero_rows(out, out_row, 0, t->rows, size);
    for (int g = 0; fresh && g < t->groups; g++)
        if (t->first[g] >= t->last[g])
            zero_rows(out, out_row, t->start[g], t->start[g + 1], size);
    for (int64_t d = 0; d < size; d += WIDTH) {
        const at_real *panel = v + d * keys + t->from * WIDTH; /* [keys][WIDTH] */
        for (int g = 0; g < t->groups; g++) {
            int64_t i = t->start[g], first = t->first[g], last = t->last[g];
            at_real *c = out + i * out_row + d;
            if (!own_keys_only) {
                if (first < last)
                    weigh_rows(
                        (int)(t->start[g + 1] - i), t, i, first, last,
                        (micro_block){
                            .b = panel, .start = fresh ? NULL : c, .start_row = out_row, .c = c, .c_row = out_row});
                fetch_ahead(t->fetch);
                continue;
            }
            for (; i < t->start[g + 1]; i++, c += out_row)
                if (row_columns(t, i, &first, &last))
                    weigh_rows(1, t, i, first, last, (micro_block){.b = panel, .start = c, .c = c});
        }
    }
}

/* The operands of `gather`. */
typedef struct gathering {
    const tile *t;
    int64_t size;
    const at_real *x;
    int64_t x_row;
    at_real *sums;
    int64_t sums_row;
} gathering;

/* Adds to the sums of the keys at columns [c, c+n), n <= ROWS, from the rows [r0, r1). */
INLINE void gather_keys(const gathering *g, int64_t c, int64_t n, int64_t r0, int64_t r1, bool fresh)
{
    const tile *t = g->t;
    for (int64_t d = 0; d < g->size; d += WIDTH) {
        at_real *sums = g->sums + (t->from + c) * g->sums_row + d;
        micro((int)n, &(micro_block){.k = r1 - r0,
                                     .a = t->s + r0 * t->s_row + c,
                                     .a_row = 1,
                                     .a_col = t->s_row,
                                     .b = g->x + r0 * g->x_row + d,
                                     .b_row = g->x_row,
                                     .start = fresh ? NULL : sums,
                                     .start_row = g->sums_row,
                                     .c = sums,
                                     .c_row = g->sums_row});
        fetch_ahead(t->fetch);
    }
}

static void gather(const tile *t, int64_t size, const at_real *x, int64_t x_row, at_real *sums, int64_t sums_row,
                   bool fresh, bool own_keys_only)
{
    const gathering what = {.t = t, .size = size, .x = x, .x_row = x_row, .sums = sums, .sums_row = sums_row};
    int64_t columns = t->to - t->from, a, b;
    if (own_keys_only) {
        if (fresh)
            zero_rows(sums, sums_row, t->from, t->to, size);
        for (int64_t r = 0; r < t->rows; r++)
            if (row_columns(t, r, &a, &b))
                for (int64_t c = a; c < b; c += ROWS)
                    gather_keys(&what, c, b - c < ROWS ? b - c : ROWS, r, r + 1, false);
        return;
    }
    int64_t groups = (columns + ROWS - 1) / ROWS; /* of keys, of nearly equal size */
    for (int64_t g = 0; g < groups; g++) {
        int64_t c = columns * g / groups, n = columns * (g + 1) / groups - c, r0 = 0, r1 = t->rows;
        if (!t->full) {
            while (r0 < r1 && !(row_columns(t, r0, &a, &b) && a < c + n && b > c))
                r0++;
            while (r1 > r0 && !(row_columns(t, r1 - 1, &a, &b) && a < c + n && b > c))
                r1--;
        }
        if (r0 < r1)
            gather_keys(&what, c, n, r0, r1, fresh);
        else if (fresh)
            zero_rows(sums, sums_row, t->from + c, t->from + c + n, size);
    }
}

/* ---- One query per head: keys and values are read once and not packed ---- */

INLINE const at_real *line_at(const tile_lines *x, int64_t j)
{
    return x->list ? x->list[j] + x->column : x->at + j * x->row;
}

/* Asks for one head's part of rows [from, to) ahead of their use, into L2: L1 could not hold it beside what is in use.
 * A little at a time, between the sums, so that the requests do not queue. */
INLINE void fetch(const tile_lines *x, int64_t from, int64_t to, int64_t column, int64_t size)
{
    for (int64_t r = from; r < to; r++)
        for (int64_t d = 0; d < size; d += 64 / (int64_t)sizeof(at_real))
            __builtin_prefetch(line_at(x, r) + column + d, 0, 2);
}

INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void score_heads(const tile *t, int64_t size, const at_real *q, int64_t q_row, const tile_lines *k,
                        int64_t group)
{
    int64_t a, b;
    for (int64_t c = t->from; c < t->to; c += WIDTH) {
        bool straight = !k->list && c + WIDTH <= t->to;
        const at_real *keys[WIDTH];
        for (int64_t r = 0; r < WIDTH; r++) /* after the last key it is repeated */
            keys[r] = line_at(k, least(c + r, t->to - 1));
        for (int64_t h = 0; h < t->rows; h++) {
            int64_t column = h / group * size;
            if (h % group == 0)
                fetch(k, c + WIDTH, least(c + 2 * WIDTH, t->to), column, size);
            if (!row_columns(t, h, &a, &b) || a >= c - t->from + WIDTH || b <= c - t->from)
                continue;
            at_real *s = t->s + h * t->s_row + c - t->from;
            if (straight)
                transposed_panel(size, q + h * q_row, 1, keys[0] + column, k->row, s, false);
            else
                transposed_rows(size, q + h * q_row, keys, column, s);
        }
    }
}

/* to[0..panels*WIDTH) += sum_r s[r] (row from + r of v at `column`), for rows anywhere in memory:
 * micro_wide's chain. */
INLINE void weigh_lines(const int panels, int64_t n, const at_real *s, const tile_lines *v, int64_t from,
                        int64_t column, at_real *to)
{
    vec acc[8];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * panels; i++)
        acc[i] = v_load(to + i * LANES);
    for (int64_t r = 0; r < n; r++) {
        const at_real *line = v->list[from + r] + v->column + column;
        vec x = v_set(s[r]);
#pragma GCC unroll 8
        for (int i = 0; i < 2 * panels; i++)
            acc[i] = v_fma(x, v_load(line + i * LANES), acc[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 2 * panels; i++)
        v_store(to + i * LANES, acc[i]);
}

static void weigh_heads(const tile *t, int64_t size, const tile_lines *v, int64_t group, at_real *out, int64_t out_row)
{
    enum { CHUNK = 2 * WIDTH };
    int64_t a, b, d;
    for (int64_t c = t->from; c < t->to; c += CHUNK)
        for (int64_t h = 0; h < t->rows; h++) {
            int64_t column = h / group * size;
            if (h % group == 0)
                fetch(v, c + CHUNK, least(c + 2 * CHUNK, t->to), column, size);
            if (!row_columns(t, h, &a, &b) || a >= c - t->from + CHUNK || b <= c - t->from)
                continue;
            int64_t first = a > c - t->from ? a + t->from : c, n = least(b + t->from, c + CHUNK) - first;
            const at_real *values = line_at(v, first) + column, *s = t->s + h * t->s_row + first - t->from;
            at_real *to = out + h * out_row;
            for (d = 0; d + 4 * WIDTH <= size; d += 4 * WIDTH)
                if (v->list)
                    weigh_lines(4, n, s, v, first, column + d, to + d);
                else
                    micro_wide(1, 4,
                               &(micro_block){.k = n,
                                              .a = s,
                                              .a_col = 1,
                                              .b = values + d,
                                              .b_row = v->row,
                                              .b_panel = WIDTH,
                                              .start = to + d,
                                              .c = to + d});
            for (; d + WIDTH <= size; d += WIDTH)
                if (v->list)
                    weigh_lines(1, n, s, v, first, column + d, to + d);
                else
                    micro_rows(1, &(micro_block){.k = n,
                                                 .a = s,
                                                 .a_col = 1,
                                                 .b = values + d,
                                                 .b_row = v->row,
                                                 .start = to + d,
                                                 .c = to + d});
            for (; d < size; d++)
                for (int64_t r = 0; r < n; r++)
                    to[d] = s[r] * line_at(v, first + r)[column + d] + to[d];
        }
}

static void multiply(const tile_product *job)
{
    const int64_t groups = (job->rows + ROWS - 1) / ROWS;
    for (int64_t j = 0; j < job->columns; j += WIDTH)
        for (int64_t g = 0; g < groups; g++) {
            int64_t i = job->rows * g / groups, n = job->rows * (g + 1) / groups - i;
            at_real *to = job->c + i * job->c_row + j;
            micro((int)n, &(micro_block){.k = job->size,
                                         .a = job->a + i * job->a_row,
                                         .a_row = job->a_row,
                                         .a_col = 1,
                                         .b = job->b + j / WIDTH * job->step,
                                         .b_row = WIDTH,
                                         .start = job->load ? to : NULL,
                                         .start_row = job->c_row,
                                         .c = to,
                                         .c_row = job->c_row});
        }
}

static void add_transposed(at_real *to, int64_t to_row, const at_real *panels, int64_t size, int64_t keys)
{
    for (int64_t key = 0; key < keys; key += LANES) {
        const at_real *panel = panels + key / WIDTH * WIDTH * size + key % WIDTH;
        int64_t there = least(LANES, keys - key), p = 0;
        for (; p + LANES <= size; p += LANES) {
            vec column[LANES];
            transpose_lanes(panel + p * WIDTH, WIDTH, column);
#pragma GCC unroll 8
            for (int64_t l = 0; l < LANES; l++)
                if (l < there) {
                    at_real *x = to + (key + l) * to_row + p;
                    v_store(x, v_load(x) + column[l]);
                }
        }
        for (; p < size; p++)
            for (int64_t l = 0; l < there; l++)
                to[(key + l) * to_row + p] += panel[p * WIDTH + l];
    }
}

static void key_sums(const tile *t, const at_real *factor, at_real *sums)
{
    int64_t columns = t->to - t->from, c = 0;
    micro_block block = {.k = t->rows, .a = factor, .a_col = 1, .b_row = t->s_row, .b_panel = WIDTH};
    for (int64_t step; c + WIDTH <= columns; c += step) {
        block.b = t->s + c;
        block.start = block.c = sums + t->from + c;
        step = c + 4 * WIDTH <= columns ? 4 * WIDTH : WIDTH;
        if (step > WIDTH)
            micro_wide(1, 4, &block);
        else
            micro_rows(1, &block);
    }
    for (; c < columns; c++)
        for (int64_t r = 0; r < t->rows; r++)
            sums[t->from + c] += factor[r] * t->s[r * t->s_row + c];
}

const tile_kernels AT_ISA_NAME(at_tile_kernels) = {
    .width = WIDTH,
    .begin = begin,
    .score = score,
    .additive = AT_ISA_NAME(at_tile_additive),
    .additive_back = AT_ISA_NAME(at_tile_additive_back),
    .covered = AT_ISA_NAME(at_tile_covered),
    .covered_back = AT_ISA_NAME(at_tile_covered_back),
    .look_up = AT_ISA_NAME(at_tile_look_up),
    .tops = AT_ISA_NAME(at_tile_tops),
    .relate = AT_ISA_NAME(at_tile_relate),
    .blank = AT_ISA_NAME(at_tile_blank),
    .softmax = AT_ISA_NAME(at_tile_softmax),
    .sigmoid = AT_ISA_NAME(at_tile_sigmoid),
    .relu = AT_ISA_NAME(at_tile_relu),
    .threshold = AT_ISA_NAME(at_tile_threshold),
    .prior = AT_ISA_NAME(at_tile_prior),
    .by_offset = AT_ISA_NAME(at_tile_by_offset),
    .score_heads = score_heads,
    .weigh_heads = weigh_heads,
    .weigh = weigh,
    .gather = gather,
    .multiply = multiply,
    .add_transposed = add_transposed,
    .key_sums = key_sums,
    .weights = AT_ISA_NAME(at_tile_weights),
    .dscore = AT_ISA_NAME(at_tile_dscore),
    .delta = AT_ISA_NAME(at_tile_delta),
};

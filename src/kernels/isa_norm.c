/* Dropout masks, layer norm and the softmax of a cross-entropy, row by row. A row is read two or three times, and
 * from the second time on it is in the cache. */
#include "base/rng.h"
#include "kernels/isa_internal.h"
#include "kernels/passes.h"
#include "kernels/vec_internal.h"

/* ---- Dropout masks ---- */

enum { DRAWN = 8, WORDS = 4 * DRAWN }; /* lanes of Philox at a time */

#if defined(__AVX2__)

/* at_philox for four lanes, one to every 64 bits of c[0..3], of which the low halves count: ten rounds of
 *   (c0, c1, c2, c3) = (high(B c2) ^ c1 ^ k0, low(B c2), high(A c0) ^ c3 ^ k1, low(A c0)),  k0 += W, k1 += X */
INLINE void four_lanes(uint64_t seed, uint64_t counter, uint64_t lane, __m256i c[4])
{
    const __m256i a = _mm256_set1_epi64x(0xd2511f53), b = _mm256_set1_epi64x(0xcd9e8d57);
    const __m256i w = _mm256_set1_epi64x(0x9e3779b9), x = _mm256_set1_epi64x(0xbb67ae85);
    __m256i k0 = _mm256_set1_epi64x((uint32_t)seed), k1 = _mm256_set1_epi64x((long long)(seed >> 32));
    c[0] = _mm256_set1_epi64x((uint32_t)counter);
    c[1] = _mm256_set1_epi64x((long long)(counter >> 32));
    c[2] = _mm256_add_epi64(_mm256_set1_epi64x((uint32_t)lane), _mm256_setr_epi64x(0, 1, 2, 3));
    c[3] = _mm256_set1_epi64x((long long)(lane >> 32));
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        __m256i first = _mm256_mul_epu32(c[0], a), second = _mm256_mul_epu32(c[2], b);
        c[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(second, 32), c[1]), k0);
        c[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(first, 32), c[3]), k1);
        c[1] = second;
        c[3] = first;
        k0 = _mm256_add_epi64(k0, w);
        k1 = _mm256_add_epi64(k1, x);
    }
}

static void eight_lanes(uint64_t seed, uint64_t counter, uint64_t lane, uint32_t word[WORDS])
{
    __m256i c[2][4];
    four_lanes(seed, counter, lane, c[0]);
    four_lanes(seed, counter, lane + 4, c[1]);
    for (int half = 0; half < 2; half++, word += WORDS / 2) {
        __m256i *d = c[half]; /* words 0 1 of a lane side by side, and 2 3 */
        __m256i low = _mm256_blend_epi32(d[0], _mm256_slli_epi64(d[1], 32), 0xaa);
        __m256i high = _mm256_blend_epi32(d[2], _mm256_slli_epi64(d[3], 32), 0xaa);
        __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high); /* lanes 0 2, 1 3 */
        _mm256_storeu_si256((__m256i *)word, _mm256_permute2x128_si256(even, odd, 0x20));
        _mm256_storeu_si256((__m256i *)(word + 8), _mm256_permute2x128_si256(even, odd, 0x31));
    }
}

#else

static void eight_lanes(uint64_t seed, uint64_t counter, uint64_t lane, uint32_t word[WORDS])
{
    for (uint64_t i = 0; i < DRAWN; i++)
        at_philox(seed, counter, lane + i, word + 4 * i);
}

#endif

static void mask(at_real *mask, uint64_t seed, uint64_t counter, int64_t first, int64_t count, at_real keep)
{
    const at_real scale = 1 / keep;
    const uint32_t limit = (uint32_t)((double)keep * 0x1p32);
    /* Eights begin at a multiple of eight, so that the low half of a lane's number never runs over inside of one. */
    for (int64_t done = -(first % WORDS); done < count; done += WORDS) {
        uint32_t word[WORDS];
        eight_lanes(seed, counter, (uint64_t)((first + done) / 4), word);
        if (done >= 0 && done + WORDS <= count) {
            for (int i = 0; i < WORDS; i++)
                mask[done + i] = word[i] < limit ? scale : 0;
            continue;
        }
        int64_t end = count - done < WORDS ? count - done : WORDS;
        for (int64_t i = done < 0 ? -done : 0; i < end; i++)
            mask[done + i] = word[i] < limit ? scale : 0;
    }
}

/* ---- Vectors and the rest of a row ----
 *
 * What happens to a vector is an inlined function of its offset c and how many numbers n there are: LANES, a constant,
 * or what is left at the end of a row. */

INLINE vec let_through(vec x, vec mask)
{
    return v_pick((veci)(mask > 0), x * mask, v_set(0));
}

INLINE void masked_lanes(at_real *to, const at_real *from, const at_real *mask, int64_t c, int64_t n, bool add)
{
    vec x = let_through(v_load_first(from + c, n), v_load_first(mask + c, n));
    v_store_first(to + c, add ? v_load_first(to + c, n) + x : x, n);
}

static void masked(at_real *to, const at_real *from, const at_real *mask, int64_t count, bool add)
{
    int64_t c = 0;
    for (; c + LANES <= count; c += LANES)
        masked_lanes(to, from, mask, c, LANES, add);
    if (c < count)
        masked_lanes(to, from, mask, c, count - c, add);
}

/* ---- Layer norm ---- */

/* s = x + dropout(y), added to the total */
INLINE void sum_lanes(const norm_row *j, int64_t c, int64_t n, vec *total)
{
    vec s = v_load_first(j->x + c, n);
    if (j->y) {
        vec y = v_load_first(j->y + c, n);
        s += j->mask ? let_through(y, v_load_first(j->mask + c, n)) : y;
        v_store_first(j->sum + c, s, n);
    }
    *total += s;
}

INLINE void square_lanes(const at_real *s, at_real mean, int64_t c, int64_t n, vec *square)
{
    vec d = v_pick((veci)(v_lanes() < (at_index)n), v_load_first(s + c, n) - mean, v_set(0));
    *square = v_fma(d, d, *square);
}

INLINE void scale_lanes(const norm_row *j, const at_real *s, at_real mean, at_real r, int64_t c, int64_t n)
{
    v_store_first(
        j->out + c,
        v_fma((v_load_first(s + c, n) - mean) * r, v_load_first(j->gain + c, n), v_load_first(j->bias + c, n)), n);
}

static void norm(norm_row *row)
{
    const norm_row j = *row;
    const at_real *s = j.y ? j.sum : j.x;
    const int64_t whole = j.size / LANES * LANES, rest = j.size - whole;
    vec total = v_set(0), square = v_set(0);
    for (int64_t c = 0; c < whole; c += LANES)
        sum_lanes(&j, c, LANES, &total);
    if (rest)
        sum_lanes(&j, whole, rest, &total);
    const at_real mean = v_sum(total) / (at_real)j.size;
    for (int64_t c = 0; c < whole; c += LANES)
        square_lanes(s, mean, c, LANES, &square);
    if (rest)
        square_lanes(s, mean, whole, rest, &square);
    const at_real r = 1 / AT_REAL(sqrt)(v_sum(square) / (at_real)j.size + j.eps);
    for (int64_t c = 0; c < whole; c += LANES)
        scale_lanes(&j, s, mean, r, c, LANES);
    if (rest)
        scale_lanes(&j, s, mean, r, whole, rest);
    row->mean = mean;
    row->r = r;
}

/* With h = g gain and z = (s - mean) r:  the sums of h and h z over the row;  dgain = g z,  dbias = g */
INLINE void back_sums(const norm_back *j, int64_t c, int64_t n, vec *sum, vec *along)
{
    vec g = v_load_first(j->g + c, n), z = (v_load_first(j->s + c, n) - j->mean) * j->r,
        h = g * v_load_first(j->gain + c, n);
    *sum += h;
    *along = v_fma(h, z, *along);
    if (j->gain_grad)
        v_store_first(j->gain_grad + c, v_fma(g, z, v_load_first(j->gain_grad + c, n)), n);
    if (j->bias_grad)
        v_store_first(j->bias_grad + c, v_load_first(j->bias_grad + c, n) + g, n);
}

/* ds = r (h - mean(h) - z mean(h z)) + g_sum,  dx = ds,  dy = ds where y was kept */
INLINE void back_lanes(const norm_back *j, at_real mean_h, at_real mean_hz, int64_t c, int64_t n)
{
    vec z = (v_load_first(j->s + c, n) - j->mean) * j->r, h = v_load_first(j->g + c, n) * v_load_first(j->gain + c, n);
    vec ds = (h - mean_h - z * mean_hz) * j->r;
    if (j->g_sum)
        ds += v_load_first(j->g_sum + c, n);
    if (j->x_grad)
        v_store_first(j->x_grad + c, j->x_add ? v_load_first(j->x_grad + c, n) + ds : ds, n);
    if (j->y_grad) {
        vec dy = j->mask ? let_through(ds, v_load_first(j->mask + c, n)) : ds;
        v_store_first(j->y_grad + c, j->y_add ? v_load_first(j->y_grad + c, n) + dy : dy, n);
    }
}

static void norm_row_back(const norm_back *row)
{
    const norm_back j = *row;
    const int64_t whole = j.size / LANES * LANES, rest = j.size - whole;
    vec sum = v_set(0), along = v_set(0);
    for (int64_t c = 0; c < whole; c += LANES)
        back_sums(&j, c, LANES, &sum, &along);
    if (rest)
        back_sums(&j, whole, rest, &sum, &along);
    const at_real mean_h = v_sum(sum) / (at_real)j.size, mean_hz = v_sum(along) / (at_real)j.size;
    if (!j.x_grad && !j.y_grad)
        return;
    for (int64_t c = 0; c < whole; c += LANES)
        back_lanes(&j, mean_h, mean_hz, c, LANES);
    if (rest)
        back_lanes(&j, mean_h, mean_hz, whole, rest);
}

/* ---- Softmax of a row of logits ---- */

enum { AT_ONCE = 4, STRETCH = 256 }; /* vectors side by side; numbers that are summed in at_real, sums in double */

INLINE vec only(vec x, int64_t n, at_real otherwise)
{
    return n == LANES ? x : v_pick((veci)(v_lanes() < (at_index)n), x, v_set(otherwise));
}

/* e^(z - max), as 2^((z - max) log2 e) */
INLINE vec above_max(vec z, vec max)
{
    return v_exp2_below((z - max) * AT_LOG2E);
}

/* The largest of up to STRETCH numbers, lane by lane, and their sum. */
INLINE double max_of_stretch(const at_real *z, int64_t size, vec *max)
{
    vec top[AT_ONCE], sum[AT_ONCE];
    for (int l = 0; l < AT_ONCE; l++) {
        top[l] = *max;
        sum[l] = v_set(0);
    }
    int64_t c = 0;
    for (; c + AT_ONCE * LANES <= size; c += AT_ONCE * LANES)
#pragma GCC unroll 4
        for (int l = 0; l < AT_ONCE; l++) {
            vec x = v_load(z + c + l * LANES);
            top[l] = v_max(top[l], x);
            sum[l] += x;
        }
    for (; c < size; c += LANES) {
        int64_t n = size - c < LANES ? size - c : LANES;
        vec x = v_load_first(z + c, n);
        top[0] = v_max(top[0], only(x, n, top[0][0]));
        sum[0] += x;
    }
    *max = v_max(v_max(top[0], top[1]), v_max(top[2], top[3]));
    return v_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The sum of e^(z - max) over up to STRETCH numbers. */
INLINE double sum_of_stretch(const at_real *z, int64_t size, vec max)
{
    vec sum[2] = {v_set(0), v_set(0)};
    int64_t c = 0;
    for (; c + 2 * LANES <= size; c += 2 * LANES) {
        sum[0] += above_max(v_load(z + c), max);
        sum[1] += above_max(v_load(z + c + LANES), max);
    }
    for (; c < size; c += LANES) {
        int64_t n = size - c < LANES ? size - c : LANES;
        sum[0] += only(above_max(v_load_first(z + c, n), max), n, 0);
    }
    return v_sum(sum[0] + sum[1]);
}

static log_sum_row log_sum(const at_real *z, int64_t size)
{
    log_sum_row row = {0};
    vec max = v_set(z[0]);
    for (int64_t c = 0; c < size; c += STRETCH)
        row.total += max_of_stretch(z + c, size - c < STRETCH ? size - c : STRETCH, &max);
    row.max = v_top(max);
    for (int64_t c = 0; c < size; c += STRETCH)
        row.sum += sum_of_stretch(z + c, size - c < STRETCH ? size - c : STRETCH, v_set(row.max));
    /* Whatever is not finite shows in the plain sum, which large numbers may overflow, too. */
    for (int64_t c = 0; !isfinite(row.total) && c < size; c++)
        row.sum = isfinite(z[c]) ? row.sum : (double)NAN;
    return row;
}

INLINE void softmax_lanes(at_real *to, const at_real *z, int64_t n, vec max, vec factor, vec each, bool add)
{
    vec x = v_fma(factor, above_max(v_load_first(z, n), max), -each);
    v_store_first(to, add ? v_load_first(to, n) + x : x, n);
}

static void softmax_back(at_real *to, const at_real *z, int64_t size, at_real max, at_real factor, at_real each,
                         bool add)
{
    int64_t c = 0;
    for (; c + LANES <= size; c += LANES)
        softmax_lanes(to + c, z + c, LANES, v_set(max), v_set(factor), v_set(each), add);
    if (c < size)
        softmax_lanes(to + c, z + c, size - c, v_set(max), v_set(factor), v_set(each), add);
}

const pass_kernels AT_ISA_NAME(at_pass_kernels) = {mask, masked, norm, norm_row_back, log_sum, softmax_back};

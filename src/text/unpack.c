/* gzip by zlib and zstd by libzstd: members and frames one after the other, whose checksums the libraries verify. */
#include "text/unpack_internal.h"

#include <stdlib.h>
#include <string.h>

#define TRAILING "there are other bytes after its end"

/* ---- gzip ----------------------------------------------------------------------------------------------------- */

#ifdef AT_HAVE_ZLIB
#define ZLIB_CONST
#include <zlib.h>

typedef struct gzip {
    z_stream stream;
    bool ended; /* a member is done, and the next one has not begun */
} gzip;

static void *gzip_open(void)
{
    gzip *g = calloc(1, sizeof *g);
    if (g && inflateInit2(&g->stream, MAX_WBITS + 16) == Z_OK) /* + 16: gzip's header and checksum */
        return g;
    free(g);
    return NULL;
}

static const char *gzip_step(void *state, at_unpack_step *step)
{
    gzip *g = state;
    if (g->ended && step->in_size > 0) {
        if (step->in[0] != 0x1f)
            return TRAILING;
        inflateReset(&g->stream);
        g->ended = false;
    }
    g->stream.next_in = step->in;
    g->stream.avail_in = (uInt)step->in_size;
    g->stream.next_out = step->out;
    g->stream.avail_out = (uInt)step->out_size;
    const int status = g->ended ? Z_OK : inflate(&g->stream, Z_NO_FLUSH);
    step->in = g->stream.next_in;
    step->in_size = g->stream.avail_in;
    step->out = g->stream.next_out;
    step->out_size = g->stream.avail_out;
    g->ended = g->ended || status == Z_STREAM_END;
    step->at_end = g->ended;
    if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR)
        return NULL;
    return status == Z_MEM_ERROR ? "out of memory" : g->stream.msg ? g->stream.msg : "unknown error";
}

static void gzip_close(void *state)
{
    gzip *g = state;
    inflateEnd(&g->stream);
    free(g);
}
#else
#define gzip_open  NULL
#define gzip_step  NULL
#define gzip_close NULL
#endif

/* ---- zstd ----------------------------------------------------------------------------------------------------- */

#ifdef AT_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>

typedef struct zstd {
    ZSTD_DStream *stream;
    bool ended, any; /* between frames; a frame was read */
} zstd;

static void *zstd_open(void)
{
    zstd *z = calloc(1, sizeof *z);
    if (z && (z->stream = ZSTD_createDStream()))
        return z;
    free(z);
    return NULL;
}

static const char *zstd_step(void *state, at_unpack_step *step)
{
    zstd *z = state;
    step->at_end = z->ended;
    if (z->ended && step->in_size == 0)
        return NULL;
    ZSTD_inBuffer in = {step->in, step->in_size, 0};
    ZSTD_outBuffer out = {step->out, step->out_size, 0};
    const size_t status = ZSTD_decompressStream(z->stream, &out, &in);
    if (ZSTD_isError(status))
        return z->any && ZSTD_getErrorCode(status) == ZSTD_error_prefix_unknown ? TRAILING : ZSTD_getErrorName(status);
    step->in += in.pos;
    step->in_size -= in.pos;
    step->out += out.pos;
    step->out_size -= out.pos;
    step->at_end = z->ended = status == 0;
    z->any = z->any || z->ended;
    return NULL;
}

static void zstd_close(void *state)
{
    zstd *z = state;
    ZSTD_freeDStream(z->stream);
    free(z);
}
#else
#define zstd_open  NULL
#define zstd_step  NULL
#define zstd_close NULL
#endif

/* ---- Both ----------------------------------------------------------------------------------------------------- */

/* zstd files may begin with a skippable frame, as those of pzstd do. */
static const at_packing packings[] = {
    {"gzip", "zlib", ".gz", {"\x1f\x8b"}, 2, gzip_open, gzip_step, gzip_close},
    {"zstd", "libzstd", ".zst", {"\x28\xb5\x2f\xfd", "\x50\x2a\x4d\x18"}, 4, zstd_open, zstd_step, zstd_close},
};

const at_packing *at_packing_at(int index)
{
    return index >= 0 && index < (int)(sizeof packings / sizeof *packings) ? &packings[index] : NULL;
}

const at_packing *at_packing_find(const unsigned char *bytes, size_t size, bool *more)
{
    *more = false;
    for (int i = 0; at_packing_at(i); i++) {
        const at_packing *packing = at_packing_at(i);
        for (int m = 0; m < 2 && packing->magic[m]; m++) {
            const size_t known = size < packing->magic_size ? size : packing->magic_size;
            if (memcmp(bytes, packing->magic[m], known) != 0)
                continue;
            if (known == packing->magic_size)
                return packing;
            *more = true;
        }
    }
    return NULL;
}

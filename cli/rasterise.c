#include "rasterise.h"

#ifdef AT_HAVE_RSVG

#include <cairo-pdf.h>
#include <dlfcn.h>
#include <errno.h>
#include <librsvg/rsvg.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"

/* Two pixels for each of the drawing, so that small text is sharp; cairo's pictures have sides of at most 32767. */
enum { DENSITY = 2, MOST_SIDE = 32000 };

/* What the drawing process calls, with the types of the headers. */
#define CALLS(X)                                                                                                       \
    X(rsvg_handle_new_from_data)                                                                                       \
    X(rsvg_handle_get_intrinsic_size_in_pixels)                                                                        \
    X(rsvg_handle_render_document)                                                                                     \
    X(cairo_image_surface_create)                                                                                      \
    X(cairo_pdf_surface_create_for_stream)                                                                             \
    X(cairo_pdf_surface_set_metadata)                                                                                  \
    X(cairo_surface_write_to_png_stream)                                                                               \
    X(cairo_surface_finish)                                                                                            \
    X(cairo_surface_status)                                                                                            \
    X(cairo_create)                                                                                                    \
    X(cairo_scale)                                                                                                     \
    X(cairo_status)

#define FIELD(name) __typeof__(name) *name;
typedef struct calls {
    CALLS(FIELD)
} calls;

/* Where the process writes: the file, and a message if it fails. */
typedef struct ends {
    int file, message;
} ends;

static bool say(const ends *to, const char *what, const char *why)
{
    char text[300];
    const int length = snprintf(text, sizeof text, "%s%s%s", what, why ? ": " : "", why ? why : "");
    return write(to->message, text, (size_t)(length < (int)sizeof text ? length : (int)sizeof text - 1)) < 0;
}

static bool load(calls *c, const ends *to)
{
    void *library = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        say(to, "librsvg cannot be loaded", dlerror());
        return false;
    }
#define LOOK_UP(name)                                                                                                  \
    if (!(c->name = (__typeof__(name) *)dlsym(library, #name))) {                                                      \
        say(to, "librsvg is too old", dlerror());                                                                      \
        return false;                                                                                                  \
    }
    CALLS(LOOK_UP)
    return true;
}

static cairo_status_t add_bytes(void *context, const unsigned char *bytes, unsigned int count)
{
    const ends *to = context;
    while (count > 0) {
        const ssize_t written = write(to->file, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            say(to, "cannot write it", strerror(errno));
            return CAIRO_STATUS_WRITE_ERROR;
        }
        bytes += written;
        count -= (unsigned int)written;
    }
    return CAIRO_STATUS_SUCCESS;
}

/* The drawing process; false after a message. */
static bool draw(const char *svg, size_t size, bool is_pdf, ends *to)
{
    calls c;
    double width, height;
    if (!load(&c, to))
        return false;
    RsvgHandle *handle = c.rsvg_handle_new_from_data((const unsigned char *)svg, size, NULL);
    if (!handle || !c.rsvg_handle_get_intrinsic_size_in_pixels(handle, &width, &height))
        return say(to, "librsvg does not read the drawing", NULL);
    const double larger = width > height ? width : height;
    const double scale = is_pdf ? 0.75 : larger * DENSITY <= MOST_SIDE ? DENSITY : MOST_SIDE / larger; /* 96 per inch */
    cairo_surface_t *surface =
        is_pdf ? c.cairo_pdf_surface_create_for_stream(add_bytes, to, width * scale, height * scale)
               : c.cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)ceil(width * scale), (int)ceil(height * scale));
    if (is_pdf) /* none: the same drawing is the same file */
        c.cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "");
    cairo_t *context = c.cairo_create(surface);
    c.cairo_scale(context, scale, scale);
    const RsvgRectangle all = {0, 0, width, height};
    if (!c.rsvg_handle_render_document(handle, context, &all, NULL) || c.cairo_status(context) != CAIRO_STATUS_SUCCESS)
        return say(to, "librsvg does not draw it", NULL);
    if (!is_pdf)
        return c.cairo_surface_write_to_png_stream(surface, add_bytes, to) == CAIRO_STATUS_SUCCESS;
    c.cairo_surface_finish(surface);
    return c.cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS;
}

/* What the process said before it ended. */
static void read_message(int from, char *text, size_t size)
{
    size_t used = 0;
    ssize_t more = 0;
    do {
        more = read(from, text + used, size - 1 - used);
        used += more > 0 ? (size_t)more : 0;
    } while ((more > 0 && used < size - 1) || (more < 0 && errno == EINTR));
    text[used] = 0;
}

static bool draw_apart(const char *svg, size_t size, bool is_pdf, int file, const char *path, at_error *error)
{
    int pipes[2], status = 0;
    char text[300] = "";
    if (pipe(pipes) != 0)
        return fail(error, AT_FILE, "cannot draw '%s': %s", path, strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        ends to = {file, pipes[1]};
        close(pipes[0]);
        _exit(draw(svg, size, is_pdf, &to) ? 0 : 1);
    }
    close(pipes[1]);
    if (child > 0) {
        read_message(pipes[0], text, sizeof text);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(pipes[0]);
    if (child < 0)
        return fail(error, AT_FILE, "cannot draw '%s': %s", path, strerror(errno));
    if (WIFSIGNALED(status))
        return fail(error, AT_MEMORY,
                    "cannot draw '%s': librsvg ended with signal %d, as it does when it runs out of memory", path,
                    WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ||
           fail(error, AT_FILE, "cannot draw '%s': %s", path, *text ? text : "librsvg failed");
}

bool rasterise(const char *svg, size_t size, const char *path, at_error *error)
{
    at_writer *writer = at_writer_open(path, error);
    if (!writer)
        return false;
    if (draw_apart(svg, size, ends_in(path, ".pdf"), at_writer_file(writer), path, error))
        return at_writer_commit(writer, error);
    at_writer_cancel(writer);
    return false;
}

#else

bool rasterise(const char *svg, size_t size, const char *path, at_error *error)
{
    (void)svg, (void)size;
    return fail(error, AT_UNSUPPORTED,
                "cannot draw '%s': this attend was built without librsvg; write a file that ends in .svg", path);
}

#endif

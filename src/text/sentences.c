/* ICU is loaded when it is first needed, as libmicrohttpd is: it is larger than all the rest. */
#include "text/sentences.h"

#include <string.h>

#include "base/error.h"
#include "base/library.h"

#ifdef AT_HAVE_ICU
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unicode/ubrk.h>
#include <unicode/utext.h>

#define FUNCTIONS(X)                                                                                                   \
    X(utext_openUTF8) X(utext_close) X(ubrk_open) X(ubrk_close) X(ubrk_setUText) X(ubrk_first) X(ubrk_next)
/* ICU's names end in its version, by macros: the one here, and the one of the name it stands for. */
#define TEXT(x)  #x
#define NAMED(x) TEXT(x)

static struct {
#define FIELD(name) __typeof__(name) *call_##name;
    FUNCTIONS(FIELD)
#undef FIELD
} icu;
static at_error fault;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    static const char name[] = "libicuuc.so." NAMED(U_ICU_VERSION_MAJOR_NUM);
    void *library =
        at_library_load(name, false, "splitting lines into sentences", "libicu" NAMED(U_ICU_VERSION_MAJOR_NUM), &fault);
#define LOAD(function)                                                                                                 \
    if (library) {                                                                                                     \
        void *found = dlsym(library, NAMED(function));                                                                 \
        if (!found)                                                                                                    \
            at_fail(&fault, AT_UNSUPPORTED, "%s has no function %s", name, NAMED(function));                           \
        memcpy(&icu.call_##function, &found, sizeof found);                                                            \
    }
    FUNCTIONS(LOAD)
#undef LOAD
}

struct at_splitter {
    UBreakIterator *breaks;
    UText *text;
    at_line line;
    int32_t at;
};

bool at_splitter_load(at_error *error)
{
    pthread_once(&once, load);
    return fault.code == AT_OK || at_fail(error, (at_code)fault.code, "%s", fault.text);
}

/* ICU crashes if there is no memory for the data of a language, so it is only called if there is. */
static bool has_memory(void)
{
    enum { ENOUGH = 1 << 20 };
    void *volatile block = malloc(ENOUGH); /* volatile: compilers leave out a block that nothing reads */
    const bool enough = block;
    free(block);
    return enough;
}

at_splitter *at_splitter_new(const char *language, at_error *error)
{
    UErrorCode code = U_ZERO_ERROR;
    char locale[60];
    at_splitter *s = at_splitter_load(error) ? calloc(1, sizeof *s) : NULL;
    snprintf(locale, sizeof locale, "%s@ss=standard", language); /* with the abbreviations of the language */
    if (s && has_memory())
        s->breaks = icu.call_ubrk_open(UBRK_SENTENCE, locale, NULL, 0, &code);
    if (s && s->breaks && U_SUCCESS(code))
        return s;
    at_splitter_free(s);
    at_no_memory(error, "the sentences of '%s'", language);
    return NULL;
}

void at_splitter_free(at_splitter *s)
{
    if (!s)
        return;
    if (s->breaks)
        icu.call_ubrk_close(s->breaks);
    if (s->text)
        icu.call_utext_close(s->text);
    free(s);
}

bool at_splitter_begin(at_splitter *s, at_line line)
{
    UErrorCode code = U_ZERO_ERROR;
    s->line = line;
    s->text = icu.call_utext_openUTF8(s->text, line.text, (int64_t)line.size, &code);
    icu.call_ubrk_setUText(s->breaks, s->text, &code);
    s->at = U_SUCCESS(code) ? icu.call_ubrk_first(s->breaks) : 0;
    return U_SUCCESS(code);
}

bool at_splitter_next(at_splitter *s, at_line *sentence)
{
    const int32_t end = icu.call_ubrk_next(s->breaks);
    if (end == UBRK_DONE)
        return false;
    *sentence = (at_line){s->line.text + s->at, (size_t)(end - s->at)};
    s->at = end;
    while (sentence->size > 0 && strchr(" \t\v\f\r", *sentence->text))
        *sentence = (at_line){sentence->text + 1, sentence->size - 1};
    while (sentence->size > 0 && strchr(" \t\v\f\r", sentence->text[sentence->size - 1]))
        sentence->size--;
    return true;
}

#else

bool at_splitter_load(at_error *error)
{
    return at_fail(error, AT_UNSUPPORTED,
                   "this attend was built without ICU, which splitting lines into sentences needs (Debian package "
                   "libicu-dev)");
}

at_splitter *at_splitter_new(const char *language, at_error *error)
{
    (void)language;
    at_splitter_load(error);
    return NULL;
}

void at_splitter_free(at_splitter *splitter)
{
    (void)splitter;
}

bool at_splitter_begin(at_splitter *splitter, at_line line)
{
    (void)splitter;
    (void)line;
    return false;
}

bool at_splitter_next(at_splitter *splitter, at_line *sentence)
{
    (void)splitter;
    (void)sentence;
    return false;
}
#endif

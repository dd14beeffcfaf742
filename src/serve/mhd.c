#ifdef AT_HAVE_MICROHTTPD
#include "serve/mhd_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/library.h"

at_mhd at_mhd_loaded;
static at_error fault;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    static const char name[] = "libmicrohttpd.so.12";
    void *library = at_library_load(name, false, "a server", "libmicrohttpd12", &fault);
    if (!library)
        return;
#define LOAD(field)                                                                                                    \
    {                                                                                                                  \
        void *found = dlsym(library, "MHD_" #field);                                                                   \
        if (!found)                                                                                                    \
            at_fail(&fault, AT_UNSUPPORTED, "%s has no function MHD_" #field, name);                                   \
        memcpy(&at_mhd_loaded.field, &found, sizeof found); /* C has no conversion of an object to a function */       \
    }
    AT_MHD_FUNCTIONS(LOAD)
#undef LOAD
}

bool at_mhd_load(at_error *error)
{
    pthread_once(&once, load);
    return fault.code == AT_OK || at_fail(error, (at_code)fault.code, "%s", fault.text);
}
#endif

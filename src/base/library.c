#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

void *at_library_load(const char *name, bool global, const char *what, const char *package, at_error *error)
{
    errno = 0;
    void *library = dlopen(name, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    const bool no_memory = errno == ENOMEM; /* not all messages of the loader say so */
    const char *why = library ? NULL : dlerror();
    if (why && (no_memory || strstr(why, "memory")))
        at_no_memory(error, "%s", name);
    else if (!library)
        at_fail(error, AT_UNSUPPORTED, "%s needs %s, which is not installed (Debian package %s)", what, name, package);
    return library;
}

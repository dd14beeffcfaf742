/* Libraries that are loaded while the program runs, because only a part of it needs them. */
#ifndef AT_LIBRARY_H
#define AT_LIBRARY_H

#include "attend.h"

/* Loads a library, which stays until the process ends; NULL with "WHAT needs NAME, which is not installed (Debian package
 * PACKAGE)", or out of memory. `global`: its names are visible to the libraries that it loads itself. */
void *at_library_load(const char *name, bool global, const char *what, const char *package, at_error *error);

#endif

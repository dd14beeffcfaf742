/* A run of one command from its arguments to its exit code: what attend and attend-bench share. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "options.h"

/* Parses the arguments, answers --help and --version, sets the threads and runs the command; returns the exit code.
 * argv[0] is the command's name. */
int program_run(const cli_command *command, int argc, char **argv);

/* Fails if this process is one of several that mpirun or srun started; `what` cannot use them. */
bool program_alone(const char *what, at_error *error);

/* Replaces this process by the program attend-NAME of a command that has no `run`, with all arguments: the one in the
 * folder of this program, else the one in PATH. Returns, with an exit code, only if it cannot be started. */
int program_start(const cli_command *command, char **argv);

/* Opens those of the descriptors 0, 1 and 2 that are closed, such that reading and writing them fails: a file opened
 * later would get the number, and be read as the input or receive the messages. */
void program_hold_streams(void);

/* Whether a signal is ignored, as nohup makes it for SIGHUP. */
bool program_ignores(int signal);

/* Prints "attend VERSION". */
void program_version(void);

/* Flushes stdout before the program ends. A full disk or a closed pipe may show only then, and the output was not
 * delivered: returns `code`, or that of the failure if `code` is EXIT_DONE. */
int program_finish(int code);

#endif

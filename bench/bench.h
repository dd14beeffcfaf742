/* `attend bench`: ours against the rivals and against what the machine can do. */
#ifndef BENCH_H
#define BENCH_H

/* argv[0] is "bench". Gives the command's exit code: 0 done, 1 failed, 2 bad usage. */
int bench_main(int argc, char **argv);

#endif

/* tools/top.h - noh top: a live screen of a running server. */
#ifndef NOH_TOOLS_TOP_H
#define NOH_TOOLS_TOP_H

int top_main(int argc, char **argv);     /* the exit code; argv[0] is "top" */

#endif

/* tools/trace.h - noh trace: where a request was, and how long. Each verb returns its exit code. */
#ifndef NOH_TOOLS_TRACE_H
#define NOH_TOOLS_TRACE_H

int trace_main(int argc, char **argv);

#endif

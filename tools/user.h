/* tools/user.h - noh user: who may use a server. */
#ifndef NOH_TOOLS_USER_H
#define NOH_TOOLS_USER_H

int user_main(int argc, char **argv);   /* the exit code; argv[0] is "user" */

#endif

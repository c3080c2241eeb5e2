/* tools/sim.h - noh sim: a whole box from one seed, with crashes (tests/sim/box). */
#ifndef NOH_TOOLS_SIM_H
#define NOH_TOOLS_SIM_H

int sim_main(int argc, char **argv);    /* the exit code; argv[0] is "sim" */

#endif

#include <stdint.h>
extern uint64_t ring_life;

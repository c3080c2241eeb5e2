/* actors/json_types.h - the JSON hooks of the built-in types: counter_json.c, inventory_json.c, later_json.c.
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_ACTORS_JSON_TYPES_H
#define NOH_ACTORS_JSON_TYPES_H

#include "actors/json.h"

int counter_from_json(void *user, noh_json_message *m);
int counter_to_json(void *user, noh_json_reply *r);
int inventory_from_json(void *user, noh_json_message *m);
int inventory_to_json(void *user, noh_json_reply *r);
int later_from_json(void *user, noh_json_message *m);
int later_to_json(void *user, noh_json_reply *r);

#endif
